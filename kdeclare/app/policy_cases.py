"""Running the cases that a policy's author has written."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kdeclare.app.policies import RULES, project_policies
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, in_order
from kdeclare.manifests.load import load_rules
from kdeclare.manifests.project import Project, open_project
from kdeclare.policy.testing.cases import load_cases
from kdeclare.policy.testing.run import run_cases, unknown_policies
from kdeclare.report.views import PolicyTestView


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
