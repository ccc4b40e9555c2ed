"""Undoing a run: a plan of its own, made from what the run began and what the cluster has now."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, in_order, warning
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import Patience
from kdeclare.core.operations.operation import HAS_RECORDS, Operation, Undo, Unproven
from kdeclare.core.operations.operation_type import View, with_inverse
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.plans.plan import Base, Ownership, Plan, Summary
from kdeclare.core.plans.planning import PlanInputs
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import State
from kdeclare.core.provider.registry import KINDS, OPERATION_TYPES, start_plan, type_of
from kdeclare.core.resources.capabilities import assess_field
from kdeclare.core.resources.changes import Action, Change, Reason, Risk, highest_risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord, UnboundRecord
from kdeclare.core.resources.record_binding import bind_record, dump_record
from kdeclare.core.secrets.secret_hashes import KEY_MISSING, OTHER_KEY
from kdeclare.core.secrets.secret_refs import SecretSource, find_records, replace_records
from kdeclare.engine.executor.attempt import OUTCOME_UNCLEAR
from kdeclare.engine.executor.entries import RunRecord
from kdeclare.engine.executor.expectations import find_unrevealable
from kdeclare.engine.executor.ownership import owned_after
from kdeclare.engine.observation import Observed, observe_expected, select_all
from kdeclare.engine.planning import operation_graph
from kdeclare.engine.planning.prune_denied import count_ongoing_work, find_action

CONFLICT = "conflict"
IRREVERSIBLE = "irreversible"
PENDING = "pending"

LEFT_ALONE = frozenset({CONFLICT, IRREVERSIBLE, HAS_RECORDS, PENDING})
"""Diagnostics that say that a rollback does not bring everything back (exit 5)."""

WORTH_ANOTHER_TRY = frozenset({HAS_RECORDS, PENDING})
"""Those of them that a later rollback of the same run may bring back."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One operation of the run, and what undoes it (None: nothing to do, or nothing can be done).

    is_pending: what it created is not shown, and the system does not say that it is gone.
    unproven: why what it created is not deleted.
    """

    original: Operation
    inverse: Operation | None
    undo: Undo
    is_pending: bool = False
    unproven: Unproven | None = None


def rollback_plan(
    run: Plan,
    record: RunRecord,
    state: State | None,
    connections: Connections,
    secrets: SecretSource,
    *,
    options: PlanOptions,
    allow_data_loss: bool,
    patience: Patience | None = None,
) -> Plan:
    """The plan that undoes ``record``; what cannot be undone is named in its diagnostics.

    options: what was chosen about single systems. patience: with systems that do not show yet what the run
    created. Raises Fault.
    """
    known = set(record.begun)
    begun = [op for op in run.operations if op.id in known and _may_have_acted(op, record)]
    created = [found for op in begun if (found := type_of(op).find_created(op)) is not None]
    selections = select_all(begun)
    seen = observe_expected(connections, selections, created, patience or Patience(), await_unsettled=True)
    steps = [
        _bind(step, record, seen.live, options)
        for step in _steps(begun, record, seen, allow_data_loss=allow_data_loss)
    ]
    steps, problems = _possible(steps, connections, secrets)
    hooks = start_plan(PlanInputs((), state, seen.live, connections, options))
    operations = tuple(_linked(steps))
    for hook in hooks:
        paced = hook.finalize(operations)
        operations = paced.operations
        problems += paced.diagnostics
    operations = operation_graph.in_order(operations)
    # whoever goes back is told, and not stopped
    problems += [replace(d, severity=Severity.WARNING) for hook in hooks for d in hook.preflight(operations)]
    problems += [_problem(step, what, code) for step in steps for what, code in _left(step.undo)]
    problems += [_still_pending(step.original) for step in steps if step.is_pending]
    changes = _changes(operations)
    resources = state.resources if state else {}
    return Plan(
        project=run.project,
        env=run.env,
        cluster=run.cluster,
        base=Base(state.lineage if state else None, state.serial if state else 0),
        summary=_summary(changes, operations),
        changes=changes,
        operations=operations,
        ownership=tuple(_ownership(run, record, steps, resources)),
        diagnostics=in_order(dict.fromkeys(problems)),  # batches have the same to say
        undoes=record.run_id,
        racks=run.racks,
    )


def _may_have_acted(op: Operation, record: RunRecord) -> bool:
    """Whether there can be anything to undo: what was refused whole has changed nothing.

    Of a reassignment that was refused, other partitions may be moving (KIP-455).
    """
    result = record.results.get(op.id)
    if result is None or type_of(op).goes_on or result.is_in_part:
        return True
    refused = result.status is Status.FAILED and result.error != OUTCOME_UNCLEAR
    untouched = (Status.DENIED, Status.STALE, Status.SKIPPED, Status.INTERRUPTED)
    return not refused and result.status not in untouched


def _steps(
    begun: Sequence[Operation], record: RunRecord, seen: Observed, *, allow_data_loss: bool
) -> list[_Step]:
    """Backwards through the run; each step sees what undoing the later ones will have left."""
    overlay: dict[str, JsonValue] = {}
    steps: list[_Step] = []
    hidden, live = seen.pending | seen.unsettled, seen.live
    for op in reversed(begun):
        verb = type_of(op)
        created = verb.find_created(op)
        if created is not None and created in hidden:
            undo = verb.invert(op, verb.expected_state(op), allow_data_loss=allow_data_loss)
            steps.append(_Step(op, None, undo, is_pending=True))
            continue
        claims = verb.claims(op)
        view = _acknowledged(op, record, verb.view(op, live))
        now = {element: overlay.get(claims.get(element, element), value) for element, value in view.items()}
        undo = verb.invert(op, now, allow_data_loss=allow_data_loss)
        inverse = _inverse(op, undo, now, live)
        if inverse is not None:
            made = type_of(inverse)
            after = made.expected_state(inverse)
            overlay |= {claim: after[e] for e, claim in made.claims(inverse).items() if e in after}
        steps.append(_Step(op, inverse, undo))
    return steps


def _acknowledged(op: Operation, record: RunRecord, view: View) -> View:
    """What the system said is deleted is gone, also where its members show this very object still."""
    result = record.results.get(op.id)
    known = type_of(op).deletes and type_of(op).find_expected(op)
    deleted = known and result is not None and result.is_good
    return type_of(op).expected_state(op) if deleted and view == op.expect else view


def _bind(step: _Step, record: RunRecord, live: LiveState, options: PlanOptions) -> _Step:
    """What the run created is deleted by the id in the journal; what it may not have created stays."""
    inverse = step.inverse
    if inverse is None or not type_of(inverse).deletes:
        return step
    result = record.results.get(step.original.id)
    created_id = result.created_id if result else None
    found = type_of(inverse).bind_to_created(inverse, created_id, live, options)
    if isinstance(found, Unproven):
        return replace(step, inverse=None, undo=Undo(conflicts=(found.code,)), unproven=found)
    return replace(step, inverse=found)


def _inverse(op: Operation, undo: Undo, now: Mapping[str, JsonValue], live: LiveState) -> Operation | None:
    if undo.args is None:
        return None
    verb = OPERATION_TYPES[undo.verb]
    bare = Operation(f"undo:{op.id}", undo.verb, op.resource, undo.args, {})
    # the inverse can look at other elements than the operation did (a topic's id, say)
    expect = {**verb.view(bare, live), **{e: v for e, v in now.items() if undo.verb == op.verb}}
    touched = verb.claims(bare)
    expect = {e: v for e, v in expect.items() if e in touched}
    return with_inverse(verb, Operation(bare.id, bare.verb, bare.resource, bare.args, expect))


def _possible(
    steps: list[_Step], connections: Connections, secrets: SecretSource
) -> tuple[list[_Step], list[Diagnostic]]:
    """Without what would lose records, and without secrets that are no longer to be had."""
    losses = _find_losses([step.inverse for step in steps if step.inverse], connections)
    unrevealable = find_unrevealable((step.inverse for step in steps if step.inverse), secrets)
    for of_keys in unrevealable.values():
        for problem in of_keys.values():
            if KEY_MISSING in {d.code for d in problem.diagnostics}:
                raise problem  # with the key, all of it can be brought back
    kept: list[_Step] = []
    problems: list[Diagnostic] = []
    for step in steps:
        inverse = step.inverse
        if inverse is not None and inverse.id in losses:
            problems.append(losses[inverse.id])
            step = replace(step, inverse=None)
        elif inverse is not None and (gone := unrevealable.get(inverse.id)):
            problems += [_secret_gone(inverse, key, problem) for key, problem in gone.items()]
            step = replace(step, inverse=_without(inverse, gone.keys()))
        kept.append(step)
    return kept, problems


def _find_losses(operations: Sequence[Operation], connections: Connections) -> Mapping[str, Diagnostic]:
    found: dict[str, Diagnostic] = {}
    for verb in dict.fromkeys(op.verb for op in operations):
        mine = [op for op in operations if op.verb == verb]
        found |= OPERATION_TYPES[verb].find_losses(connections, mine)
    return found


def _without(op: Operation, elements: Set[str]) -> Operation | None:
    left = type_of(op).without(replace(op, inverse=None, irreversible=None), elements)
    return None if left is None else with_inverse(type_of(op), left)


def _linked(steps: Sequence[_Step]) -> list[Operation]:
    """The edges of the run, turned round."""
    inverses = {step.original.id: step.inverse for step in steps if step.inverse}
    needs: dict[str, dict[str, str]] = {}
    for step in steps:
        for need in step.original.needs:
            if need in inverses and step.inverse is not None:
                needs.setdefault(need, {})[step.inverse.id] = "undone in the reverse order"
    return [
        replace(op, needs=needs[original]) if original in needs else op
        for original, op in inverses.items()
        if op is not None
    ]


def _left(undo: Undo) -> Iterable[tuple[str, str]]:
    yield from ((what, CONFLICT) for what in undo.conflicts)
    yield from ((what, IRREVERSIBLE) for what in undo.lost)


def _problem(step: _Step, what: str, code: str) -> Diagnostic:
    resource = str(step.original.resource)
    if step.unproven is not None:
        return warning(
            CONFLICT,
            step.unproven.title,
            f"{resource}: {step.unproven.reason}, so it is not deleted.",
            hint=step.unproven.hint,
            resource=resource,
            subject=what,
        )
    if code == CONFLICT:
        return warning(
            CONFLICT,
            "Changed by someone else since",
            f"{resource}: {what} is no longer as the run left it, so it is left alone.",
            hint="Change it by hand, or declare what it should be and apply.",
            resource=resource,
            subject=what,
        )
    gone = type_of(step.original).deletes
    contents = type_of(step.original).contents
    noun = step.original.resource.kind.lower()
    stays = f" The {noun} stays deleted, and kdeclare no longer owns it." if gone else ""
    return warning(
        IRREVERSIBLE,
        "Cannot be undone",
        f"{resource}: nothing brings back {what}.{stays}",
        hint=f"Declare it and apply to create it again, without its {contents}." if gone else "",
        resource=resource,
        subject=what,
    )


def _still_pending(op: Operation) -> Diagnostic:
    return warning(
        PENDING,
        "Not visible yet",
        f"{op.resource} was created by the run, and its system does not show it yet. It is neither deleted "
        "nor regarded as gone, because it exists or the system could not tell.",
        hint="Roll back again once the system shows it, or wait longer with --visibility-timeout.",
        resource=str(op.resource),
    )


def _secret_gone(op: Operation, key: str, problem: KdeclareError) -> Diagnostic:
    detail, hint = f"{op.resource}: the earlier secret of {key} is no longer where its reference points.", ""
    for known in problem.diagnostics:
        if known.code == OTHER_KEY:
            detail = f"{op.resource}: the earlier secret of {key} cannot be compared. {known.detail}"
            hint = known.hint
    return warning(
        IRREVERSIBLE,
        "The earlier secret cannot be had",
        detail,
        hint=hint,
        resource=str(op.resource),
        subject=key,
    )


def _changes(operations: Sequence[Operation]) -> tuple[Change, ...]:
    by_resource: dict[ResourceId, list[Operation]] = {}
    for op in operations:
        by_resource.setdefault(op.resource, []).append(op)
    return tuple(_change(id_, ops) for id_, ops in sorted(by_resource.items()))


def _change(id_: ResourceId, operations: Sequence[Operation]) -> Change:
    """Undoing has risks of its own: to lower a retention that the run raised deletes records."""
    action = find_action(operations)
    fields = tuple(f for op in operations for f in type_of(op).fields(op))
    fields = tuple(assess_field(id_.kind, action, f) for f in fields)
    risk = highest_risk(fields, least=Risk.DESTRUCTIVE if action is Action.DELETE else Risk.SAFE)
    return Change(id_, action, Reason.ROLLBACK, risk, fields)


def _ownership(
    run: Plan, record: RunRecord, steps: Sequence[_Step], resources: Mapping[str, OwnedRecord]
) -> Iterable[Ownership]:
    """Back to what it was before the run; what is not brought back then belongs to whoever changed it.

    A topic that stays because of its records stays owned, and what later runs took over does, too.
    """
    left = owned_after(run, record.results, {str(o.id): o.before for o in run.ownership if o.before})
    by_resource: dict[ResourceId, list[_Step]] = {}
    for step in steps:
        by_resource.setdefault(step.original.resource, []).append(step)
    for item in run.ownership:
        current = resources.get(str(item.id))
        mine = by_resource.get(item.id, [])
        stuck = any(step.inverse is None and (step.undo.args or _is_gone(step)) for step in mine)
        if current == left.get(str(item.id)) and not stuck:
            after = _with_current_hashes(item.id.kind, item.before, current, mine)
        elif item.id.kind not in KINDS or isinstance(item.before, UnboundRecord):
            continue  # of a provider that is not installed, or is of another version
        else:
            undone = tuple(step.inverse for step in mine if step.inverse)
            after = KINDS[item.id.kind].merge_ownership(current, item.before, undone, all_done=False)
        if after != current or any(step.inverse for step in mine):
            yield Ownership(item.id, current, after)


def _with_current_hashes(
    kind: str, before: OwnedRecord | None, current: OwnedRecord | None, steps: Iterable[_Step]
) -> OwnedRecord | None:
    """The record, where secrets that the run did not set keep the hash that they have by now.

    It is of the same value. The one from before can need a key that is retired since.
    """
    if not find_records(before):
        return before
    set_by_run = {record.secret for step in steps for _, record in find_records(step.original.args)}
    now = dict(find_records(dump_record(current)))
    kept = {
        at: replace(record, secret=now[at].secret)
        for at, record in find_records(dump_record(before))
        if at in now and now[at].secret not in set_by_run
    }
    return bind_record(kind, replace_records(dump_record(before), kept)) if kept else before


def _is_gone(step: _Step) -> bool:
    """Whether its resource was deleted for good, so that there is nothing to own."""
    return bool(step.undo.lost) and type_of(step.original).deletes


def _summary(changes: Sequence[Change], operations: Sequence[Operation]) -> Summary:
    return Summary(
        create=sum(c.action is Action.CREATE for c in changes),
        update=sum(c.action is Action.UPDATE for c in changes),
        delete=sum(c.action is Action.DELETE for c in changes),
        reassign=count_ongoing_work(operations),
    )
