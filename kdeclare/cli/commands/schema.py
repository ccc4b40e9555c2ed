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
    from kdeclare.app.authoring.schema import (
        build_manifest_schema,
        build_overlay_file_schema,
        list_overlay_kinds,
        list_schema_kinds,
    )

    kinds = list_overlay_kinds() if overlay else list_schema_kinds()
    if kind is not None and kind not in kinds:
        problem = "is no kind that can be overlaid" if overlay else "is no kind"
        raise typer.BadParameter(
            f"'{kind}' {problem}. The kinds are {', '.join(kinds)}.", param_hint="--kind"
        )
    console.write_json(build_overlay_file_schema(kind) if overlay else build_manifest_schema(kind))
    return ExitCode.OK
