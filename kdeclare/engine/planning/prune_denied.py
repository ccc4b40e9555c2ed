"""Remove operations from a plan, such as operations that policies deny, together with their dependents."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Plan, Summary, Verdict, VerdictOutcome
from kdeclare.core.plans.plan_hooks import PlanHooks
from kdeclare.core.plans.policy_gate import Override, PolicyGate
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.changes import Action, Change, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.plan_capabilities import find_replacements

_Reasons = dict[str, str]


def prune_operations(
    operations: Sequence[Operation], denied_subjects: Mapping[ResourceId, Set[ResourceId]]
) -> tuple[tuple[Operation, ...], frozenset[ResourceId]]:
    """Remove denied operations. Return the remaining operations, and the resources that have none left.

    operations: all operations, in order.
    denied_subjects: for each resource, the objects that policies do not allow its operations to change. An
    operation on several objects is kept for the allowed objects.
    """
    if not denied_subjects:
        return tuple(operations), frozenset()
    kept_operations = _drop_denied(operations, denied_subjects)
    idle_resources = _list_worked_on(operations) - _list_worked_on(kept_operations.values())
    for op in operations:
        remaining_part = (
            get_operation_type(op).less(op, idle_resources) if get_operation_type(op).is_auxiliary else None
        )
        if remaining_part is not None:
            kept_operations[op.id] = remaining_part
    _drop_idle(kept_operations, operations)
    remaining = _rewire(kept_operations, operations)
    return remaining, _list_acting(operations) - _list_acting(remaining)


def is_limited_to_its_resource(op: Operation) -> bool:
    """Whether the operation changes only its own resource. Some reassignments also change other topics.

    If an operation that changes only its own resource is removed, all other operations of the resource are
    removed, too. If they were kept, a plan would show a change that is made only in part.
    """
    operation_type = get_operation_type(op)
    return not operation_type.is_auxiliary and operation_type.find_changed_resources(op) <= {op.resource}


def _drop_denied(
    operations: Sequence[Operation], denied_subjects: Mapping[ResourceId, Set[ResourceId]]
) -> dict[str, Operation]:
    """Return the operations that are not auxiliary, without their effects on denied objects.

    If an operation is removed, all operations that depend on it are removed, too. If the removed operation
    changes only its own resource, the same applies to all other operations of the resource (see
    `is_limited_to_its_resource`).
    """
    dependent_resources: set[ResourceId] = set()
    while True:
        remaining, found_resources = _drop_once(operations, denied_subjects, dependent_resources)
        if found_resources <= dependent_resources:
            return remaining
        dependent_resources |= found_resources


def _drop_once(
    operations: Sequence[Operation],
    denied_subjects: Mapping[ResourceId, Set[ResourceId]],
    dependent_resources: Set[ResourceId],
) -> tuple[dict[str, Operation], set[ResourceId]]:
    """Remove denied operations and their dependents in one pass.

    Return the remaining operations, and the resources whose other operations the next pass must remove.
    """
    remaining: dict[str, Operation] = {}
    removed_ids: set[str] = set()
    found_resources: set[ResourceId] = set()
    for op in operations:
        if get_operation_type(op).is_auxiliary:
            continue
        subjects = denied_subjects.get(op.resource, frozenset())
        is_denied = op.resource in subjects or op.resource in dependent_resources
        remaining_part = None if is_denied else get_operation_type(op).less(op, subjects) if subjects else op
        is_dependent = not removed_ids.isdisjoint(op.needs)
        if remaining_part is not None and not is_dependent:
            remaining[op.id] = remaining_part
            continue
        removed_ids.add(op.id)
        if remaining_part is not None and is_limited_to_its_resource(op):
            found_resources.add(op.resource)
    return remaining, found_resources


def _list_worked_on(operations: Iterable[Operation]) -> set[ResourceId]:
    return {subject for op in operations for subject in get_operation_type(op).count_ongoing_parts(op)}


def _list_acting(operations: Iterable[Operation]) -> frozenset[ResourceId]:
    return frozenset(op.resource for op in operations if not get_operation_type(op).is_auxiliary)


def _drop_idle(kept_operations: dict[str, Operation], operations: Sequence[Operation]) -> None:
    """Remove each auxiliary operation that no remaining operation needs."""
    awaited_ids = {need for op in operations for need in op.needs}
    needed_ids: set[str] = set()
    for op in reversed(operations):
        if op.id not in kept_operations:
            continue
        if get_operation_type(op).is_auxiliary and op.id in awaited_ids and op.id not in needed_ids:
            del kept_operations[op.id]
        else:
            needed_ids |= op.needs.keys()


def _rewire(
    kept_operations: Mapping[str, Operation], operations: Iterable[Operation]
) -> tuple[Operation, ...]:
    """Return the kept operations in order, without dependencies on removed operations.

    If an operation depended on a removed auxiliary operation, it now depends on the predecessors of the
    removed operation.
    """
    edges: dict[str, tuple[_Reasons, _Reasons]] = {}
    rewired = []
    for op in operations:
        needs: _Reasons = {}
        follows: _Reasons = {}
        for predecessor, reason in op.needs.items():
            if predecessor in kept_operations:
                needs[predecessor] = reason
            elif predecessor in edges:
                needs |= edges[predecessor][0]
                follows |= edges[predecessor][1]
        for predecessor, reason in op.follows.items():
            if predecessor in kept_operations:
                follows[predecessor] = reason
            elif predecessor in edges:
                follows |= {**edges[predecessor][0], **edges[predecessor][1]}
        if op.id in kept_operations:
            is_unchanged = needs == op.needs and follows == op.follows
            rewired.append(
                kept_operations[op.id]
                if is_unchanged
                else replace(kept_operations[op.id], needs=needs, follows=follows)
            )
        elif get_operation_type(op).is_auxiliary:
            edges[op.id] = needs, follows
    return tuple(rewired)


def block_changes(plan: Plan, operations: tuple[Operation, ...], blocked: Set[str], code: str) -> Plan:
    """Return the plan with only these ``operations``.

    blocked: the resources that have no operations left. code: the code of the cause that blocks them.
    """
    return replace(
        plan,
        operations=operations,
        changes=tuple(_block_change(change, blocked, code) for change in plan.changes),
        ownership=tuple(o for o in plan.ownership if str(o.id) not in blocked),
        summary=_recompute_summary(plan, operations, blocked),
    )


def _block_change(change: Change, blocked: Set[str], code: str) -> Change:
    return replace(change, blocked=code) if str(change.id) in blocked else change


def _recompute_summary(plan: Plan, operations: Sequence[Operation], blocked: Set[str]) -> Summary:
    counts = dict.fromkeys(Action, 0)
    for change in plan.changes:
        if str(change.id) in blocked and not change.blocked:
            counts[change.action] += 1
    summary = plan.summary
    return replace(
        summary,
        create=summary.create - counts[Action.CREATE] - counts[Action.REPLACE],
        update=summary.update - counts[Action.UPDATE],
        delete=summary.delete - counts[Action.DELETE] - counts[Action.REPLACE],
        blocked=summary.blocked + sum(counts.values()),
        reassign=count_ongoing_work(operations),
    )


def count_ongoing_work(operations: Iterable[Operation]) -> int:
    """Return the number of work items, such as replica moves, that continue after the requests."""
    return sum(sum(get_operation_type(op).count_ongoing_parts(op).values()) for op in operations)


def apply_guards(
    operations: tuple[Operation, ...], hooks: Iterable[PlanHooks]
) -> tuple[tuple[Verdict, ...], tuple[Operation, ...], frozenset[ResourceId]]:
    """Return the verdicts of all guards, and the result of `prune_operations` for the denied resources."""
    verdicts = tuple(verdict for hook in hooks for verdict in hook.guard(operations))
    return verdicts, *_prune_denied_resources(operations, verdicts)


def _prune_denied_resources(
    operations: tuple[Operation, ...], verdicts: Iterable[Verdict]
) -> tuple[tuple[Operation, ...], frozenset[ResourceId]]:
    """Return the result of `prune_operations` for the resources that the verdicts deny."""
    denied = {ResourceId.parse(verdict.resource) for verdict in verdicts if verdict.is_denial}
    return prune_operations(operations, {resource: frozenset({resource}) for resource in denied})


def evaluate_guards_and_prune(
    plan: Plan, hooks: Iterable[PlanHooks], skipped_ids: Collection[str] = ()
) -> Plan:
    """Return the plan without the operations that guards deny in the current state of the systems.

    A denial is overridden if the plan contains the same denial with an override. skipped_ids: the ids of
    operations that will not run.

    Raises Fault if a system does not respond.
    """
    find_override = replay_overrides(plan)
    acting_operations = tuple(op for op in plan.operations if op.id not in skipped_ids)
    current = tuple(
        _replay(verdict, find_override(verdict))
        for hook in hooks
        for verdict in hook.guard(acting_operations)
    )
    verdicts = _merge_verdicts(plan.verdicts, current)
    if not any(verdict.is_denial for verdict in current):
        return plan if verdicts == plan.verdicts else replace(plan, verdicts=verdicts)
    operations, resources = _prune_denied_resources(plan.operations, current)
    blocked = frozenset(map(str, resources))
    return block_changes(replace(plan, verdicts=verdicts), operations, blocked, POLICY_VIOLATION)


def _replay(verdict: Verdict, override: str | None) -> Verdict:
    if override is None or not verdict.is_denial:
        return verdict
    return replace(verdict, outcome=VerdictOutcome.WARN, override=override)


def find_resource_action(operations: Sequence[Operation]) -> Action:
    """Return the action that the operations of a resource perform on it.

    Deletion takes precedence over creation, unless the creation waits for the deletion.
    """
    if find_replacements(operations):
        return Action.REPLACE
    if any(get_operation_type(op).find_deleted_resource(op) is not None for op in operations):
        return Action.DELETE
    creates = any(get_operation_type(op).find_created_resource(op) is not None for op in operations)
    return Action.CREATE if creates else Action.UPDATE


def find_deletion_risk(operations: Iterable[Operation]) -> Risk:
    """Return the lowest risk that a change can have if these operations delete its resource."""
    return max((get_operation_type(op).deletion_risk for op in operations), key=list(Risk).index)


POLICY_VIOLATION = "policy-violation"
"""The code of a change that a policy blocks. The verdict contains the details."""


def evaluate_and_prune(
    plan: Plan,
    connections: Connections,
    policy_gate: PolicyGate,
    owned: Mapping[str, OwnedRecord],
    override: Override,
    skipped_ids: Collection[str] = (),
) -> Plan:
    """Return the plan without the operations that policies deny in the current state of the systems.

    owned: the ownership records in the state. skipped_ids: the ids of operations that will not run.

    Raises Fault if a system does not respond.
    """
    acting_operations = [op for op in plan.operations if op.id not in skipped_ids]
    evaluation = policy_gate.evaluate_plan(acting_operations, plan, connections, owned, override)
    verdicts = _merge_verdicts(plan.verdicts, evaluation.verdicts)
    if not evaluation.denied:
        return plan if verdicts == plan.verdicts else replace(plan, verdicts=verdicts)
    operations, resources = prune_operations(plan.operations, evaluation.denied)
    blocked = frozenset(map(str, resources))
    return block_changes(replace(plan, verdicts=verdicts), operations, blocked, POLICY_VIOLATION)


def add_needs(
    operations: Sequence[Operation], needs: Mapping[str, Mapping[str, str]]
) -> tuple[Operation, ...]:
    """Return the operations with additional dependencies. needs: see `PolicyEvaluation`."""
    if not needs:
        return tuple(operations)
    return tuple(
        replace(op, needs={**needs[op.id], **op.needs}) if op.id in needs else op for op in operations
    )


def replay_overrides(plan: Plan) -> Override:
    """Return a function that overrides a denial if the plan contains the same denial with an override."""
    planned_overrides = {(v.policy, v.resource, v.topic, v.message): v.override for v in plan.verdicts}
    return lambda now: planned_overrides.get((now.policy, now.resource, now.topic, now.message))


def _merge_verdicts(planned: Sequence[Verdict], current: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Return the current verdicts, and the planned verdicts that were not evaluated again."""
    planned_by_key = {(v.policy, v.resource, v.topic): v for v in planned}
    current_by_key = {(v.policy, v.resource, v.topic): v for v in current}
    if len(current_by_key) < len(current):  # a policy evaluated both parts of a replacement
        return (*(v for key, v in planned_by_key.items() if key not in current_by_key), *current)
    return tuple((planned_by_key | current_by_key).values())
