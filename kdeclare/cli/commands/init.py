"""``kdeclare init``."""

from pathlib import Path
from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare init                                       here, for a sandbox on this machine",
    "kdeclare init kafka --bootstrap-server broker:9092  in a folder, for a cluster of yours",
    "kdeclare init --from-cluster                        then take over what a cluster has",
    codes=(0, 1, 64),
)


def register(app: typer.Typer) -> None:
    """Put the command into the application."""
    command(app, "init", epilog=_EPILOG)(init)


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to; made if it is not there.", show_default=False)
    ] = Path(),
    *,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the project (default: the folder's).")
    ] = None,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT[,…]", help="The cluster (default: a sandbox's, 127.0.0.1:19092)."),
    ] = None,
    from_cluster: Annotated[
        bool, typer.Option("--from-cluster", help="No example: the manifests are to come from the cluster.")
    ] = False,
    console: Console,
) -> ExitCode:
    """Begin a project: its file, a folder for manifests, and what git ignores.

    Asks nothing, overwrites nothing, and needs no cluster. No example is written beside manifests that
    are there already, as after an import.
    """
    import shlex

    from kdeclare.app.authoring.scaffolds import create_project

    scaffold = create_project(folder, name, bootstrap_server, example=not from_cluster)
    console.out("".join(f"{file}\n" for file in scaffold.written))
    for file in scaffold.kept:
        console.note(f"{file} was there and is as it was.")
    cd_command = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    if scaffold.has_manifests:
        address_step = "" if bootstrap_server else "put the cluster's address into kdeclare.yaml, then "
        console.note(f"Next: {address_step}{cd_command}kdeclare plan")
    elif from_cluster:
        console.note(f"Next: {cd_command}kdeclare import --out manifests")
    else:
        start_command = "" if bootstrap_server else "kdeclare sandbox start && "
        console.note(f"Next: {cd_command}{start_command}kdeclare new topic orders && kdeclare plan")
    return ExitCode.OK
