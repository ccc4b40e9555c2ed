"""Wait until systems show the effects of the project's recent runs (read-your-writes).

Without this wait, a plan would treat the project's own writes as absent, or as changes by another client.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from kdeclare.core.clock import Clock, generate_pauses, parse_time
from kdeclare.core.live.collector import VISIBILITY_TIMEOUT_S, PendingWrite
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import Status
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.provider.provider_queries import find_invisible, is_all_visible
from kdeclare.core.provider.registry import OPERATION_TYPES, get_operation_type
from kdeclare.engine.executor.entries import (
    RunRecord,
    is_abandoned,
    read_run,
    read_run_plan,
    read_undamaged,
    read_written_kinds,
)
from kdeclare.engine.state.port import StateStore

VISIBLE_WITHIN_S = VISIBILITY_TIMEOUT_S
"""How long an acknowledged write can stay invisible, in seconds. After that, its absence counts as drift."""

WAITING = "Waiting for systems to show the changes of earlier runs"

_LONGEST_STEP_S = 2.0

_QUICK_CHECKS = 4
"""How often to ask whether all writes are visible before looking for each write.

A system can take half a second to answer. Looking for each write takes longer: the plans of the recent runs
must be parsed, and the written objects must be read.
"""


def await_visibility(
    store: StateStore,
    connections: Connections,
    clock: Clock,
    progress: Progress = ignore_progress,
    *,
    limit_s: float = VISIBLE_WITHIN_S,
    wait: bool = True,
) -> tuple[PendingWrite, ...]:
    """Wait until the writes of recent runs are visible, and return the writes that are still invisible.

    limit_s: how long to wait for a write after its acknowledgment, in seconds.
    wait: if False, check only once.

    Raises Fault if a system does not respond.
    """
    started_at, pauses = clock.monotonic(), generate_pauses(_LONGEST_STEP_S)
    since = clock.now() - timedelta(seconds=limit_s)
    runs = _find_recent_runs(store, since)
    written_kinds = _find_written(store, runs, since)
    if written_kinds is not None:
        checks = range(_QUICK_CHECKS if wait else 1)
        if not written_kinds or any(is_all_visible(connections, written_kinds) for _ in checks):
            return ()
    recent = _find_recent_writes(store, runs, since, limit_s)
    pending = _find_pending(recent, connections, clock.now())
    total = len(pending)
    while pending and wait and clock.monotonic() - started_at < limit_s:
        progress(WAITING, total - len(pending), total)
        clock.sleep(next(pauses))
        pending = _find_pending(pending, connections, clock.now())
    return tuple(pending)


def _find_recent_runs(store: StateStore, since: datetime) -> list[RunRecord]:
    recent: list[RunRecord] = []
    for run_id in reversed(store.runs()):
        record = read_undamaged(partial(read_run, store, run_id))
        if record is None or (not record.is_over and is_abandoned(store, run_id)):
            continue
        # Many operations can end at the same time, so parse each distinct time once.
        if all(parse_time(at) < since for at in set(record.ended_at.values())):
            break  # runs are sequential, so all earlier runs are older
        recent.append(record)
    return recent


def _find_written(
    store: StateStore, runs: Iterable[RunRecord], since: datetime
) -> frozenset[tuple[str, str]] | None:
    """Return the operation type and the resource kind of each recent write that might not be visible yet.

    Return None if they cannot be determined.
    """
    written_kinds: set[tuple[str, str]] = set()
    for record in runs:
        done = (id_ for id_, result in record.results.items() if result.status is Status.DONE)
        if any(parse_time(record.ended_at[id_]) >= since for id_ in done):
            kinds = read_written_kinds(store, record.run_id)
            if kinds is None:
                return None
            written_kinds |= kinds
    return frozenset(item for item in written_kinds if OPERATION_TYPES[item[0]].is_shown_late)


def _find_recent_writes(
    store: StateStore, runs: Sequence[RunRecord], since: datetime, limit_s: float
) -> list[PendingWrite]:
    """Return the recent writes that no later write has replaced."""
    latest: dict[str, tuple[str, Operation, str, datetime]] = {}
    for record in reversed(runs):
        plan = read_undamaged(partial(read_run_plan, store, record.run_id))
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


def _overlay_writes(
    latest: dict[str, tuple[str, Operation, str, datetime]],
    plan: Plan,
    record: RunRecord,
    since: datetime,
    limit: timedelta,
) -> None:
    """Add the writes of one run to ``latest``, by claim, and remove the earlier writes that they replace."""
    for op in plan.operations:
        result = record.results.get(op.id)
        operation_type = get_operation_type(op)
        if result is None or op.id not in record.begun or not operation_type.is_shown_late:
            continue
        produced = operation_type.list_produced_claims(op)
        for claim in produced & latest.keys():
            # If the outcome of the operation is unknown, the claim has no expected value.
            del latest[claim]
        if operation_type.deletes:
            deleted_objects = operation_type.find_subjects(op)
            for claim, (_, earlier_operation, _, _) in list(latest.items()):
                if deleted_objects & get_operation_type(earlier_operation).find_subjects(earlier_operation):
                    del latest[claim]
        ended_at = parse_time(record.ended_at[op.id])
        if result.status is not Status.DONE or ended_at < since:
            continue
        for element, claim in operation_type.claims(op).items():
            if claim in produced:
                latest[claim] = (record.run_id, op, element, ended_at + limit)


def _find_pending(
    writes: Iterable[PendingWrite], connections: Connections, current_time: datetime
) -> list[PendingWrite]:
    return find_invisible(connections, [write for write in writes if current_time < write.until])
