"""The command ``kdeclare connector``: list and describe connectors, and change their states ad hoc."""

from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options import ConnectionOptions, Format
from kdeclare.core.exit_codes import ExitCode

_LIST_EPILOG = build_epilog(
    "kdeclare connector list",
    "kdeclare connector list --connect eu --format json",
    codes=(0, 1, 64, 130),
)
_DESCRIBE_EPILOG = build_epilog(
    "kdeclare connector describe orders-sink",
    "kdeclare connector describe orders-sink --connect eu",
    codes=(0, 1, 64, 130),
)
ConnectName = Annotated[
    str | None,
    typer.Option(
        "--connect",
        metavar="NAME",
        help="Connect cluster in the environment (default: all Connect clusters).",
    ),
]


def register(app: typer.Typer) -> None:
    """Register the commands with the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "list", epilog=_LIST_EPILOG)(list_all)
    command(group, "describe", epilog=_DESCRIBE_EPILOG)(describe)
    app.add_typer(group, name="connector", help="List, describe, restart, pause, resume and stop connectors.")


def list_all(
    *,
    connect: ConnectName = None,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """List connectors with their state and tasks.

    Lists the connectors of all Connect clusters of the environment. Exits with 1 if a Connect cluster cannot
    be read, after listing the others.
    """
    from kdeclare.providers.connect.commands.connectors.connector_text import render_connector_list
    from kdeclare.providers.connect.commands.connectors.describe_connectors import list_connectors

    workspace = reach.workspace()
    console.progress("Reading the connectors", 0, 0)
    view = list_connectors(workspace, connect)
    if console.is_json:
        console.write_document(view)
    else:
        console.out(render_connector_list(view, console.width, console.style))
    return ExitCode(view.exit_code)


def describe(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the connector.")],
    *,
    connect: ConnectName = None,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Show a connector with its config, tasks and offsets.

    Masks sensitive values. Also shows the manifest that declares the connector, and whether kdeclare owns it.
    """
    from kdeclare.providers.connect.commands.connectors.connector_text import render_connector
    from kdeclare.providers.connect.commands.connectors.describe_connectors import describe_connector

    workspace = reach.workspace()
    console.progress("Reading the connector", 0, 0)
    view = describe_connector(workspace, name, connect)
    if console.is_json:
        console.write_document(view)
    else:
        console.out(render_connector(view, console.style))
    return ExitCode.OK
