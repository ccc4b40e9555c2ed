"""Files are downloaded several at a time, verified, and never kept in part."""

import base64
import hashlib
import ssl
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest

from kdeclare.http import download
from kdeclare.http.download import AlteredFilesError, DownloadError, download_files
from tests.http_servers import serve
from tests.unit.connect.https_stub import create_key_pair, run_https_stub

PINS = {f"org/n{i}/n{i}-1.jar": hashlib.sha256(f"n{i}".encode() * 50_000).hexdigest() for i in range(8)}
FIRST = next(iter(PINS))


@dataclass
class Repository:
    """A Maven repository on this machine, and what was requested.

    statuses: for a path, the statuses of the first requests. together: how many requests must arrive before
    one is answered. cut: a path whose content ends early.
    """

    statuses: dict[str, list[int]] = field(default_factory=dict)
    together: int = 1
    cut: str = ""
    requests: Counter[str] = field(default_factory=Counter)
    logins: set[str | None] = field(default_factory=set)
    address: str = ""


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """A running repository."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "_REPORT_INTERVAL_S", 0.0)
    monkeypatch.setattr(download, "_PAUSE_S", 0.01)
    state = Repository()
    barriers: list[Barrier] = []

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            path = self.path.removeprefix("/maven/")
            state.requests[path] += 1
            state.logins.add(self.headers["Authorization"])
            if state.together > 1:
                if not barriers:
                    barriers.append(Barrier(state.together, timeout=20))
                try:
                    barriers[0].wait()
                except BrokenBarrierError:
                    self.send_error(500)
                    return
            waiting = state.statuses.get(path)
            if waiting:
                self.send_error(waiting.pop(0))
                return
            content = path.split("/")[1].encode() * 50_000
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:70_000] if path == state.cut else content)

        def log_message(self, *_: object) -> None:
            """Keep the output of tests clean."""

    with serve(Handler, ("GET",)) as url:
        state.address = f"{url}/maven"
        yield state


def fetch(
    repository: Repository, folder: Path, pins: dict[str, str] = PINS, address: str = ""
) -> tuple[tuple[Path, ...], list[tuple[int, int]]]:
    """Download the files, and return their paths and the reports of progress."""
    reports: list[tuple[int, int]] = []
    mirror = address or repository.address
    paths = download_files(pins, folder, mirror, lambda files, size: reports.append((files, size)))
    return paths, reports


def test_files_are_downloaded_together_and_verified(repository: Repository, tmp_path: Path) -> None:
    repository.together = len(PINS)
    paths, reports = fetch(repository, tmp_path / "jars")
    assert [path.name for path in paths] == [path.rpartition("/")[2] for path in PINS]
    assert paths[0].read_bytes() == b"n0" * 50_000
    assert max(reports) == (8, 8 * 100_000)
    assert repository.requests == Counter(PINS.keys())
    assert {path.name for path in (tmp_path / "jars").iterdir()} == {path.name for path in paths}


def test_only_missing_and_changed_files_are_downloaded(repository: Repository, tmp_path: Path) -> None:
    paths, _ = fetch(repository, tmp_path)
    repository.requests.clear()
    paths[0].write_bytes(b"changed")
    paths[1].unlink()
    fetch(repository, tmp_path)
    assert repository.requests == Counter([*PINS][:2])
    assert paths[0].read_bytes() == b"n0" * 50_000


def test_altered_file_is_not_kept(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(AlteredFilesError) as raised:
        fetch(repository, tmp_path, {**PINS, FIRST: "0" * 64})
    assert raised.value.names == ("n0-1.jar",)
    assert "n0-1.jar" not in {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("statuses", [[503], [503, 500]])
def test_failed_request_is_repeated(repository: Repository, tmp_path: Path, statuses: list[int]) -> None:
    repository.statuses[FIRST] = list(statuses)
    fetch(repository, tmp_path)
    assert repository.requests[FIRST] == len(statuses) + 1


@pytest.mark.parametrize(("statuses", "attempts"), [([404], 1), ([401], 1), ([503] * 3, 3)])
def test_failure_is_explained_without_credentials(
    repository: Repository, tmp_path: Path, statuses: list[int], attempts: int
) -> None:
    repository.statuses[FIRST] = list(statuses)
    address = repository.address.replace("//", "//ann:se%40cret@")
    with pytest.raises(DownloadError) as raised:
        fetch(repository, tmp_path, address=f"{address}/")
    assert str(raised.value) == f"HTTP status {statuses[0]}: {repository.address}/{FIRST}"
    assert repository.requests[FIRST] == attempts
    assert repository.logins == {f"Basic {base64.b64encode(b'ann:se@cret').decode()}"}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_partial_file_is_not_kept(repository: Repository, tmp_path: Path) -> None:
    repository.cut = FIRST
    with pytest.raises((DownloadError, AlteredFilesError)):
        fetch(repository, tmp_path)
    assert "n0-1.jar" not in {path.name for path in tmp_path.iterdir()}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "maven.example", "http://[::1", "file:///jars"])
def test_unusable_mirror_is_a_download_error(repository: Repository, tmp_path: Path, address: str) -> None:
    with pytest.raises(DownloadError, match=r".+"):
        fetch(repository, tmp_path, {FIRST: PINS[FIRST]}, address=address)


@pytest.mark.parametrize("is_trusted", [True, False])
def test_authorities_of_operating_system_are_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_trusted: bool
) -> None:
    certificate, key = create_key_pair(tmp_path, "repository")
    other_certificate, _ = create_key_pair(tmp_path, "other")
    monkeypatch.setattr(download, "_PAUSE_S", 0.01)
    monkeypatch.setenv("no_proxy", "localhost")
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    authority = certificate if is_trusted else other_certificate
    # OpenSSL would otherwise load the authorities of this machine.
    monkeypatch.setattr(
        ssl.SSLContext, "set_default_verify_paths", lambda self: self.load_verify_locations(authority)
    )
    pins = {FIRST: hashlib.sha256(b"content").hexdigest()}
    with run_https_stub(certificate, key) as stub:
        stub.answers["GET", f"/maven/{FIRST}"] = (200, b"content")
        if is_trusted:
            (path,) = download_files(pins, tmp_path / "jars", f"{stub.url}/maven", lambda *_: None)
            assert path.read_bytes() == b"content"
            return
        with pytest.raises(DownloadError, match="certificate verify failed"):
            download_files(pins, tmp_path / "jars", f"{stub.url}/maven", lambda *_: None)
