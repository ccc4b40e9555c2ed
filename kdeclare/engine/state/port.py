"""The interfaces of stores and journals, and the rules for folder names and run ids."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.state import LockInfo, State
from kdeclare.core.progress import Progress, ignore_progress


class Journal(Protocol):
    """The append-only record of one run, open for writing.

    Only one thread can use a journal. Leaving the ``with`` block always closes it.
    """

    @property
    def run_id(self) -> str:
        """The id of the recorded run."""

    def append(self, entry: JsonValue) -> None:
        """Add one entry. When this function returns, the entry is on disk.

        After a crash, the entry is either complete or absent.

        Each entry costs one flush, so operations that begin together belong in one entry.

        Raises KdeclareError if another process broke the lock, or if the entry cannot be written. In the
        second case, the entry is not in the journal, and a later append can succeed.
        """
        self.append_all((entry,))

    def append_all(self, entries: Sequence[JsonValue]) -> None:
        """Add several entries with one flush. A crash can leave only the first few of them in the journal.

        Only for copies of journals. Raises KdeclareError like `append`.
        """

    def close(self) -> None:
        """Close the file. No append is possible afterwards. A second call has no effect."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class StateStore(Protocol):
    """The stored data of one project in one environment.

    Reading is possible without the lock and without write access, and creates nothing. `write`, `begin_run`
    and `open_run` require the lock. Methods raise KdeclareError if data cannot be read or written.
    """

    def read(self) -> State | None:
        """Return the last written state; None if no state was ever written.

        Raises KdeclareError for a state that is corrupt or has a different format version.
        """

    def write(self, state: State) -> None:
        """Replace the stored state. The previous state is kept as a backup.

        The serial must be 1 for the first write, and increase by one with each later write. If the serial is
        wrong or the lineage differs, another process wrote in between. In this case, the method changes
        nothing and raises KdeclareError.
        """

    def overwrite(self, state: State) -> None:
        """Replace the stored state with any state, even if the stored one is damaged or has another lineage.

        Only for a state that a user restores or copies. The previous state is kept as a backup. Requires the
        lock.
        """

    def lock(self, what: str, progress: Progress = ignore_progress) -> AbstractContextManager[None]:
        """Hold the lock during the ``with`` block. The lock is not reentrant.

        The method does not wait for another process that holds the lock, but raises KdeclareError (exit code
        LOCKED), which names the holder. However, if the holder of a lease seems to be dead, the method waits
        until the lease ends, and reports progress meanwhile.

        what: the command, which messages in other processes show.
        """

    def check_lock(self) -> None:
        """Raise KdeclareError if this process held the lock and lost it.

        This check is cheap enough to run before every request.

        A process loses a lock if a user breaks it, or if the process does not renew its lease in time.
        """

    @property
    def is_takeover(self) -> bool:
        """Whether the lock was last taken from a holder that did not release it.

        The previous holder can still send a request for which it checked the lease before the lease ended.
        """

    def read_holder(self) -> LockInfo | None:
        """Return the current holder of the lock; None if the lock is free.

        A local lock is free as soon as the process that held it has ended. A lease has a holder until the
        lease is released or another process takes it over.
        """

    def break_lock(self, holder: LockInfo) -> None:
        """Take the lock from ``holder``, which `read_holder` returned and a user confirmed.

        This is dangerous. The holder of a local lock is still running, and the holder of a lease might be, so
        requests of the holder can be in flight. Two runs can then change the same cluster. The next append or
        write of the holder is refused.

        Raises KdeclareError if the lock is free or has a different holder.
        """

    def begin_run(self, run_id: str, plan_text: str) -> Journal:
        """Record a new run with its plan and an empty journal, atomically.

        Raises KdeclareError if a run with this id exists.
        """

    def open_run(self, run_id: str) -> Journal:
        """Open the journal of an earlier run to append to it.

        Raises KdeclareError if there is no such run or its journal is corrupt.
        """

    def report_loss(self, run_id: str, report: JsonValue) -> None:
        """Store the report of a process that lost the lock while it had requests of a run in flight.

        This method needs no lock.
        """

    def read_losses(self, run_id: str) -> tuple[JsonValue, ...]:
        """Return the stored reports about a run, in any order."""

    def abandon_run(self, run_id: str, record: JsonValue) -> None:
        """Mark a run as abandoned permanently. Its plan and its journal stay as they are.

        record: who abandoned the run, when and why; only for display. Requires the lock. Raises KdeclareError
        if there is no such run or it is already abandoned.
        """

    def list_abandoned(self) -> frozenset[str]:
        """Return the ids of the abandoned runs.

        This method is cheap, because every command that reads runs calls it.
        """

    def read_abandonment(self, run_id: str) -> JsonValue:
        """Return the record of an abandoned run; None if the run is not abandoned or the record is damaged.

        To find out whether a run is abandoned, use `list_abandoned`.
        """

    def write_summary(self, run_id: str, summary: JsonValue) -> None:
        """Store a summary of a finished run, for lists of runs. An earlier summary is replaced.

        A summary is a cache: it can be missing, and no decision depends on it. Raises KdeclareError if there
        is no such run.
        """

    def read_summaries(self, run_ids: Sequence[str]) -> Mapping[str, JsonValue]:
        """Return the summaries of these runs by id. Missing and damaged summaries are left out.

        A summary is also left out if the plan or the journal is known to have changed since it was written.
        """

    def write_effects(self, run_id: str, effects: JsonValue) -> None:
        """Store the effects of a run, for display only. Effects that were stored earlier are replaced.

        Raises KdeclareError if there is no such run.
        """

    def read_effects(self, run_id: str) -> JsonValue:
        """Return the stored effects of a run; None if there are none or they are damaged."""

    def remove_run(self, run_id: str) -> None:
        """Permanently remove a run and everything that is stored about it. Requires the lock.

        After a crash, the run either exists completely or is no longer listed.
        Raises KdeclareError if there is no such run.
        """

    def runs(self) -> tuple[str, ...]:
        """Return the ids of all runs, oldest first."""

    def get_run_location(self, run_id: str) -> str:
        """Return the location of a run for messages: the folder of the run, if there is one."""

    def read_plan_text(self, run_id: str) -> str:
        """Return the plan of a run, as it was passed to `begin_run`.

        Raises KdeclareError if there is no such run.
        """

    def read_plan_lines(self, run_id: str) -> Iterator[str]:
        """Yield the lines of a run's plan one by one, so that the whole plan is never in memory.

        Bytes that are not UTF-8 are replaced.
        """

    def entries(self, run_id: str) -> tuple[JsonValue, ...]:
        """Return the entries of a run's journal in order. An incomplete last line is ignored.

        Raises KdeclareError if there is no such run or an earlier line is invalid.
        """

    def salvage_entries(self, run_id: str) -> tuple[tuple[JsonValue, ...], bool]:
        """Return the undamaged entries of a journal, and whether these are all entries.

        Any entry can be missing from the result, so use it only for display. For a missing journal, the
        result has no entries.
        Raises KdeclareError if there is no such run, or if the journal cannot be accessed.
        """

    def close(self) -> None:
        """Close the connections of the store, if there are any. The next use of the store opens new ones."""


