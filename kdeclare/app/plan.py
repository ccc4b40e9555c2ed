"""Load manifests, make plans and write plan files."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from kdeclare.app.field_positions import locate_fields
from kdeclare.app.policies import RULES, ActivePolicies, open_active_policies, open_project_policies
from kdeclare.app.recovery import recover_before_plan
from kdeclare.app.secrets import ProjectSecrets, seal_secrets
from kdeclare.app.state.other_states import OtherStatesReader
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import (
    LITERAL_SECRET,
    STOPS_ON_DENIAL,
    UNKNOWN_SETTING,
    Diagnostic,
    KdeclareError,
    Severity,
    error,
    sort_diagnostics,
    warning,
)
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.known_resources import KnownResource
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plans.drift import DriftResult
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.unmanaged import UnmanagedListing
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.provider.provider_queries import check_declared, find_plan_settings
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import find_records
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.compared_request import read_and_compare
from kdeclare.engine.planning.drift import find_drift
from kdeclare.engine.planning.planfile import render_plan_file, write_plan
from kdeclare.engine.planning.request import WHOLE_PROJECT, PlanRequest, PlanScope
from kdeclare.engine.signatures.signature import SignMessage
from kdeclare.engine.unmanaged import list_unmanaged
from kdeclare.manifests.load_manifests import LoadedManifests, load_project_manifests
from kdeclare.manifests.project import Project
from kdeclare.manifests.syntax.substitution import UNRESOLVED_CODES

CHECKS = (check_declared,)


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan, the secrets of its manifests, and notices from recovering earlier runs."""

    plan: Plan
    secrets: ProjectSecrets
    notices: tuple[Diagnostic, ...] = ()


def load_manifests(
    workspace: Workspace, paths: Sequence[Path] = (), instead: Mapping[str, bytes | None] | None = None
) -> LoadedManifests:
    """Load the manifests without connecting to a cluster. Errors become diagnostics and are never raised.

    paths: files or folders with manifests; if empty, all manifests of the project. An unreadable path becomes
    a diagnostic, too.
    instead: the content of files to use instead of the content on disk, to check an edit before it is
    written. None means that the edit deletes the file. New files can be included.
    """
    return load_project_manifests(
        workspace.project, paths, KINDS, workspace.environ, CHECKS, RULES, instead, stream=workspace.stream
    )


def make_plan(
    workspace: Workspace,
    paths: Sequence[Path] = (),
    scope: PlanScope = WHOLE_PROJECT,
    progress: Progress = ignore_progress,
    what: str = "plan",
    *,
    lists_unmanaged: bool = False,
) -> PlanResult:
    """Load the manifests, recover earlier runs, read the live state and make a plan. Nothing is applied.

    paths: see `load_manifests`. what: the command, shown to other users while the lock is held.
    lists_unmanaged: whether to also list the live objects that the project neither declares nor owns.
    Raises KdeclareError if the manifests have errors, or if the cluster or the state cannot be read. Errors
    that only the cluster reveals are in the plan's diagnostics (`Plan.has_errors`).
    """
    pending_connections = workspace.connect()
    try:
        manifests = load_valid_manifests(workspace, paths, scope.targets)
        if lists_unmanaged and not manifests.complete:
            raise KdeclareError(_report_incomplete_listing())
        with (
            workspace.translate_faults(),
            open_active_policies(workspace, manifests.rules, scope.overrides) as active_policies,
        ):
            connections = pending_connections.get()
            notices = recover_before_plan(workspace, connections, what, progress, scope.visibility_timeout_s)
            result = plan_manifests(
                workspace, manifests, active_policies, connections, scope, progress, notices
            )
            if not lists_unmanaged:
                return result
            progress("Listing unmanaged resources", 0, 0)
            unmanaged = _list_unmanaged(workspace, manifests, connections)
            return replace(result, plan=replace(result.plan, unmanaged=unmanaged))
    finally:
        pending_connections.close()


