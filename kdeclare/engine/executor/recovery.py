"""Recover an unfinished run: determine the outcome of its operations from live state, and close the run."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from kdeclare.core.clock import Clock, format_now, generate_pauses, parse_time
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
    is_abandoned,
    read_run,
    read_run_plan,
    read_undamaged,
)
from kdeclare.engine.executor.expectations import find_mismatches
from kdeclare.engine.executor.ownership import compute_next_state, compute_owned, update_cleanup
from kdeclare.engine.executor.progress_tracker import build_started_result
from kdeclare.engine.executor.scheduler import NOT_BEGUN
from kdeclare.engine.observation import observe, select_all
from kdeclare.engine.state.port import StateStore

WAITING = "Waiting to see whether requests of an interrupted run take effect"

_LONGEST_STEP_S = 1.0
_MIN_OBSERVE_S = 1.0
"""The minimum time to observe the live state, in seconds, because brokers show changes with a delay."""


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """One unfinished run, and the outcomes of the operations that it began.

    open_until: the time until which brokers can still execute operations that show no effect yet. The run is
        not closed before this time. None if the run is closed.
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
    """Return the last run, unless it is finished or abandoned. All earlier runs are finished or abandoned.

    Raises KdeclareError (``run-unreadable``) if the journal of the last run is damaged.
    """
    for run_id in store.runs()[-1:]:
        try:
            record = read_run(store, run_id)
        except KdeclareError:
            if is_abandoned(store, run_id):
                return []
            raise
        if not record.is_over and not is_abandoned(store, run_id):
            return [record]
    return []


def find_missed_runs(store: StateStore) -> list[RunRecord]:
    """Return the finished runs that an outdated state does not include, oldest first. Skip damaged runs."""
    return _find_missed_runs(store)[0]


def _find_missed_runs(store: StateStore) -> tuple[list[RunRecord], list[str]]:
    """Return the runs that an outdated state does not include, oldest first, and the damaged runs among them.

    The journal of a damaged run does not show whether the state includes the run.
    """
    state = store.read()
    missed_runs: list[RunRecord] = []
    damaged_runs: list[str] = []
    skipped_runs: list[str] = []  # damaged runs between the last run and the run that is read next
    if state is None:
        return missed_runs, damaged_runs
    for run_id in reversed(store.runs()):
        record = read_undamaged(partial(read_run, store, run_id))
        if record is None:
            skipped_runs.append(run_id)
            continue
        if not record.is_over:
            continue
        if record.serial is None or record.lineage != state.lineage or record.serial <= state.serial:
            break
        missed_runs.append(record)
        damaged_runs += skipped_runs
        skipped_runs = []
    if missed_runs:
        damaged_runs += skipped_runs
    return missed_runs[::-1], damaged_runs[::-1]


def is_state_lost(store: StateStore) -> bool:
    """Whether the state is missing although runs have finished. Raises KdeclareError.

    A damaged run counts as finished if a later run exists, unless a user abandoned it.
    """
    if store.read() is not None:
        return False
    run_ids = store.runs()
    for run_id in reversed(run_ids):
        record = read_undamaged(partial(read_run, store, run_id))
        if record.is_over if record else run_id != run_ids[-1] and not is_abandoned(store, run_id):
            return True
    return False


@dataclass(frozen=True, slots=True)
class ReplayedRuns:
    """The runs that an outdated state did not include.

    run_ids: the runs from which the state was updated. damaged: the runs whose plan or journal is damaged, so
        that the ownership changes of these runs are not known.
    """

    run_ids: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


def replay_missed_runs(store: StateStore) -> ReplayedRuns:
    """Update an outdated state from the journals of the runs that it does not include.

    The caller holds the lock. Journals record every outcome, so all ownership records are restored, except
    those of damaged runs. If a run is damaged, the state is still updated from the other runs.
    """
    missed_runs, damaged_runs = _find_missed_runs(store)
    replayed_runs: list[str] = []
    for record in missed_runs:
        state = store.read()
        assert state is not None
        assert record.serial is not None
        plan = read_undamaged(partial(read_run_plan, store, record.run_id))
        new_state = state if plan is None else _replay_run(plan, record, state)
        for serial in range(state.serial + 1, record.serial + 1):
            store.write(replace(new_state, serial=serial))
        (damaged_runs if plan is None else replayed_runs).append(record.run_id)
    unknown_runs = sorted(run_id for run_id in damaged_runs if not is_abandoned(store, run_id))
    return ReplayedRuns(tuple(replayed_runs), tuple(unknown_runs))


def _replay_run(plan: Plan, record: RunRecord, state: State) -> State:
    return replace(
        state,
        resources=compute_owned(plan, record.results, state.resources),
        pending_cleanup=update_cleanup(plan, record.results, state.pending_cleanup),
        cluster_id=state.cluster_id or plan.cluster.id,
        endpoints=merge_endpoints(state.endpoints, plan.endpoints),
    )


def find_pending_cleanup(store: StateStore, runs: int) -> PendingCleanup:
    """Return the pending cleanup of the latest runs, based on their journals. Skip damaged runs.

    runs: the number of runs.
    """
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
    deadlines = {op.id: _find_deadline(record, op.id, clock, store) for op in operations}
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


def _find_deadline(record: RunRecord, operation: str, clock: Clock, store: StateStore) -> datetime:
    """Return the time until which the system can execute an operation, by the clock of this machine.

    If this process took over the lock, the previous holder might have run on a machine with a different
    clock. All of its requests were sent before its lease ended, and thus before the takeover.
    """
    deadline = get_deadline(record, operation)
    if not store.is_takeover:
        return deadline
    return max(deadline, clock.now() + (deadline - parse_time(record.sent_at[operation])))


def get_deadline(record: RunRecord, operation: str) -> datetime:
    """Return the time until which brokers can execute an operation."""
    recorded_deadline = record.deadlines.get(operation)
    if recorded_deadline is not None:
        return parse_time(recorded_deadline)
    return parse_time(record.sent_at[operation]) + timedelta(seconds=REQUEST_DEADLINE_S)


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
    started_at, pauses = clock.monotonic(), generate_pauses(_LONGEST_STEP_S)
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
        clock.sleep(next(pauses))
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
    """Return results for cleanups that did not run, but are needed because operations before them began."""
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
