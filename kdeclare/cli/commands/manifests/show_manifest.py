"""``kdeclare show-manifest``."""

from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.completion import complete_resources
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ProjectOptions
from kdeclare.cli.options.option_values import parse_resource
from kdeclare.cli.options.single_options import Format
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare show-manifest Topic/orders",
    "kdeclare show-manifest Topic/orders --env production --format json",
    codes=(0, 1, 64),
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "show-manifest", epilog=_EPILOG)(show_manifest)


def show_manifest(
    resource: Annotated[
        str,
        typer.Argument(
            metavar="KIND/NAME",
            help="A resource that a manifest declares.",
            autocompletion=complete_resources,
        ),
    ],
    *,
    output: Format = "text",
    setting: ProjectOptions,
    console: Console,
) -> ExitCode:
    """Show a resource field by field (all resources: catalog).

    The resource is shown as planned: overlays, defaults and variables are applied. The output contains the
    file, line and column of each field, and of each value that the field overrides. Values from outside the
    project, such as environment variables, are shown as references, except numbers in numeric fields. Secrets
    are hidden, unless the whole value is a single reference.
    """
    import os

    from kdeclare.app.authoring.show_manifest import show_manifest as effective

    resource_id = parse_resource("KIND/NAME", resource)
    options = setting.options()
    manifest = effective(options.project, options.env, resource_id, os.environ, options.variables)
    if console.is_json:
        console.write_document(manifest)
    else:
        from kdeclare.report.manifest.effective_manifest import render_manifest_text

        console.out(render_manifest_text(manifest, console.width, console.style))
    return ExitCode.OK