def _list_unmanaged(
    workspace: Workspace, manifests: LoadedManifests, connections: Connections
) -> UnmanagedListing:
    state = workspace.store.read()
    owned = {ResourceId.parse(text): record for text, record in (state.resources if state else {}).items()}
    bodies = {item.id: item.body for item in (*manifests.desired, *manifests.absent)}
    known = [KnownResource(id_, bodies.get(id_), owned.get(id_)) for id_ in {**bodies, **owned}]
    return list_unmanaged(connections, known, workspace.project.scope.permits)


def _report_incomplete_listing() -> Diagnostic:
    return error(
        "incomplete-project",
        "Only part of the project was loaded",
        "--list-unmanaged requires that all manifests are loaded, because a manifest that is not loaded may "
        "declare resources that look unmanaged.",
        hint="Run the command without PATH, so that all manifests of the project are loaded.",
    )


def read_drift(
    workspace: Workspace,
    paths: Sequence[Path] = (),
    scope: PlanScope = WHOLE_PROJECT,
    progress: Progress = ignore_progress,
    what: str = "plan",
) -> tuple[DriftResult, tuple[Diagnostic, ...]]:
    """Return what other clients changed since the last apply, and notices from recovering earlier runs.

    The parameters are those of `make_plan`. Raises KdeclareError for the same reasons.
    """
    pending_connections = workspace.connect()
    try:
        manifests = load_valid_manifests(workspace, paths, scope.targets)
        with workspace.translate_faults():
            connections = pending_connections.get()
            notices = recover_before_plan(workspace, connections, what, progress, scope.visibility_timeout_s)
            request, _ = _build_request(workspace, manifests, connections, scope, progress)
            return find_drift(read_and_compare(request, connections, progress)), notices
    finally:
        pending_connections.close()


def load_valid_manifests(
    workspace: Workspace, paths: Sequence[Path], targets: Set[ResourceId] = frozenset()
) -> LoadedManifests:
    """Load the manifests. Raises KdeclareError if they have errors that do not depend on the cluster.

    targets: if set, the only resources to plan. Other resources whose references cannot be resolved are then
    left out with a warning, and the manifests count as incomplete.
    """
    loaded = leave_out_unresolved(load_manifests(workspace, paths), targets)
    if has_mistakes(loaded):
        with open_project_policies(workspace.project, loaded.rules) as active_policies:
            raise KdeclareError(*sort_diagnostics((*loaded.diagnostics, *active_policies.diagnostics)))
    return loaded


def leave_out_unresolved(loaded: LoadedManifests, targets: Set[ResourceId]) -> LoadedManifests:
    """Turn errors about unresolved references into warnings, for resources that are not in ``targets``.

    If ``targets`` is empty, every resource is needed. Policies and defaults are always needed, because they
    also apply to the targets.
    """
    if not targets:
        return loaded
    diagnostics = tuple(
        replace(
            d,
            severity=Severity.WARNING,
            detail=f"{d.detail} The plan leaves out the resource, because it is not a target.",
        )
        if d.code in UNRESOLVED_CODES and d.resource is not None and _is_left_out(d.resource, targets)
        else d
        for d in loaded.diagnostics
    )
    is_complete = loaded.complete and diagnostics == loaded.diagnostics
    return replace(loaded, diagnostics=diagnostics, complete=is_complete)


def _is_left_out(resource: str, targets: Set[ResourceId]) -> bool:
    id_ = ResourceId.parse(resource)
    return id_.kind in KINDS and id_ not in targets


def has_mistakes(manifests: LoadedManifests) -> bool:
    """Return whether errors in the manifests make a plan impossible, whatever the state of the cluster."""
    return any(d.is_error and d.code != UNKNOWN_SETTING for d in manifests.diagnostics)


def plan_manifests(
    workspace: Workspace,
    manifests: LoadedManifests,
    active_policies: ActivePolicies,
    connections: Connections,
    scope: PlanScope,
    progress: Progress,
    notices: tuple[Diagnostic, ...] = (),
) -> PlanResult:
    """Make the plan for loaded manifests. Raises KdeclareError and Fault."""
    project = workspace.project
    request, secrets = _build_request(workspace, manifests, connections, scope, progress)
    other_states = OtherStatesReader(workspace)
    diagnostics = (*manifests.diagnostics, *active_policies.diagnostics)
    request = replace(
        request,
        diagnostics=diagnostics,
        judge=active_policies.judge,
        read_other_states=other_states.read,
    )
    plan = build_plan(request, connections, secrets, progress)
    stop_warnings = _warn_about_denials(plan) if project.stops_on_denial else ()
    diagnostics = (
        *locate_fields(workspace, plan.diagnostics),
        *stop_warnings,
        *other_states.report(),
    )
    plan = replace(plan, diagnostics=sort_diagnostics(diagnostics))
    return PlanResult(plan, secrets, notices)