_FORBIDDEN_IN_NAME = re.compile(r"[/\\\x00-\x1f]")


def is_folder_name(name: str) -> bool:
    """Whether a state folder can have this name: it contains no slashes and does not start with a dot."""
    return bool(name) and not name.startswith(".") and not _FORBIDDEN_IN_NAME.search(name)


_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TIME = "%Y%m%dT%H%M%SZ"
_GENERATED_RUN_ID = re.compile(r"(\d{8}T\d{6}Z)(?:\.(\d{4}))?-.*")


def make_run_id(moment: datetime, plan_id: str, earlier_ids: Iterable[str]) -> str:
    """Return an id that sorts, as text, after all ``earlier_ids``: ``20261121T125107Z-1a2b3c4d``.

    moment: a time with a time zone. plan_id: the first eight characters are part of the new id.
    earlier_ids: the ids of the store's runs. If one of them has the same second, or a later second because
        the clock was set back, the new id gets a counter: ``20261121T125107Z.0002-1a2b3c4d``.
    """
    stamp, count = moment.astimezone(UTC).strftime(_TIME), 1
    latest_match = max(
        (m for m in map(_GENERATED_RUN_ID.fullmatch, earlier_ids) if m), key=lambda m: m[0], default=None
    )
    if latest_match is not None and latest_match[1] >= stamp:
        stamp, count = latest_match[1], int(latest_match[2] or 1) + 1
    # "." sorts after "-", so ids with a counter follow the first one of their second.
    return f"{stamp}{f'.{count:04}' if count > 1 else ''}-{plan_id[:8]}"


def is_run_id(text: str) -> bool:
    """Whether ``text`` can be the name of a run's folder. False for paths and for ``..``."""
    return _RUN_ID.fullmatch(text) is not None
