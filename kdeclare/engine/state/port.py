"""The port `StateStore` with its journals, and the names of folders and runs in one."""

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.state import LockInfo, State


class Journal(Protocol):
    """The append-only record of one run, open for writing.

    It belongs to one thread. Leaving the ``with`` block closes it, whatever happened inside.
    """

    @property
    def run_id(self) -> str:
        """The run that it records."""

    def append(self, entry: JsonValue) -> None:
        """Add one entry; it is on disk when this returns, and whole or absent after a crash.

        One entry costs one flush, so many operations that begin together belong into one entry.
        Raises KdeclareError when it cannot be written (then it is not in the journal, and a later
        append may work) or when the lock was broken by someone else.
        """

    def close(self) -> None:
        """Let go of the file. Safe to call twice; no append after it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class StateStore(Protocol):
    """All that is kept of one project in one environment.

    Reading needs neither the lock nor write access and creates nothing. `write`, `begin_run` and
    `open_run` belong under the lock. What cannot be read or written raises KdeclareError.
    """

    def read(self) -> State | None:
        """The state as last written; None when there never was one.

        Raises KdeclareError for a state that is corrupt or of another version.
        """

    def write(self, state: State) -> None:
        """Put ``state`` in place of the stored one, which is kept as the backup.

        The caller has raised the serial: 1 with the first write, one more with every other. Raises
        KdeclareError, and changes nothing, when the stored serial is not exactly one below or the
        lineage is another one: someone else wrote in between.
        """

    def lock(self, what: str) -> AbstractContextManager[None]:
        """Hold the lock while the block runs; ``what`` is the command, for other people's messages.

        Does not wait: raises KdeclareError(exit_code LOCKED) that names the holder. Not reentrant.
        """

    def read_holder(self) -> LockInfo | None:
        """Who holds the lock now; None when nobody does, also where the holder's process has died."""

    def break_lock(self, holder: LockInfo) -> None:
        """Take the lock from ``holder``, as `holder()` gave it and a person has confirmed.

        Dangerous: a dead process holds no lock, so this one is alive, may have requests under way, and
        two runs can then change the same cluster. It finds out with its next append or write, which
        is refused. Raises KdeclareError when the lock has another holder by now, or none.
        """

    def begin_run(self, run_id: str, plan_text: str) -> Journal:
        """Record a new run with its plan and an empty journal: all of it is on disk, or nothing.

        Raises KdeclareError when there is a run of that id.
        """

    def open_run(self, run_id: str) -> Journal:
        """The journal of an earlier run, to go on writing it.

        Raises KdeclareError when there is no such run or its journal is corrupt.
        """

    def runs(self) -> tuple[str, ...]:
        """The ids of all runs, oldest first."""

    def get_run_location(self, run_id: str) -> str:
        """Where a run is kept, for people: a folder, as far as there is one."""

    def read_plan_text(self, run_id: str) -> str:
        """The plan of a run, as given to `begin_run`. Raises KdeclareError when there is no such run."""

    def read_plan_lines(self, run_id: str) -> Iterator[str]:
        """The same line by line, for a look that need not hold all of it; what is no text is replaced."""

    def entries(self, run_id: str) -> tuple[JsonValue, ...]:
        """What a run's journal holds, in order; a torn last line counts as never written.

        Raises KdeclareError when there is no such run or a line other than the last is bad.
        """


_FORBIDDEN_IN_NAME = re.compile(r"[/\\\x00-\x1f]")


def is_folder_name(name: str) -> bool:
    """Whether a state can be kept in a folder of that name: no slashes, and no dot in front."""
    return bool(name) and not name.startswith(".") and not _FORBIDDEN_IN_NAME.search(name)


_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TIME = "%Y%m%dT%H%M%SZ"
_GENERATED_RUN_ID = re.compile(r"(\d{8}T\d{6}Z)(?:\.(\d{4}))?-.*")


def make_run_id(moment: datetime, plan_id: str, earlier_ids: Iterable[str]) -> str:
    """An id that sorts, as text, after all ``earlier_ids`` ones: ``20261121T125107Z-1a2b3c4d``.

    moment: any time zone, but not naive. plan_id: its first eight characters are in the id.
    earlier_ids: the ids of the store's runs. After one of the same second, or of a later one where the
    clock went back, a counter comes in: ``20261121T125107Z.0002-1a2b3c4d``.
    """
    stamp, count = moment.astimezone(UTC).strftime(_TIME), 1
    latest_match = max(
        (m for m in map(_GENERATED_RUN_ID.fullmatch, earlier_ids) if m), key=lambda m: m[0], default=None
    )
    if latest_match is not None and latest_match[1] >= stamp:
        stamp, count = latest_match[1], int(latest_match[2] or 1) + 1
    # "." sorts after "-", so the counted ids follow the first one of their second
    return f"{stamp}{f'.{count:04}' if count > 1 else ''}-{plan_id[:8]}"


def is_run_id(text: str) -> bool:
    """Whether ``text`` can be the name of a run's folder; keeps ``..`` and paths out."""
    return _RUN_ID.fullmatch(text) is not None
