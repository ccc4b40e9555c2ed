"""A store in memory for property and crash tests. It can crash at any step."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from io import StringIO
from typing import Literal

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, parse_json
from kdeclare.core.plans.state import LockInfo, State
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.engine.state.document import decode_state, encode_state, validate_next_state
from kdeclare.engine.state.lock import build_own_lock_info
from kdeclare.engine.state.port import Journal
from kdeclare.engine.state.problems import (
    build_holder_changed_error,
    build_lock_lost_error,
    build_locked_error,
    build_run_abandoned_error,
    build_run_exists_error,
    build_unknown_run_error,
)

StoreStep = Literal["begin_run", "append", "write"]
"""The types of calls that change stored data."""


@dataclass(frozen=True, slots=True)
class StoreCrash:
    """The point at which a `MemoryStore` crashes: before or after the effect of step ``n``, counted from 1.

    step: the type of step to count; None counts all steps together.
    error: the exception that this step and all later steps raise, because a crashed process cannot continue.
    """

    n: int
    when: Literal["before", "after"]
    error: BaseException
    step: StoreStep | None = None


@dataclass
class _StoredRun:
    plan: str
    lines: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    abandonment: str | None = None
    summary: str | None = None
    effects: str | None = None


class MemoryStore:
    """A `StateStore` in memory. Values are stored as text, so that callers share no objects with the store.

    steps: the steps that began, in order, including those that a crash prevented.
    crash: the crash to simulate; set by the constructor or later. `restart` clears it.
    """

    def __init__(self, crash: StoreCrash | None = None) -> None:
        """Create an empty store."""
        self.crash = crash
        self.steps: list[StoreStep] = []
        self._dead: BaseException | None = None
        self._state: str | None = None
        self._runs: dict[str, _StoredRun] = {}
        self._holder: LockInfo | None = None
        self._own_info: LockInfo | None = None

    def restart(self) -> None:
        """Simulate a new process: keep the content, free the lock, and count steps from 1 again."""
        self.crash = None
        self.steps = []
        self._dead = None
        self._holder = None

    @contextmanager
    def _record_step(self, step: StoreStep) -> Iterator[None]:
        if self._dead is not None:
            raise self._dead
        self.steps.append(step)
        self._crash_if_due("before", step)
        yield
        self._crash_if_due("after", step)

    def _crash_if_due(self, when: Literal["before", "after"], step: StoreStep) -> None:
        crash = self.crash
        if crash is None or crash.when != when or crash.step not in (None, step):
            return
        count = len(self.steps) if crash.step is None else self.steps.count(crash.step)
        if count == crash.n:
            self._dead = crash.error
            raise crash.error

    def read(self) -> State | None:
        """See `StateStore.read`."""
        return None if self._state is None else decode_state(self._state, "memory")

    def write(self, state: State) -> None:
        """See `StateStore.write`."""
        text = encode_state(state)
        with self._record_step("write"):
            validate_next_state(self.read(), state)
            self._state = text

    def overwrite(self, state: State) -> None:
        """See `StateStore.overwrite`."""
        text = encode_state(state)
        with self._record_step("write"):
            self._state = text

    @contextmanager
    def lock(self, what: str, progress: Progress = ignore_progress) -> Iterator[None]:
        """See `StateStore.lock`."""
        if self._holder is not None:
            raise build_locked_error(self._holder)
        self._holder = self._own_info = own_info = build_own_lock_info(what)
        try:
            yield
        finally:
            self._own_info = None
            if self._holder is own_info:
                self._holder = None

    def check_lock(self) -> None:
        """See `StateStore.check_lock`."""
        if self._own_info is not None and self._holder is not self._own_info:
            raise build_lock_lost_error()

    @property
    def is_takeover(self) -> bool:
        """See `StateStore.is_takeover`."""
        return False

    def read_holder(self) -> LockInfo | None:
        """See `StateStore.read_holder`."""
        return self._holder

    def break_lock(self, holder: LockInfo) -> None:
        """See `StateStore.break_lock`."""
        if self._holder != holder:
            raise build_holder_changed_error(holder, self._holder)
        self._holder = None

    def begin_run(self, run_id: str, plan_text: str) -> "MemoryJournal":
        """See `StateStore.begin_run`."""
        with self._record_step("begin_run"):
            if run_id in self._runs:
                raise build_run_exists_error(run_id)
            self._runs[run_id] = _StoredRun(plan_text)
        return MemoryJournal(self, run_id)

    def open_run(self, run_id: str) -> "MemoryJournal":
        """See `StateStore.open_run`."""
        self._get_run(run_id)
        return MemoryJournal(self, run_id)

    def report_loss(self, run_id: str, report: JsonValue) -> None:
        """See `StateStore.report_loss`."""
        self._get_run(run_id).losses.append(json.dumps(report))

    def read_losses(self, run_id: str) -> tuple[JsonValue, ...]:
        """See `StateStore.read_losses`."""
        return tuple(map(parse_json, self._get_run(run_id).losses))

    def abandon_run(self, run_id: str, record: JsonValue) -> None:
        """See `StateStore.abandon_run`."""
        run = self._get_run(run_id)
        if run.abandonment is not None:
            raise build_run_abandoned_error(run_id)
        run.abandonment = json.dumps(record)

    def list_abandoned(self) -> frozenset[str]:
        """See `StateStore.list_abandoned`."""
        return frozenset(run_id for run_id, run in self._runs.items() if run.abandonment is not None)

    def read_abandonment(self, run_id: str) -> JsonValue:
        """See `StateStore.read_abandonment`."""
        text = self._get_run(run_id).abandonment
        return None if text is None else parse_json(text)

    def write_summary(self, run_id: str, summary: JsonValue) -> None:
        """See `StateStore.write_summary`."""
        self._get_run(run_id).summary = json.dumps(summary)

    def read_summaries(self, run_ids: Sequence[str]) -> Mapping[str, JsonValue]:
        """See `StateStore.read_summaries`."""
        texts = {run_id: self._runs[run_id].summary for run_id in run_ids if run_id in self._runs}
        return {run_id: parse_json(text) for run_id, text in texts.items() if text is not None}

    def write_effects(self, run_id: str, effects: JsonValue) -> None:
        """See `StateStore.write_effects`."""
        self._get_run(run_id).effects = json.dumps(effects)

    def read_effects(self, run_id: str) -> JsonValue:
        """See `StateStore.read_effects`."""
        text = self._get_run(run_id).effects
        return None if text is None else parse_json(text)

    def remove_run(self, run_id: str) -> None:
        """See `StateStore.remove_run`."""
        self._get_run(run_id)
        del self._runs[run_id]

    def runs(self) -> tuple[str, ...]:
        """See `StateStore.runs`."""
        return tuple(sorted(self._runs))

    def get_run_location(self, run_id: str) -> str:
        """See `StateStore.get_run_location`."""
        return f"run {run_id}"

    def read_plan_text(self, run_id: str) -> str:
        """See `StateStore.read_plan_text`."""
        return self._get_run(run_id).plan

    def read_plan_lines(self, run_id: str) -> Iterator[str]:
        """See `StateStore.read_plan_lines`."""
        return iter(StringIO(self._get_run(run_id).plan, newline="\n"))

    def entries(self, run_id: str) -> tuple[JsonValue, ...]:
        """See `StateStore.entries`."""
        return tuple(parse_json(line) for line in self._get_run(run_id).lines)

    def salvage_entries(self, run_id: str) -> tuple[tuple[JsonValue, ...], bool]:
        """See `StateStore.salvage_entries`."""
        return self.entries(run_id), True

    def close(self) -> None:
        """See `StateStore.close`."""

    def _get_run(self, run_id: str) -> _StoredRun:
        if run_id not in self._runs:
            raise build_unknown_run_error(run_id)
        return self._runs[run_id]

    def _append(self, run_id: str, entry: JsonValue) -> None:
        line = json.dumps(entry)
        with self._record_step("append"):
            self._get_run(run_id).lines.append(line)


class MemoryJournal(Journal):
    """A `Journal` in a `MemoryStore`."""

    def __init__(self, store: MemoryStore, run_id: str) -> None:
        """Open the journal of an existing run."""
        self._store = store
        self._run_id = run_id
        self._closed = False

    @property
    def run_id(self) -> str:
        """The id of the run that the journal records."""
        return self._run_id

    def append(self, entry: JsonValue) -> None:
        """See `Journal.append`."""
        if self._closed:
            raise ValueError("the journal is closed")
        self._store._append(self._run_id, entry)

    def append_all(self, entries: Sequence[JsonValue]) -> None:
        """See `Journal.append_all`."""
        for entry in entries:
            self.append(entry)

    def close(self) -> None:
        """See `Journal.close`."""
        self._closed = True
