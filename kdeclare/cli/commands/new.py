"""``kdeclare new``: a command for each kind that offers a manifest to begin with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from kdeclare.cli.console import Console
from kdeclare.cli.installed_commands import NEW_GROUP, add_commands
from kdeclare.cli.options import Setting
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.app.authoring.scaffolds import SpecLine
    from kdeclare.core.resources.ids import ResourceId


def register(app: typer.Typer) -> None:
    """Put the commands into the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.callback()(lambda: None)  # or the only command would need no name
    add_commands(group, NEW_GROUP)
    app.add_typer(group, name="new", help="Manifests to begin with.")


def write_new(
    console: Console, setting: Setting, resource: "ResourceId", spec: "Sequence[SpecLine]"
) -> ExitCode:
    """Write a manifest and print where it is. The caller has checked the name. Raises KdeclareError."""
    import os
    import shlex

    from kdeclare.app.authoring.scaffolds import new_manifest

    options = setting.options()
    made = new_manifest(resource, spec, options.project, options.env, os.environ)
    console.notices(made.notices)
    console.out(f"{made.file}\n")
    alone = "" if made.in_project else f" {shlex.quote(str(made.file))} --bootstrap-server HOST:PORT"
    # as given on this line: what a shell was given holds for its next line, too
    given = (("--project", setting.project), ("--env", setting.env))
    there = "".join(f" {option} {shlex.quote(str(value))}" for option, value in given if value is not None)
    console.note(f"Next: kdeclare plan{alone}{there}")
    return ExitCode.OK
