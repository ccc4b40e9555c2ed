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
from kdeclare.cli.options.single_options import Format, Yes
from kdeclare.core.exit_codes import ExitCode

Folder = Annotated[Path, typer.Option("--folder", metavar="DIR", help="Folder for the files of the sandbox.")]
_FOLDER = Path(".sandbox")
_START_EPILOG = build_epilog(
    "kdeclare sandbox start                       three brokers in three racks",
    "kdeclare sandbox start --brokers 1 --port 29092",
    "kdeclare sandbox start --connect-workers 3   also three Connect workers with HTTPS",
    "kdeclare sandbox start --registry            also a schema registry",
    "kdeclare sandbox start --secure              with authentication, encryption and ACLs",
    "kdeclare sandbox start --clusters 3 --brokers 1    three clusters in .sandbox/cluster-1 to cluster-3",
    codes=(0, 1, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "start", epilog=_START_EPILOG)(start)
    command(group, "stop")(stop)
    command(group, "status")(status)
    command(group, "reset")(reset)
    app.add_typer(group, name="sandbox", help="Run a Kafka cluster on this machine for experiments.")


def start(
    *,
    clusters: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of independent clusters (default: 1)."),
    ] = None,
    brokers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Number of brokers in each cluster (default: 3).", show_default=False
        ),
    ] = None,
    racks: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of racks in each cluster (default: 3).")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="P",
            help="Port of the first broker (default: 19092). The other brokers use the ports that follow. "
            "Controller ports are 100 higher. The ports of each further cluster are 200 higher.",
        ),
    ] = None,
    connect_workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Number of Kafka Connect workers in each cluster (default: 0).",
            show_default=False,
        ),
    ] = None,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure",
            help="Require encryption, authentication and ACLs.",
        ),
    ] = False,
    registry: Annotated[
        bool,
        typer.Option("--registry", help="Also start a schema registry in each cluster."),
    ] = False,
    folder: Folder = _FOLDER,
    console: Console,
) -> ExitCode:
    """Start Kafka brokers on 127.0.0.1 and print their address.

    The address is printed when the brokers are ready. Needs Java 17 or later. The first start downloads Kafka
    (46 MB). A running sandbox is left unchanged.

    With several clusters, each cluster has its own subfolder: cluster-1, cluster-2, … The command prints the
    lines of each cluster in this order. All sandbox commands work on all clusters. To use only one cluster,
    pass for example --folder .sandbox/cluster-2.

    Connect workers serve HTTPS. Their ports start 50 above the port of the first broker. After the address of
    the brokers, the command prints the URL of each worker, one per line, and then the PEM file of the
    certificate authority that clients must trust. Workers can be added to an existing sandbox with one
    cluster. Connect is a separate download (37 MB).

    With --secure, brokers require authentication over TLS (SASL_SSL with SCRAM or PLAIN) and authorize
    requests by ACLs. After the address, the command prints two files of client properties: one for 'admin',
    who may do everything, and one for 'reader', who may only read. A broker also listens on its port plus 20
    (SSL), plus 60 (SASL_PLAINTEXT) and plus 80 (PLAINTEXT). Connect workers log in as 'connect'. This user
    may use only the topics and groups of the workers. Grant it access to the topics of your connectors.

    With --registry, Apicurio Registry serves the API of Confluent Schema Registry over HTTP, without
    authentication. Its port is 40 above the port of the first broker. The command prints its URL last. A
    registry can be added to an existing sandbox with one cluster. It is a separate download (109 MB).
    """
    from kdeclare.app.sandbox import SandboxRequest, start_sandbox
    from kdeclare.cli.commands.sandbox_text import describe_start, format_addresses, list_clusters
    from kdeclare.report.elements.values import format_count, format_duration

    started_at = time.monotonic()
    request = SandboxRequest(
        clusters, brokers, racks, port, connect_workers, secure or None, registry or None
    )
    started = start_sandbox(folder, request, lambda text: console.note(f"{text} …"))
    elapsed = format_duration(time.monotonic() - started_at)
    cluster_statuses = list_clusters(started)
    counts = format_count(len(started.brokers), "broker")
    if len(cluster_statuses) > 1:
        first = cluster_statuses[0]
        has_more = first.workers or first.client_files or first.registry
        addresses = "Addresses and files of each cluster" if has_more else "Addresses, one per cluster"
        console.note(f"{counts} in {len(cluster_statuses)} clusters ready after {elapsed}. {addresses}:")
    else:
        members, addresses = describe_start(cluster_statuses[0])
        console.note(f"{members} ready after {elapsed}. {addresses}:")
    console.out("".join(map(format_addresses, cluster_statuses)))
    for one in cluster_statuses:
        if one.registry is not None:
            console.note(
                "To use the schema registry, add this to the environment in kdeclare.yaml: "
                f"registries: {{main: {{urls: [{one.registry.url}]}}}}"
            )
    if cluster_statuses[0].client_files:
        console.note(
            f"To check the cluster: kdeclare doctor --command-config "
            f"{shlex.quote(str(cluster_statuses[0].client_files[0]))}"
        )
    return ExitCode.OK


def stop(*, folder: Folder = _FOLDER, console: Console) -> ExitCode:
    """Stop the sandbox and keep its data for the next start."""
    from kdeclare.app.sandbox import stop_sandbox
    from kdeclare.cli.commands.sandbox_text import list_clusters

    existed = any(one.exists for one in list_clusters(stop_sandbox(folder)))
    console.note("Stopped." if existed else f"There is no sandbox in {folder}.")
    return ExitCode.OK


def status(*, output: Format = "text", folder: Folder = _FOLDER, console: Console) -> ExitCode:
    """Show the status of each process of the sandbox."""
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
    if not yes and not prompt_for_yes(console, f"Delete the sandbox in {folder} and all its data?"):
        console.say("Nothing was deleted.")
        return ExitCode.ERROR
    reset_sandbox(folder)
    console.note("Deleted.")
    return ExitCode.OK
