"""The store in memory, for property and crash tests; it can die at any step."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from io import StringIO
from types import TracebackType
from typing import Literal, Self

from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonValue, parse_json
from kdeclare.core.plans.state import LockInfo, State
from kdeclare.engine.state.document import decode, encode, refuse_lost_update
from kdeclare.engine.state.lock import describe_self
from kdeclare.engine.state.problems import not_the_holder, run_exists, taken, unknown_run

Step = Literal["begin_run", "append", "write"]
"""The calls that change what is stored."""


@dataclass(frozen=True, slots=True)
class Crash:
    """Where a `MemoryStore` dies: before or after the effect of the n-th step, counted from 1.

    step: which kind of step is counted; None counts all of them together.
    error: what is raised there, and by every step after it, as a dead process does nothing more.
    """

    n: int
    when: Literal["before", "after"]
    error: BaseException
    step: Step | None = None


@dataclass
class _Run:
    plan: str
    lines: list[str] = field(default_factory=list)


class MemoryStore:
    """The port `StateStore` without a disk. Values go in and out as text, so nothing is shared.

    steps: the steps that were begun so far, in order, also those that a crash kept from happening.
    crash: set it, or give it to the constructor, for the crash to come; `restart` clears it.
    """

    def __init__(self, crash: Crash | None = None) -> None:
        """An empty store."""
        self.crash = crash
        self.steps: list[Step] = []
        self._dead: BaseException | None = None
        self._state: str | None = None
        self._runs: dict[str, _Run] = {}
        self._holder: LockInfo | None = None

    def restart(self) -> None:
        """What a new process finds: the same content, nobody holds the lock, steps count from 1."""
        self.crash = None
        self.steps = []
        self._dead = None
        self._holder = None

    @contextmanager
    def _step(self, step: Step) -> Iterator[None]:
        if self._dead is not None:
            raise self._dead
        self.steps.append(step)
        self._die_if("before", step)
        yield
        self._die_if("after", step)

    def _die_if(self, when: Literal["before", "after"], step: Step) -> None:
        crash = self.crash
        if crash is None or crash.when != when or crash.step not in (None, step):
            return
        count = len(self.steps) if crash.step is None else self.steps.count(crash.step)
        if count == crash.n:
            self._dead = crash.error
            raise crash.error

    def read(self) -> State | None:
        """See `StateStore.read`."""
        return None if self._state is None else decode(self._state, "memory")

    def write(self, state: State) -> None:
        """See `StateStore.write`."""
        text = encode(state)
        with self._step("write"):
            refuse_lost_update(self.read(), state)
            self._state = text

    @contextmanager
    def lock(self, what: str) -> Iterator[None]:
        """See `StateStore.lock`."""
        if self._holder is not None:
            raise taken(self._holder)
        self._holder = mine = describe_self(what)
        try:
            yield
        finally:
            if self._holder is mine:
                self._holder = None

    def holder(self) -> LockInfo | None:
        """See `StateStore.holder`."""
        return self._holder

    def break_lock(self, holder: LockInfo) -> None:
        """See `StateStore.break_lock`."""
        if self._holder != holder:
            raise not_the_holder(holder, self._holder)
        self._holder = None

    def begin_run(self, run_id: str, plan_text: str) -> "MemoryJournal":
        """See `StateStore.begin_run`."""
        with self._step("begin_run"):
            if run_id in self._runs:
                raise run_exists(run_id)
            self._runs[run_id] = _Run(plan_text)
        return MemoryJournal(self, run_id)

    def open_run(self, run_id: str) -> "MemoryJournal":
        """See `StateStore.open_run`."""
        self._run(run_id)
        return MemoryJournal(self, run_id)

    def runs(self) -> tuple[str, ...]:
        """See `StateStore.runs`."""
        return tuple(sorted(self._runs))

    def run_location(self, run_id: str) -> str:
        """See `StateStore.run_location`."""
        return f"run {run_id}"

    def plan_text(self, run_id: str) -> str:
        """See `StateStore.plan_text`."""
        return self._run(run_id).plan

    def plan_lines(self, run_id: str) -> Iterator[str]:
        """See `StateStore.plan_lines`."""
        return iter(StringIO(self._run(run_id).plan, newline="\n"))

    def entries(self, run_id: str) -> tuple[JsonValue, ...]:
        """See `StateStore.entries`."""
        return tuple(parse_json(line) for line in self._run(run_id).lines)

    def _run(self, run_id: str) -> _Run:
        if run_id not in self._runs:
            raise unknown_run(run_id)
        return self._runs[run_id]

    def _append(self, run_id: str, entry: JsonValue) -> None:
        line = json.dumps(entry)
        with self._step("append"):
            self._run(run_id).lines.append(line)


class MemoryJournal:
    """The port `Journal` on a `MemoryStore`."""

    def __init__(self, store: MemoryStore, run_id: str) -> None:
        """The journal of a run that the store has."""
        self._store = store
        self._run_id = run_id
        self._closed = False

    @property
    def run_id(self) -> str:
        """The run that it records."""
        return self._run_id

    def append(self, entry: JsonValue) -> None:
        """See `Journal.append`."""
        if self._closed:
            raise ValueError("the journal is closed")
        self._store._append(self._run_id, entry)

    def close(self) -> None:
        """See `Journal.close`."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
