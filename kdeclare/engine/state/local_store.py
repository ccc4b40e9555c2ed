"""A store in a local folder: the state file, and a folder for each run."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from kdeclare.core.jsontypes import JsonValue, as_object, parse_json
from kdeclare.core.plans.state import LockInfo, State
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.engine.state.document import decode_state, encode_stored_state, validate_next_state
from kdeclare.engine.state.durable_files import (
    create_folder,
    find_mode,
    find_private_mode,
    make_folder,
    remove_folder,
    remove_temporary_files,
    replace_file,
)
from kdeclare.engine.state.journal_file import FileJournal, parse_journal, salvage_journal
from kdeclare.engine.state.location import parse_folder, resolve_folder
from kdeclare.engine.state.lock import FileLock
from kdeclare.engine.state.port import StateStore, is_run_id
from kdeclare.engine.state.problems import (
    build_corruption_error,
    build_run_abandoned_error,
    build_run_exists_error,
    build_unknown_run_error,
    explain_os_errors,
)

_JOURNAL_HINT = "Restore the file from a backup."


STATE = "state.json"
RUNS = "runs"
PLAN = "plan.json"

_JOURNAL = "journal.jsonl"
_LOSS_PREFIX = "lock-lost-"
_ABANDONED = "abandoned.json"
_SUMMARY = "summary.json"
_EFFECTS = "effects.json"


def open_store(location: str | Path, project: str, env: str) -> StateStore:
    """Return the store of a project in an environment. This function neither reads nor creates files.

    location: a folder, or a ``file:`` URL of a folder. Raises KdeclareError for any other scheme, and for a
    project or environment name that cannot be the name of a folder.
    """
    return LocalStore(resolve_folder(location, project, env))


def list_local_projects(location: str | Path) -> tuple[tuple[str, str], ...]:
    """Return the projects and environments with a state in a folder, sorted. Raises KdeclareError."""
    folder = parse_folder(str(location))
    with explain_os_errors("read", folder):
        return tuple(sorted((f.parent.parent.name, f.parent.name) for f in folder.glob(f"*/*/{STATE}")))


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
        self.overwrite(state)

    def overwrite(self, state: State) -> None:
        """See `StateStore.overwrite`."""
        text = encode_stored_state(state)
        self._lock.check()
        with explain_os_errors("write", self._state):
            make_folder(self._folder)
            backup = self._folder / "state.json.backup"
            replace_file(self._state, text, backup=backup, mode=find_mode(self._state))
        self._decoded = (text, state)

    def lock(self, what: str, progress: Progress = ignore_progress) -> AbstractContextManager[None]:
        """See `StateStore.lock`."""
        return self._hold_lock(what)

    @contextmanager
    def _hold_lock(self, command: str) -> Iterator[None]:
        with self._lock.hold(command):
            remove_temporary_files(self._folder)
            remove_temporary_files(self._runs)
            yield

    def check_lock(self) -> None:
        """See `StateStore.check_lock`."""
        self._lock.check()

    @property
    def is_takeover(self) -> bool:
        """See `StateStore.is_takeover`. Always False: the lock is free once its holder exits."""
        return False

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
                files = {PLAN: plan_text.encode(), _JOURNAL: b""}
                create_folder(folder, files, find_private_mode(self._runs))
            except FileExistsError:
                raise build_run_exists_error(run_id)
        return self.open_run(run_id)

    def open_run(self, run_id: str) -> FileJournal:
        """See `StateStore.open_run`."""
        return FileJournal(self._get_run_folder(run_id) / _JOURNAL, run_id, self._lock.check)

    def report_loss(self, run_id: str, report: JsonValue) -> None:
        """See `StateStore.report_loss`."""
        path = self._get_run_folder(run_id) / f"{_LOSS_PREFIX}{os.urandom(4).hex()}.json"
        with explain_os_errors("write", path):
            replace_file(path, json.dumps(report).encode() + b"\n")

    def read_losses(self, run_id: str) -> tuple[JsonValue, ...]:
        """See `StateStore.read_losses`. Damaged reports are ignored, because no decision depends on them."""
        reports: list[JsonValue] = []
        for path in sorted(self._get_run_folder(run_id).glob(f"{_LOSS_PREFIX}*.json")):
            with suppress(ValueError, RecursionError):
                reports.append(parse_json(_read_run_file(path)))
        return tuple(reports)

    def abandon_run(self, run_id: str, record: JsonValue) -> None:
        """See `StateStore.abandon_run`."""
        path = self._get_run_folder(run_id) / _ABANDONED
        self._lock.check()
        with explain_os_errors("write", path):
            if path.exists():
                raise build_run_abandoned_error(run_id)
            replace_file(path, json.dumps(record).encode() + b"\n", mode=find_private_mode(self._runs))

    def list_abandoned(self) -> frozenset[str]:
        """See `StateStore.list_abandoned`."""
        with explain_os_errors("read", self._runs):
            return frozenset(name for name in self.runs() if (self._runs / name / _ABANDONED).exists())

    def read_abandonment(self, run_id: str) -> JsonValue:
        """See `StateStore.read_abandonment`."""
        path = self._get_run_folder(run_id) / _ABANDONED
        with suppress(ValueError, RecursionError):
            return parse_json(_read_run_file(path)) if path.exists() else None
        return None

    def write_summary(self, run_id: str, summary: JsonValue) -> None:
        """See `StateStore.write_summary`.

        The sizes and modification times of the run's files are also stored, to detect later changes.
        """
        folder = self._get_run_folder(run_id)
        with explain_os_errors("write", folder / _SUMMARY):
            document: JsonValue = {"files": _describe_files(folder), "summary": summary}
            replace_file(folder / _SUMMARY, json.dumps(document).encode(), mode=find_private_mode(self._runs))

    def read_summaries(self, run_ids: Sequence[str]) -> Mapping[str, JsonValue]:
        """See `StateStore.read_summaries`."""
        summaries: dict[str, JsonValue] = {}
        for run_id in filter(is_run_id, run_ids):
            folder = self._runs / run_id
            # a summary that cannot be read is as good as a missing one
            with suppress(OSError, ValueError, TypeError, RecursionError):
                document = as_object(parse_json((folder / _SUMMARY).read_bytes()))
                if document.get("files") == _describe_files(folder):
                    summaries[run_id] = document.get("summary")
        return summaries

    def write_effects(self, run_id: str, effects: JsonValue) -> None:
        """See `StateStore.write_effects`."""
        path = self._get_run_folder(run_id) / _EFFECTS
        with explain_os_errors("write", path):
            replace_file(path, json.dumps(effects).encode() + b"\n", mode=find_private_mode(self._runs))

    def read_effects(self, run_id: str) -> JsonValue:
        """See `StateStore.read_effects`."""
        path = self._get_run_folder(run_id) / _EFFECTS
        with suppress(ValueError, RecursionError):
            return parse_json(_read_run_file(path)) if path.exists() else None
        return None

    def remove_run(self, run_id: str) -> None:
        """See `StateStore.remove_run`."""
        folder = self._get_run_folder(run_id)
        self._lock.check()
        with explain_os_errors("write", folder):
            remove_folder(folder)

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
        path = self._get_run_folder(run_id) / PLAN
        data = _read_run_file(path)
        try:
            return data.decode()
        except UnicodeDecodeError as cause:
            raise build_corruption_error(
                str(path), "it is not UTF-8 text", "Restore the file from a backup."
            ) from cause

    def read_plan_lines(self, run_id: str) -> Iterator[str]:
        """See `StateStore.read_plan_lines`."""
        path = self._get_run_folder(run_id) / PLAN
        with (
            explain_os_errors("read", path),
            path.open(encoding="utf-8", errors="replace", newline="\n") as file,
        ):
            yield from file

    def entries(self, run_id: str) -> tuple[JsonValue, ...]:
        """See `StateStore.entries`."""
        path = self._get_run_folder(run_id) / _JOURNAL
        return parse_journal(_read_run_file(path), str(path))[0]

    def salvage_entries(self, run_id: str) -> tuple[tuple[JsonValue, ...], bool]:
        """See `StateStore.salvage_entries`."""
        path = self._get_run_folder(run_id) / _JOURNAL
        with explain_os_errors("read", path):
            return salvage_journal(path.read_bytes()) if path.exists() else ((), False)

    def close(self) -> None:
        """See `StateStore.close`. A folder needs no connection."""

    def _get_run_folder(self, run_id: str) -> Path:
        folder = self._runs / run_id
        with explain_os_errors("read", folder):
            if not is_run_id(run_id) or not folder.is_dir():
                raise build_unknown_run_error(run_id)
        return folder


def _describe_files(folder: Path) -> list[JsonValue]:
    """Return the sizes and modification times of the plan file and the journal of a run."""
    stats = [(folder / name).stat() for name in (PLAN, _JOURNAL)]
    return [number for stat in stats for number in (stat.st_size, stat.st_mtime_ns)]


def _read_run_file(path: Path) -> bytes:
    with explain_os_errors("read", path):
        try:
            return path.read_bytes()
        except FileNotFoundError as cause:  # run folders are created atomically, so the file was removed
            raise build_corruption_error(str(path), "it is missing", _JOURNAL_HINT) from cause
