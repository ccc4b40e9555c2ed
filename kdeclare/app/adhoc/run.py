"""Run an ad hoc command: plan, ask for confirmation, apply and verify. Ownership does not change."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace

from kdeclare.app.adhoc.ownership import load_ownership, warn_owned_changes
from kdeclare.app.adhoc.results import build_result, build_result_without_plan
from kdeclare.app.apply import ApplyOptions, confirm_and_apply
from kdeclare.app.authoring.write_back import prepare_edits
from kdeclare.app.plan import complete_options
from kdeclare.app.policies import ActivePolicies, open_active_policies
from kdeclare.app.recovery import recover_under_lock
from kdeclare.app.secrets import seal_secrets
from kdeclare.app.workspace import Workspace
from kdeclare.core.clock import SystemClock
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, info, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.executor.expectations import VerificationResult, verify
from kdeclare.engine.planning.adhoc import plan_adhoc
from kdeclare.engine.planning.request import PlanRequest, PlanScope
from kdeclare.report.adhoc import CHANGED_OUTCOMES, AdhocLabels, AdhocResult, ItemSummary
from kdeclare.report.manifest.manifest_diff import render_manifest_diff


@dataclass(frozen=True, slots=True)
class AdhocRequest:
    """The resources that an ad hoc command changes.

    desired: the resources to create or change. removals: the resources to delete.
    failed: the diagnostics of each resource that cannot be changed. Planning can add resources to this field.
    left_out: the reason for skipping each resource that needs no change.
    diagnostics: diagnostics that are not in ``failed``.
    The provider puts each resource into exactly one of the first four fields.
    """

    desired: tuple[DesiredResource, ...] = ()
    removals: frozenset[ResourceId] = frozenset()
    failed: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def has_remaining(self) -> bool:
        """Whether the command changes or deletes at least one resource that is not in ``failed``."""
        ids = {str(desired.id) for desired in self.desired} | {str(id_) for id_ in self.removals}
        return not ids <= self.failed.keys()


def _summarize_nothing(resource: ResourceId, live: LiveState) -> ItemSummary | None:
    return None


@dataclass(frozen=True, slots=True)
class AdhocCommand:
    """One ad hoc command of a provider.

    ask: a function that builds the request from the command line and the live state. It raises KdeclareError
    or Fault.
    summarize: a function that summarizes a resource after the change, or returns None to show nothing.
    words: the provider's labels for actions and results.
    """

    ask: Callable[[Connections], AdhocRequest]
    summarize: Callable[[ResourceId, LiveState], ItemSummary | None] = _summarize_nothing
    words: AdhocLabels = field(default_factory=AdhocLabels)


@dataclass(frozen=True, slots=True)
class AdhocOptions:
    """The options of one ad hoc command line.

    scope: the policy overrides, the preflight setting and the options of providers.
    verify_s: the maximum number of seconds to wait until the changes are visible.
    write: whether to write the changes into the manifests as well.
    tell: a function that shows the planned edits to manifests before the confirmation.
    """

    scope: PlanScope = field(default_factory=PlanScope)
    verify_s: float = 30.0
    write: bool = False
    tell: Callable[[str], None] = lambda _: None


def run_adhoc(
    workspace: Workspace, command: AdhocCommand, options: AdhocOptions, apply_options: ApplyOptions
) -> AdhocResult | None:
    """Plan the request, ask for confirmation, apply the plan and verify the changes.

    Return None if the user declines. Raises KdeclareError.
    """
    with (
        open_active_policies(workspace, overrides=apply_options.overrides) as active_policies,
        workspace.open_connections() as connections,
        workspace.store.lock(apply_options.command, apply_options.progress),
    ):
        notices = (
            *active_policies.diagnostics,
            *recover_under_lock(
                workspace, connections, apply_options.command, progress=apply_options.progress
            ),
        )
        adhoc_request = command.ask(connections)
        if not adhoc_request.has_remaining:
            return build_result_without_plan(adhoc_request.failed, adhoc_request.left_out)
        desired, secrets = seal_secrets(
            workspace, adhoc_request.desired, workspace.store.read(), connections, apply_options.progress
        )
        ownership = load_ownership(workspace)
        adhoc_request = replace(adhoc_request, desired=ownership.with_labels(desired))
        scope = replace(options.scope, protected=ownership.protected(adhoc_request.removals))
        plan_request = _build_plan_request(workspace, adhoc_request, scope, active_policies, apply_options)
        partial_plan = plan_adhoc(plan_request, connections, secrets, apply_options.progress)
        adhoc_request = replace(adhoc_request, failed={**adhoc_request.failed, **partial_plan.failed})
        if not adhoc_request.has_remaining:
            return build_result_without_plan(adhoc_request.failed, adhoc_request.left_out)
        notices = (*notices, *_collect_failures(adhoc_request.failed))
        if options.write:
            prepared = prepare_edits(workspace, partial_plan.plan.changes)
            options.tell(render_manifest_diff(prepared.files))
            notices = (*notices, *prepared.notices, *_report_nothing_to_write(partial_plan.plan))
        else:
            notices = (*notices, *warn_owned_changes(workspace, partial_plan.plan, ownership))
        apply_result = confirm_and_apply(
            workspace, connections, partial_plan.plan, secrets, apply_options, active_policies, notices
        )
        if apply_result is None:
            return None
        verified, verify_notices = _verify(
            connections, apply_result, options.verify_s, command.words.look_hint
        )
        resource_ids = [desired.id for desired in adhoc_request.desired] + list(adhoc_request.removals)
        adhoc_result = build_result(
            apply_result,
            resource_ids,
            adhoc_request.failed,
            adhoc_request.left_out,
            verified,
            command.summarize,
        )
        adhoc_result = replace(adhoc_result, notices=verify_notices, beforehand=notices, words=command.words)
        return _write_manifests(workspace, adhoc_result) if options.write else adhoc_result


def _build_plan_request(
    workspace: Workspace,
    adhoc_request: AdhocRequest,
    scope: PlanScope,
    active_policies: ActivePolicies,
    apply_options: ApplyOptions,
) -> PlanRequest:
    project = workspace.project
    scope = replace(
        scope,
        complete=False,
        by_hand=True,
        removals=adhoc_request.removals,
        overrides=apply_options.overrides,
        options=complete_options(scope.options, project),
    )
    return PlanRequest(
        project=project.name,
        env=project.environment.name,
        cluster_name=workspace.cluster_name,
        desired=adhoc_request.desired,
        state=workspace.store.read(),
        scope=scope,
        diagnostics=adhoc_request.diagnostics,
        judge=active_policies.judge,
        names=project.scope,
    )


def _collect_failures(failed: Mapping[str, Sequence[Diagnostic]]) -> tuple[Diagnostic, ...]:
    return tuple(problem for problems in failed.values() for problem in problems)


def _verify(
    connections: Connections, apply_result: ApplyResult, timeout_s: float, hint: str
) -> tuple[VerificationResult | None, tuple[Diagnostic, ...]]:
    done_operations = [
        op for op in apply_result.plan.operations if (r := apply_result.results.get(op.id)) and r.is_good
    ]
    if apply_result.interrupted or not done_operations:
        return None, ()
    try:
        return verify(connections, done_operations, SystemClock(), timeout_s), ()
    except Fault as fault:
        return None, (_build_unverified_warning(str(fault), hint),)
    except KeyboardInterrupt:
        return None, (_build_unverified_warning("interrupted", hint),)


def _build_unverified_warning(reason: str, hint: str) -> Diagnostic:
    return warning(
        "not-verified",
        "Changes were not verified",
        f"The metadata could not be read after the changes: {reason.rstrip('.')}.",
        hint=hint,
    )


def _write_manifests(workspace: Workspace, result: AdhocResult) -> AdhocResult:
    """Write the applied changes into the manifests. The cluster stays changed even if writing fails."""
    changed_resources = {item.resource for item in result.items if item.outcome in CHANGED_OUTCOMES}
    changes = result.run.plan.changes if result.run else ()
    try:
        prepared = prepare_edits(
            workspace, [change for change in changes if str(change.id) in changed_resources]
        )
        prepared.write()
    except KdeclareError as problem:
        return replace(result, notices=(*result.notices, *problem.diagnostics))
    written_files = tuple(edit.file for edit in prepared.files)
    return replace(
        result,
        written=written_files,
        notices=(*result.notices, *_report_unwritten_manifests(result, changed_resources)),
    )


def _report_unwritten_manifests(
    result: AdhocResult, written_resources: Collection[str]
) -> Iterator[Diagnostic]:
    """Report each resource whose manifest was not written, because the resource was changed only in part.

    At least one operation on the resource succeeded, and at least one did not.
    """
    apply_result = result.run
    for op in apply_result.plan.operations if apply_result else ():
        operation_result = apply_result.results.get(op.id) if apply_result else None
        if (
            operation_result
            and operation_result.status is Status.DONE
            and str(op.resource) not in written_resources
        ):
            yield error(
                "manifest-behind",
                "Manifest not written",
                f"{op.resource}: operation {op.verb} succeeded, but not all operations on this resource did. "
                "The manifest was therefore not changed.",
                hint="Run 'kdeclare plan' to compare the manifest with the cluster. Then edit the manifest, "
                "or run the command again.",
                resource=str(op.resource),
            )


def _report_nothing_to_write(plan: Plan) -> tuple[Diagnostic, ...]:
    if plan.has_changes:
        return ()
    detail = "The cluster already matches the request, so neither the cluster nor a manifest is changed."
    hint = "Run 'kdeclare plan' to see whether a manifest differs from the cluster."
    return (info("nothing-to-write", "No manifest is written", detail, hint=hint),)
