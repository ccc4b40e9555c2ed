"""Undo a run with a plan that is based on the operations of the run and on the live state."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, Severity, sort_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.live.endpoints import validate_endpoints
from kdeclare.core.operations.operation import (
    Operation,
    UndoResult,
    UnprovenDeletion,
)
from kdeclare.core.operations.operation_type import View, with_inverse
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.plans.plan import Ownership, Plan, PlanBase, Summary
from kdeclare.core.plans.plan_hooks import PlanInputs
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import State
from kdeclare.core.provider.provider_queries import start_plan
from kdeclare.core.provider.registry import KINDS, OPERATION_TYPES, get_operation_type
from kdeclare.core.resources.changes import Action, Change, Reason, Risk, find_highest_risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord, UnboundRecord
from kdeclare.core.resources.plan_capabilities import (
    assess_field,
    find_replaceable,
    find_replacements,
)
from kdeclare.core.resources.record_binding import bind_record, dump_record
from kdeclare.core.secrets.secret_hashes import KEY_MISSING
from kdeclare.core.secrets.secret_refs import SecretSource, find_records, replace_records
from kdeclare.engine.executor.attempt import OUTCOME_UNCLEAR
from kdeclare.engine.executor.entries import RunRecord
from kdeclare.engine.executor.expectations import find_unrevealable
from kdeclare.engine.executor.ownership import compute_owned
from kdeclare.engine.executor.recreation import (
    IRREVERSIBLE,
    report_recreated,
    report_replacement_kept,
)
from kdeclare.engine.executor.undo_step import (
    UndoStep,
    list_unrestored,
    report_missing_secret,
    report_pending,
    report_unrestored,
)
from kdeclare.engine.observation import Observation, list_endpoints, observe_expected, select_all
from kdeclare.engine.planning import operation_graph
from kdeclare.engine.planning.prune_denied import (
    POLICY_VIOLATION,
    apply_guards,
    block_changes,
    count_ongoing_work,
    find_deletion_risk,
    find_resource_action,
)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """The plan that undoes a run, and the live state that the plan is based on."""

    plan: Plan
    live: LiveState


def build_rollback_plan(
    run: Plan,
    record: RunRecord,
    state: State | None,
    connections: Connections,
    secrets: SecretSource,
    *,
    options: PlanOptions,
    allow_data_loss: bool,
    recreates_deleted: bool = False,
    patience: WaitPolicy | None = None,
) -> RollbackPlan:
    """Return the plan that undoes ``record``. Its diagnostics report the changes that cannot be undone.

    options: options for individual systems. patience: how long to wait for systems to show the objects that
    the run created. recreates_deleted: whether to re-create deleted objects without their contents.
    Raises Fault.
    """
    begun_ids = set(record.begun)
    begun_operations = [op for op in run.operations if op.id in begun_ids and _needs_undo(op, record)]
    created = [
        resource
        for op in begun_operations
        if (resource := get_operation_type(op).find_created_resource(op)) is not None
    ]
    selections = select_all(begun_operations)
    observation = observe_expected(
        connections, selections, created, patience or WaitPolicy(), await_unsettled=True
    )
    validate_endpoints(run.endpoints, list_endpoints(observation.live))
    steps = [
        _bind_step(step, record, observation.live, options)
        for step in _build_steps(
            begun_operations,
            record,
            observation,
            allow_data_loss=allow_data_loss,
            recreates_deleted=recreates_deleted,
        )
    ]
    steps, problems = _filter_possible(steps, connections, secrets)
    replacements = find_replacements(begun_operations)
    steps = _keep_replacements(steps, replacements)
    replaced_deletions = {deletion.id for deletion in replacements.values()}
    hooks = start_plan(PlanInputs((), state, observation.live, connections, options))
    operations = tuple(_link_inverses(steps))
    for hook in hooks:
        plan_step = hook.finalize(operations)
        operations = plan_step.operations
        problems += plan_step.diagnostics
    operations = operation_graph.order_operations(operations)
    # Diagnostics about a rollback are reported, but do not stop it.
    problems += [replace(d, severity=Severity.WARNING) for hook in hooks for d in hook.preflight(operations)]
    problems += [
        report_recreated(step.original, step.recreation)
        for step in steps
        if step.recreation is not None and step.inverse is not None
    ]
    problems += [
        report_replacement_kept(step.original, what, recreates_deleted=recreates_deleted)
        if step.original.id in replaced_deletions and code == IRREVERSIBLE
        else report_unrestored(step, what, code, recreates_deleted=recreates_deleted)
        for step in steps
        for what, code in list_unrestored(step.undo)
    ]
    problems += [report_pending(step.original) for step in steps if step.is_pending]
    changes = _build_changes(operations)
    resources = state.resources if state else {}
    plan = Plan(
        project=run.project,
        env=run.env,
        cluster=run.cluster,
        base=PlanBase(state.lineage if state else None, state.serial if state else 0),
        summary=_build_summary(changes, operations),
        changes=changes,
        operations=operations,
        ownership=tuple(_build_ownership(run, record, steps, resources)),
        diagnostics=sort_diagnostics(dict.fromkeys(problems)),  # several batches can report the same problem
        undoes=record.run_id,
        racks=run.racks,
        endpoints=run.endpoints,
    )
    verdicts, operations, denied_resources = apply_guards(plan.operations, hooks)
    blocked = frozenset(map(str, denied_resources))
    plan = block_changes(replace(plan, verdicts=verdicts), operations, blocked, POLICY_VIOLATION)
    return RollbackPlan(plan, observation.live)


def _needs_undo(op: Operation, record: RunRecord) -> bool:
    """Whether the operation might have changed anything.

    A request that was refused as a whole changed nothing. A reassignment can be refused for one partition
    while its other partitions are moving (KIP-455).
    """
    result = record.results.get(op.id)
    if result is None or get_operation_type(op).can_be_refused_in_part or result.is_partial:
        return True
    is_refused = result.status is Status.FAILED and result.error != OUTCOME_UNCLEAR
    untouched_statuses = (Status.DENIED, Status.STALE, Status.SKIPPED, Status.INTERRUPTED)
    return not is_refused and result.status not in untouched_statuses


def _build_steps(
    begun_operations: Sequence[Operation],
    record: RunRecord,
    observation: Observation,
    *,
    allow_data_loss: bool,
    recreates_deleted: bool,
) -> list[UndoStep]:
    """Return the undo steps, from the last operation of the run to the first.

    Each step is computed for the state that remains after the later operations have been undone.
    """
    overlay: dict[str, JsonValue] = {}
    steps: list[UndoStep] = []
    replacements = find_replacements(begun_operations)
    emptied: set[str] = set()  # deletions whose objects the run re-created and the rollback deletes
    hidden_objects, live = observation.pending | observation.unsettled, observation.live
    for op in reversed(begun_operations):
        operation_type = get_operation_type(op)
        created = operation_type.find_created_resource(op)
        if created is not None and created in hidden_objects:
            undo_result = operation_type.invert(
                op, operation_type.expected_state(op), allow_data_loss=allow_data_loss
            )
            steps.append(UndoStep(op, None, undo_result, is_pending=True))
            continue
        if (
            op.id in replacements and not recreates_deleted
        ):  # without the old object, deleting the new one would leave nothing
            steps.append(UndoStep(op, None, UndoResult()))
            continue
        claims = operation_type.claims(op)
        view = _adjust_for_acknowledgment(op, record, operation_type.compute_view(op, live))
        current_view = {
            element: overlay.get(claims.get(element, element), value) for element, value in view.items()
        }
        undo_result = operation_type.invert(op, current_view, allow_data_loss=allow_data_loss)
        recreation, lost = None, undo_result.lost
        if undo_result.lost and operation_type.deletes:
            recreation = operation_type.plan_recreation(op, current_view, live)
        if recreates_deleted and recreation is not None and recreation.inverse is not None:
            undo_result = UndoResult(recreation.inverse.verb, recreation.inverse.args)
        live_then = _remove_object(op, live) if op.id in emptied else live
        inverse = _build_inverse(op, undo_result, current_view, live_then)
        if op.id in replacements and inverse is not None:
            emptied.add(replacements[op.id].id)
        if inverse is not None:
            inverse_type = get_operation_type(inverse)
            expected_view = inverse_type.expected_state(inverse)
            overlay |= {
                claim: expected_view[e]
                for e, claim in inverse_type.claims(inverse).items()
                if e in expected_view
            }
        steps.append(UndoStep(op, inverse, undo_result, recreation=recreation, lost=lost))
    return steps


def _remove_object(op: Operation, live: LiveState) -> LiveState:
    """Return the live state without the object that ``op`` deleted, if its kind supports replacement."""
    replaceable = find_replaceable(op.resource.kind)
    return live if replaceable is None else replaceable.remove_from_live(op.resource, live)


def _keep_replacements(steps: Sequence[UndoStep], replacements: Mapping[str, Operation]) -> list[UndoStep]:
    """Return the steps, without the re-creation of objects whose replacements the rollback keeps."""
    kept = {
        replacements[step.original.id].id
        for step in steps
        if step.original.id in replacements and step.inverse is None
    }
    return [
        replace(step, inverse=None, undo=UndoResult(lost=step.lost)) if step.original.id in kept else step
        for step in steps
    ]


def _adjust_for_acknowledgment(op: Operation, record: RunRecord, view: View) -> View:
    """Return the view after an acknowledged deletion, even if the system still shows the deleted object."""
    result = record.results.get(op.id)
    deleted_objects = get_operation_type(op).deletes and get_operation_type(op).find_expected_objects(op)
    is_deleted = deleted_objects and result is not None and result.is_good
    return get_operation_type(op).expected_state(op) if is_deleted and view == op.expect else view


def _bind_step(step: UndoStep, record: RunRecord, live: LiveState, options: PlanOptions) -> UndoStep:
    """Restrict a deletion to the object whose id is in the journal.

    Objects that another client possibly created are not deleted.
    """
    inverse = step.inverse
    if inverse is None or not get_operation_type(inverse).deletes:
        return step
    result = record.results.get(step.original.id)
    created_id = result.created_id if result else None
    bound = get_operation_type(inverse).bind_to_created(inverse, created_id, live, options)
    if isinstance(bound, UnprovenDeletion):
        return replace(step, inverse=None, undo=UndoResult(conflicts=(bound.code,)), unproven=bound)
    return replace(step, inverse=bound)


def _build_inverse(
    op: Operation, undo_result: UndoResult, current_view: Mapping[str, JsonValue], live: LiveState
) -> Operation | None:
    if undo_result.args is None:
        return None
    operation_type = OPERATION_TYPES[undo_result.verb]
    draft = Operation(f"undo:{op.id}", undo_result.verb, op.resource, undo_result.args, {})
    # The view of the inverse can have elements that the view of the operation does not have, such as a topic
    # id.
    expect = {
        **operation_type.compute_view(draft, live),
        **{e: v for e, v in current_view.items() if undo_result.verb == op.verb},
    }
    claims = operation_type.claims(draft)
    expect = {e: v for e, v in expect.items() if e in claims}
    return with_inverse(operation_type, Operation(draft.id, draft.verb, draft.resource, draft.args, expect))


def _filter_possible(
    steps: list[UndoStep], connections: Connections, secrets: SecretSource
) -> tuple[list[UndoStep], list[Diagnostic]]:
    """Remove inverses that would delete records, and the parts of inverses that need unavailable secrets."""
    losses = _find_losses([step.inverse for step in steps if step.inverse], connections)
    unrevealable = find_unrevealable((step.inverse for step in steps if step.inverse), secrets)
    for errors_by_element in unrevealable.values():
        for problem in errors_by_element.values():
            if KEY_MISSING in {d.code for d in problem.diagnostics}:
                raise problem  # if the key is set, everything can be restored
    possible_steps: list[UndoStep] = []
    problems: list[Diagnostic] = []
    for step in steps:
        inverse = step.inverse
        if inverse is not None and inverse.id in losses:
            problems.append(losses[inverse.id])
            step = replace(step, inverse=None)
        elif inverse is not None and (missing_secrets := unrevealable.get(inverse.id)):
            problems += [
                report_missing_secret(inverse, key, problem) for key, problem in missing_secrets.items()
            ]
            step = replace(step, inverse=_drop_elements(inverse, missing_secrets.keys()))
        possible_steps.append(step)
    return possible_steps, problems


def _find_losses(operations: Sequence[Operation], connections: Connections) -> Mapping[str, Diagnostic]:
    losses: dict[str, Diagnostic] = {}
    for verb in dict.fromkeys(op.verb for op in operations):
        operations_of_verb = [op for op in operations if op.verb == verb]
        losses |= OPERATION_TYPES[verb].find_losses(connections, operations_of_verb)
    return losses


def _drop_elements(op: Operation, elements: Set[str]) -> Operation | None:
    remaining = get_operation_type(op).without_elements(
        replace(op, inverse=None, irreversible=None), elements
    )
    return None if remaining is None else with_inverse(get_operation_type(op), remaining)


def _link_inverses(steps: Sequence[UndoStep]) -> list[Operation]:
    """Return the inverse operations. Their dependencies are the reversed dependencies of the run."""
    inverses = {step.original.id: step.inverse for step in steps if step.inverse}
    needs: dict[str, dict[str, str]] = {}
    for step in steps:
        for need in step.original.needs:
            if need in inverses and step.inverse is not None:
                needs.setdefault(need, {})[step.inverse.id] = "operations are undone in reverse order"
    return [
        replace(op, needs=needs[original]) if original in needs else op
        for original, op in inverses.items()
        if op is not None
    ]


def _build_changes(operations: Sequence[Operation]) -> tuple[Change, ...]:
    by_resource: dict[ResourceId, list[Operation]] = {}
    for op in operations:
        by_resource.setdefault(op.resource, []).append(op)
    return tuple(_build_change(id_, ops) for id_, ops in sorted(by_resource.items()))


def _build_change(id_: ResourceId, operations: Sequence[Operation]) -> Change:
    """Return one change of a rollback plan, with its risk.

    The risk of a rollback can differ from the risk of the run. For example, restoring a lower retention
    deletes records.
    """
    action = find_resource_action(operations)
    fields = tuple(f for op in operations for f in get_operation_type(op).fields(op))
    assessed_action = Action.DELETE if action is Action.REPLACE else action
    fields = tuple(assess_field(id_.kind, assessed_action, f) for f in fields)
    is_deletion = action in (Action.DELETE, Action.REPLACE)
    minimum_risk = find_deletion_risk(operations) if is_deletion else Risk.SAFE
    risk = find_highest_risk(fields, minimum=minimum_risk)
    return Change(id_, action, Reason.ROLLBACK, risk, fields)


def _build_ownership(
    run: Plan, record: RunRecord, steps: Sequence[UndoStep], resources: Mapping[str, OwnedRecord]
) -> Iterable[Ownership]:
    """Yield the ownership changes that restore the ownership records from before the run.

    Fields that a rollback cannot restore are no longer owned, except fields that later runs took ownership
    of. A topic that is not deleted because it contains records also stays owned.
    """
    expected_records = compute_owned(
        run, record.results, {str(o.id): o.before for o in run.ownership if o.before}
    )
    by_resource: dict[ResourceId, list[UndoStep]] = {}
    for step in steps:
        by_resource.setdefault(step.original.resource, []).append(step)
    for item in run.ownership:
        current = resources.get(str(item.id))
        own_steps = by_resource.get(item.id, [])
        is_stuck = any(step.inverse is None and (step.undo.args or _is_lost(step)) for step in own_steps)
        if current == expected_records.get(str(item.id)) and not is_stuck:
            after = _with_current_hashes(item.id.kind, item.before, current, own_steps)
        elif item.id.kind not in KINDS or isinstance(item.before, UnboundRecord):
            continue  # the provider is not installed or has another version
        else:
            undone_operations = tuple(step.inverse for step in own_steps if step.inverse)
            after = KINDS[item.id.kind].merge_ownership(
                current, item.before, undone_operations, all_done=False
            )
        if after != current or any(step.inverse for step in own_steps):
            yield Ownership(item.id, current, after)


def _with_current_hashes(
    kind: str, before: OwnedRecord | None, current: OwnedRecord | None, steps: Iterable[UndoStep]
) -> OwnedRecord | None:
    """Return the ownership record ``before``, with current hashes of the secrets that the run did not set.

    The earlier hash of such a secret might need a key that is no longer in use.
    """
    if not find_records(before):
        return before
    set_by_run = {record.secret for step in steps for _, record in find_records(step.original.args)}
    current_refs = dict(find_records(dump_record(current)))
    kept_refs = {
        at: replace(record, secret=current_refs[at].secret)
        for at, record in find_records(dump_record(before))
        if at in current_refs and current_refs[at].secret not in set_by_run
    }
    return bind_record(kind, replace_records(dump_record(before), kept_refs)) if kept_refs else before


def _is_lost(step: UndoStep) -> bool:
    """Whether the resource was deleted and cannot be restored, so that there is nothing to own."""
    return bool(step.undo.lost) and get_operation_type(step.original).deletes


def _build_summary(changes: Sequence[Change], operations: Sequence[Operation]) -> Summary:
    return Summary(
        create=sum(c.action in (Action.CREATE, Action.REPLACE) for c in changes),
        update=sum(c.action is Action.UPDATE for c in changes),
        delete=sum(c.action in (Action.DELETE, Action.REPLACE) for c in changes),
        reassign=count_ongoing_work(operations),
    )
