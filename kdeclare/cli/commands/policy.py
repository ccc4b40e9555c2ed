"""``kdeclare policy``."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions, ProjectOptions
from kdeclare.cli.options.single_options import Format, Paths
from kdeclare.core.exit_codes import ExitCode

_CHECK_EPILOG = build_epilog(
    "kdeclare policy check                     check the manifests of the project",
    "kdeclare policy check --live              check all resources in the cluster",
    "kdeclare policy check --live --format json > findings.json",
    codes=(0, 1, 3, 64, 130),
)
_TEST_EPILOG = build_epilog(
    "kdeclare policy test policy-tests         run all files of a folder",
    "kdeclare policy test gold-topics.yaml -v  also show the cases that passed",
    "",
    "where gold-topics.yaml contains:",
    "",
    "apiVersion: kdeclare/v1",
    "kind: PolicyTest",
    "metadata: {name: gold-topics}",
    "spec:",
    "  cases:",
    "    - name: two replicas are too few",
    "      request:",
    "        action: CREATE",
    "        topic: orders",
    "        labels: {tier: gold}",
    "        post: {partitions: 3, replicationFactor: 2}",
    "      expect: deny",
)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "check", epilog=_CHECK_EPILOG)(check)
    command(group, "test", epilog=_TEST_EPILOG)(run_cases)
    app.add_typer(group, name="policy", help="Check resources against policies, and test policies.")


def check(
    paths: Paths = None,
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Check all resources in the cluster instead of the manifests.")
    ] = False,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Show the resources that violate a policy, without a plan.

    Checks the manifests as if their resources were created now, without connecting to a cluster. With --live,
    checks the current topics and other resources in the cluster, with the labels from the manifests. Changes
    nothing.
    """
    from kdeclare.app.policy_check import check_cluster, check_manifests
    from kdeclare.cli.standard_input import read_manifest_input
    from kdeclare.report.policy import compute_check_outcome, render_check_text

    given = read_manifest_input(paths, reach.line)
    workspace = replace(reach.workspace(), stream=given.stream)
    if live:
        view = check_cluster(workspace, given.paths, console.progress)
    else:
        view = check_manifests(workspace, given.paths)
    if console.is_json:
        from kdeclare.report.policy import build_check_document

        console.write_document(build_check_document(view))
    else:
        console.notices(view.diagnostics)
        console.out(render_check_text(view, console.style, show_all=console.verbose))
    return compute_check_outcome(view).exit_code


def run_cases(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files or folders with test cases.")],
    *,
    output: Format = "text",
    setting: ProjectOptions,
    console: Console,
) -> ExitCode:
    """Run test cases against the policies of the project.

    A case contains a request and the expected outcome: allow, warn or deny. Works without a cluster and
    without a state. Exits with 1 if a case fails.
    """
    import os

    from kdeclare.app.policy_check import run_policy_tests
    from kdeclare.report.policy import compute_cases_outcome, render_cases_text

    options = setting.options()
    view = run_policy_tests(options.project, options.env, files, os.environ, options.variables)
    if console.is_json:
        from kdeclare.report.policy import build_cases_document

        console.write_document(build_cases_document(view))
    else:
        console.notices(view.diagnostics)
        console.out(render_cases_text(view, console.style, show_all=console.verbose))
    return compute_cases_outcome(view).exit_code
