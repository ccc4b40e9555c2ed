"""``kdeclare sandbox``."""

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.confirmation import prompt_for_yes
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options import Format, Yes
from kdeclare.core.exit_codes import ExitCode

Folder = Annotated[Path, typer.Option("--folder", metavar="DIR", help="Where the sandbox keeps its files.")]
_FOLDER = Path(".sandbox")
_START_EPILOG = build_epilog(
    "kdeclare sandbox start                       three brokers on three racks",
    "kdeclare sandbox start --brokers 1 --port 29092",
    "kdeclare sandbox start --connect-workers 3   and three Connect workers with HTTPS",
    "kdeclare sandbox start --secure              with logins, encryption and rights",
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
            help="Port of the first broker; the others follow, controllers listen 100 above, the next "
            "cluster 200 above (default: 19092).",
        ),
    ] = None,
    connect_workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="How many Kafka Connect workers (default: 0).", show_default=False
        ),
    ] = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="With encryption, logins and ACLs; for one cluster.")
    ] = False,
    folder: Folder = _FOLDER,
    console: Console,
) -> ExitCode:
    """Start real Kafka brokers on 127.0.0.1 and print their address when they are ready.

    Needs Java 17 or later. The first time, Kafka is downloaded (46 MB). A sandbox that runs is left
    as it is. Several clusters are a sandbox each, in cluster-1, cluster-2, … of the folder; they print a
    line each, in this order. All commands work on the whole, or on one: --folder .sandbox/cluster-2.

    Connect workers serve HTTPS, from 50 above the first broker's port on. After the brokers' address
    their URLs are printed, a line each, and the file (PEM) of the authority that clients have to trust.
    A sandbox that is there can get more of them. Connect is another download (37 MB).

    With --secure, brokers want a login over TLS (SASL_SSL: SCRAM or PLAIN), and grant by ACLs. After the
    address, two files of client properties are printed: those of 'admin', who may do everything, and those of
    'reader', who may look. Other listeners: SSL 20 above, SASL_PLAINTEXT 60, PLAINTEXT 80.
    """
    from kdeclare.app.sandbox import SandboxRequest, start_sandbox
    from kdeclare.cli.commands.sandbox_text import format_addresses, list_clusters
    from kdeclare.report.elements.values import format_count, format_duration

    started_at = time.monotonic()
    request = SandboxRequest(clusters, brokers, racks, port, connect_workers, secure or None)
    started = start_sandbox(folder, request, lambda text: console.note(f"{text} …"))
    elapsed = format_duration(time.monotonic() - started_at)
    cluster_statuses = list_clusters(started)
    counts = format_count(len(started.brokers), "broker")
    if len(cluster_statuses) > 1:
        console.note(
            f"{counts} of {len(cluster_statuses)} clusters ready after {elapsed}. A cluster's address a line:"
        )
    elif cluster_statuses[0].workers:
        counts += f" and {format_count(len(cluster_statuses[0].workers), 'Connect worker')}"
        console.note(f"{counts} ready after {elapsed}. The address, the workers' URLs, and whom to trust:")
    elif cluster_statuses[0].client_files:
        console.note(
            f"{counts} ready after {elapsed}. The address, and client properties of an admin and a reader:"
        )
    else:
        console.note(f"{counts} ready after {elapsed}. The address, for clients:")
    console.out("".join(map(format_addresses, cluster_statuses)))
    if cluster_statuses[0].client_files:
        console.note(
            f"For instance: kdeclare doctor --command-config "
            f"{shlex.quote(str(cluster_statuses[0].client_files[0]))}"
        )
    return ExitCode.OK


def stop(*, folder: Folder = _FOLDER, console: Console) -> ExitCode:
    """Stop the sandbox; its data stays for the next start."""
    from kdeclare.app.sandbox import stop_sandbox
    from kdeclare.cli.commands.sandbox_text import list_clusters

    existed = any(one.exists for one in list_clusters(stop_sandbox(folder)))
    console.note("Stopped." if existed else f"There is no sandbox in {folder}.")
    return ExitCode.OK


def status(*, output: Format = "text", folder: Folder = _FOLDER, console: Console) -> ExitCode:
    """Show what the sandbox does, broker by broker and Connect worker by worker."""
    from kdeclare.app.sandbox import read_sandbox_status
    from kdeclare.cli.commands.sandbox_text import describe_sandbox, list_clusters, render_cluster

    current = read_sandbox_status(folder)
    if console.is_json:
        console.write_document(describe_sandbox(current))
    else:
        console.out("".join(map(render_cluster, list_clusters(current))))
    return ExitCode.OK


def reset(*, yes: Yes = False, folder: Folder = _FOLDER, console: Console) -> ExitCode:
    """Stop the sandbox and delete its data."""
    from kdeclare.app.sandbox import read_sandbox_status, reset_sandbox

    current = read_sandbox_status(folder)
    if not current.exists:
        console.note(f"There is no sandbox in {folder}.")
        return ExitCode.OK
    if not yes and not prompt_for_yes(console, f"Delete the sandbox in {folder} and all of its data?"):
        console.say("Nothing was deleted.")
        return ExitCode.ERROR
    reset_sandbox(folder)
    console.note("Deleted.")
    return ExitCode.OK
