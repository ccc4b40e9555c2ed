"""Check that a plan shows exactly the changes that its operations make.

The hash of a plan file proves nothing by itself, because anyone who edits the file can recompute it.
Therefore, everything that a plan shows to people is derived from its operations or compared with them here.

Operation types and kinds define the effects of arguments (`OperationType.is_confined`,
`OperationType.fields`, `ProvesFields`). A file is refused if any of its content cannot be confirmed in this
way. The expected state of an operation (``expect``) is not trusted either: apply compares it with the live
system.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.operations.argument_binding import dump_arguments
from kdeclare.core.operations.operation import Arguments, Operation, UnboundArguments
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.provider_queries import find_auxiliary_kinds
from kdeclare.core.provider.registry import KINDS, OPERATION_TYPES, get_operation_type
from kdeclare.core.resources.changes import Action, Change, FieldChange, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import UnboundRecord
from kdeclare.core.resources.plan_capabilities import (
    Evidence,
    Values,
    assess_field,
    find_proven_fields,
    is_rated_by_live_state,
    normalize_field,
)
from kdeclare.core.resources.record_binding import dump_record
from kdeclare.engine.planning.prune_denied import count_ongoing_work, find_deletion_risk, find_resource_action
from kdeclare.engine.planning.replacement import build_creation

_RISKS = list(Risk)
_ACTING = (Action.CREATE, Action.UPDATE, Action.DELETE, Action.REPLACE)
_DELETING = (Action.DELETE, Action.REPLACE)
_UNEXPECTED_ERRORS = (TypeError, ValueError, LookupError, AttributeError)
"""The exceptions that provider code raises for values that kdeclare itself never writes to a file."""


class _UnprovableError(Exception):
    """Raised if the effect of an operation cannot be proven. The message is the reason."""


@dataclass(frozen=True, slots=True)
class _OperationEffect:
    """An operation, and the resource fields that the operation changes."""

    operation: Operation
    fields: tuple[FieldChange, ...]


def find_unknown_parts(plan: Plan) -> list[str]:
    """Return the operation types and kinds in the plan that this version of kdeclare does not know.

    A plan with unknown types or kinds can be displayed, but not applied.
    """
    verbs = {op.verb for op in plan.operations} - OPERATION_TYPES.keys()
    acting_ids = [c.id for c in plan.changes if c.action is not Action.NO_OP]
    ids = [*acting_ids, *(op.resource for op in plan.operations), *(item.id for item in plan.ownership)]
    kinds = {id_.kind for id_ in ids} - KINDS.keys() - find_auxiliary_kinds()
    return [*(f"verb '{verb}'" for verb in sorted(verbs)), *(f"kind '{kind}'" for kind in sorted(kinds))]


def find_invalid_operations(plan: Plan) -> Iterator[str]:
    """Yield a sentence for each operation with values that its type cannot display."""
    for op in (*plan.operations, *plan.blocked_operations):
        operation_type = get_operation_type(op)
        try:
            tuple(operation_type.fields(op))
            operation_type.list_placements(op)
        except _UNEXPECTED_ERRORS:
            yield f"operation '{op.id}' ({op.verb}) has values that are invalid for its type"


def find_inconsistencies(plan: Plan) -> Iterator[str]:
    """Yield a sentence for each difference between the changes that the plan shows and its operations.

    All operation types and kinds in the plan must be known.
    """
    effects: dict[ResourceId, list[_OperationEffect]] = defaultdict(list)
    unprovable: list[str] = []
    for op in plan.operations:
        try:
            fields = _prove_operation(op)
        except _UnprovableError as reason:
            unprovable.append(f"operation '{op.id}' ({op.verb}): {reason}")
        else:
            if not get_operation_type(op).is_auxiliary:
                effects[op.resource].append(_OperationEffect(op, fields))
    yield from unprovable
    if unprovable:
        return  # the effect of the operation is unknown, so nothing can be compared with it
    ongoing_effects = (d for own in effects.values() for d in own if get_operation_type(d.operation).goes_on)
    shared_values = _group_values_by_path(ongoing_effects)
    changes = {change.id: change for change in plan.changes}
    if len(changes) < len(plan.changes):
        yield "two changes are about the same resource"
    for id_ in effects.keys() - changes.keys():
        yield f"operation '{effects[id_][0].operation.id}' acts on {id_}, but no change shows it"
    for change in plan.changes:
        try:
            yield from _check_change(plan, change, effects.get(change.id, []), shared_values)
        except _UNEXPECTED_ERRORS:
            yield f"the change to {change.id} has values that are invalid for its kind"
    for op in plan.blocked_operations:
        try:
            yield from _check_blocked_operation(op, changes.get(op.resource))
        except _UNEXPECTED_ERRORS:
            yield f"blocked operation '{op.id}' has values that are invalid for its type"
    yield from _check_summary(plan)
    yield from _check_ownership(plan, changes)
    yield from _check_rollback(plan)


def _prove_operation(op: Operation) -> tuple[FieldChange, ...]:
    """Return the fields that an operation changes. Raises _UnprovableError if they cannot be proven."""
    operation_type = get_operation_type(op)
    if isinstance(op.args, UnboundArguments):
        raise _UnprovableError(op.args.problem)
    if operation_type.is_auxiliary:
        return ()
    try:
        if not operation_type.is_confined(op):
            raise _UnprovableError(f"its arguments do not prove that it changes only {op.resource}")
        claims = operation_type.claims(op)
        missing = sorted(claims.keys() - op.expect.keys())
        if missing or not claims:
            raise _UnprovableError(
                f"it does not state the expected {missing[0] if missing else f'state of {op.resource}'}"
            )
        _prove_inverse(op)
        return tuple(operation_type.fields(op))
    except _UNEXPECTED_ERRORS as cause:
        raise _UnprovableError("its expected values are invalid for an operation of this type") from cause


def _prove_inverse(op: Operation) -> None:
    """Check that the inverse in the plan undoes the operation. Raises _UnprovableError if it does not.

    An operation that cannot be undone must be marked as irreversible.
    """
    if op.irreversible is not None:
        return
    inverse = op.inverse
    if inverse is None or inverse.verb not in OPERATION_TYPES:
        raise _UnprovableError("its inverse has an unknown type")
    if isinstance(inverse.args, UnboundArguments):
        raise _UnprovableError(f"its inverse ({inverse.verb}): {inverse.args.problem}")
    undo_result = get_operation_type(op).invert(
        op, get_operation_type(op).expected_state(op), allow_data_loss=False
    )
    if undo_result.lost:
        raise _UnprovableError("it cannot be undone, but the plan shows it as reversible")
    if undo_result.args is None:
        return
    computed_args, stated_args = (
        _dump_effective_arguments(inverse.verb, args) for args in (undo_result.args, inverse.args)
    )
    if undo_result.verb != inverse.verb or computed_args != stated_args:
        raise _UnprovableError("its inverse does not undo it")


def _dump_effective_arguments(verb: str, args: Arguments) -> dict[str, JsonValue]:
    """Return the arguments without the arguments that only control how the operation is executed."""
    execution_names = OPERATION_TYPES[verb].manner
    return {name: value for name, value in dump_arguments(args).items() if name not in execution_names}


def _group_values_by_path(effects: Iterable[_OperationEffect]) -> Mapping[str, Values]:
    """Return the values that the operations set, in order, by field path."""
    return _join_values((effect.operation.resource, field) for effect in effects for field in effect.fields)


def _join_values(fields: Iterable[tuple[ResourceId, FieldChange]]) -> dict[str, Values]:
    values_by_path: dict[str, Values] = {}
    for resource, field in fields:
        field = normalize_field(resource, field)
        earlier_values = values_by_path.get(field.path, (field.before,))
        values_so_far = (
            earlier_values if earlier_values[-1] == field.before else (*earlier_values, field.before)
        )
        values_by_path[field.path] = (*values_so_far, field.after)
    return values_by_path


def _check_change(
    plan: Plan, change: Change, effects: Sequence[_OperationEffect], shared_values: Mapping[str, Values]
) -> Iterator[str]:
    evidence = Evidence(
        _join_values((change.id, field) for field in change.fields),
        _group_values_by_path(effects),
        shared_values,
    )
    if not effects:
        if change.action in _ACTING and not change.blocked:
            yield from _check_idle_change(plan, change, evidence)
        yield from _check_risks(change, Risk.SAFE)
        return
    operations = [effect.operation for effect in effects]
    if change.blocked or change.action not in _ACTING:
        shown_state = "blocked" if change.blocked else change.action.value
        yield f"{change.id} is shown as {shown_state}, but operation '{operations[0].id}' acts on it"
        return
    action = find_resource_action(operations)
    if action is not change.action:
        yield f"{change.id} is shown as {change.action.value}, but its operations {action.value} it"
        return
    if action is Action.DELETE:
        yield from _check_deletion(change, operations)
    elif action is Action.REPLACE:
        yield from _check_replacement(plan, change, effects, shared_values)
    else:
        yield from _check_fields(plan, change, evidence)
    yield from _check_risks(change, find_deletion_risk(operations) if action in _DELETING else Risk.SAFE)


def _check_blocked_operation(op: Operation, change: Change | None) -> Iterator[str]:
    """Check that the plan shows the fields that an operation of a blocked change would change."""
    if change is None or not change.blocked:
        yield f"operation '{op.id}' is listed as blocked, but {op.resource} is not blocked"
        return
    if isinstance(op.args, UnboundArguments):
        yield f"blocked operation '{op.id}' ({op.verb}): {op.args.problem}"
        return
    evidence = Evidence(
        _join_values((change.id, field) for field in change.fields),
        _join_values((change.id, field) for field in get_operation_type(op).fields(op)),
        {},
    )
    proven_paths = find_proven_fields(change, evidence)
    for path in sorted(evidence.done.keys() - proven_paths):
        values = evidence.done[path]
        if values[0] != values[-1] and not _is_shown(values, evidence.shown.get(path, ())):
            yield _describe_difference(change, path, evidence)


def _check_idle_change(plan: Plan, change: Change, evidence: Evidence) -> Iterator[str]:
    """Check a change whose resource has no operations.

    Such a change is valid if operations of other resources make it, or if the plan shows that it is denied.
    """
    unproven_paths = evidence.shown.keys() - find_proven_fields(change, evidence)
    # If a policy denies a part of a move that several resources share, other resources still make the other
    # parts.
    is_rest_done_by_others = len(unproven_paths) < len(evidence.shown) and _is_denied_in_part(plan, change)
    if change.action is not Action.UPDATE or (unproven_paths and not is_rest_done_by_others):
        yield f"{change.id} is shown as changed, but no operation changes it"


def _check_deletion(change: Change, operations: Sequence[Operation]) -> Iterator[str]:
    for op in operations:
        if get_operation_type(op).find_deleted_resource(op) is None:
            yield f"{change.id} is shown as deleted, but operation '{op.id}' is not a deletion"


def _check_replacement(
    plan: Plan, change: Change, effects: Sequence[_OperationEffect], shared_values: Mapping[str, Values]
) -> Iterator[str]:
    """Check that the plan shows a replacement: the deletion, and the fields that the creation sets."""
    creations = [e for e in effects if not get_operation_type(e.operation).deletes]
    creation = build_creation(change)
    shown = _join_values((creation.id, field) for field in creation.fields)
    evidence = Evidence(shown, _group_values_by_path(creations), shared_values)
    yield from _check_fields(plan, creation, evidence)


def _check_fields(plan: Plan, change: Change, evidence: Evidence) -> Iterator[str]:
    """Check that the plan shows exactly the field changes that the operations make."""
    shown_values, operation_values = evidence.shown, evidence.done
    if not operation_values and change.action is Action.UPDATE:
        yield f"{change.id} is shown as changed, but its operations do not state what they change"
        return
    proven_paths: Set[str] = find_proven_fields(change, evidence)
    is_denied = _is_denied_in_part(plan, change)
    for path in sorted(operation_values.keys() | shown_values.keys()):
        if path in proven_paths or _is_shown(operation_values.get(path, ()), shown_values.get(path, ())):
            continue
        if path not in shown_values and set(map(str, operation_values[path])) == {
            str(operation_values[path][0])
        }:
            continue  # the value stays the same and is only sent again
        if path not in operation_values and is_denied:
            continue  # shown as denied elsewhere in the plan
        yield _describe_difference(change, path, evidence)


def _is_shown(operation_values: Values, shown_values: Values) -> bool:
    """Whether the plan shows every value that the operations give to a field, in order.

    The first and the last value of the plan must match those of the operations. Between them, the plan can
    show values that no operation sets.
    """
    if (
        not operation_values
        or not shown_values
        or (shown_values[0], shown_values[-1]) != (operation_values[0], operation_values[-1])
    ):
        return False
    remaining = iter(shown_values)
    return all(value in remaining for value in operation_values)


def _describe_difference(change: Change, path: str, evidence: Evidence) -> str:
    if path not in evidence.shown:
        return f"{change.id}: its operations change {path}, but the plan does not show this change"
    if path not in evidence.done:
        return f"{change.id}: {path} is shown as changed, but no operation changes it"
    if evidence.shown[path][-1] == evidence.done[path][-1] and len(evidence.done[path]) > 2:
        return f"{change.id}: {path} is changed more than once, but the plan does not show every change"
    return f"{change.id}: the change to {path} in the plan differs from the change that the operations make"


def _check_risks(change: Change, minimum: Risk) -> Iterator[str]:
    if change.action not in _ACTING:
        return
    highest = minimum
    for field in change.fields:
        if change.id.kind not in KINDS:
            break  # an auxiliary kind, which serves the work of several resources and has no fields
        # The fields of the new object are harmless, but its creation deletes what exists.
        action = Action.DELETE if change.action is Action.REPLACE else change.action
        assessed = assess_field(change.id.kind, action, field)
        is_lower = _RISKS.index(field.risk) < _RISKS.index(assessed.risk)
        if is_lower and not is_rated_by_live_state(change.id.kind, field):
            yield f"{change.id}: {field.path} is shown as {field.risk.value}, but it is {assessed.risk.value}"
        highest = max(highest, field.risk, key=_RISKS.index)
    if _RISKS.index(change.risk) < _RISKS.index(highest):
        yield f"{change.id} is shown as {change.risk.value}, but it is {highest.value}"


def _is_denied_in_part(plan: Plan, change: Change) -> bool:
    """Whether the plan shows that a policy, a guard or an endpoint blocks a part of the change."""
    name = str(change.id)
    denials = [d.resource for d in plan.diagnostics if d.is_blocking and not d.blocks_plan]
    return name in denials or any(v.is_denial and v.resource == name for v in plan.verdicts)


def _check_summary(plan: Plan) -> Iterator[str]:
    blocked = {d.resource for d in plan.diagnostics if d.is_blocking}
    counts = Counter(c.action for c in plan.changes if not c.blocked and str(c.id) not in blocked)
    acting_counts = Counter(c.action for c in plan.changes if not c.blocked)
    for counter in (counts, acting_counts):  # a replacement counts as a creation and as a deletion
        counter[Action.CREATE] += counter[Action.REPLACE]
        counter[Action.DELETE] += counter[Action.REPLACE]
    ongoing_count = count_ongoing_work(plan.operations)
    summary = plan.summary
    stated_counts = {
        Action.CREATE: summary.create,
        Action.UPDATE: summary.update,
        Action.DELETE: summary.delete,
        Action.FORGET: summary.forget,
        Action.NO_OP: summary.orphaned,
    }
    for action, count in stated_counts.items():
        if not counts[action] <= count <= acting_counts[action]:
            yield f"the summary counts {count} {action.value} changes, but there are {counts[action]}"
    if summary.reassign != ongoing_count:
        yield (
            f"the summary counts {summary.reassign} items of ongoing work, but the operations start "
            f"{ongoing_count}"
        )
    if summary.blocked < sum(bool(c.blocked) for c in plan.changes):
        yield f"the summary counts {summary.blocked} blocked changes, but there are more"
    unmanaged = sum(map(len, plan.unmanaged_configs.values()))
    if summary.unmanaged_configs != unmanaged:
        yield f"the summary counts {summary.unmanaged_configs} unmanaged configs, but {unmanaged} are listed"


def _check_ownership(plan: Plan, changes: Mapping[ResourceId, Change]) -> Iterator[str]:
    seen_ids: set[ResourceId] = set()
    for item in plan.ownership:
        change = changes.get(item.id)
        if item.id in seen_ids:
            yield f"there are two ownership records for {item.id}"
        seen_ids.add(item.id)
        for record in (item.before, item.after):
            json = dump_record(record)
            if json is not None and not isinstance(json, dict):
                yield f"the ownership record of {item.id} is not an object"
            elif isinstance(record, UnboundRecord) and item.id.kind in KINDS:
                yield f"the ownership record of {item.id} cannot be read ({record.problem})"
        if change is None or plan.undoes:
            continue
        is_released = change.action in (Action.DELETE, Action.FORGET)
        if change.blocked:
            yield f"{change.id} is shown as blocked, but its ownership changes"
        elif is_released and item.after is not None:
            yield f"{change.id} is shown as {change.action.value}, but remains owned afterwards"
        elif not is_released and item.before is not None and item.after is None and not _is_reset(change):
            yield f"{change.id} is shown as {change.action.value}, but is no longer owned afterwards"
        elif change.action is Action.NO_OP and item.after != item.before:
            yield f"{change.id} is shown as an orphan, but its ownership changes"


def _is_reset(change: Change) -> bool:
    """Whether the change resets the settings of an object that always exists, such as a broker."""
    return change.action is Action.UPDATE and change.reason is Reason.ORPHANED


def _check_rollback(plan: Plan) -> Iterator[str]:
    for change in plan.changes:
        if (change.reason is Reason.ROLLBACK) is not (plan.undoes is not None):
            shown_reason = "a rollback" if change.reason is Reason.ROLLBACK else change.reason.value
            yield f"{change.id} is shown as {shown_reason}, but the plan undoes {plan.undoes or 'no run'}"
            return
