"""``kdeclare apply``."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from kdeclare.cli.command import command
from kdeclare.cli.confirmation import ConfirmationPrompt
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions, PlanningOptions
from kdeclare.cli.options.single_options import (
    FollowTimeout,
    RequireSignature,
    RunFormat,
    VisibilityTimeout,
    Yes,
    validate_duration,
)
from kdeclare.cli.run_output import ApplyFlags, execute_run, make_run_presenter
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare apply                      plan, ask for confirmation, apply",
    "kdeclare apply it.plan              apply exactly this saved plan",
    "kdeclare apply it.plan --require-signature  only if a trusted key has signed it",
    "kdeclare apply --yes --format json  apply from a script",
    "cue export --out yaml | kdeclare apply - --yes  manifests that another program writes",
    codes=(0, 1, 3, 4, 5, 6, 64, 130),
)
QUESTION = "Apply these changes?"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "apply", epilog=_EPILOG)(apply)


def apply(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Files or folders with manifests, or - for standard input (default: all manifests of the "
            "project), or one plan file.",
            show_default=False,
        ),
    ] = None,
    *,
    yes: Yes = False,
    output: RunFormat = "text",
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Start no further operations after a failure.")
    ] = False,
    on_denied: Annotated[
        Literal["stop", "continue"] | None,
        typer.Option(
            "--on-denied",
            help="What to do if a policy or a guard denies a change: apply the allowed changes (continue) or "
            "nothing (stop). The exit code is 3. Default: onDenied of the project, or continue.",
            show_default=False,
        ),
    ] = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for reassignments to finish.")
    ] = False,
    move_timeout: Annotated[
        float,
        typer.Option(
            "--move-timeout",
            metavar="SECONDS",
            min=1,
            callback=validate_duration,
            help="How long to wait for reassignments to finish.",
        ),
    ] = 3600.0,
    follow_timeout: FollowTimeout = 30.0,
    visibility_timeout: VisibilityTimeout = 120.0,
    skip_stale: Annotated[
        bool,
        typer.Option(
            "--skip-stale",
            help="Skip stale operations of a saved plan instead of refusing the whole plan.",
        ),
    ] = False,
    require_signature: RequireSignature = False,
    planning: PlanningOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Make the cluster match the manifests.

    Shows the plan and asks for confirmation first. A saved plan is applied exactly as saved, and cannot be
    combined with options for planning.
    """
    from kdeclare.app.apply import apply_manifests, apply_saved
    from kdeclare.app.signatures import build_signature_check
    from kdeclare.cli.standard_input import STREAM_ARGUMENT, read_manifest_input
    from kdeclare.core.plans.plan_origin import PlanOrigin
    from kdeclare.engine.planning.planfile import is_plan_file, load_plan

    files = [path for path in paths or () if str(path) != STREAM_ARGUMENT]
    plan_file = next((file for file in files if is_plan_file(file)), None)
    apply_flags = ApplyFlags(
        fail_fast,
        not no_wait,
        move_timeout,
        follow_timeout,
        visibility_timeout,
        skip_stale=skip_stale,
        stops_on_denial=None if on_denied is None else on_denied == "stop",
    )
    prompt = ConfirmationPrompt(console, QUESTION, yes)
    if plan_file is None:
        is_path_missing = not all(file.exists() for file in files)  # reported when the manifests are read
        if skip_stale and not is_path_missing:
            raise typer.BadParameter("requires a plan file.", param_hint="--skip-stale")
        if require_signature and not is_path_missing:
            raise typer.BadParameter("requires a plan file.", param_hint="--require-signature")
        scope = replace(planning.scope(), visibility_timeout_s=visibility_timeout)
        given = read_manifest_input(paths, reach.line)
        workspace = replace(reach.workspace(), stream=given.stream)
        origin = None
        if console.output == "html":
            import os
            from datetime import UTC, datetime

            from kdeclare.app.plan_origin import find_plan_origin

            origin = find_plan_origin(workspace.project.folder, os.environ, datetime.now(UTC))
        return execute_run(
            console,
            prompt,
            apply_flags,
            lambda how: apply_manifests(workspace, given.paths, scope, how),
            make_run_presenter(console, workspace, origin=origin),
        )
    if len(paths or ()) > 1:
        raise typer.BadParameter(
            f"{plan_file} is a plan file, which cannot be combined with other paths.", param_hint="PATH"
        )
    if planning.is_given or reach.has_variables:
        raise typer.BadParameter(
            f"{plan_file} is a plan file, which cannot be combined with options for planning.",
            param_hint="PATH",
        )
    workspace = reach.workspace()
    check_signature = build_signature_check(workspace.project, is_demanded=require_signature)
    saved_plan = load_plan(plan_file, check_signature)
    return execute_run(
        console,
        prompt,
        apply_flags,
        lambda how: apply_saved(workspace, saved_plan, replace(how, require_signature=require_signature)),
        make_run_presenter(console, workspace, saved_plan.plan_id, PlanOrigin(saved_plan.created_at or "")),
    )
