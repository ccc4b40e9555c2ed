"""Determine the resources that kdeclare owns after a complete or partial run."""

import uuid
from collections.abc import Mapping

from kdeclare.core.live.endpoints import merge_endpoints
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import OperationResult
from kdeclare.core.plans.state import PendingCleanup, State
from kdeclare.core.provider.registry import KINDS, get_operation_type
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord, UnboundRecord
from kdeclare.core.resources.plan_capabilities import (
    record_identity,
)


def compute_owned(
    plan: Plan, results: Mapping[str, OperationResult], resources: Mapping[str, OwnedRecord]
) -> dict[str, OwnedRecord]:
    """Return the ownership records after a run with these results."""
    by_resource: dict[ResourceId, list[Operation]] = {}
    for op in plan.operations:
        by_resource.setdefault(op.resource, []).append(op)
    owned = dict(resources)
    for item in plan.ownership:
        key = str(item.id)
        operations = by_resource.get(item.id, [])
        effective = tuple(op for op in operations if _has_effect(results.get(op.id)))
        if not effective and (operations or resources.get(key) != item.before):
            continue  # no operation had an effect, or the resource was skipped as stale: keep the record
        if item.id.kind not in KINDS:
            continue  # the provider is not installed, so the new record cannot be determined
        if isinstance(item.before, UnboundRecord) or isinstance(item.after, UnboundRecord):
            continue  # the record was written by another version of the provider, so it cannot be merged
        kind = KINDS[item.id.kind]
        record = kind.merge_ownership(item.before, item.after, effective, len(effective) == len(operations))
        created_ids = {op.id: results[op.id].created_id for op in effective}
        record = record_identity(item.id.kind, record, effective, created_ids)
        if record is None:
            owned.pop(key, None)
        else:
            owned[key] = record
    return owned


def update_cleanup(
    plan: Plan, results: Mapping[str, OperationResult], pending: PendingCleanup
) -> PendingCleanup:
    """Return the pending cleanup after a run with these results."""
    for op in plan.operations:
        result = results.get(op.id)
        if result is not None:
            pending = get_operation_type(op).update_cleanup(op, result.status, pending)
    return pending


def compute_next_state(
    plan: Plan, results: Mapping[str, OperationResult], state: State | None
) -> State | None:
    """Return the state to write after a run; None if a state exists and the run had no effect.

    The serial also increases if the run only reverted drift, so that a later plan with the same operations is
    based on a different state and gets a different id.
    """
    resources = compute_owned(plan, results, state.resources if state else {})
    cleanup = update_cleanup(plan, results, state.pending_cleanup if state else {})
    if state is None:
        return State(str(uuid.uuid4()), 1, plan.cluster.id, resources, cleanup, plan.endpoints)
    unchanged = dict(state.resources) == resources and state.pending_cleanup == cleanup
    if unchanged and not any(map(_has_effect, results.values())):
        return None
    cluster_id = state.cluster_id or plan.cluster.id  # bound to the first system that has an id
    endpoints = merge_endpoints(state.endpoints, plan.endpoints)
    return State(state.lineage, state.serial + 1, cluster_id, resources, cleanup, endpoints)


def _has_effect(result: OperationResult | None) -> bool:
    return result is not None and result.had_effect
