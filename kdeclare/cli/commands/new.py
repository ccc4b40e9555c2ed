"""``kdeclare new``, with one subcommand for each kind of resource that supports it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from kdeclare.cli.console import Console
from kdeclare.cli.installed_commands import NEW_GROUP, add_commands
from kdeclare.cli.options.option_groups import ProjectOptions
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.app.authoring.scaffolds import SpecLine
    from kdeclare.core.resources.ids import ResourceId


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.callback()(lambda: None)  # without a callback, typer replaces a group with its only command
    add_commands(group, NEW_GROUP)
    app.add_typer(group, name="new", help="Create a manifest.")


def write_new_manifest(
    console: Console,
    project_options: ProjectOptions,
    resource: "ResourceId",
    spec: "Sequence[SpecLine]",
    *,
    needs_values: bool = True,
) -> ExitCode:
    """Write a manifest and print its path. Raises KdeclareError. needs_values: see `create_manifest`."""
    import os
    import shlex

    from kdeclare.app.authoring.scaffolds import create_manifest

    options = project_options.options()
    created = create_manifest(
        resource,
        spec,
        options.project,
        options.env,
        os.environ,
        needs_values=needs_values,
        variables=options.variables,
    )
    console.notices(created.notices)
    console.out(f"{created.file}\n")
    path_arguments = (
        "" if created.in_project else f" {shlex.quote(str(created.file))} --bootstrap-server HOST:PORT"
    )
    # without the options of the kdeclare shell, because the shell adds them to the next line, too
    typed_options = (
        ("--project", project_options.project),
        ("--env", project_options.env),
        *(("--var-file", file) for file in project_options.var_file or ()),
        *(("--var", assignment) for assignment in project_options.var or ()),
    )
    option_words = "".join(
        f" {option} {shlex.quote(str(value))}" for option, value in typed_options if value is not None
    )
    console.note(f"Next: kdeclare plan{path_arguments}{option_words}")
    return ExitCode.OK
