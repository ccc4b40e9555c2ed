"""Check declared or live resources against the policies without a plan, and run the policies' test cases."""

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
from kdeclare.manifests.variables import GivenVariables
from kdeclare.policy.configured_policy import group_by_kind
from kdeclare.policy.resource_checks import CheckResult, check_declared, check_live
from kdeclare.policy.subjects import PolicyContext, find_declared_labels, read_existing
from kdeclare.policy.testing.case_run import check_case_policies, run_cases
from kdeclare.policy.testing.cases import load_cases
from kdeclare.report.policy import PolicyCheckView, PolicyTestView


def check_manifests(workspace: Workspace, paths: Sequence[Path]) -> PolicyCheckView:
    """Check the declared resources as if they were being created now, without connecting to a system.

    Raises KdeclareError.
    """
    manifests = load_valid_manifests(workspace, paths)
    with open_active_policies(workspace, manifests.rules) as active_policies:
        result = check_declared(active_policies.policies, manifests.desired)
    policy_kinds = _find_kinds(active_policies)
    count = sum(item.id.kind in policy_kinds for item in manifests.desired)
    return _build_view(
        workspace, active_policies, result, count, _find_positions(manifests.desired), live=False
    )


def check_cluster(workspace: Workspace, paths: Sequence[Path], progress: Progress) -> PolicyCheckView:
    """Check all live resources, except internal ones, of the kinds that the policies apply to.

    Labels come from the manifests, if the project has any, and otherwise from the last applied state. Raises
    KdeclareError.
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
    is_given = bool(paths) or workspace.stream is not None
    return load_valid_manifests(workspace, paths) if is_given or workspace.project.file is not None else None


def _check_live(
    context: PolicyContext, active_policies: ActivePolicies, progress: Progress
) -> tuple[CheckResult, int]:
    progress("Reading the cluster", 0, 0)
    live, selections, resources = read_existing(_find_kinds(active_policies), context)
    result = check_live(
        active_policies.policies,
        resources,
        replace(context, live=live, selections=selections),
        lambda done: progress("Checking policies", done, len(resources)),
    )
    return result, len(resources)


def _find_kinds(active_policies: ActivePolicies) -> tuple[str, ...]:
    """Return the kinds that the policies apply to. If there are no policies, return only the kind Topic."""
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
    project_file: Path | None,
    env: str | None,
    files: Sequence[Path],
    environ: Mapping[str, str],
    variables: GivenVariables | None = None,
) -> PolicyTestView:
    """Run the test cases in these files against the policies of a project, without a cluster or a state.

    Raises KdeclareError with all errors in the project, its policies or the files.
    """
    project = open_project(project_file, env, environ, offline=True, variables=variables)
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
    detail = (
        f"The project '{project.name}' has no policies."
        if project.file
        else "There is no project file in this folder."
    )
    return error(
        "no-policies",
        "No policies to test",
        detail,
        hint="Add policies under 'policies' in the project file, or as manifests of kind Policy.",
    )
