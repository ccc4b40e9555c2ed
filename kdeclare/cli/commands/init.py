"""``kdeclare init``."""

from pathlib import Path
from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.single_options import validate_addresses
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare init                                       in this folder, for a local sandbox cluster",
    "kdeclare init kafka --bootstrap-server broker:9092  in the folder kafka, for an existing cluster",
    "kdeclare init --from-cluster                        to import the manifests from a cluster",
    codes=(0, 1, 64),
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "init", epilog=_EPILOG)(init)


def init(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder of the project, created if it does not exist (default: the current folder).",
            show_default=False,
        ),
    ] = Path(),
    *,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the project (default: the name of the folder)."),
    ] = None,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT[,…]",
            callback=validate_addresses,
            help="Bootstrap servers of the cluster (default: those of a sandbox, 127.0.0.1:19092).",
        ),
    ] = None,
    from_cluster: Annotated[
        bool,
        typer.Option(
            "--from-cluster",
            help="Do not write an example manifest; manifests will be imported from a cluster.",
        ),
    ] = False,
    console: Console,
) -> ExitCode:
    """Create a project: kdeclare.yaml, manifests/ and .gitignore.

    Asks no questions, overwrites nothing and does not need a cluster. If manifests already exist, for
    example after an import, no example manifest is written.
    """
    import shlex

    from kdeclare.app.authoring.scaffolds import create_project

    scaffold = create_project(folder, name, bootstrap_server, example=not from_cluster)
    console.out("".join(f"{file}\n" for file in scaffold.written))
    for file in scaffold.kept:
        console.note(f"{file} already exists and was not changed.")
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
