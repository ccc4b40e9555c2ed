"""``kdeclare schema``."""

from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.model.exits import ExitCode

_EPILOG = epilog(
    "kdeclare schema > kdeclare.schema.json",
    "",
    "and as the first line of a manifest, for editors with the YAML language server:",
    "# yaml-language-server: $schema=kdeclare.schema.json",
)


def register(app: typer.Typer) -> None:
    """Put the command into the application."""
    command(app, "schema", epilog=_EPILOG)(schema)


def schema(
    *,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only of this kind, for instance Topic.")
    ] = None,
    console: Console,
) -> ExitCode:
    """Print the JSON Schema of manifests, for editors."""
    from kdeclare.app.schema import known_kinds, manifest_schema

    if kind is not None and kind not in known_kinds():
        raise typer.BadParameter(
            f"'{kind}' is no kind. The kinds are {', '.join(known_kinds())}.", param_hint="--kind"
        )
    console.out_json(manifest_schema(kind))
    return ExitCode.OK
