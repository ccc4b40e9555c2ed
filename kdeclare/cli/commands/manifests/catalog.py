"""``kdeclare catalog``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ProjectOptions
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.report.catalog.catalog import Catalog

_EPILOG = build_epilog(
    "kdeclare catalog --env production",
    "kdeclare catalog --format html --out catalog.html",
    "kdeclare catalog --fleet fleet.yaml --format markdown",
    codes=(0, 1, 64),
)

_CatalogFormat = Literal["text", "json", "markdown", "html"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "catalog", epilog=_EPILOG)(list_catalog)


def list_catalog(
    *,
    fleet: Annotated[
        Path | None,
        typer.Option("--fleet", metavar="FILE", help="List the resources of this fleet, not of a project."),
    ] = None,
    output: Annotated[
        _CatalogFormat,
        typer.Option(
            "--format",
            metavar="text|json|markdown|html",
            help="Format of the catalog: text for people, json for scripts, markdown for a wiki, html for a "
            "browser.",
        ),
    ] = "text",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the catalog to this file, replacing it if it exists (default: stdout).",
        ),
    ] = None,
    setting: ProjectOptions,
    console: Console,
) -> ExitCode:
    """List all declared resources with their owners and descriptions.

    Reads only manifests, and does not connect to any cluster. The links in the HTML page are relative to the
    folder of the output file, or to the working folder if the page is written to stdout.
    """
    import os

    from kdeclare.app.authoring.catalog import build_fleet_catalog, build_project_catalog
    from kdeclare.report.elements.values import format_count

    if fleet is not None and (
        setting.project is not None or setting.env is not None or setting.has_variables
    ):
        raise typer.BadParameter(
            "cannot be combined with --project, --env, --var or --var-file.", param_hint="--fleet"
        )
    if fleet is not None:
        view = build_fleet_catalog(fleet, os.environ)
    else:
        options = setting.options()
        view = build_project_catalog(options.project, options.env, os.environ, options.variables)
    if out is None:
        console.out(_render(view, console, Path()))
        return ExitCode.OK
    _write(out, _render(view, console, out.parent))
    console.note(f"Wrote {format_count(len(view.entries), 'resource')} to {out}.")
    return ExitCode.OK


def _render(view: "Catalog", console: Console, folder: Path) -> str:
    from kdeclare.report.catalog.catalog import render_catalog_markdown, render_catalog_text

    match console.output:
        case "json":
            import json

            from kdeclare.core.documents import dump_document

            return json.dumps(dump_document(view), indent=2, ensure_ascii=False) + "\n"
        case "markdown":
            return render_catalog_markdown(view)
        case "html":
            from kdeclare.report.catalog.catalog_page import render_catalog_page

            return render_catalog_page(view, folder)
    return render_catalog_text(view, console.style)


def _write(file: Path, text: str) -> None:
    from kdeclare.core.diagnostics import KdeclareError, error

    try:
        file.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise KdeclareError(
            error(
                "not-written",
                "File cannot be written",
                f"{file}: {problem.strerror}.",
                hint="Check the folder and its permissions, or choose another file with --out.",
            )
        ) from None
