"""``kdeclare config describe``."""

from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.entities import Entities
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import Format, Reach
from kdeclare.core.exits import ExitCode

_EPILOG = epilog(
    "kdeclare config describe --topic orders",
    "kdeclare config describe --broker 1 --all      and what holds there otherwise",
    "kdeclare config describe --entity-type brokers --entity-default",
    codes=(0, 1, 64, 130),
)


def register(group: typer.Typer) -> None:
    """Put the command into the group ``config``."""
    command(group, "describe", epilog=_EPILOG)(describe)


def describe(
    *,
    entities: Entities,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also what is not set there, of all keys that kdeclare knows."),
    ] = False,
    output: Format = "text",
    reach: Reach,
    console: Console,
) -> ExitCode:
    """Show configs of topics or brokers, and where each value comes from.

    Without a name, of all of the type.
    """
    from kdeclare.app.looking_configs import describe_configs

    which = entities.which()
    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    view = describe_configs(workspace, which, everything=everything)
    if console.is_json:
        from kdeclare.report.configs_json import configs_document

        console.out_json(configs_document(view))
        return ExitCode.OK
    from kdeclare.report.configs_text import configs_text

    console.notices(view.diagnostics)
    console.out(configs_text(view, console.width, console.style))
    return ExitCode.OK
