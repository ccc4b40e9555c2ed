"""Read your own writes: wait until systems show what recent runs of the project have done.

A plan made on an answer that lacks them takes the project's own writes for absent, or for someone else's.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from kdeclare.core.clock import Clock
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.collector import VISIBILITY_TIMEOUT_S, PendingWrite
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import Status
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.provider.registry import (
    OPERATION_TYPES,
    find_invisible,
    get_operation_type,
    is_all_visible,
)
from kdeclare.engine.executor.entries import (
    RUN_UNREADABLE,
    RunRecord,
    read_run,
    read_run_plan,
    read_written_kinds,
)
from kdeclare.engine.state.port import StateStore

T = TypeVar("T")

VISIBLE_WITHIN_S = VISIBILITY_TIMEOUT_S
"""How long an acknowledged write may stay invisible; after that its absence is drift like any other."""

WAITING = "Waiting for systems to show what earlier runs did"

_FIRST_STEP_S = 0.1
_LONGEST_STEP_S = 2.0


def await_visibility(
    store: StateStore,
    connections: Connections,
    clock: Clock,
    progress: Progress = ignore_progress,
    *,
    limit_s: float = VISIBLE_WITHIN_S,
    wait: bool = True,
) -> tuple[PendingWrite, ...]:
    """Wait for what recent runs wrote; what is still invisible.

    limit_s: for how long after its acknowledgment a write is waited for. wait: False looks only once.
    Raises Fault when a system does not answer.
    """
    started_at, step_s = clock.monotonic(), _FIRST_STEP_S
    since = clock.now() - timedelta(seconds=limit_s)
    runs = _find_recent_runs(store, since)
    written_kinds = _find_written(store, runs, since)
    if written_kinds is not None and (not written_kinds or is_all_visible(connections, written_kinds)):
        return ()
    recent = _find_recent_writes(store, runs, since, limit_s)
    pending = _find_pending(recent, connections, clock.now())
    total = len(pending)
    while pending and wait and clock.monotonic() - started_at < limit_s:
        progress(WAITING, total - len(pending), total)
        clock.sleep(step_s)
        step_s = min(step_s * 2, _LONGEST_STEP_S)
        pending = _find_pending(pending, connections, clock.now())
    return tuple(pending)


def _find_recent_runs(store: StateStore, since: datetime) -> list[RunRecord]:
    """The runs that have written something since then, the last one first."""
    recent: list[RunRecord] = []
    for run_id in reversed(store.runs()):
        record = _read_undamaged(partial(read_run, store, run_id))
        if record is None:
            continue
        if all(_parse_time(at) < since for at in set(record.ended_at.values())):  # thousands end at one time
            break  # runs follow each other, so the ones before it are older
        recent.append(record)
    return recent


def _find_written(
    store: StateStore, runs: Iterable[RunRecord], since: datetime
) -> frozenset[tuple[str, str]] | None:
    """Operation types of what may be invisible, each with the kind of a resource; None if not known."""
    written_kinds: set[tuple[str, str]] = set()
    for record in runs:
        done = (id_ for id_, result in record.results.items() if result.status is Status.DONE)
        if any(_parse_time(record.ended_at[id_]) >= since for id_ in done):
            kinds = read_written_kinds(store, record.run_id)
            if kinds is None:
                return None
            written_kinds |= kinds
    return frozenset(item for item in written_kinds if OPERATION_TYPES[item[0]].is_shown_late)


def _find_recent_writes(
    store: StateStore, runs: Sequence[RunRecord], since: datetime, limit_s: float
) -> list[PendingWrite]:
    """What runs have written lately and not overwritten since."""
    latest: dict[str, tuple[str, Operation, str, datetime]] = {}
    for record in reversed(runs):
        plan = _read_undamaged(partial(read_run_plan, store, record.run_id))
        if plan is None:
            continue
        _overlay_writes(latest, plan, record, since, timedelta(seconds=limit_s))
    elements: dict[tuple[str, str], set[str]] = {}
    operations: dict[tuple[str, str], tuple[Operation, datetime]] = {}
    for run_id, op, element, until in latest.values():
        elements.setdefault((run_id, op.id), set()).add(element)
        operations[run_id, op.id] = (op, until)
    return [
        PendingWrite(run_id, op, frozenset(elements[run_id, id_]), until)
        for (run_id, id_), (op, until) in operations.items()
    ]


def _read_undamaged(read: Callable[[], T]) -> T | None:
    """What is read of a run; None where it is damaged, as nobody knows then what to wait for."""
    try:
        return read()
    except KdeclareError as problem:
        if any(d.code != RUN_UNREADABLE for d in problem.diagnostics):
            raise
        return None


def _overlay_writes(
    latest: dict[str, tuple[str, Operation, str, datetime]],
    plan: Plan,
    record: RunRecord,
    since: datetime,
    limit: timedelta,
) -> None:
    """Let one run overwrite what earlier ones wrote: by claim, what is expected to be visible."""
    for op in plan.operations:
        result = record.results.get(op.id)
        operation_type = get_operation_type(op)
        if result is None or op.id not in record.begun or not operation_type.is_shown_late:
            continue
        produced = operation_type.list_produced_claims(op)
        for claim in produced & latest.keys():
            del latest[claim]  # also where its outcome is not known: then nobody knows what to expect
        if operation_type.deletes:
            deleted_objects = operation_type.find_subjects(op)
            for claim, (_, earlier_operation, _, _) in list(latest.items()):
                if deleted_objects & get_operation_type(earlier_operation).find_subjects(earlier_operation):
                    del latest[claim]
        ended_at = _parse_time(record.ended_at[op.id])
        if result.status is not Status.DONE or ended_at < since:
            continue
        for element, claim in operation_type.claims(op).items():
            if claim in produced:
                latest[claim] = (record.run_id, op, element, ended_at + limit)


def _find_pending(
    writes: Iterable[PendingWrite], connections: Connections, current_time: datetime
) -> list[PendingWrite]:
    return find_invisible(connections, [write for write in writes if current_time < write.until])


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)
