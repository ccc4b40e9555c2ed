"""What the policies say of resources, declared or live, without any change being planned; and their cases."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kdeclare.app.plan import loaded_well
from kdeclare.app.policies import RULES, InForce, policies_in_force, project_policies
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Place, error, in_order
from kdeclare.core.progress import Progress
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.manifests.load import Loaded, load_rules
from kdeclare.manifests.policies import TOPIC
from kdeclare.manifests.project import Project, open_project
from kdeclare.policy.checking import Checked, check_declared, check_live
from kdeclare.policy.configured import by_kind
from kdeclare.policy.subjects import PolicyContext, find_declared_labels, read_existing
from kdeclare.policy.testing.cases import load_cases
from kdeclare.policy.testing.run import run_cases, unknown_policies
from kdeclare.report.policy import PolicyCheckView, PolicyTestView


def check_manifests(workspace: Workspace, paths: Sequence[Path]) -> PolicyCheckView:
    """What is declared as if it were created now; no system is asked. Raises KdeclareError."""
    loaded = loaded_well(workspace, paths)
    with policies_in_force(workspace, loaded.rules) as in_force:
        found = check_declared(in_force.policies, loaded.desired)
    kinds = _kinds(in_force)
    count = sum(item.id.kind in kinds for item in loaded.desired)
    return _view(workspace, in_force, found, count, _places(loaded.desired), live=False)


def check_cluster(workspace: Workspace, paths: Sequence[Path], progress: Progress) -> PolicyCheckView:
    """Everything of the judged kinds that the systems have and that is not internal. Raises KdeclareError.

    Labels are those of the manifests, which there need not be any, else those that were last applied.
    """
    loaded = _loaded_if_any(workspace, paths)
    desired = loaded.desired if loaded else ()
    rules = loaded.rules if loaded else None
    with policies_in_force(workspace, rules) as in_force:
        if not in_force.policies:
            return _view(workspace, in_force, Checked(), 0, {}, live=True)
        state = workspace.store.read()
        owned = state.resources if state else {}
        with workspace.connected() as connections:
            context = PolicyContext(
                connections,
                desired={item.id: item for item in desired},
                owned={ResourceId.parse(text): record for text, record in owned.items()},
                labels=find_declared_labels(desired, owned),
            )
            found, count = _check(context, in_force, progress)
    return _view(workspace, in_force, found, count, _places(desired), live=True)


def _loaded_if_any(workspace: Workspace, paths: Sequence[Path]) -> Loaded | None:
    return loaded_well(workspace, paths) if paths or workspace.project.file is not None else None


def _check(context: PolicyContext, in_force: InForce, progress: Progress) -> tuple[Checked, int]:
    """Raises Fault when a system does not answer."""
    progress("Reading the cluster", 0, 0)
    live, selections, resources = read_existing(_kinds(in_force), context)
    found = check_live(
        in_force.policies,
        resources,
        replace(context, live=live, selections=selections),
        lambda done: progress("Asking the policies", done, len(resources)),
    )
    return found, len(resources)


def _kinds(in_force: InForce) -> tuple[str, ...]:
    """The kinds that the policies are about."""
    return tuple(by_kind(in_force.policies)) or (TOPIC,)


def _places(desired: Iterable[Desired]) -> dict[str, Place]:
    return {str(item.id): item.source for item in desired if item.source is not None}


def _view(
    workspace: Workspace,
    in_force: InForce,
    found: Checked,
    count: int,
    places: Mapping[str, Place],
    *,
    live: bool,
) -> PolicyCheckView:
    project = workspace.project
    return PolicyCheckView(
        project=project.name,
        env=project.environment.name,
        cluster=workspace.cluster_name if live else None,
        topics=count,
        policies=tuple(item.name for item in in_force.policies),
        verdicts=found.verdicts,
        open=found.open,
        places=places,
        diagnostics=in_force.diagnostics,
        noun="topic" if _kinds(in_force) == (TOPIC,) else "resource",
    )


def run_policy_tests(
    project_file: Path | None, env: str | None, files: Sequence[Path], environ: Mapping[str, str]
) -> PolicyTestView:
    """What the policies of a project say of the cases in these files; neither cluster nor state is needed.

    Raises KdeclareError with all that is wrong with the project, its policies or the files.
    """
    project = open_project(project_file, env, environ, offline=True)
    rules, unread = load_rules(project, RULES, environ)
    cases, wrong = load_cases(files, project, environ)
    with project_policies(project, rules) as in_force:
        problems = [*unread, *in_force.diagnostics, *wrong]
        if not any(d.is_error for d in (*unread, *in_force.diagnostics)):
            problems += unknown_policies(cases, in_force.policies)
            problems += [] if in_force.policies else [_no_policies(project)]
        if any(d.is_error for d in problems):
            raise KdeclareError(*in_order(problems))
        return PolicyTestView(run_cases(in_force.policies, cases), in_order(problems))


def _no_policies(project: Project) -> Diagnostic:
    where = f"The project '{project.name}' has none." if project.file else "There is no project here."
    return error(
        "no-policies",
        "No policies to test",
        where,
        hint="Policies stand under 'policies' of the project file, or are manifests of kind Policy.",
    )
