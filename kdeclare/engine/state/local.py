"""The store in a local folder: ``state.json``, ``runs/<run_id>/``, ``lock``."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from kdeclare.core.jsontypes import Json
from kdeclare.core.state import LockInfo, State
from kdeclare.engine.state.document import decode, encode, refuse_lost_update
from kdeclare.engine.state.durable import (
    create_folder,
    find_mode,
    find_private_mode,
    make_folder,
    replace_file,
    sweep,
)
from kdeclare.engine.state.journal import FileJournal, parse
from kdeclare.engine.state.lock import FileLock
from kdeclare.engine.state.problems import corrupt, explained, run_exists, unknown_run
from kdeclare.engine.state.runs import is_run_id

STATE = "state.json"
RUNS = "runs"

_PLAN = "plan.json"
_JOURNAL = "journal.jsonl"


class LocalStore:
    """The port `StateStore` on one folder, that of one project in one environment.

    The folder is created with the first lock or write. Everything but the journal is replaced whole;
    whoever dies while writing leaves at most a hidden temporary file, removed under the next lock.
    """

    def __init__(self, folder: Path) -> None:
        """A store in ``folder``; nothing is touched yet."""
        self._folder = folder
        self._state = folder / STATE
        self._runs = folder / RUNS
        self._lock = FileLock(folder / "lock")

    def read(self) -> State | None:
        """See `StateStore.read`."""
        with explained("read", self._state):
            try:
                text = self._state.read_bytes()
            except FileNotFoundError:
                return None
        return decode(text, str(self._state))

    def write(self, state: State) -> None:
        """See `StateStore.write`."""
        refuse_lost_update(self.read(), state)
        text = encode(state).encode()
        self._lock.check()
        with explained("write", self._state):
            make_folder(self._folder)
            backup = self._folder / "state.json.backup"
            replace_file(self._state, text, backup=backup, mode=find_mode(self._state))

    def lock(self, what: str) -> AbstractContextManager[None]:
        """See `StateStore.lock`."""
        return self._locked(what)

    @contextmanager
    def _locked(self, what: str) -> Iterator[None]:
        with self._lock.hold(what):
            sweep(self._folder)
            sweep(self._runs)
            yield

    def holder(self) -> LockInfo | None:
        """See `StateStore.holder`."""
        return self._lock.holder()

    def break_lock(self, holder: LockInfo) -> None:
        """See `StateStore.break_lock`."""
        self._lock.take_from(holder)

    def begin_run(self, run_id: str, plan_text: str) -> FileJournal:
        """See `StateStore.begin_run`. Raises ValueError for an id that no folder can have."""
        if not is_run_id(run_id):
            raise ValueError(f"'{run_id}' is no run id")
        self._lock.check()
        folder = self._runs / run_id
        with explained("write", folder):
            make_folder(self._runs)
            try:
                files = {_PLAN: plan_text.encode(), _JOURNAL: b""}
                create_folder(folder, files, find_private_mode(self._runs))
            except FileExistsError:
                raise run_exists(run_id)
        return self.open_run(run_id)

    def open_run(self, run_id: str) -> FileJournal:
        """See `StateStore.open_run`."""
        return FileJournal(self._run(run_id) / _JOURNAL, run_id, self._lock.check)

    def runs(self) -> tuple[str, ...]:
        """See `StateStore.runs`."""
        with explained("read", self._runs):
            try:
                names = [entry.name for entry in self._runs.iterdir() if entry.is_dir()]
            except FileNotFoundError:
                return ()
        return tuple(sorted(filter(is_run_id, names)))

    def run_location(self, run_id: str) -> str:
        """See `StateStore.run_location`."""
        return str(self._runs / run_id)

    def plan_text(self, run_id: str) -> str:
        """See `StateStore.plan_text`."""
        path = self._run(run_id) / _PLAN
        with explained("read", path):
            data = path.read_bytes()
        try:
            return data.decode()
        except UnicodeDecodeError as cause:
            raise corrupt(str(path), "it is not UTF-8 text", "Restore the file from a copy.") from cause

    def entries(self, run_id: str) -> tuple[Json, ...]:
        """See `StateStore.entries`."""
        path = self._run(run_id) / _JOURNAL
        with explained("read", path):
            data = path.read_bytes()
        return parse(data, str(path))[0]

    def _run(self, run_id: str) -> Path:
        folder = self._runs / run_id
        with explained("read", folder):
            if not is_run_id(run_id) or not folder.is_dir():
                raise unknown_run(run_id)
        return folder
