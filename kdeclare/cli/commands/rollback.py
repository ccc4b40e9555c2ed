"""``kdeclare rollback``."""

from pathlib import Path
from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.confirmation import ConfirmationPrompt
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options import (
    ConnectionOptions,
    DeletionChoices,
    FollowTimeout,
    PolicyOverrideOptions,
    RunFormat,
    VisibilityTimeout,
    Yes,
)
from kdeclare.cli.run_output import ApplyFlags, execute_run, make_run_presenter
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare rollback                       undo the last run",
    "kdeclare rollback --out undo.plan       only plan it, for kdeclare apply",
    codes=(0, 1, 3, 5, 6, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Put the command into the application."""
    command(app, "rollback", epilog=_EPILOG)(rollback)


def rollback(
    run_id: Annotated[
        str | None,
        typer.Argument(metavar="RUN_ID", help="The run to undo (default: the last one).", show_default=False),
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Only save the plan, for apply."),
    ] = None,
    yes: Yes = False,
    output: RunFormat = "text",
    allow_data_loss: Annotated[
        bool,
        typer.Option("--allow-data-loss", help="Delete what the run created, with the data in it."),
    ] = False,
    choices: DeletionChoices,
    follow_timeout: FollowTimeout = 30.0,
    visibility_timeout: VisibilityTimeout = 120.0,
    overriding: PolicyOverrideOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Undo a run: what it changed goes back to what it was before.

    What someone else has changed since is left alone and named. What the run created is deleted by its id,
    where it has one: what was created again under the same name stays. Shows the plan and asks first. A
    rollback is a run of its own and can be rolled back too. Manifests stay as they are: revert them as
    well, or the next apply does again what was undone.
    """
    from kdeclare.app.apply import roll_back
    from kdeclare.cli.commands.plan import show_plan
    from kdeclare.core.provider.plan_options import choose_options
    from kdeclare.report.outcome import plan_outcome

    overrides, options = overriding.overrides(), choose_options(**choices)
    workspace = reach.workspace()
    prompt = ConfirmationPrompt(console, "Roll back?", yes, plan_only=out is not None)
    exit_code = execute_run(
        console,
        prompt,
        ApplyFlags(
            follow_timeout_s=follow_timeout,
            visibility_timeout_s=visibility_timeout,
            overrides=overrides,
        ),
        lambda how: roll_back(
            workspace,
            run_id,
            how,
            allow_data_loss=allow_data_loss,
            options=options,
            out=out,
        ),
        make_run_presenter(console, workspace),
    )
    if out is not None and prompt.plan is not None:
        show_plan(console, prompt.plan)
        console.note(f"Saved as {out}. To apply exactly this: kdeclare apply {out}")
        return plan_outcome(prompt.plan).exit_code
    return exit_code
