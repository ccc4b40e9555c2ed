"""Check that what a plan shows is what its operations do: the hash of a plan file can be recomputed.

Everything that a person reads of a plan follows from its operations or is compared with them here. Operation
types and kinds say what arguments amount to (`OperationType.is_confined`, `OperationType.fields`,
`ProvesFields`); a file with what none of them vouches for is refused. What an operation was planned on
(``expect``) is not believed either: apply compares it with the live system.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from kdeclare.core.diagnostics import Severity
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.operations.binding import dump_arguments
from kdeclare.core.operations.operation import Arguments, Operation, UnboundArguments
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import KINDS, OPERATION_TYPES, find_auxiliary_kinds, type_of
from kdeclare.core.resources.capabilities import (
    Evidence,
    Values,
    assess_field,
    find_proven_fields,
    is_rated_by_live_state,
    normalize_field,
)
from kdeclare.core.resources.changes import Action, Change, FieldChange, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import UnboundRecord
from kdeclare.core.resources.record_binding import dump_record
from kdeclare.engine.planning.prune_denied import count_ongoing_work, find_action

_RISKS = list(Risk)
_ACTING = (Action.CREATE, Action.UPDATE, Action.DELETE)
_NOT_UNDERSTOOD = (TypeError, ValueError, LookupError, AttributeError)
"""What the code of providers raises where a file has values that no diff and no view ever has."""


class _Unprovable(Exception):
    """Why nobody can tell what an operation does."""


@dataclass(frozen=True, slots=True)
class _Deed:
    """An operation that changes its resource, and the fields that it changes."""

    operation: Operation
    fields: tuple[FieldChange, ...]


def find_unknown_parts(plan: Plan) -> list[str]:
    """Verbs and kinds that this kdeclare does not have: such a plan can be shown, never applied."""
    verbs = {op.verb for op in plan.operations} - OPERATION_TYPES.keys()
    acting = [c.id for c in plan.changes if c.action is not Action.NO_OP]
    ids = [*acting, *(op.resource for op in plan.operations), *(item.id for item in plan.ownership)]
    kinds = {id_.kind for id_ in ids} - KINDS.keys() - find_auxiliary_kinds()
    return [*(f"verb '{verb}'" for verb in sorted(verbs)), *(f"kind '{kind}'" for kind in sorted(kinds))]


def find_inconsistencies(plan: Plan) -> Iterator[str]:
    """What a plan of known verbs and kinds shows otherwise than it does, in sentences."""
    deeds: dict[ResourceId, list[_Deed]] = defaultdict(list)
    wrong: list[str] = []
    for op in plan.operations:
        try:
            fields = _prove_operation(op)
        except _Unprovable as why:
            wrong.append(f"operation '{op.id}' ({op.verb}): {why}")
        else:
            if not type_of(op).is_auxiliary:
                deeds[op.resource].append(_Deed(op, fields))
    yield from wrong
    if wrong:
        return  # what such an operation does cannot be told
    going_on = (d for own in deeds.values() for d in own if type_of(d.operation).goes_on)
    shared = _values_by_path(going_on)
    changes = {change.id: change for change in plan.changes}
    if len(changes) < len(plan.changes):
        yield "two changes are about the same resource"
    for id_ in deeds.keys() - changes.keys():
        yield f"operation '{deeds[id_][0].operation.id}' acts on {id_}, which no change shows"
    for change in plan.changes:
        try:
            yield from _change_errors(plan, change, deeds.get(change.id, []), shared)
        except _NOT_UNDERSTOOD:
            yield f"{change.id} shows what its kind does not know"
    yield from _summary_errors(plan)
    yield from _ownership_errors(plan, changes)
    yield from _rollback_errors(plan)


def _prove_operation(op: Operation) -> tuple[FieldChange, ...]:
    """Return the fields that an operation changes. Raises _Unprovable where its type does not say so."""
    operation_type = type_of(op)
    if isinstance(op.args, UnboundArguments):
        raise _Unprovable(op.args.problem)
    if operation_type.is_auxiliary:
        return ()
    try:
        if not operation_type.is_confined(op):
            raise _Unprovable(f"its arguments do not prove that it acts on {op.resource} alone")
        claims = operation_type.claims(op)
        missing = sorted(claims.keys() - op.expect.keys())
        if missing or not claims:
            raise _Unprovable(f"it does not say what it expects of {missing[0] if missing else op.resource}")
        _prove_inverse(op)
        return tuple(operation_type.fields(op))
    except _NOT_UNDERSTOOD as cause:
        raise _Unprovable("it expects what this verb does not know") from cause


def _prove_inverse(op: Operation) -> None:
    """What is said to undo it is what undoes it, and what cannot be undone is said to be so."""
    if op.irreversible is not None:
        return
    inverse = op.inverse
    if inverse is None or inverse.verb not in OPERATION_TYPES:
        raise _Unprovable("it is undone by an unknown verb")
    if isinstance(inverse.args, UnboundArguments):
        raise _Unprovable(f"its inverse ({inverse.verb}): {inverse.args.problem}")
    undo = type_of(op).invert(op, type_of(op).expected_state(op), allow_data_loss=False)
    if undo.lost:
        raise _Unprovable("it cannot be undone, and the plan says that it can")
    if undo.args is None:
        return
    deed, stated = (_without_manner(inverse.verb, args) for args in (undo.args, inverse.args))
    if undo.verb != inverse.verb or deed != stated:
        raise _Unprovable("its inverse does not undo it")


def _without_manner(verb: str, args: Arguments) -> dict[str, JsonValue]:
    """Arguments without those that say how it is gone about."""
    manner = OPERATION_TYPES[verb].manner
    return {name: value for name, value in dump_arguments(args).items() if name not in manner}


def _values_by_path(deeds: Iterable[_Deed]) -> Mapping[str, Values]:
    """What operations make of each field one after the other."""
    return _joined((deed.operation.resource, field) for deed in deeds for field in deed.fields)


def _joined(fields: Iterable[tuple[ResourceId, FieldChange]]) -> dict[str, Values]:
    joined: dict[str, Values] = {}
    for resource, field in fields:
        field = normalize_field(resource, field)
        earlier = joined.get(field.path, (field.before,))
        goes_on_from = earlier if earlier[-1] == field.before else (*earlier, field.before)
        joined[field.path] = (*goes_on_from, field.after)
    return joined


def _change_errors(
    plan: Plan, change: Change, deeds: Sequence[_Deed], shared: Mapping[str, Values]
) -> Iterator[str]:
    evidence = Evidence(
        _joined((change.id, field) for field in change.fields), _values_by_path(deeds), shared
    )
    if not deeds:
        if change.action in _ACTING and not change.blocked:
            yield from _idle_errors(plan, change, evidence)
        yield from _risk_errors(change, Risk.SAFE)
        return
    operations = [deed.operation for deed in deeds]
    if change.blocked or change.action not in _ACTING:
        shown = "blocked" if change.blocked else change.action.value
        yield f"{change.id} is shown as {shown}, and operation '{operations[0].id}' acts on it"
        return
    action = find_action(operations)
    if action is not change.action:
        yield f"{change.id} is shown as {change.action.value}, and its operations {action.value} it"
        return
    if action is Action.DELETE:
        yield from _deletion_errors(change, operations)
    else:
        yield from _field_errors(plan, change, evidence)
    yield from _risk_errors(change, Risk.DESTRUCTIVE if action is Action.DELETE else Risk.SAFE)


def _idle_errors(plan: Plan, change: Change, evidence: Evidence) -> Iterator[str]:
    """A change without operations is done by those of other resources, or is left out for what is shown."""
    left = evidence.shown.keys() - find_proven_fields(change, evidence)
    # of what two resources move, a policy may deny one part, and the other resource moves the rest
    others_do_the_rest = len(left) < len(evidence.shown) and _is_denied_in_part(plan, change)
    if change.action is not Action.UPDATE or (left and not others_do_the_rest):
        yield f"{change.id} is shown as changed, and no operation changes it"


def _deletion_errors(change: Change, operations: Sequence[Operation]) -> Iterator[str]:
    for op in operations:
        if not type_of(op).deletes:
            yield f"{change.id} is shown as deleted, and operation '{op.id}' does more"


def _field_errors(plan: Plan, change: Change, evidence: Evidence) -> Iterator[str]:
    """Every field that operations change is shown as they change it, and no other."""
    shown, done = evidence.shown, evidence.done
    if not done and change.action is Action.UPDATE:
        yield f"{change.id} is shown as changed, and its operations do not say what they change"
        return
    proven: Set[str] = find_proven_fields(change, evidence)
    denied = _is_denied_in_part(plan, change)
    for path in sorted(done.keys() | shown.keys()):
        if path in proven or _is_shown(done.get(path, ()), shown.get(path, ())):
            continue
        if path not in shown and set(map(str, done[path])) == {str(done[path][0])}:
            continue  # it stays as it is, and is sent again
        if path not in done and denied:
            continue  # shown as denied
        yield _differs(change, path, evidence)


def _is_shown(done: Values, shown: Values) -> bool:
    """Whether every value that a field has is shown; several that are shown can be reached in one step."""
    if not done or not shown or (shown[0], shown[-1]) != (done[0], done[-1]):
        return False
    left = iter(shown)
    return all(value in left for value in done)


def _differs(change: Change, path: str, evidence: Evidence) -> str:
    if path not in evidence.shown:
        return f"{change.id}: its operations change {path}, which is not shown"
    if path not in evidence.done:
        return f"{change.id}: {path} is shown as changed, and no operation changes it"
    if evidence.shown[path][-1] == evidence.done[path][-1] and len(evidence.done[path]) > 2:
        return f"{change.id}: {path} is changed more than once, which is not shown"
    return f"{change.id}: {path} is shown otherwise than its operations change it"


def _risk_errors(change: Change, least: Risk) -> Iterator[str]:
    if change.action not in _ACTING:
        return
    highest = least
    for field in change.fields:
        if change.id.kind not in KINDS:
            break  # it accompanies the work of several resources, and has no fields
        real = assess_field(change.id.kind, change.action, field)
        is_lower = _RISKS.index(field.risk) < _RISKS.index(real.risk)
        if is_lower and not is_rated_by_live_state(change.id.kind, field):
            yield f"{change.id}: {field.path} is shown as {field.risk.value}, and it is {real.risk.value}"
        highest = max(highest, field.risk, key=_RISKS.index)
    if _RISKS.index(change.risk) < _RISKS.index(highest):
        yield f"{change.id} is shown as {change.risk.value}, and it is {highest.value}"


def _is_denied_in_part(plan: Plan, change: Change) -> bool:
    """Whether a policy or a guard denies a part of the change; the plan shows that beside it."""
    name = str(change.id)
    denials = [d.resource for d in plan.diagnostics if d.severity is Severity.DENIED]
    return name in denials or any(v.denies and v.resource == name for v in plan.verdicts)


def _summary_errors(plan: Plan) -> Iterator[str]:
    blocked = {d.resource for d in plan.diagnostics if d.blocks}
    counts = Counter(c.action for c in plan.changes if not c.blocked and str(c.id) not in blocked)
    acting = Counter(c.action for c in plan.changes if not c.blocked)
    moved = count_ongoing_work(plan.operations)
    s = plan.summary
    stated = {
        Action.CREATE: s.create,
        Action.UPDATE: s.update,
        Action.DELETE: s.delete,
        Action.FORGET: s.forget,
        Action.NO_OP: s.orphaned,
    }
    for action, count in stated.items():
        if not counts[action] <= count <= acting[action]:
            yield f"the summary counts {count} of {action.value}, and the changes are {counts[action]}"
    if s.reassign != moved:
        yield f"the summary counts {s.reassign} parts of ongoing work, and the operations have {moved}"
    if s.blocked < sum(bool(c.blocked) for c in plan.changes):
        yield f"the summary counts {s.blocked} blocked, and more changes are"
    unmanaged = sum(map(len, plan.unmanaged_configs.values()))
    if s.unmanaged_configs != unmanaged:
        yield f"the summary counts {s.unmanaged_configs} unmanaged configs, and {unmanaged} are listed"


def _ownership_errors(plan: Plan, changes: Mapping[ResourceId, Change]) -> Iterator[str]:
    seen: set[ResourceId] = set()
    for item in plan.ownership:
        change = changes.get(item.id)
        if item.id in seen:
            yield f"two records of ownership are about {item.id}"
        seen.add(item.id)
        for record in (item.before, item.after):
            json = dump_record(record)
            if json is not None and not isinstance(json, dict):
                yield f"the record of ownership of {item.id} is not an object"
            elif isinstance(record, UnboundRecord) and item.id.kind in KINDS:
                yield f"the record of ownership of {item.id} cannot be read ({record.problem})"
        if change is None or plan.undoes:
            continue
        gone = change.action in (Action.DELETE, Action.FORGET)
        if change.blocked:
            yield f"{change.id} is shown as blocked, and its ownership changes"
        elif gone and item.after is not None:
            yield f"{change.id} is shown as {change.action.value}, and stays owned afterwards"
        elif not gone and item.before is not None and item.after is None and not _is_reset(change):
            yield f"{change.id} is shown as {change.action.value}, and is no longer owned afterwards"
        elif change.action is Action.NO_OP and item.after != item.before:
            yield f"{change.id} is shown as an orphan, and its ownership changes"


def _is_reset(change: Change) -> bool:
    """Whether it lets go of something that always exists, such as a broker's configs."""
    return change.action is Action.UPDATE and change.reason is Reason.ORPHANED


def _rollback_errors(plan: Plan) -> Iterator[str]:
    for change in plan.changes:
        if (change.reason is Reason.ROLLBACK) is not (plan.undoes is not None):
            shown = "a rollback" if change.reason is Reason.ROLLBACK else change.reason.value
            yield f"{change.id} is shown as {shown}, and the plan undoes {plan.undoes or 'no run'}"
            return
