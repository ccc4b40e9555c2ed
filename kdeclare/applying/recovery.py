"""A run that did not come to its end: found, settled by observing, and closed. Nothing is edited by hand."""

from collections.abc import Mapping
from dataclasses import dataclass

from kdeclare.applying.attempt import OUTCOME_UNCLEAR, done, took_effect
from kdeclare.applying.clock import Clock, timestamp
from kdeclare.applying.entries import FinishLine, RunRecord, as_json, end_line, fold
from kdeclare.applying.expectations import mismatches
from kdeclare.applying.lookout import GOES_ON, LATER
from kdeclare.applying.ownership import next_state
from kdeclare.applying.scheduler import NOT_BEGUN
from kdeclare.cluster.port import Cluster
from kdeclare.kinds.query import merge
from kdeclare.kinds.verbs.partitions import pending
from kdeclare.kinds.verbs.registry import VERBS
from kdeclare.model.live import Snapshot
from kdeclare.model.operations import Operation
from kdeclare.model.plan import Plan
from kdeclare.model.run import OperationResult, Status
from kdeclare.model.state import Leftovers
from kdeclare.planning.observe import observe
from kdeclare.planning.planfile import read_plan
from kdeclare.state.port import StateStore

_LOOKS = 5
_STEP_S = 0.2


@dataclass(frozen=True, slots=True)
class Recovered:
    """One unfinished run, and what became of the operations that it had begun."""

    run_id: str
    plan: Plan
    settled: dict[str, OperationResult]
    not_begun: int

    @property
    def is_certain(self) -> bool:
        """Whether nothing that it sent can still take effect and then be looked for in vain."""
        return all(result.status is not Status.UNKNOWN for result in self.settled.values())


def unfinished(store: StateStore) -> list[RunRecord]:
    """The last run, if it has no last line; earlier ones were settled before it could begin.

    Raises KdeclareError for a corrupt journal.
    """
    records = (fold(run_id, store.entries(run_id)) for run_id in store.runs()[-1:])
    return [record for record in records if not record.is_over]


def recover(store: StateStore, cluster: Cluster, clock: Clock) -> list[Recovered]:
    """Settle and close every unfinished run; the caller holds the lock.

    Repeating it after a crash in the middle gives the same. Raises Fault when the cluster does not answer.
    """
    return [_recover_one(store, cluster, clock, record) for record in unfinished(store)]


def _recover_one(store: StateStore, cluster: Cluster, clock: Clock, record: RunRecord) -> Recovered:
    plan = read_plan(store.plan_text(record.run_id), f"run {record.run_id}")
    unsettled = set(record.unsettled)
    operations = [op for op in plan.operations if op.id in unsettled]
    settled = settle(cluster, clock, operations)
    found = {**settled, **_left_to_tidy(plan, {**record.results, **settled})}
    results = {**record.results, **found}
    state = store.read()
    with store.open_run(record.run_id) as journal:
        if found:
            journal.append(as_json(end_line(timestamp(clock), found.values(), settled=True)))
        new = next_state(plan, results, state)
        if new is not None:
            store.write(new)
        journal.append(as_json(FinishLine(at=timestamp(clock), outcome="recovered")))
    return Recovered(record.run_id, plan, settled, len(plan.operations) - len(record.begun))


def settle(cluster: Cluster, clock: Clock, operations: list[Operation]) -> dict[str, OperationResult]:
    """How each begun operation ended, by what the cluster has now."""
    if not operations:
        return {}
    query = merge(VERBS[op.verb].query(op) for op in operations)
    live = observe(cluster, query)
    for _ in range(_LOOKS):
        # a request that was under way when its sender died may take effect a moment later
        if all(took_effect(op, VERBS[op.verb].view(op, live)) for op in operations):
            break
        clock.sleep(_STEP_S)
        live = observe(cluster, query)
    return {op.id: _settled(op, live) for op in operations}


def _left_to_tidy(plan: Plan, results: Mapping[str, OperationResult]) -> dict[str, OperationResult]:
    """What was to tidy up after something that has taken effect, and did not come to it."""
    nothing = (None, *NOT_BEGUN)
    status = {id_: result.status for id_, result in results.items()}
    return {
        op.id: OperationResult(op.id, Status.STARTED, None, LATER)
        for op in plan.operations
        if VERBS[op.verb].tidies
        and status.get(op.id) in (None, Status.INTERRUPTED)
        and any(status.get(id_) not in nothing for id_ in op.follows)
    }


def _settled(op: Operation, live: Snapshot) -> OperationResult:
    now = VERBS[op.verb].view(op, live)
    if took_effect(op, now):
        moving = VERBS[op.verb].moves and pending(op, live)
        return OperationResult(op.id, Status.STARTED, None, GOES_ON) if moving else done(op)
    if not mismatches(op, now):
        # a request may take effect late: what would then belong to nobody is looked for later
        late = VERBS[op.verb].leaves(op, Status.UNKNOWN, Leftovers()).throttles
        status = Status.UNKNOWN if late else Status.INTERRUPTED
        return OperationResult(op.id, status, None, "It had not taken effect.")
    message = f"Neither as before nor as planned: {dict(now)}."
    return OperationResult(op.id, Status.FAILED, OUTCOME_UNCLEAR, message)
