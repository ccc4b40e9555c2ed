"""The command ``kdeclare flag``. kdeclare imports this module only if a user runs the command."""

from typing import Annotated

import typer

from kdeclare.cli.adhoc import Declared, WriteManifest, run_declared
from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.options.option_groups import PolicyOverrideOptions, StateOptions
from kdeclare.cli.options.single_options import Format, Yes
from kdeclare.core.exit_codes import ExitCode
from kdeclare_flags.provider import FLAG, FlagSpec


def register(app: typer.Typer) -> None:
    """Add the command group to the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "set")(set_rollout)
    app.add_typer(group, name="flag", help="Change feature flags ad hoc.")


def set_rollout(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the flag.")],
    rollout: Annotated[int, typer.Argument(metavar="PERCENT", min=0, max=100, help="Percentage of users.")],
    write_manifest: WriteManifest = False,
    yes: Yes = False,
    output: Format = "text",
    overriding: PolicyOverrideOptions,
    where: StateOptions,
    console: Console,
) -> ExitCode:
    """Set the percentage of users that a flag is on for.

    Shows the plan and asks for confirmation. 'kdeclare rollback' undoes the change.
    """
    flag, overrides = Declared(FLAG, name, FlagSpec(rollout=rollout)), overriding.overrides()
    return run_declared(
        console, "Set this flag?", flag, where.workspace(), overrides, yes=yes, write_manifest=write_manifest
    )
