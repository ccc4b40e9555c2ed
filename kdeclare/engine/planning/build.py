"""Build a plan from desired, live and owned resources, in a fixed sequence of steps.

The order of the steps matters; comments give the reasons. Providers add to the steps through `PlanHooks`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from kdeclare.core.diagnostics import (
    ENDPOINT_UNREACHABLE,
    Diagnostic,
    Severity,
    error,
    sort_diagnostics,
)
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.plans.plan import ClusterRef, Ownership, Plan, PlanBase, Summary, Verdict
from kdeclare.core.plans.plan_hooks import CannotPlanError, PlanHooks, PlanStep
from kdeclare.core.progress import Progress
from kdeclare.core.provider.registry import KINDS, get_operation_type
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, ResourceComparison
from kdeclare.core.resources.name_scope import report_out_of_scope
from kdeclare.core.resources.owned_record import find_owner, get_owned_labels
from kdeclare.core.resources.plan_capabilities import plan_blocked
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.engine.observation import identify_system, list_endpoints
from kdeclare.engine.planning import operation_graph
from kdeclare.engine.planning.compared_request import read_and_compare
from kdeclare.engine.planning.comparison import check_names
from kdeclare.engine.planning.ignored_fields import report_ignored_fields
from kdeclare.engine.planning.operation_graph import link_operations
from kdeclare.engine.planning.other_owners import protect_owned_elsewhere
from kdeclare.engine.planning.plan_impact import observe_impact
from kdeclare.engine.planning.preflight import run_preflight
from kdeclare.engine.planning.prune_denied import (
    POLICY_VIOLATION,
    add_needs,
    apply_guards,
    count_ongoing_work,
    is_limited_to_its_resource,
    prune_operations,
)
from kdeclare.engine.planning.replacement import plan_replacement
from kdeclare.engine.planning.request import (
    MAX_DELETES,
    PlanRequest,
    check_deletion_limit,
    filter_deletions,
)


def build_plan(
    request: PlanRequest, connections: Connections, secrets: SecretSource, progress: Progress
) -> Plan:
    """Read the live state, compute and order the changes, and have the systems check them.

    This function changes nothing. Raises Fault if a system does not respond, and KdeclareError if the state
    belongs to a different cluster.
    """
    scope, declared = request.scope, request.desired
    comparison = read_and_compare(request, connections, progress)
    request, inputs, hooks = comparison.request, comparison.inputs, comparison.hooks
    compared, context, live = comparison.compared, comparison.context, comparison.inputs.live
    if not scope.by_hand:
        cluster_id = identify_system(live, (request.state and request.state.cluster_id) or "")
        compared = protect_owned_elsewhere(compared, cluster_id, scope.adopt, request.read_other_states)
    diagnostics = request.diagnostics
    for hook in hooks:
        diagnostics = hook.review_diagnostics(diagnostics)
    draft = _Draft(request, compared, hooks)
    draft.diagnostics += [*diagnostics, *check_names(request), *_check_nothing_declared(request)]
    updated = [item for item in declared if item.id not in scope.replacements]
    draft.diagnostics += report_ignored_fields(updated, compared, live, context)

    # Remove blocked operations before policies evaluate, so that policies see only operations that would run.
    operations = draft.drop_blocked(_plan_operations(draft, live, context))

    evaluation = request.judge.evaluate_draft(
        operations, inputs, comparison.selections, lambda v: scope.overrides.get(v.policy)
    )
    draft.verdicts += evaluation.verdicts
    operations, denied_resources = prune_operations(
        add_needs(operations, evaluation.needs), evaluation.denied
    )
    draft.block(map(str, denied_resources), POLICY_VIOLATION)

    # Guards evaluate only the operations that policies allow.
    guard_verdicts, operations, denied_resources = apply_guards(operations, hooks)
    draft.verdicts += guard_verdicts
    draft.block(map(str, denied_resources), POLICY_VIOLATION)

    # This step comes after the policies, because it depends on the operations that they allow. It comes
    # before the preflight, because the preflight skips operations that wait for others.
    for hook in hooks:
        operations = draft.take(hook.settle(operations, compared))

    if scope.preflight and not draft.has_errors:
        preflight_result = run_preflight(connections, operations, secrets, progress)
        draft.verdicts += preflight_result.verdicts
        # A refusal by the system is more specific than a provider's prediction, so its code is set last.
        problems = [*(d for hook in hooks for d in hook.preflight(operations)), *preflight_result.diagnostics]
        draft.report(draft.locate(problems))
        draft.block((v.resource for v in preflight_result.verdicts), POLICY_VIOLATION)
        operations = draft.drop_blocked(operations)

    # This is the last step, because it needs all operations that will run. A plan with errors is not applied.
    if not draft.has_errors:
        for hook in hooks:
            operations = draft.take(hook.finalize(operations))
        operations = operation_graph.order_operations(operations)
    plan = _assemble_plan(draft, live, operations)
    blocked_operations = tuple(_plan_blocked_changes(plan, draft, live, context))
    plan = replace(plan, blocked_operations=blocked_operations)
    if scope.impact and not draft.has_errors:
        progress("Reading the impact", 0, 0)
        plan = replace(plan, observations=observe_impact(plan, hooks))
    return plan


@dataclass
class _Draft:
    """A plan that is being built.

    blocked: the blocked resources, each with the code of the cause. A blocked resource has no operations.
    """

    request: PlanRequest
    compared: Sequence[ResourceComparison]
    hooks: Sequence[PlanHooks]
    diagnostics: list[Diagnostic] = field(default_factory=list)
    verdicts: tuple[Verdict, ...] = ()
    blocked: dict[str, str] = field(default_factory=dict)

    @property
    def has_errors(self) -> bool:
        """Whether the plan has an error that prevents an apply."""
        return any(d.blocks_plan for d in self.diagnostics)

    def locate(self, diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
        """Yield the diagnostics. A diagnostic without a position gets the position of its resource.

        Diagnostics from systems have no position, because systems do not know manifests.
        """
        if not diagnostics:
            return  # the usual case, in which the ids of all resources are not needed
        declared = (*self.request.desired, *self.request.absent)
        sources = {str(item.id): item.source for item in declared}
        for diagnostic in diagnostics:
            place = diagnostic.place or sources.get(diagnostic.resource or "")
            yield replace(diagnostic, place=place)

    def report(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add diagnostics. An error or a denial blocks its resource."""
        diagnostics = list(diagnostics)
        self.diagnostics += diagnostics
        self.blocked |= {d.resource: d.code for d in diagnostics if d.resource and d.is_blocking}

    def block(self, resources: Iterable[str], code: str) -> None:
        """Block resources, but add no diagnostic, because other code has already reported the problem."""
        self.blocked |= dict.fromkeys(resources, code)

    def take(self, step: PlanStep) -> tuple[Operation, ...]:
        """Add the diagnostics of a step to the plan.

        Return the operations of the step, without those that `drop_blocked` removes.
        """
        self.report(step.diagnostics)
        return self.drop_blocked(step.operations)

    def drop_blocked(self, operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
        """Remove the operations of blocked resources, and all operations that depend on them.

        If a resource loses all of its operations, or an operation that changes only this resource, it is
        blocked, too, with the same code. If it were not blocked, the plan would show a change that is made
        only in part.
        """
        while self.blocked:
            codes = {op.id: self.blocked[str(op.resource)] for op in operations if self._is_blocked(op)}
            if not codes:
                break
            remaining = operation_graph.exclude_operations(operations, codes)
            acting_resources = {str(op.resource) for op in remaining}
            for op in operations:
                code = next((codes[need] for need in op.needs if need in codes), None)
                if code is not None and op.id not in codes:
                    codes[op.id] = code
                    if str(op.resource) not in acting_resources or is_limited_to_its_resource(op):
                        self.blocked[str(op.resource)] = code
            operations = remaining
        return operations

    def _is_blocked(self, op: Operation) -> bool:
        return str(op.resource) in self.blocked


def _plan_operations(draft: _Draft, live: LiveState, context: PlanContext) -> tuple[Operation, ...]:
    """Return the operations for all changes, in order. A problem with an operation blocks its resource."""
    request = draft.request
    planned: list[Operation] = []
    for item in draft.compared:
        change = item.change
        if change is None or change.blocked or change.action in (Action.NO_OP, Action.FORGET):
            continue
        try:
            if change.action is Action.REPLACE and item.desired is not None:
                planned += plan_replacement(change, item.desired, live, item.owned, context)
            else:
                planned += KINDS[item.id.kind].plan_operations(
                    change, item.desired, live, item.compared_record, context
                )
        except CannotPlanError as reason:
            draft.report([reason.problem])
    # Remove excess deletions first: objects that are not deleted can still be used.
    released = frozenset(
        item.id
        for item in draft.compared
        if item.compared_record is not None and item.difference.owned is None
    )
    deletion_problems, refused_deletions = _check_deletion_count(request, planned, released)
    operations = operation_graph.exclude_operations(planned, refused_deletions)
    draft.report(
        [
            *deletion_problems,
            *check_out_of_scope(request, operations),
            *operation_graph.check_exclusive_settings(request.desired),
        ]
    )
    for hook in draft.hooks:
        step = hook.refine(operations, draft.compared)
        operations = step.operations
        draft.report(step.diagnostics)
    draft.block(refused_deletions.values(), MAX_DELETES)
    draft.block(map(str, _find_blocked_dependents(draft.compared, operations)), ENDPOINT_UNREACHABLE)
    # This step comes after `refine`, because `refine` can change the objects that operations touch.
    step = link_operations(operations)
    draft.report(step.diagnostics)
    try:
        return operation_graph.order_operations(step.operations)
    except operation_graph.OperationCycleError as cycle:
        draft.report([_report_cycle(cycle)])
        return ()


def _plan_blocked_changes(
    plan: Plan, draft: _Draft, live: LiveState, context: PlanContext
) -> Iterator[Operation]:
    """Yield the operations of blocked changes, for display."""
    blocked = {change.id: change for change in plan.changes if change.blocked}
    for item in draft.compared if blocked else ():
        if item.id in blocked:
            yield from plan_blocked(blocked[item.id], item.desired, live, item.compared_record, context)


def _find_blocked_dependents(
    compared: Sequence[ResourceComparison], operations: Sequence[Operation]
) -> frozenset[ResourceId]:
    """Return the resources whose operations depend on a resource whose endpoint did not respond."""
    unreachable = {
        item.id
        for item in compared
        if any(d.code == ENDPOINT_UNREACHABLE for d in item.difference.diagnostics)
    }
    return operation_graph.find_dependents(operations, unreachable) if unreachable else frozenset()


def _report_cycle(cycle: operation_graph.OperationCycleError) -> Diagnostic:
    return error(
        "dependency-cycle",
        "Operations wait for each other",
        f"None of these operations can run first: {cycle}.",
        hint="Remove one of the affected resources from the manifests and apply. Then declare the resource "
        "again and apply.",
    )


def _check_deletion_count(
    request: PlanRequest, operations: Sequence[Operation], released: Set[ResourceId]
) -> tuple[list[Diagnostic], dict[str, str]]:
    """Return a denial for each kind with too many deletions.

    Also return the resource of each refused deletion, by operation id.

    Ad hoc commands are exempt, because they name the resources that they delete.
    """
    if request.scope.by_hand:
        return [], {}
    problems = check_deletion_limit(operations, released, request.owned, request.scope.max_deletes)
    refused_operations = filter_deletions(operations, released, {d.subject for d in problems})
    return problems, {op.id: str(op.resource) for op in refused_operations}


def _check_nothing_declared(request: PlanRequest) -> list[Diagnostic]:
    """Return an error if the project declares nothing. All of its resources would become orphans.

    The probable cause is a wrong path.
    """
    scope = request.scope
    if scope.by_hand or scope.allow_empty or not scope.complete or request.desired or request.absent:
        return []
    if set(request.owned) <= {str(id_) for id_ in scope.forget | scope.deletes}:  # all named explicitly
        return []
    excluded_count = sum(str(id_) in request.owned for id_ in request.exclusions)
    exclusion_note = (
        f" metadata.only or metadata.except excludes the manifests of {excluded_count:,} of them from the "
        f"environment '{request.env}'."
        if excluded_count
        else ""
    )
    return [
        error(
            "no-manifests",
            "The project has no manifests",
            f"No manifest declares a resource, but the state lists {len(request.owned):,} owned resources."
            f"{exclusion_note}",
            hint="Check the project's manifests folder and the Git checkout. If the project is "
            "supposed to declare no resources, pass --allow-empty.",
        )
    ]


def _assemble_plan(draft: _Draft, live: LiveState, operations: tuple[Operation, ...]) -> Plan:
    request, compared, state = draft.request, draft.compared, draft.request.state
    absent = {item.id: item for item in request.absent}
    changes = tuple(
        _add_owner(_mark_blocked(item.change, draft.blocked), item, absent)
        for item in compared
        if item.change is not None
    )
    by_id = {change.id: change for change in changes}
    diagnostics = [*draft.diagnostics, *(d for item in compared for d in item.difference.diagnostics)]
    operated_resources = {op.resource for op in operations}
    ownership = () if request.scope.by_hand else tuple(_build_ownership(compared, by_id, operated_resources))
    return Plan(
        project=request.project,
        env=request.env,
        cluster=ClusterRef((state and state.cluster_id) or identify_system(live), request.cluster_name),
        base=PlanBase(state.lineage if state else None, state.serial if state else 0),
        summary=_build_summary(draft, by_id.values(), operations),
        changes=changes,
        operations=operations,
        ownership=ownership,
        verdicts=draft.verdicts,
        diagnostics=sort_diagnostics(diagnostics),
        unmanaged_configs={
            str(item.id): item.difference.unmanaged for item in compared if item.difference.unmanaged
        },
        labels=request.judge.find_labels_to_keep(request.desired, request.owned, ownership),
        racks={id_: place for hook in draft.hooks for id_, place in hook.locate_members(operations).items()},
        max_deletes=str(request.scope.max_deletes) if request.scope.max_deletes else None,
        endpoints={name: s.id for name, s in sorted(list_endpoints(live).items()) if not s.problem},
    )


def _mark_blocked(change: Change, blocked: Mapping[str, str]) -> Change:
    code = blocked.get(str(change.id))
    return replace(change, blocked=code) if code and not change.blocked else change


def _add_owner(
    change: Change, compared: ResourceComparison, absent: Mapping[ResourceId, DesiredResource]
) -> Change:
    """Add to a change the owner and the description from the manifest of its resource.

    For a resource that will be deleted, or that no manifest declares, the owner usually comes from the
    ownership record.
    """
    declared = compared.desired or absent.get(change.id)
    owner = find_owner(declared.labels) if declared else None
    if compared.desired is None:
        owner = owner or find_owner(get_owned_labels(compared.owned))
    description = declared.description if declared else ""
    return replace(change, owner=owner, description=description) if owner or description else change


def _build_ownership(
    compared: Sequence[ResourceComparison], changes: Mapping[ResourceId, Change], operated: Set[ResourceId]
) -> Iterable[Ownership]:
    """Yield the changes to ownership records. Blocked resources keep their records.

    A resource with operations always gets an entry, because apply checks that its record has not changed.
    """
    for item in compared:
        change = changes.get(item.id)
        is_blocked = any(d.is_blocking for d in item.difference.diagnostics) or (change and change.blocked)
        if not is_blocked and (item.difference.owned != item.owned or item.id in operated):
            yield Ownership(item.id, item.owned, item.difference.owned)


def _build_summary(draft: _Draft, changes: Iterable[Change], operations: Sequence[Operation]) -> Summary:
    request, compared = draft.request, draft.compared
    counts = dict.fromkeys(Action, 0)
    blocked = {item.id for item in compared if any(d.is_blocking for d in item.difference.diagnostics)}
    blocked |= {change.id for change in changes if change.blocked}
    for change in changes:
        if change.id not in blocked:
            counts[change.action] += 1
    unchanged_items = [i for i in compared if i.desired and i.change is None and not i.difference.deferred]
    unchanged = [i for i in unchanged_items if i.id not in blocked]
    known_ids = {str(d.id) for d in (*request.desired, *request.absent)} | set(request.owned)
    return Summary(
        create=counts[Action.CREATE] + counts[Action.REPLACE],
        update=counts[Action.UPDATE],
        delete=counts[Action.DELETE] + counts[Action.REPLACE],
        forget=counts[Action.FORGET],
        unchanged=len(unchanged),
        orphaned=counts[Action.NO_OP],
        blocked=len(blocked),
        unmanaged=0
        if request.scope.by_hand
        else sum(hook.count_unmanaged(known_ids) for hook in draft.hooks),
        reassign=count_ongoing_work(operations),
        unmanaged_configs=sum(len(item.difference.unmanaged) for item in compared),
    )


_ORPHAN_OUT_OF_SCOPE = "Release the resource with --forget, or extend spec.scope in the project file."


def check_out_of_scope(request: PlanRequest, operations: Iterable[Operation]) -> Iterator[Diagnostic]:
    """Yield an error for each resource whose operations affect names outside the project's scope."""
    if not request.names.entries:
        return
    changed_by_resource: dict[ResourceId, set[ResourceId]] = {}
    for op in operations:
        changed_by_resource.setdefault(op.resource, {op.resource}).update(
            get_operation_type(op).find_changed_resources(op)
        )
    positions = {desired.id: desired.source for desired in (*request.desired, *request.absent)}
    for resource, changed_resources in changed_by_resource.items():
        forbidden = request.names.find_forbidden(changed_resources)
        if forbidden:
            diagnostic = report_out_of_scope(resource, forbidden, request.names, positions.get(resource))
            is_orphan = resource not in positions and not request.scope.by_hand
            yield (
                replace(diagnostic, severity=Severity.DENIED, hint=_ORPHAN_OUT_OF_SCOPE)
                if is_orphan
                else diagnostic
            )
