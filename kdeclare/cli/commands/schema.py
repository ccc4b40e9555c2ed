"""``kdeclare schema``."""

from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.core.exit_codes import ExitCode

_EPILOG = epilog(
    "kdeclare schema > kdeclare.schema.json",
    "kdeclare schema --overlay > overlay.schema.json",
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
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Of overlays, where only kind and name have to be there.")
    ] = False,
    console: Console,
) -> ExitCode:
    """Print the JSON Schema of manifests or overlays, for editors."""
    from kdeclare.app.authoring.schema import known_kinds, manifest_schema, overlaid_kinds, overlay_schema

    known = overlaid_kinds() if overlay else known_kinds()
    if kind is not None and kind not in known:
        what = "is no kind that can be overlaid" if overlay else "is no kind"
        raise typer.BadParameter(f"'{kind}' {what}. The kinds are {', '.join(known)}.", param_hint="--kind")
    console.out_json(overlay_schema(kind) if overlay else manifest_schema(kind))
    return ExitCode.OK
