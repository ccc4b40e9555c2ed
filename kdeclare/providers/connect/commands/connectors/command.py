"""The command ``kdeclare connector``: list and describe connectors, and change their states ad hoc."""

from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.adhoc import VerifyTimeout, WriteManifest, run_and_show
from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions, OverrideOptions
from kdeclare.cli.options.single_options import Format, Yes
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.providers.connect.connector.spec import RestartName, StateName

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
_CODES = (0, 1, 3, 5, 6, 64, 130)
_RESTART_EPILOG = build_epilog(
    "kdeclare connector restart orders-sink",
    "kdeclare connector restart orders-sink --only-failed --yes",
    codes=_CODES,
)
_PAUSE_EPILOG = build_epilog(
    "kdeclare connector pause orders-sink",
    "kdeclare rollback                        resume it",
    codes=_CODES,
)
_RESUME_EPILOG = build_epilog("kdeclare connector resume orders-sink", codes=_CODES)
_STOP_EPILOG = build_epilog(
    "kdeclare connector stop orders-sink --connect eu",
    "kdeclare rollback                        restore the earlier state",
    codes=_CODES,
)
Connectors = Annotated[list[str], typer.Argument(metavar="NAME", help="Names of connectors.")]
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
    command(group, "describe", epilog=_DESCRIBE_EPILOG)(describe_one)
    command(group, "restart", epilog=_RESTART_EPILOG)(restart_connectors)
    command(group, "pause", epilog=_PAUSE_EPILOG)(pause_connectors)
    command(group, "resume", epilog=_RESUME_EPILOG)(resume_connectors)
    command(group, "stop", epilog=_STOP_EPILOG)(stop_connectors)
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


def describe_one(
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


def restart_connectors(
    names: Connectors,
    *,
    connect: ConnectName = None,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Restart only the connector or tasks that have failed.")
    ] = False,
    yes: Yes = False,
    verify_timeout: VerifyTimeout = 30.0,
    output: Format = "text",
    careful: OverrideOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Restart connectors and their tasks.

    Shows the plan and asks for confirmation. Then waits until the connectors and their tasks are RUNNING. A
    restart cannot be rolled back.
    """
    flags = _ChangeFlags("Restart these connectors?", yes, verify_timeout)
    restart: RestartName = "failed" if only_failed else "all"
    return _change(console, names, connect, flags, careful, reach, restart=restart)


def pause_connectors(
    names: Connectors,
    *,
    connect: ConnectName = None,
    write_manifest: WriteManifest = False,
    yes: Yes = False,
    verify_timeout: VerifyTimeout = 30.0,
    output: Format = "text",
    careful: OverrideOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Pause connectors. Their tasks stay assigned to workers.

    Shows the plan and asks for confirmation. Then waits until the connectors and their tasks are PAUSED.
    """
    flags = _ChangeFlags("Pause these connectors?", yes, verify_timeout, write_manifest)
    return _change(console, names, connect, flags, careful, reach, state="PAUSED")


def resume_connectors(
    names: Connectors,
    *,
    connect: ConnectName = None,
    write_manifest: WriteManifest = False,
    yes: Yes = False,
    verify_timeout: VerifyTimeout = 30.0,
    output: Format = "text",
    careful: OverrideOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Resume connectors that are paused or stopped.

    Shows the plan and asks for confirmation. Then waits until the connectors and their tasks are RUNNING.
    """
    flags = _ChangeFlags("Resume these connectors?", yes, verify_timeout, write_manifest)
    return _change(console, names, connect, flags, careful, reach, state="RUNNING")


def stop_connectors(
    names: Connectors,
    *,
    connect: ConnectName = None,
    write_manifest: WriteManifest = False,
    yes: Yes = False,
    verify_timeout: VerifyTimeout = 30.0,
    output: Format = "text",
    careful: OverrideOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Stop connectors and remove their tasks. Their configs and offsets are kept.

    Shows the plan and asks for confirmation. Then waits until the connectors are STOPPED.
    """
    flags = _ChangeFlags("Stop these connectors?", yes, verify_timeout, write_manifest)
    return _change(console, names, connect, flags, careful, reach, state="STOPPED")


@dataclass(frozen=True, slots=True)
class _ChangeFlags:
    """The options for confirming, verifying and recording a change.

    write: whether to write the change to the manifest as well.
    """

    question: str
    yes: bool
    verify_timeout: float
    write: bool = False


def _change(
    console: Console,
    names: list[str],
    endpoint: str | None,
    flags: _ChangeFlags,
    careful: OverrideOptions,
    reach: ConnectionOptions,
    *,
    state: "StateName | None" = None,
    restart: "RestartName | None" = None,
) -> ExitCode:
    from kdeclare.app.adhoc.run import AdhocOptions
    from kdeclare.providers.connect.commands.connectors.connector_changes import (
        ConnectorChange,
        change_connectors,
    )

    change = ConnectorChange(state, restart)
    workspace = reach.workspace()
    options = AdhocOptions(careful.scope(), flags.verify_timeout, write=flags.write, tell=console.say)
    return run_and_show(
        console,
        flags.question,
        lambda how: change_connectors(workspace, names, endpoint, change, options, how),
        careful.overrides(),
        yes=flags.yes,
    )
