"""``kdeclare plan`` and ``kdeclare show``."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions, PlanningOptions
from kdeclare.cli.options.single_options import Graph, Paths, PlanFormat, Sign, VisibilityTimeout
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kdeclare.app.workspace import Workspace, WorkspaceOptions
    from kdeclare.core.plans.plan import Plan
    from kdeclare.core.plans.plan_origin import PlanOrigin
    from kdeclare.engine.planning.request import PlanScope


_PLAN_EPILOG = build_epilog(
    "kdeclare plan                                        plan the whole project",
    "kdeclare plan orders.yaml --target Topic/orders      one resource of one file",
    "kdeclare plan --out it.plan && kdeclare apply it.plan     apply exactly the reviewed plan",
    "kdeclare plan --out it.plan --sign ~/.ssh/id_ed25519 sign the saved plan",
    "helm template ./kafka | kdeclare plan -              manifests that another program writes",
    "kdeclare plan --refresh-only                         only what other clients changed",
    "kdeclare plan --format markdown > comment.md         for a pull request",
    "kdeclare plan --format html > plan.html              one page with diagrams",
    codes=(0, 1, 2, 3, 6, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    command(app, "plan", epilog=_PLAN_EPILOG)(plan)
    command(app, "show", epilog=build_epilog("kdeclare show it.plan --graph"))(show)


def plan(
    paths: Paths = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Save the plan to this file, for kdeclare apply."),
    ] = None,
    sign: Sign = None,
    output: PlanFormat = "text",
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if there are changes.")
    ] = False,
    graph: Graph = False,
    refresh_only: Annotated[
        bool,
        typer.Option(
            "--refresh-only",
            help="Show only drift: what has changed outside kdeclare since the last apply. Leave out the "
            "changes that the manifests require.",
        ),
    ] = False,
    list_unmanaged: Annotated[
        bool,
        typer.Option(
            "--list-unmanaged",
            help="Also list the objects in the cluster that the project neither declares nor owns.",
        ),
    ] = False,
    visibility_timeout: VisibilityTimeout = 120.0,
    planning: PlanningOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Show the changes required by the manifests.

    Compares the manifests with the cluster and with the last applied state, and shows the reason for each
    change. Changes nothing.
    """
    import os
    from datetime import UTC, datetime

    from kdeclare.app.plan import make_plan, save_plan
    from kdeclare.app.signatures import load_signer
    from kdeclare.cli.standard_input import read_manifest_input
    from kdeclare.report.outcome import plan_outcome

    if sign is not None and out is None:
        raise typer.BadParameter("requires --out.", param_hint="--sign")
    if refresh_only:
        conflicts = {
            "--out": out is not None,
            "--graph": graph,
            "--list-unmanaged": list_unmanaged,
            "--replace": bool(planning.replaced),
        }
        _check_refresh_options(output, conflicts)
    signer = None if sign is None else load_signer(sign, os.environ)
    options = reach.options()
    console.concerns(options.project, lambda: _find_category(options))
    scope = replace(planning.scope(), visibility_timeout_s=visibility_timeout)
    given = read_manifest_input(paths, reach.line)
    workspace = replace(reach.workspace(), stream=given.stream)
    console.progress("Connecting", 0, 0)
    if refresh_only:
        return _show_drift(console, workspace, given.paths, scope, detailed_exitcode=detailed_exitcode)
    plan_result = make_plan(
        workspace, given.paths, scope, console.progress, console.command, lists_unmanaged=list_unmanaged
    )
    console.notices(plan_result.notices)
    new_plan, created_at = plan_result.plan, datetime.now(UTC)
    outcome = plan_outcome(new_plan, detailed_exitcode)
    is_saved = out is not None and not new_plan.has_errors
    if out is not None and is_saved:
        save_plan(replace(new_plan, unmanaged=None), out, signer, created_at)
    origin = None
    if console.output == "html":
        from kdeclare.app.plan_origin import find_plan_origin

        origin = find_plan_origin(workspace.project.folder, os.environ, created_at)
    show_plan(console, new_plan, graph=graph, origin=origin)
    if out is not None and is_saved:
        announce_saved_plan(console, out, is_signed=signer is not None)
    elif out is not None:
        console.note(f"The plan was not saved to {out}, because it has errors.")
    return outcome.exit_code


