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
    from kdeclare.app.sandbox import Sandbox
    from kdeclare.cluster.sandbox import SandboxStatus

Folder = Annotated[Path, typer.Option("--folder", metavar="DIR", help="Where the sandbox keeps its files.")]
_FOLDER = Path(".sandbox")
_START_EPILOG = epilog(
    "kdeclare sandbox start                       three brokers on three racks",
    "kdeclare sandbox start --brokers 1 --port 29092",
    "kdeclare sandbox start --clusters 3 --brokers 1    three clusters, in .sandbox/cluster-1 and so on",
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
    clusters: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many, apart from each other (default: 1)."),
    ] = None,
    brokers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many in each (default: 3).", show_default=False),
    ] = None,
    racks: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="On how many racks (default: 3).")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="P",
            help="Of the first broker; the others follow, the next cluster 200 above (default: 19092).",
        ),
    ] = None,
    folder: Folder = _FOLDER,
    console: Console,
) -> ExitCode:
    """Start real Kafka brokers on 127.0.0.1 and print their address when they are ready.

    Needs Java 17 or later. The first time, Kafka is downloaded (44 MB). A sandbox that runs is left
    as it is. Several clusters are a sandbox each, in cluster-1, cluster-2, … of the folder; they print a
    line each, in this order. All commands work on the whole, or on one: --folder .sandbox/cluster-2.
    """
    from kdeclare.app.sandbox import start_sandbox
    from kdeclare.report.values import duration, plural

    began = time.monotonic()
    now = start_sandbox(folder, clusters, brokers, racks, port, lambda text: console.note(f"{text} …"))
    took = duration(time.monotonic() - began)
    each = _clusters(now)
    what = plural(len(now.brokers), "broker")
    if len(each) == 1:
        console.note(f"{what} ready after {took}. The address, for clients:")
    else:
        console.note(f"{what} of {len(each)} clusters ready after {took}. A cluster's address a line:")
    console.out("".join(f"{one.bootstrap}\n" for one in each))
    return ExitCode.OK


def stop(*, folder: Folder = _FOLDER, console: Console) -> ExitCode:
    """Stop the sandbox; its data stays for the next start."""
    from kdeclare.app.sandbox import stop_sandbox

    there = any(one.exists for one in _clusters(stop_sandbox(folder)))
    console.note("Stopped." if there else f"There is no sandbox in {folder}.")
    return ExitCode.OK


def status(*, output: Format = "text", folder: Folder = _FOLDER, console: Console) -> ExitCode:
    """Show what the sandbox does, broker by broker."""
    from kdeclare.app.sandbox import sandbox_status

    now = sandbox_status(folder)
    if console.is_json:
        console.out_json(_document(now))
    else:
        console.out("".join(map(_text, _clusters(now))))
    return ExitCode.OK


def reset(*, yes: Yes = False, folder: Folder = _FOLDER, console: Console) -> ExitCode:
    """Stop the sandbox and delete its data."""
    from kdeclare.app.sandbox import reset_sandbox, sandbox_status

    now = sandbox_status(folder)
    if not now.exists:
        console.note(f"There is no sandbox in {folder}.")
        return ExitCode.OK
    if not yes and not is_yes(console, f"Delete the sandbox in {folder} and all of its data?"):
        console.say("Nothing was deleted.")
        return ExitCode.ERROR
    reset_sandbox(folder)
    console.note("Deleted.")
    return ExitCode.OK


def _clusters(now: "Sandbox") -> tuple["SandboxStatus", ...]:
    from kdeclare.cluster.sandbox import SandboxStatus

    return (now,) if isinstance(now, SandboxStatus) else now.clusters


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


def _document(now: "Sandbox") -> dict[str, object]:
    from kdeclare.cluster.sandbox import SandboxStatus

    if isinstance(now, SandboxStatus):
        return {"format_version": "1.0", **_cluster(now)}
    # What only a cluster has is as of none, so that what reads a single one finds all keys.
    whole = {"exists": now.exists, "running": now.running, "ready": now.ready}
    none = {"bootstrap": "", "cluster_id": "", "brokers": []}
    members = [{"name": one.folder.name, **_cluster(one)} for one in now.clusters]
    return {"format_version": "1.0", "folder": str(now.folder), **whole, **none, "clusters": members}


def _cluster(now: "SandboxStatus") -> dict[str, object]:
    return {
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
