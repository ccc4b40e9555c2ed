"""``kdeclare schema``."""

from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare schema > kdeclare.schema.json",
    "kdeclare schema --overlay > overlay.schema.json",
    "",
    "For editors with the YAML language server, begin each manifest with this line:",
    "# yaml-language-server: $schema=kdeclare.schema.json",
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "schema", epilog=_EPILOG)(schema)


def schema(
    *,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Only this kind, for instance Topic (default: all kinds)."),
    ] = None,
    overlay: Annotated[
        bool,
        typer.Option(
            "--overlay", help="Print the schema of overlays, in which only kind and name are required."
        ),
    ] = False,
    console: Console,
) -> ExitCode:
    """Print the JSON Schema of manifests or overlays.

    Editors use the schema for completion and validation.
    """
    from kdeclare.app.authoring.schema import (
        build_manifest_schema,
        build_overlay_file_schema,
        list_overlay_kinds,
        list_schema_kinds,
    )
    from kdeclare.core.suggestions import format_suggestion

    kinds = list_overlay_kinds() if overlay else list_schema_kinds()
    if kind is not None and kind not in kinds:
        problem = "is not a kind with overlays" if overlay else "is not a kind"
        suggestion = format_suggestion(kind, kinds) or f"Use one of {', '.join(kinds)}."
        raise typer.BadParameter(f"'{kind}' {problem}. {suggestion}", param_hint="--kind")
    console.write_json(build_overlay_file_schema(kind) if overlay else build_manifest_schema(kind))
    return ExitCode.OK