def _check_refresh_options(output: str, given: "Mapping[str, bool]") -> None:
    """Raise BadParameter for an option or a format that cannot be combined with --refresh-only."""
    for option, is_given in given.items():
        if is_given:
            raise typer.BadParameter(
                f"cannot be combined with {option}, because --refresh-only shows drift and plans no changes.",
                param_hint="--refresh-only",
            )
    if output not in ("text", "json", "markdown"):
        raise typer.BadParameter(f"does not support the format {output}.", param_hint="--refresh-only")


def _show_drift(
    console: Console,
    workspace: "Workspace",
    paths: "Sequence[Path]",
    scope: "PlanScope",
    *,
    detailed_exitcode: bool,
) -> ExitCode:
    from kdeclare.app.plan import read_drift
    from kdeclare.report.plan.drift import build_drift_view, render_drift_markdown, render_drift_text

    result, notices = read_drift(workspace, paths, scope, console.progress, console.command)
    console.notices(notices)
    project = workspace.project
    view = build_drift_view(
        result,
        project.name,
        project.environment.name,
        workspace.cluster_name,
        detailed_exitcode=detailed_exitcode,
    )
    if console.is_json:
        console.write_document(view)
    elif console.output == "markdown":
        console.out(render_drift_markdown(view))
    else:
        console.out(render_drift_text(view, console.style))
    return ExitCode(view.exit_code)


def show(
    file: Annotated[
        Path, typer.Argument(metavar="PLANFILE", help="A plan file, written by kdeclare plan --out.")
    ],
    *,
    output: PlanFormat = "text",
    graph: Graph = False,
    project: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Project file, which lists the keys that are trusted for signatures (default: "
            "kdeclare.yaml, if it exists). With --format sarif, findings that do not concern a file are "
            "attached to it.",
        ),
    ] = None,
    console: Console,
) -> ExitCode:
    """Show a saved plan, and who signed it.

    Does not connect to a cluster.
    """
    import os

    from kdeclare.app.signatures import describe_signature
    from kdeclare.core.plans.plan_origin import PlanOrigin
    from kdeclare.engine.planning.planfile import load_plan

    console.concerns(project)
    saved_plan = load_plan(file)
    if console.is_json:
        console.out(file.read_text(encoding="utf-8-sig"))
    else:
        status = describe_signature(saved_plan.signed_content, project, saved_plan.plan.env, os.environ)
        origin = PlanOrigin(saved_plan.created_at or "")
        show_plan(console, saved_plan.plan, graph=graph, identity=saved_plan.plan_id, origin=origin)
        if status is not None and output in ("text", "markdown"):
            from kdeclare.report.plan.signature_text import render_signature_markdown, render_signature_text

            render = render_signature_text if output == "text" else render_signature_markdown
            console.out(render(status))
    return ExitCode.OK


def _find_category(options: "WorkspaceOptions") -> str | None:
    from kdeclare.app.known_names import find_project_names
    from kdeclare.report.sarif import format_plan_category

    names = find_project_names(options.project, options.env)
    return format_plan_category(*names) if names else None


def announce_saved_plan(console: Console, file: Path, *, is_signed: bool = False) -> None:
    """Report where a plan was saved, and the command that applies it."""
    command_line = shlex.join(["kdeclare", "apply", str(file)])
    done = "signed and saved" if is_signed else "saved"
    console.note(f"The plan was {done} to {file}. To apply exactly this plan: {command_line}")


def show_plan(
    console: Console,
    plan: "Plan",
    *,
    graph: bool = False,
    identity: str | None = None,
    origin: "PlanOrigin | None" = None,
) -> None:
    """Write a plan to stdout in the chosen format.

    identity: the plan's id if it was read from a file. origin: the plan's time and commit, for an HTML page.
    """
    if console.output == "json":
        console.write_plan(plan)
    elif console.output == "sarif":
        from kdeclare.report.sarif import build_plan_sarif

        console.write_json(build_plan_sarif(plan, console.checkout()))
    elif console.output == "markdown":
        from kdeclare.report.plan.plan_markdown import plan_markdown

        console.out(plan_markdown(plan, identity))
    elif console.output == "html":
        from kdeclare.report.plan.plan_page import render_plan_page

        console.write_page(render_plan_page(plan, identity, origin))
    else:
        from kdeclare.report.plan.plan_text import plan_text

        console.out(plan_text(plan, console.style, graph))
