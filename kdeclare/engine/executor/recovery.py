"""A run that did not come to its end: found, settled by observing, and closed. Nothing is edited by hand."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from kdeclare.core.clock import Clock, timestamp
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import REQUEST_DEADLINE_S, OperationResult, Status
from kdeclare.core.plans.state import PendingCleanup, State
from kdeclare.core.progress import Progress, quietly
from kdeclare.core.provider.registry import type_of
from kdeclare.engine.executor.attempt import OUTCOME_UNCLEAR, done, took_effect
from kdeclare.engine.executor.entries import (
    RunRecord,
    as_json,
    end_line,
    finish_line,
    read_run,
    read_run_plan,
)
from kdeclare.engine.executor.expectations import mismatches
from kdeclare.engine.executor.ownership import next_state, owned_after, update_cleanup
from kdeclare.engine.executor.progress_tracker import leave
from kdeclare.engine.executor.scheduler import NOT_BEGUN
from kdeclare.engine.observation import observe, select_all
from kdeclare.engine.state.port import StateStore

WAITING = "Waiting for the effect of requests of a run that was cut short"

_FIRST_STEP_S = 0.1
_LONGEST_STEP_S = 1.0
_AT_LEAST_S = 1.0
"""How long to look in any case: brokers show late what took effect."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """One unfinished run, and what became of the operations that it had begun.

    open_until: until when brokers may still do what shows no effect yet; None once all is settled, and only
    then the run is closed.
    """

    run_id: str
    plan: Plan
    settled: dict[str, OperationResult]
    not_begun: int
    open_until: datetime | None = None

    @property
    def is_certain(self) -> bool:
        """Whether nothing that it sent can still take effect and then be looked for in vain."""
        return all(result.status is not Status.UNKNOWN for result in self.settled.values())


def unfinished(store: StateStore) -> list[RunRecord]:
    """The last run, if it has no last line; earlier ones were settled before it could begin.

    Raises KdeclareError (``run-unreadable``) where its journal is damaged.
    """
    records = (read_run(store, run_id) for run_id in store.runs()[-1:])
    return [record for record in records if not record.is_over]


def find_missed(store: StateStore) -> list[RunRecord]:
    """The finished runs that the state does not know, oldest first: an older state was put in its place.

    Raises KdeclareError (``run-unreadable``) where a journal is damaged that has to be read for it.
    """
    state = store.read()
    missed: list[RunRecord] = []
    if state is None:
        return missed
    for run_id in reversed(store.runs()):
        record = read_run(store, run_id)
        if not record.is_over:
            continue
        if record.serial is None or record.lineage != state.lineage or record.serial <= state.serial:
            break
        missed.append(record)
    return missed[::-1]


def is_state_lost(store: StateStore) -> bool:
    """Whether runs have finished, each of which leaves a state, and there is none. Raises KdeclareError."""
    if store.read() is not None:
        return False
    return any(read_run(store, run_id).is_over for run_id in reversed(store.runs()))


def replay_missed(store: StateStore) -> tuple[str, ...]:
    """Bring an older state up to date from the journals of the runs that came after it; their ids.

    The caller holds the lock. Journals say how every operation ended, so ownership comes out as it was.
    """
    missed = find_missed(store)
    for record in missed:
        state = store.read()
        assert state is not None
        assert record.serial is not None
        plan = read_run_plan(store, record.run_id)
        resources = owned_after(plan, record.results, state.resources)
        cleanup = update_cleanup(plan, record.results, state.pending_cleanup)
        cluster_id = state.cluster_id or plan.cluster.id
        for serial in range(state.serial + 1, record.serial + 1):
            store.write(State(state.lineage, serial, cluster_id, resources, cleanup))
    return tuple(record.run_id for record in missed)


def find_pending_cleanup(store: StateStore, runs: int) -> PendingCleanup:
    """Return what the latest runs have left to be removed, by their journals; damaged runs are left out."""
    left: PendingCleanup = {}
    for run_id in store.runs()[-runs:]:
        try:
            left = update_cleanup(read_run_plan(store, run_id), read_run(store, run_id).results, left)
        except KdeclareError:
            continue  # whoever lists the runs says which cannot be read
    return left


def recover(
    store: StateStore,
    connections: Connections,
    clock: Clock,
    progress: Progress = quietly,
    *,
    wait: bool = True,
) -> list[Recovered]:
    """Settle and close every unfinished run; the caller holds the lock.

    Waits until brokers no longer work on what was sent. wait: False only looks, and leaves a run open of
    which something can still take effect.
    Repeating it after a crash in the middle gives the same. Raises Fault when the cluster does not answer.
    """
    return [_recover_one(store, connections, clock, record, progress, wait) for record in unfinished(store)]


def _recover_one(
    store: StateStore,
    connections: Connections,
    clock: Clock,
    record: RunRecord,
    progress: Progress,
    wait: bool,
) -> Recovered:
    plan = read_run_plan(store, record.run_id)
    unsettled = set(record.unsettled)
    operations = [op for op in plan.operations if op.id in unsettled]
    deadlines = {op.id: find_deadline(record, op.id) for op in operations}
    settled = settle(connections, clock, operations, deadlines, progress, wait=wait)
    not_begun = len(plan.operations) - len(record.begun)
    open_ = [deadlines[id_] for id_, r in settled.items() if r.status is Status.UNKNOWN]
    if not wait and open_ and max(open_) > clock.now():
        return Recovered(record.run_id, plan, settled, not_begun, max(open_))
    found = {**settled, **_left_to_tidy(plan, {**record.results, **settled})}
    results = {**record.results, **found}
    state = store.read()
    with store.open_run(record.run_id) as journal:
        if found:
            journal.append(as_json(end_line(timestamp(clock), found.values(), settled=True)))
        new = next_state(plan, results, state)
        if new is not None:
            store.write(new)
        journal.append(as_json(finish_line(timestamp(clock), "recovered", new or state)))
    return Recovered(record.run_id, plan, settled, not_begun)


def find_deadline(record: RunRecord, operation: str) -> datetime:
    """Until when brokers may do what an operation asked for."""
    stated = record.deadlines.get(operation)
    if stated is not None:
        return datetime.fromisoformat(stated)
    return datetime.fromisoformat(record.sent_at[operation]) + timedelta(seconds=REQUEST_DEADLINE_S)


def settle(
    connections: Connections,
    clock: Clock,
    operations: list[Operation],
    deadlines: Mapping[str, datetime],
    progress: Progress = quietly,
    *,
    wait: bool = True,
) -> dict[str, OperationResult]:
    """How each begun operation ended, by what the cluster has now; unknown before its deadline."""
    if not operations:
        return {}
    selections = select_all(operations)
    begun, step = clock.monotonic(), _FIRST_STEP_S
    limit_s = max((max(deadlines.values()) - clock.now()).total_seconds(), _AT_LEAST_S)
    limit_s = limit_s if wait else _AT_LEAST_S
    while True:
        live = observe(connections, selections)
        open_ = [op for op in operations if not took_effect(op, type_of(op).view(op, live))]
        if not open_ or clock.monotonic() - begun >= limit_s:
            break
        # a request that was under way when its sender died may take effect until its deadline
        progress(WAITING, len(operations) - len(open_), len(operations))
        clock.sleep(step)
        step = min(step * 2, _LONGEST_STEP_S)
    late = {op.id for op in open_ if deadlines[op.id] > clock.now()}
    return {
        op.id: _on_its_way(op, deadlines[op.id]) if op.id in late else _settled(op, live) for op in operations
    }


def _on_its_way(op: Operation, until: datetime) -> OperationResult:
    text = f"It shows no effect yet, and the system may still do it until {_time(until)}."
    return OperationResult(op.id, Status.UNKNOWN, None, text)


def _time(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _left_to_tidy(plan: Plan, results: Mapping[str, OperationResult]) -> dict[str, OperationResult]:
    """What was to tidy up after something that has taken effect, and did not come to it."""
    nothing = (None, *NOT_BEGUN)
    status = {id_: result.status for id_, result in results.items()}
    return {
        op.id: leave(op)
        for op in plan.operations
        if type_of(op).is_cleanup
        and status.get(op.id) in (None, Status.INTERRUPTED)
        and any(status.get(id_) not in nothing for id_ in op.follows)
    }


def _settled(op: Operation, live: LiveState) -> OperationResult:
    now = type_of(op).view(op, live)
    if took_effect(op, now):
        completion = type_of(op).completion
        return completion.leave(op) if completion and completion.is_ongoing(op, live) else done(op)
    if not mismatches(op, now):
        # a request may take effect late: what would then belong to nobody is looked for later
        status = Status.UNKNOWN if type_of(op).is_temporary(op) else Status.INTERRUPTED
        return OperationResult(op.id, status, None, "It had not taken effect.")
    message = f"Neither as before nor as planned: {dict(now)}."
    return OperationResult(op.id, Status.FAILED, OUTCOME_UNCLEAR, message)
