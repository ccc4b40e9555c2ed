"""Download files with known hashes from a Maven repository, several at a time."""

import hashlib
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path, PurePosixPath
from threading import Event, Lock

import httpx
import truststore

from kdeclare.core.secrets.scrubber import SCRUBBER

_THREADS = 8
_ATTEMPTS = 3
_TIMEOUT_S = 30
_PAUSE_S = 0.5
"""The time to wait before the second attempt. It doubles with each further attempt."""
_REPORT_INTERVAL_S = 3.0
_PERMANENT_STATUSES = frozenset({400, 401, 403, 404, 407, 410})
"""HTTP statuses after which a second attempt would fail, too."""

_ERROR_NUMBER = re.compile(r"^\[Errno -?\d+\] ")

ReportProgress = Callable[[int, int], None]
"""A function that is called every few seconds with the numbers of downloaded files and of received bytes."""


class DownloadError(Exception):
    """Raised if a file cannot be downloaded. The message is the reason, without credentials."""


class AlteredFilesError(Exception):
    """Raised if downloaded files do not have the expected hashes. These files are not kept."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self.names = tuple(names)


def download_files(
    pins: Mapping[str, str], folder: Path, mirror: str, report: ReportProgress
) -> tuple[Path, ...]:
    """Download the files that the folder does not contain yet, and return the paths of all files.

    A file gets its final name only after its hash was verified, so that the folder never contains a partial
    file. Like other programs, this function trusts the certificate authorities of the operating system, such
    as that of a company's proxy, and uses the proxies and credentials that the environment configures
    (``HTTPS_PROXY``, ``.netrc``). Raises `DownloadError`, `AlteredFilesError` and OSError.

    pins: the SHA-256 of each file in hexadecimal, by the path of the file in the repository.
    mirror: the URL of the repository. It can contain a user name and a password.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = {path: pin for path, pin in pins.items() if not _has_hash(folder / _get_name(path), pin)}
    altered: list[str] = []
    # Without this context, httpx trusts only the public authorities that one of its packages contains.
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True, verify=context) as client:
        transfer = _Transfer(client, _parse_mirror(mirror), folder, report)
        with ThreadPoolExecutor(_THREADS) as pool:
            futures = {pool.submit(transfer.fetch, path, pin): path for path, pin in missing.items()}
            try:
                for future in as_completed(futures):
                    if not future.result():
                        altered.append(_get_name(futures[future]))
            except BaseException:  # including Ctrl-C: each thread ends after its current block
                transfer.stopped.set()
                pool.shutdown(cancel_futures=True)
                raise
    if altered:
        raise AlteredFilesError(sorted(altered))
    return tuple(folder / _get_name(path) for path in pins)


def _parse_mirror(mirror: str) -> httpx.URL:
    try:
        url = httpx.URL(mirror)
    except httpx.InvalidURL as problem:
        raise DownloadError(f"the address of the mirror is not a URL: {problem}") from problem
    if url.scheme not in {"http", "https"} or not url.host:
        raise DownloadError("the address of the mirror must start with https:// or http://")
    if url.password:
        SCRUBBER.register(url.password)
    return url


def _get_name(path: str) -> str:
    return PurePosixPath(path).name


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal. Raises OSError."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _has_hash(file: Path, pin: str) -> bool:
    try:
        return hash_file(file) == pin
    except OSError:
        return False


class _Transfer:
    """Downloads files, in any number of threads.

    stopped: an event that, when set, ends all downloads.
    """

    def __init__(self, client: httpx.Client, mirror: httpx.URL, folder: Path, report: ReportProgress) -> None:
        self._client = client
        self._mirror = mirror
        self._folder = folder
        self._report = report
        self._lock = Lock()
        self._file_count = self._byte_count = 0
        self._reported_at = time.monotonic()
        self.stopped = Event()

    def fetch(self, path: str, pin: str) -> bool:
        """Download one file. Return whether it has the expected hash. Raises DownloadError and OSError."""
        temporary_file = self._folder / f".{_get_name(path)}.{os.getpid()}"
        try:
            if self._fetch_with_retries(path, temporary_file) != pin:
                return False
            temporary_file.replace(self._folder / _get_name(path))
        finally:
            temporary_file.unlink(missing_ok=True)
        self._count(files=1)
        return True

    def _fetch_with_retries(self, path: str, file: Path) -> str:
        attempt = 1
        while True:
            try:
                return self._fetch_once(path, file)
            except httpx.HTTPError as problem:
                is_permanent = (
                    isinstance(problem, httpx.HTTPStatusError)
                    and problem.response.status_code in _PERMANENT_STATUSES
                )
                pause_s = _PAUSE_S * 2 ** (attempt - 1)
                if is_permanent or attempt == _ATTEMPTS or self.stopped.wait(pause_s):
                    raise DownloadError(self._explain(path, problem)) from problem
                attempt += 1

    def _fetch_once(self, path: str, file: Path) -> str:
        """Download a file, and return its SHA-256 in hexadecimal."""
        digest = hashlib.sha256()
        with self._client.stream("GET", f"{str(self._mirror).rstrip('/')}/{path}") as response:
            response.raise_for_status()
            with file.open("wb") as content:
                for block in response.iter_bytes():
                    if self.stopped.is_set():
                        raise DownloadError("the download was stopped")
                    content.write(block)
                    digest.update(block)
                    self._count(received=len(block))
        return digest.hexdigest()

    def _explain(self, path: str, problem: httpx.HTTPError) -> str:
        address = f"{str(self._mirror.copy_with(userinfo=b'')).rstrip('/')}/{path}"
        if isinstance(problem, httpx.HTTPStatusError):
            return f"HTTP status {problem.response.status_code}: {address}"
        reason = _ERROR_NUMBER.sub("", str(problem)) or type(problem).__name__
        return f"{reason}: {address}"

    def _count(self, files: int = 0, received: int = 0) -> None:
        with self._lock:
            self._file_count += files
            self._byte_count += received
            now = time.monotonic()
            if now - self._reported_at < _REPORT_INTERVAL_S:
                return
            self._reported_at = now
            counts = self._file_count, self._byte_count
        self._report(*counts)
