"""Access to the plug-in's endpoints, and the files that it opens for clients."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.client.port import NOT_AUTHORIZED
from kdeclare.providers.connect.client.rest import open_rest_workers
from kdeclare.providers.connect.worker_state import WorkerGroup
from tests.kafka.connect.asking import KEYSTORE, PATH, TRUSTSTORE
from tests.kafka.connect.test_settings import build_basic_header
from tests.kafka.connect.workers import OPEN, Worker, Workshop, run_workers

pytestmark = pytest.mark.kafka

_PREFIX = "kdeclare.worker.config."
_REQUESTS = [
    ("GET", PATH),
    ("GET", f"{PATH}/status"),
    ("POST", f"{PATH}/validate"),
    ("PATCH", PATH),
    ("DELETE", f"{PATH}/{KEYSTORE}"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The only folder in which the worker `limited` may open key stores."""
    return tmp_path_factory.mktemp("allowed")


@pytest.fixture(scope="module")
def workers(workshop: Workshop, folder: Path) -> Iterator[dict[str, Worker]]:
    """Workers with different access settings; `limited` admits all clients, and opens files in one folder."""
    admins = folder / "admins.properties"
    admins.write_text("ada=lovelace\n")
    file = {f"{_PREFIX}admins.file": str(admins)}
    differences = {
        "unsaid": {OPEN: ""},
        "both": file,
        "misspelled": {OPEN: "yes"},
        "unreadable": {OPEN: "false", f"{_PREFIX}admins.file": str(folder / "nowhere")},
        "mistaken": {OPEN: "", **file, f"{_PREFIX}whitelist": "group.id"},
        "limited": {f"{_PREFIX}allowed.paths": f"/nowhere, {folder / 'link'}"},
    }
    (folder / "stores").mkdir()
    (folder / "link").symlink_to(folder / "stores")
    made = {name: workshop.worker(name, name, more) for name, more in differences.items()}
    with run_workers(list(made.values())):
        yield made


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "unsaid",
            "this worker's configuration names no administrators. Set kdeclare.worker.config.admins.file",
        ),
        ("both", "kdeclare.worker.config.open=true and kdeclare.worker.config.admins.file contradict"),
        ("misspelled", "kdeclare.worker.config.open must be true or false."),
    ],
)
def test_worker_without_access_settings_denies_all(workers: dict[str, Worker], name: str, why: str) -> None:
    ask = workers[name].ask
    change = {KEYSTORE: str(workers[name].certificates.store("a"))}
    for method, path in _REQUESTS:
        for headers in ({}, build_basic_header("ada", "lovelace")):
            refused = ask(method, path, change, headers)
            assert (refused.status, refused.message[:15]) == (403, "Access denied: ")
            assert why in refused.message
    assert why in workers[name].read_log()
    assert ask.read_served_sha256() == workers[name].certificates.sha256["static"]
    assert ask("GET", "/connectors").status == 200


def test_worker_without_admins_file_denies_all(workers: dict[str, Worker]) -> None:
    for method, path in _REQUESTS:
        assert workers["unreadable"].ask(method, path, {}).status == 401
        assert (
            workers["unreadable"].ask(method, path, {}, build_basic_header("ada", "lovelace")).status == 403
        )


def test_kdeclare_logs_in_with_authorization_header(workers: dict[str, Worker]) -> None:
    worker = workers["mistaken"]
    url = f"https://127.0.0.1:{worker.port}"
    files = (str(worker.certificates.authority_pem), str(worker.certificates.client_pem))
    stranger = open_rest_workers(WorkerGroup((url,), *files), Path(), str)
    with pytest.raises(Fault, match="Administrator access is required") as refused:
        stranger.status(url)
    assert refused.value.error == NOT_AUTHORIZED
    login = WorkerGroup((url,), *files, headers=tuple(build_basic_header("ada", "lovelace").items()))
    assert "group.id" in str(open_rest_workers(login, Path(), str).status(url).error)


def test_worker_with_invalid_settings_still_requires_login(workers: dict[str, Worker]) -> None:
    ask = workers["mistaken"].ask
    assert ask("GET", f"{PATH}/status").status == 401
    assert "group.id" in ask.status(build_basic_header("ada", "lovelace"))["error"]["message"]
    assert ask("PATCH", PATH, {}, build_basic_header("ada", "lovelace")).status == 503


@pytest.mark.parametrize("key", [KEYSTORE, TRUSTSTORE])
def test_key_store_that_is_no_regular_file_is_refused(
    workers: dict[str, Worker], folder: Path, key: str
) -> None:
    """A pipe without a writer would block the worker forever."""
    pipe = folder / "stores" / f"pipe-{key}"
    os.mkfifo(pipe)
    ask = workers["limited"].ask
    for path in (pipe, folder / "stores"):
        answer = ask.validate({key: str(path)})
        assert answer.body["errors"] == {key: [f"This is not a regular file: {path}."]}
        assert ask.patch({key: str(path)}).status == 400


def test_huge_key_store_is_refused(workers: dict[str, Worker], folder: Path) -> None:
    huge = folder / "stores" / "huge.p12"
    with huge.open("wb") as file:
        file.truncate(20 * 1024**3)
    answer = workers["limited"].ask.validate({KEYSTORE: str(huge)})
    assert answer.body["errors"] == {KEYSTORE: [f"Larger than 16777216 bytes: {huge}."]}


def test_key_store_outside_allowed_folders_is_refused(
    workers: dict[str, Worker], folder: Path, workshop: Workshop
) -> None:
    ask, store = workers["limited"].ask, workshop.certificates.store("a")
    (folder / "stores" / "leads-out.p12").symlink_to(store)
    (folder / "stores" / "a.p12").write_bytes(store.read_bytes())
    outside = (
        store,
        folder / "stores" / "leads-out.p12",
        folder / "stores" / ".." / "admins.properties",
        folder / "missing.p12",  # whether it exists is not revealed
        Path("/dev/zero"),
    )
    for path in outside:
        errors = ask.validate({KEYSTORE: str(path)}).body["errors"]
        assert errors == {
            KEYSTORE: [f"Not below a folder that kdeclare.worker.config.allowed.paths allows: {path}."]
        }
    missing = folder / "link" / "missing.p12"
    assert ask.validate({KEYSTORE: str(missing)}).body["errors"] == {
        KEYSTORE: [f"There is no file {missing} on this worker."]
    }
    for path in (folder / "link" / "a.p12", folder / "stores" / "a.p12"):
        assert ask.patch({KEYSTORE: str(path)}).status == 200
    assert ask.read_served_sha256() == workshop.certificates.sha256["a"]
    # the operator chooses what the worker's own file names
    assert ask.patch({KEYSTORE: None}).status == 200
