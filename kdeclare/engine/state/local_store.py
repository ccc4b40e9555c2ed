"""A store in a local folder: its location, the state file, and the journal of each run."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from kdeclare.core.jsontypes import JsonValue, as_object, parse_json
from kdeclare.core.plans.state import LockInfo, State
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.engine.state.document import decode_state, encode_state, validate_next_state
from kdeclare.engine.state.durable_files import (
    create_folder,
    find_mode,
    find_private_mode,
    make_folder,
    remove_temporary_files,
    replace_file,
    write_all,
)
from kdeclare.engine.state.lock import FileLock
from kdeclare.engine.state.port import StateStore, is_folder_name, is_run_id
from kdeclare.engine.state.problems import (
    build_corruption_error,
    build_location_error,
    build_run_exists_error,
    build_unknown_run_error,
    explain_os_errors,
)

_JOURNAL_HINT = "Restore the file from a backup."


def format_journal_line(seq: int, entry: JsonValue) -> bytes:
    """Return one line: ``{"sum": …, "seq": …, "entry": …}``. ``sum`` is a checksum of the rest of the line.

    The line is pure ASCII, so that an entry with any text from a broker can be written.
    """
    body = f'"seq":{seq},"entry":{json.dumps(entry, separators=(",", ":"))}}}'.encode()
    return b'{"sum":"%s",%s\n' % (_compute_checksum(body), body)


def parse_journal(data: bytes, location: str) -> tuple[tuple[JsonValue, ...], int]:
    """Return the entries in a journal, and the number of bytes that the entries take.

    Any further bytes are an incomplete last line. A crash can leave only the last line incomplete, because
    each line is on disk before the next one is written. Raises KdeclareError, with the line number, for an
    invalid earlier line.
    """
    *lines, tail = data.split(b"\n")
    entries: list[JsonValue] = []
    valid_length = 0
    for number, text in enumerate(lines, start=1):
        reason = _find_line_error(text, number)
        if reason is None:
            entries.append(as_object(parse_json(text))["entry"])
            valid_length += len(text) + 1
        elif number < len(lines) or tail:
            raise build_corruption_error(f"{location}, line {number}", reason, _JOURNAL_HINT)
    return tuple(entries), valid_length


def _find_line_error(text: bytes, number: int) -> str | None:
    if text[:8] != b'{"sum":"' or text[24:26] != b'",':
        return "it is not a journal line"
    body = text[26:]
    if _compute_checksum(body) != text[8:24]:
        return "its checksum does not match"
    if not body.startswith(b'"seq":%d,' % number):
        return "it is not the next in sequence: lines were removed, added or reordered"
    return None


def _compute_checksum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest()[:16].encode()


class FileJournal:
    """A `Journal` in a file. ``guard`` raises an error if this process no longer holds the lock."""

    def __init__(self, path: Path, run_id: str, guard: Callable[[], None]) -> None:
        """Open an existing journal. Ignore an incomplete last line, which a crash can leave.

        Raises KdeclareError if the journal cannot be opened or an earlier line is invalid.
        """
        self._path = path
        self._run_id = run_id
        self._check_lock = guard
        self._fd: int | None = None
        with explain_os_errors("read", path):
            entries, self._end = parse_journal(path.read_bytes(), str(path))
        self._seq = len(entries)
        with explain_os_errors("write", path):
            self._fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        # The file can contain more than the valid lines: an incomplete line, or an append that failed
        # halfway.
        self._torn = True

    @property
    def run_id(self) -> str:
        """The id of the run that the journal records."""
        return self._run_id

    def append(self, entry: JsonValue) -> None:
        """See `Journal.append`."""
        if self._fd is None:
            raise ValueError("the journal is closed")
        self._check_lock()
        data = format_journal_line(self._seq + 1, SCRUBBER.scrub_json(entry))
        with explain_os_errors("write", self._path):
            if self._torn:
                self._truncate(self._fd)
            self._torn = True
            try:
                write_all(self._fd, data)
                os.fsync(self._fd)
            except BaseException:
                with suppress(OSError):  # the next append tries again
                    self._truncate(self._fd)
                raise
        self._torn = False
        self._seq += 1
        self._end += len(data)

    def _truncate(self, fd: int) -> None:
        os.ftruncate(fd, self._end)
        os.lseek(fd, self._end, os.SEEK_SET)

    def close(self) -> None:
        """See `Journal.close`."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_LOCATION_HINT = "Specify a folder, or file:///absolute/folder."


def open_store(location: str | Path, project: str, env: str) -> StateStore:
    """Return the store of a project in an environment. This function reads and creates nothing.

    location: a folder, or a ``file:`` URL of a folder. Raises KdeclareError for a different scheme, and for a
    project or environment name that cannot be the name of a folder.
    """
    return LocalStore(resolve_folder(location, project, env))


def resolve_folder(location: str | Path, project: str, env: str) -> Path:
    """Return the folder of a project's store in an environment. Raises the same errors as `open_store`."""
    folder = parse_folder(str(location))
    for subject, name in (("project", project), ("environment", env)):
        if not is_folder_name(name):
            raise build_location_error(
                f"The {subject} name '{name}' cannot be the name of a folder.",
                "Choose a name without slashes that does not start with a dot.",
            )
    return folder / project / env