def _build_request(
    workspace: Workspace,
    manifests: LoadedManifests,
    connections: Connections,
    scope: PlanScope,
    progress: Progress,
) -> tuple[PlanRequest, ProjectSecrets]:
    """Return the request for the loaded manifests, without policies, and the secrets of the project."""
    project = workspace.project
    state = workspace.store.read()
    sealed_resources, secrets = seal_secrets(workspace, manifests.desired, state, connections, progress)
    request = PlanRequest(
        project=project.name,
        env=project.environment.name,
        cluster_name=workspace.cluster_name,
        desired=sealed_resources,
        state=state,
        scope=replace(
            scope,
            complete=manifests.complete,
            adopt=scope.adopt or project.adopts,
            options=complete_options(scope.options, project),
        ),
        diagnostics=manifests.diagnostics,
        names=project.scope,
        absent=manifests.absent,
        exclusions=manifests.exclusions,
    )
    return request, secrets


def _warn_about_denials(plan: Plan) -> tuple[Diagnostic, ...]:
    """Return a warning if the plan has denials and the project sets ``onDenied: stop``."""
    if not plan.is_partly_denied:
        return ()
    return (
        warning(
            STOPS_ON_DENIAL,
            "Denials stop the apply",
            "The project sets onDenied: stop. While a change is denied, apply makes none of the changes.",
            hint="Resolve the denials, or run kdeclare apply --on-denied continue.",
        ),
    )


def complete_options(options: PlanOptions, project: Project) -> PlanOptions:
    """Complete the plan options with the settings of the environment."""
    for settings in find_plan_settings():
        options = settings.complete(options, project.environment.plan_settings.get(settings.field, ()))
    return options


def save_plan(
    plan: Plan, path: Path, sign: SignMessage | None = None, created_at: datetime | None = None
) -> str:
    """Write a plan file and return the plan's id.

    Raises KdeclareError, for example if a manifest contains a secret in plain text.

    sign: signs the plan; None writes a plan without a signature. created_at: None means the current time.
    """
    _reject_literal_secrets(plan)
    return write_plan(plan, path, created_at or datetime.now(UTC), sign=sign)


def build_plan_text(plan: Plan, created_at: datetime) -> tuple[str, str]:
    """Return the text of a plan file, and the plan's id.

    Raises KdeclareError if a manifest contains a secret in plain text.
    """
    _reject_literal_secrets(plan)
    return render_plan_file(plan, created_at)


def _reject_literal_secrets(plan: Plan) -> None:
    literal_diagnostics = [d for d in plan.diagnostics if d.code == LITERAL_SECRET]
    if literal_diagnostics:
        raise KdeclareError(
            *(
                error(
                    LITERAL_SECRET,
                    "Literal secret cannot be saved in a plan",
                    f"{d.resource}: the sensitive value of '{d.subject}' is a literal in the manifest.",
                    hint="Replace the literal with ${env.NAME} or ${file.PATH}, or apply the manifests "
                    "without a plan file.",
                    place=d.place,
                    resource=d.resource,
                )
                for d in literal_diagnostics
            )
        )
    # kinds may not warn about literal secrets, so the arguments of the operations are checked, too
    for op in (*plan.operations, *plan.blocked_operations):
        if any(secret.reference is None for _, secret in find_records(op.args)):
            raise KdeclareError(
                error(
                    LITERAL_SECRET,
                    "Literal secret cannot be saved in a plan",
                    f"The manifest of {op.resource} contains a secret as a literal.",
                    hint="Replace the literal with ${env.NAME} or ${file.PATH}, or apply the manifests "
                    "without a plan file.",
                    resource=str(op.resource),
                )
            )
