"""``kdeclare rollback``."""

from pathlib import Path
from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.confirmation import ConfirmationPrompt
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions, PolicyOverrideOptions
from kdeclare.cli.options.single_options import (
    DeletionChoices,
    FollowTimeout,
    NoImpact,
    RunFormat,
    Sign,
    VisibilityTimeout,
    Yes,
)
from kdeclare.cli.run_output import ApplyFlags, execute_run, make_run_presenter
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare rollback                       undo the last run",
    "kdeclare rollback --recreate-deleted    re-create deleted topics, empty",
    "kdeclare rollback --out undo.plan       only save the plan, for kdeclare apply",
    codes=(0, 1, 3, 5, 6, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "rollback", epilog=_EPILOG)(rollback)


def rollback(
    run_id: Annotated[
        str | None,
        typer.Argument(metavar="RUN_ID", help="The run to undo (default: the last one).", show_default=False),
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Only save the plan to this file; do not apply it."),
    ] = None,
    sign: Sign = None,
    yes: Yes = False,
    output: RunFormat = "text",
    allow_data_loss: Annotated[
        bool,
        typer.Option(
            "--allow-data-loss", help="Delete the resources that the run created, even if they contain data."
        ),
    ] = False,
    recreate_deleted: Annotated[
        bool,
        typer.Option(
            "--recreate-deleted",
            help="Re-create the topics that the run deleted, without their records.",
        ),
    ] = False,
    write_manifest: Annotated[
        bool,
        typer.Option(
            "--write-manifest",
            help="Also write the restored values to the manifests, keeping their comments and formatting.",
        ),
    ] = False,
    no_impact: NoImpact = False,
    choices: DeletionChoices,
    follow_timeout: FollowTimeout = 30.0,
    visibility_timeout: VisibilityTimeout = 120.0,
    overriding: PolicyOverrideOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Undo the changes of a run.

    Restores the values from before the run. Shows the plan and asks for confirmation first. If another client
    has changed a value since, rollback reports the value and leaves it unchanged. Resources that the run
    created are deleted. If they have ids, rollback deletes them by id, so that a resource that was created
    later with the same name is kept. A rollback is also a run and can be rolled back. Revert the
    manifests as well (in version control, or with --write-manifest), or the next apply makes the same changes
    again. If a manifest cannot be edited, --write-manifest reports the reason and changes nothing.
    """
    import os

    from kdeclare.app.apply import roll_back
    from kdeclare.app.signatures import load_signer
    from kdeclare.cli.commands.plan import announce_saved_plan, show_plan
    from kdeclare.core.provider.plan_options import choose_options
    from kdeclare.report.outcome import plan_outcome

    if write_manifest and out is not None:
        raise typer.BadParameter(
            "cannot be combined with --out: applying a saved plan does not write manifests.",
            param_hint="--write-manifest",
        )
    if sign is not None and out is None:
        raise typer.BadParameter("requires --out.", param_hint="--sign")
    signer = None if sign is None else load_signer(sign, os.environ)
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
            recreates_deleted=recreate_deleted,
            options=options,
            out=out,
            sign=signer,
            writes_manifests=write_manifest,
            shows_impact=not no_impact,
        ),
        make_run_presenter(console, workspace),
    )
    if out is not None and prompt.plan is not None:
        show_plan(console, prompt.plan)
        announce_saved_plan(console, out, is_signed=signer is not None)
        return plan_outcome(prompt.plan).exit_code
    return exit_code