def parse_folder(location: str) -> Path:
    """Return the folder that a path or a ``file`` URI names. Raises KdeclareError for all other URIs."""
    scheme = _SCHEME.match(location)
    if scheme is None:
        if not location:
            raise build_location_error("The state's location is empty.", _LOCATION_HINT)
        return Path(location)
    if scheme[1].lower() != "file":
        raise build_location_error(
            f"'{location}': state stores of type '{scheme[1]}' are not supported.", _LOCATION_HINT
        )
    url = urlsplit(location)
    if url.netloc not in ("", "localhost") or not url.path:
        raise build_location_error(f"'{location}' does not name a folder on this machine.", _LOCATION_HINT)
    return Path(unquote(url.path))


STATE = "state.json"
RUNS = "runs"

_PLAN = "plan.json"
_JOURNAL = "journal.jsonl"


class LocalStore:
    """A `StateStore` in a folder, for one project in one environment.

    The folder is created with the first lock or write. All files except the journal are replaced atomically.
    A process that dies while writing leaves at most a hidden temporary file, which the next lock removes.
    """

    def __init__(self, folder: Path) -> None:
        """Create a store for ``folder``; nothing is read or written yet."""
        self._folder = folder
        self._state = folder / STATE
        self._runs = folder / RUNS
        self._lock = FileLock(folder / "lock")
        self._decoded: tuple[bytes, State] | None = None  # a command reads the same state several times

    def read(self) -> State | None:
        """See `StateStore.read`."""
        with explain_os_errors("read", self._state):
            try:
                text = self._state.read_bytes()
            except FileNotFoundError:
                return None
        decoded = self._decoded
        if decoded is not None and decoded[0] == text:
            return decoded[1]
        state = decode_state(text, str(self._state))
        self._decoded = (text, state)
        return state

    def write(self, state: State) -> None:
        """See `StateStore.write`."""
        validate_next_state(self.read(), state)
        text = encode_state(state).encode()
        self._lock.check()
        with explain_os_errors("write", self._state):
            make_folder(self._folder)
            backup = self._folder / "state.json.backup"
            replace_file(self._state, text, backup=backup, mode=find_mode(self._state))
        self._decoded = (text, state)

    def lock(self, what: str) -> AbstractContextManager[None]:
        """See `StateStore.lock`."""
        return self._hold_lock(what)

    @contextmanager
    def _hold_lock(self, command: str) -> Iterator[None]:
        with self._lock.hold(command):
            remove_temporary_files(self._folder)
            remove_temporary_files(self._runs)
            yield

    def read_holder(self) -> LockInfo | None:
        """See `StateStore.read_holder`."""
        return self._lock.read_holder()

    def break_lock(self, holder: LockInfo) -> None:
        """See `StateStore.break_lock`."""
        self._lock.break_lock(holder)

    def begin_run(self, run_id: str, plan_text: str) -> FileJournal:
        """See `StateStore.begin_run`. Raises ValueError for an id that cannot be a folder name."""
        if not is_run_id(run_id):
            raise ValueError(f"'{run_id}' is not a run id")
        self._lock.check()
        folder = self._runs / run_id
        with explain_os_errors("write", folder):
            make_folder(self._runs)
            try:
                files = {_PLAN: plan_text.encode(), _JOURNAL: b""}
                create_folder(folder, files, find_private_mode(self._runs))
            except FileExistsError:
                raise build_run_exists_error(run_id)
        return self.open_run(run_id)

    def open_run(self, run_id: str) -> FileJournal:
        """See `StateStore.open_run`."""
        return FileJournal(self._get_run_folder(run_id) / _JOURNAL, run_id, self._lock.check)

    def runs(self) -> tuple[str, ...]:
        """See `StateStore.runs`."""
        with explain_os_errors("read", self._runs):
            try:
                names = [entry.name for entry in self._runs.iterdir() if entry.is_dir()]
            except FileNotFoundError:
                return ()
        return tuple(sorted(filter(is_run_id, names)))

    def get_run_location(self, run_id: str) -> str:
        """See `StateStore.get_run_location`."""
        return str(self._runs / run_id)

    def read_plan_text(self, run_id: str) -> str:
        """See `StateStore.read_plan_text`."""
        path = self._get_run_folder(run_id) / _PLAN
        data = _read_run_file(path)
        try:
            return data.decode()
        except UnicodeDecodeError as cause:
            raise build_corruption_error(
                str(path), "it is not UTF-8 text", "Restore the file from a backup."
            ) from cause

    def read_plan_lines(self, run_id: str) -> Iterator[str]:
        """See `StateStore.read_plan_lines`."""
        path = self._get_run_folder(run_id) / _PLAN
        with (
            explain_os_errors("read", path),
            path.open(encoding="utf-8", errors="replace", newline="\n") as file,
        ):
            yield from file

    def entries(self, run_id: str) -> tuple[JsonValue, ...]:
        """See `StateStore.entries`."""
        path = self._get_run_folder(run_id) / _JOURNAL
        return parse_journal(_read_run_file(path), str(path))[0]

    def _get_run_folder(self, run_id: str) -> Path:
        folder = self._runs / run_id
        with explain_os_errors("read", folder):
            if not is_run_id(run_id) or not folder.is_dir():
                raise build_unknown_run_error(run_id)
        return folder


def _read_run_file(path: Path) -> bytes:
    with explain_os_errors("read", path):
        try:
            return path.read_bytes()
        except FileNotFoundError as cause:  # run folders are created atomically, so the file was removed
            raise build_corruption_error(str(path), "it is missing", _JOURNAL_HINT) from cause
