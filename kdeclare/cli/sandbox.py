"""``kdeclare sandbox``."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.asking import is_yes
from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import Format, Yes
from kdeclare.model.exits import ExitCode

if TYPE_CHECKING:
    from kdeclare.cluster.sandbox import SandboxStatus

Folder = Annotated[Path, typer.Option("--folder", metavar="DIR", help="Where the sandbox keeps its files.")]
_FOLDER = Path(".sandbox")
_START_EPILOG = epilog(
    "kdeclare sandbox start                       three brokers on three racks",
    "kdeclare sandbox start --brokers 1 --port 29092",
    codes=(0, 1, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Put the commands into the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "start", epilog=_START_EPILOG)(start)
    command(group, "stop")(stop)
    command(group, "status")(status)
    command(group, "reset")(reset)
    app.add_typer(group, name="sandbox", help="A real Kafka cluster on this machine, to try things on.")


def start(
    *,
    brokers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many (default: 3).", show_default=False)
    ] = None,
    racks: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="On how many racks (default: 3).")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="P", help="Of the first broker; the others follow (default: 19092)."),
    ] = None,
    folder: Folder = _FOLDER,
    console: Console,
) -> ExitCode:
    """Start real Kafka brokers on 127.0.0.1 and print their address when they are ready.

    Needs Java 17 or later. The first time, Kafka is downloaded (44 MB). A sandbox that runs is left
    as it is.
    """
    from kdeclare.app.sandbox import start_sandbox
    from kdeclare.report.values import duration, plural

    began = time.monotonic()
    now = start_sandbox(folder, brokers, racks, port, lambda text: console.note(f"{text} …"))
    took = duration(time.monotonic() - began)
    console.note(f"{plural(len(now.brokers), 'broker')} ready after {took}. The address, for clients:")
    console.out(f"{now.bootstrap}\n")
    return ExitCode.OK


def stop(*, folder: Folder = _FOLDER, console: Console) -> ExitCode:
    """Stop the sandbox; its data stays for the next start."""
    from kdeclare.app.sandbox import stop_sandbox

    there = stop_sandbox(folder).exists
    console.note("Stopped." if there else f"There is no sandbox in {folder}.")
    return ExitCode.OK


def status(*, output: Format = "text", folder: Folder = _FOLDER, console: Console) -> ExitCode:
    """Show what the sandbox does, broker by broker."""
    from kdeclare.app.sandbox import sandbox_status

    now = sandbox_status(folder)
    if console.is_json:
        console.out_json(_document(now))
    else:
        console.out(_text(now))
    return ExitCode.OK


def reset(*, yes: Yes = False, folder: Folder = _FOLDER, console: Console) -> ExitCode:
    """Stop the sandbox and delete its data."""
    from kdeclare.app.sandbox import reset_sandbox, sandbox_status

    if not sandbox_status(folder).exists:
        console.note(f"There is no sandbox in {folder}.")
        return ExitCode.OK
    if not yes and not is_yes(console, f"Delete the sandbox in {folder} and all of its data?"):
        console.say("Nothing was deleted.")
        return ExitCode.ERROR
    reset_sandbox(folder)
    console.note("Deleted.")
    return ExitCode.OK


def _text(now: "SandboxStatus") -> str:
    if not now.exists:
        return f"There is no sandbox in {now.folder}.\n"
    word = "ready" if now.ready else "not ready" if now.running else "stopped"
    lines = [f"Sandbox in {now.folder}: {word}."]
    for broker in now.brokers:
        state = "ready" if broker.ready else "not ready" if broker.alive else "stopped"
        process = f"process {broker.pid}" if broker.pid else ""
        cells = f"  broker {broker.id}  127.0.0.1:{broker.port}  {broker.rack}  {state:<9}  {process}"
        lines.append(f"{cells.rstrip()}  {broker.log}")
    lines.append(f"Address: {now.bootstrap}")
    return "".join(f"{line}\n" for line in lines)


def _document(now: "SandboxStatus") -> dict[str, object]:
    return {
        "format_version": "1.0",
        "folder": str(now.folder),
        "exists": now.exists,
        "running": now.running,
        "ready": now.ready,
        "bootstrap": now.bootstrap,
        "cluster_id": now.cluster_id,
        "brokers": [
            {
                "id": broker.id,
                "pid": broker.pid,
                "port": broker.port,
                "rack": broker.rack,
                "alive": broker.alive,
                "ready": broker.ready,
                "log": str(broker.log),
            }
            for broker in now.brokers
        ],
    }
