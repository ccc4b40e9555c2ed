"""What kdeclare is responsible for after a run, whole or in part."""

import uuid
from collections.abc import Mapping

from kdeclare.core.capabilities import record_identity
from kdeclare.core.jsontypes import Json
from kdeclare.core.operations import Operation
from kdeclare.core.plan import Plan
from kdeclare.core.registry import KINDS, type_of
from kdeclare.core.run import OperationResult
from kdeclare.core.state import PendingCleanup, State


def owned_after(
    plan: Plan, results: Mapping[str, OperationResult], resources: Mapping[str, Json]
) -> dict[str, Json]:
    """The owned resources once the results of a run are taken into account."""
    by_resource: dict[str, list[Operation]] = {}
    for op in plan.operations:
        by_resource.setdefault(str(op.resource), []).append(op)
    owned = dict(resources)
    for item in plan.ownership:
        operations = by_resource.get(str(item.id), [])
        done = tuple(op for op in operations if _went_well(results.get(op.id)))
        changed_since = resources.get(str(item.id)) != item.before
        if not done and (operations or changed_since):
            continue  # nothing came of it, or it was left out as stale: the record is as it is
        if item.id.kind not in KINDS:
            continue  # of a provider that is not installed: nobody here can say what is owned now
        kind = KINDS[item.id.kind]
        record = kind.merge_ownership(item.before, item.after, done, len(done) == len(operations))
        created_ids = {op.id: results[op.id].created_id for op in done}
        record = record_identity(item.id.kind, record, done, created_ids)
        if record is None:
            owned.pop(str(item.id), None)
        else:
            owned[str(item.id)] = record
    return owned


def update_cleanup(
    plan: Plan, results: Mapping[str, OperationResult], before: PendingCleanup
) -> PendingCleanup:
    """Return what is to be removed later once the results of a run are taken into account."""
    for op in plan.operations:
        result = results.get(op.id)
        if result is not None:
            before = type_of(op).update_cleanup(op, result.status, before)
    return before


def next_state(plan: Plan, results: Mapping[str, OperationResult], state: State | None) -> State | None:
    """The state to write after a run; None where the run has done nothing.

    What was mended in the cluster alone raises the serial, too: to mend the same once more is another plan.
    """
    resources = owned_after(plan, results, state.resources if state else {})
    cleanup = update_cleanup(plan, results, state.pending_cleanup if state else {})
    if state is None:
        return State(str(uuid.uuid4()), 1, plan.cluster.id, resources, cleanup)
    unchanged = dict(state.resources) == resources and state.pending_cleanup == cleanup
    if unchanged and not any(map(_went_well, results.values())):
        return None
    return State(state.lineage, state.serial + 1, state.cluster_id, resources, cleanup)


def _went_well(result: OperationResult | None) -> bool:
    return result is not None and result.had_effect
