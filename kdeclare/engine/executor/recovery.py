"""Recover an unfinished run: determine the outcome of its operations from the live state, and close it."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from kdeclare.core.clock import Clock, format_now
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.endpoints import merge_endpoints
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import REQUEST_DEADLINE_S, OperationResult, Status
from kdeclare.core.plans.state import PendingCleanup, State
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.engine.executor.attempt import OUTCOME_UNCLEAR, build_done_result, has_taken_effect
from kdeclare.engine.executor.entries import (
    RunRecord,
    as_json,
    build_end_line,
    build_finish_line,
    read_run,
    read_run_plan,
)
from kdeclare.engine.executor.expectations import find_mismatches
from kdeclare.engine.executor.ownership import compute_next_state, compute_owned, update_cleanup
from kdeclare.engine.executor.progress_tracker import build_started_result
from kdeclare.engine.executor.scheduler import NOT_BEGUN
from kdeclare.engine.observation import observe, select_all
from kdeclare.engine.state.port import StateStore

WAITING = "Waiting for the effect of requests of an interrupted run"

_FIRST_STEP_S = 0.1
_LONGEST_STEP_S = 1.0
_MIN_OBSERVE_S = 1.0
"""The minimum time to observe the live state, in seconds, because brokers show changes with a delay."""


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """One unfinished run, and the outcomes of the operations that it began.

    open_until: the time until which brokers can still execute operations that show no effect yet. None if all
        outcomes are known; only then is the run closed.
    """

    run_id: str
    plan: Plan
    settled: dict[str, OperationResult]
    not_begun: int
    open_until: datetime | None = None

    @property
    def is_certain(self) -> bool:
        """Whether all outcomes are known, so that no operation can take effect unnoticed."""
        return all(result.status is not Status.UNKNOWN for result in self.settled.values())


def find_unfinished_runs(store: StateStore) -> list[RunRecord]:
    """Return the last run, if it is unfinished. All earlier runs are finished.

    Raises KdeclareError (``run-unreadable``) if the journal of the last run is damaged.
    """
    records = (read_run(store, run_id) for run_id in store.runs()[-1:])
    return [record for record in records if not record.is_over]


def find_missed_runs(store: StateStore) -> list[RunRecord]:
    """Return the finished runs that an outdated state does not include, oldest first.

    Raises KdeclareError (``run-unreadable``) if the journal of such a run is damaged.
    """
    state = store.read()
    missed_runs: list[RunRecord] = []
    if state is None:
        return missed_runs
    for run_id in reversed(store.runs()):
        record = read_run(store, run_id)
        if not record.is_over:
            continue
        if record.serial is None or record.lineage != state.lineage or record.serial <= state.serial:
            break
        missed_runs.append(record)
    return missed_runs[::-1]


def is_state_lost(store: StateStore) -> bool:
    """Whether the state is missing although runs have finished. Raises KdeclareError."""
    if store.read() is not None:
        return False
    return any(read_run(store, run_id).is_over for run_id in reversed(store.runs()))


def replay_missed_runs(store: StateStore) -> tuple[str, ...]:
    """Update an outdated state from the journals of the runs that it does not include.

    Return the ids of these runs.

    The caller holds the lock. Journals record every outcome, so all ownership records are restored.
    """
    missed_runs = find_missed_runs(store)
    for record in missed_runs:
        state = store.read()
        assert state is not None
        assert record.serial is not None
        plan = read_run_plan(store, record.run_id)
        resources = compute_owned(plan, record.results, state.resources)
        cleanup = update_cleanup(plan, record.results, state.pending_cleanup)
        cluster_id = state.cluster_id or plan.cluster.id
        endpoints = merge_endpoints(state.endpoints, plan.endpoints)
        for serial in range(state.serial + 1, record.serial + 1):
            store.write(State(state.lineage, serial, cluster_id, resources, cleanup, endpoints))
    return tuple(record.run_id for record in missed_runs)


def find_pending_cleanup(store: StateStore, runs: int) -> PendingCleanup:
    """Return the pending cleanup of the latest ``runs`` runs, based on their journals. Skip damaged runs."""
    pending: PendingCleanup = {}
    for run_id in store.runs()[-runs:]:
        try:
            pending = update_cleanup(read_run_plan(store, run_id), read_run(store, run_id).results, pending)
        except KdeclareError:
            continue  # the history reports runs that cannot be read
    return pending


def recover_runs(
    store: StateStore,
    connections: Connections,
    clock: Clock,
    progress: Progress = ignore_progress,
    *,
    wait: bool = True,
) -> list[RecoveryResult]:
    """Determine the outcomes of each unfinished run, and close the run. The caller holds the lock.

    wait: whether to wait until brokers no longer work on the requests. If False, observe only briefly, and
        leave a run open if one of its operations can still take effect.

    If this function is repeated after a crash, it has the same result. Raises Fault if the cluster does not
    respond.
    """
    return [
        _recover_run(store, connections, clock, record, progress, wait)
        for record in find_unfinished_runs(store)
    ]


def _recover_run(
    store: StateStore,
    connections: Connections,
    clock: Clock,
    record: RunRecord,
    progress: Progress,
    wait: bool,
) -> RecoveryResult:
    plan = read_run_plan(store, record.run_id)
    unsettled_ids = set(record.unsettled)
    operations = [op for op in plan.operations if op.id in unsettled_ids]
    deadlines = {op.id: get_deadline(record, op.id) for op in operations}
    settled_results = settle_operations(connections, clock, operations, deadlines, progress, wait=wait)
    not_begun = len(plan.operations) - len(record.begun)
    open_deadlines = [deadlines[id_] for id_, r in settled_results.items() if r.status is Status.UNKNOWN]
    if not wait and open_deadlines and max(open_deadlines) > clock.now():
        return RecoveryResult(record.run_id, plan, settled_results, not_begun, max(open_deadlines))
    new_results = {
        **settled_results,
        **_build_skipped_cleanup_results(plan, {**record.results, **settled_results}),
    }
    results = {**record.results, **new_results}
    state = store.read()
    with store.open_run(record.run_id) as journal:
        if new_results:
            journal.append(as_json(build_end_line(format_now(clock), new_results.values(), settled=True)))
        new_state = compute_next_state(plan, results, state)
        if new_state is not None:
            store.write(new_state)
        journal.append(as_json(build_finish_line(format_now(clock), "recovered", new_state or state)))
    return RecoveryResult(record.run_id, plan, settled_results, not_begun)


def get_deadline(record: RunRecord, operation: str) -> datetime:
    """Return the time until which brokers can execute an operation."""
    recorded_deadline = record.deadlines.get(operation)
    if recorded_deadline is not None:
        return datetime.fromisoformat(recorded_deadline)
    return datetime.fromisoformat(record.sent_at[operation]) + timedelta(seconds=REQUEST_DEADLINE_S)


def settle_operations(
    connections: Connections,
    clock: Clock,
    operations: list[Operation],
    deadlines: Mapping[str, datetime],
    progress: Progress = ignore_progress,
    *,
    wait: bool = True,
) -> dict[str, OperationResult]:
    """Determine the outcomes of operations from the live state, and return them by operation id.

    If an operation shows no effect, its outcome is unknown until its deadline.
    """
    if not operations:
        return {}
    selections = select_all(operations)
    started_at, step_s = clock.monotonic(), _FIRST_STEP_S
    limit_s = max((max(deadlines.values()) - clock.now()).total_seconds(), _MIN_OBSERVE_S)
    limit_s = limit_s if wait else _MIN_OBSERVE_S
    while True:
        live = observe(connections, selections)
        open_operations = [
            op for op in operations if not has_taken_effect(op, get_operation_type(op).compute_view(op, live))
        ]
        if not open_operations or clock.monotonic() - started_at >= limit_s:
            break
        # If a process dies, its requests in flight can take effect until their deadlines.
        progress(WAITING, len(operations) - len(open_operations), len(operations))
        clock.sleep(step_s)
        step_s = min(step_s * 2, _LONGEST_STEP_S)
    late_ids = {op.id for op in open_operations if deadlines[op.id] > clock.now()}
    return {
        op.id: _build_pending_result(op, deadlines[op.id])
        if op.id in late_ids
        else _build_settled_result(op, live)
        for op in operations
    }


def _build_pending_result(op: Operation, until: datetime) -> OperationResult:
    text = (
        f"The request shows no effect yet, and the system may still execute it until {_format_time(until)}."
    )
    return OperationResult(op.id, Status.UNKNOWN, None, text)


def _format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _build_skipped_cleanup_results(
    plan: Plan, results: Mapping[str, OperationResult]
) -> dict[str, OperationResult]:
    """Return results for cleanup operations that are needed because other operations of the run began."""
    not_begun_statuses = (None, *NOT_BEGUN)
    statuses = {id_: result.status for id_, result in results.items()}
    return {
        op.id: build_started_result(op)
        for op in plan.operations
        if get_operation_type(op).is_cleanup
        and statuses.get(op.id) in (None, Status.INTERRUPTED)
        and any(statuses.get(id_) not in not_begun_statuses for id_ in op.follows)
    }


def _build_settled_result(op: Operation, live: LiveState) -> OperationResult:
    current_view = get_operation_type(op).compute_view(op, live)
    if has_taken_effect(op, current_view):
        completion = get_operation_type(op).completion
        return (
            completion.report_started(op)
            if completion and completion.is_ongoing(op, live)
            else build_done_result(op)
        )
    if not find_mismatches(op, current_view):
        # The request can take effect late, so a temporary value stays unknown and is checked later.
        status = Status.UNKNOWN if get_operation_type(op).is_temporary(op) else Status.INTERRUPTED
        return OperationResult(op.id, status, None, "The operation had no effect.")
    message = f"The live state is neither the previous nor the planned state: {dict(current_view)}."
    return OperationResult(op.id, Status.FAILED, OUTCOME_UNCLEAR, message)
