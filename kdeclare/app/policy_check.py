"""What the policies say of resources, declared or live, without any change being planned; and their cases."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kdeclare.app.plan import load_valid_manifests
from kdeclare.app.policies import RULES, ActivePolicies, open_active_policies, open_project_policies
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error, sort_diagnostics
from kdeclare.core.progress import Progress
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.manifests.load_manifests import LoadedManifests, load_rules
from kdeclare.manifests.policies import TOPIC
from kdeclare.manifests.project import Project, open_project
from kdeclare.policy.configured_policy import group_by_kind
from kdeclare.policy.resource_checks import CheckResult, check_declared, check_live
from kdeclare.policy.subjects import PolicyContext, find_declared_labels, read_existing
from kdeclare.policy.testing.case_run import check_case_policies, run_cases
from kdeclare.policy.testing.cases import load_cases
from kdeclare.report.policy import PolicyCheckView, PolicyTestView


def check_manifests(workspace: Workspace, paths: Sequence[Path]) -> PolicyCheckView:
    """What is declared as if it were created now; no system is asked. Raises KdeclareError."""
    manifests = load_valid_manifests(workspace, paths)
    with open_active_policies(workspace, manifests.rules) as active_policies:
        result = check_declared(active_policies.policies, manifests.desired)
    policy_kinds = _find_kinds(active_policies)
    count = sum(item.id.kind in policy_kinds for item in manifests.desired)
    return _build_view(
        workspace, active_policies, result, count, _find_positions(manifests.desired), live=False
    )


def check_cluster(workspace: Workspace, paths: Sequence[Path], progress: Progress) -> PolicyCheckView:
    """Everything of the judged kinds that the systems have and that is not internal. Raises KdeclareError.

    Labels are those of the manifests, which there need not be any, else those that were last applied.
    """
    manifests = _load_manifests_if_any(workspace, paths)
    desired = manifests.desired if manifests else ()
    rules = manifests.rules if manifests else None
    with open_active_policies(workspace, rules) as active_policies:
        if not active_policies.policies:
            return _build_view(workspace, active_policies, CheckResult(), 0, {}, live=True)
        state = workspace.store.read()
        owned_records = state.resources if state else {}
        with workspace.open_connections() as connections:
            context = PolicyContext(
                connections,
                desired={item.id: item for item in desired},
                owned={ResourceId.parse(text): record for text, record in owned_records.items()},
                labels=find_declared_labels(desired, owned_records),
            )
            result, count = _check_live(context, active_policies, progress)
    return _build_view(workspace, active_policies, result, count, _find_positions(desired), live=True)


def _load_manifests_if_any(workspace: Workspace, paths: Sequence[Path]) -> LoadedManifests | None:
    return load_valid_manifests(workspace, paths) if paths or workspace.project.file is not None else None


def _check_live(
    context: PolicyContext, active_policies: ActivePolicies, progress: Progress
) -> tuple[CheckResult, int]:
    """Raises Fault when a system does not answer."""
    progress("Reading the cluster", 0, 0)
    live, selections, resources = read_existing(_find_kinds(active_policies), context)
    result = check_live(
        active_policies.policies,
        resources,
        replace(context, live=live, selections=selections),
        lambda done: progress("Asking the policies", done, len(resources)),
    )
    return result, len(resources)


def _find_kinds(active_policies: ActivePolicies) -> tuple[str, ...]:
    """The kinds that the policies are about."""
    return tuple(group_by_kind(active_policies.policies)) or (TOPIC,)


def _find_positions(desired: Iterable[DesiredResource]) -> dict[str, SourcePosition]:
    return {str(item.id): item.source for item in desired if item.source is not None}


def _build_view(
    workspace: Workspace,
    active_policies: ActivePolicies,
    result: CheckResult,
    count: int,
    positions: Mapping[str, SourcePosition],
    *,
    live: bool,
) -> PolicyCheckView:
    project = workspace.project
    return PolicyCheckView(
        project=project.name,
        env=project.environment.name,
        cluster=workspace.cluster_name if live else None,
        topics=count,
        policies=tuple(item.name for item in active_policies.policies),
        verdicts=result.verdicts,
        open=result.open,
        places=positions,
        diagnostics=active_policies.diagnostics,
        noun="topic" if _find_kinds(active_policies) == (TOPIC,) else "resource",
    )


def run_policy_tests(
    project_file: Path | None, env: str | None, files: Sequence[Path], environ: Mapping[str, str]
) -> PolicyTestView:
    """What the policies of a project say of the cases in these files; neither cluster nor state is needed.

    Raises KdeclareError with all that is wrong with the project, its policies or the files.
    """
    project = open_project(project_file, env, environ, offline=True)
    rules, rule_problems = load_rules(project, RULES, environ)
    cases, case_problems = load_cases(files, project, environ)
    with open_project_policies(project, rules) as active_policies:
        problems = [*rule_problems, *active_policies.diagnostics, *case_problems]
        if not any(d.is_error for d in (*rule_problems, *active_policies.diagnostics)):
            problems += check_case_policies(cases, active_policies.policies)
            problems += [] if active_policies.policies else [_build_no_policies_error(project)]
        if any(d.is_error for d in problems):
            raise KdeclareError(*sort_diagnostics(problems))
        return PolicyTestView(run_cases(active_policies.policies, cases), sort_diagnostics(problems))


def _build_no_policies_error(project: Project) -> Diagnostic:
    detail = f"The project '{project.name}' has none." if project.file else "There is no project here."
    return error(
        "no-policies",
        "No policies to test",
        detail,
        hint="Policies stand under 'policies' of the project file, or are manifests of kind Policy.",
    )
