"""``kdeclare validate``."""

from pathlib import Path
from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import Format, Paths
from kdeclare.model.exits import ExitCode

_EPILOG = epilog("kdeclare validate manifests", codes=(0, 1, 64))


def register(app: typer.Typer) -> None:
    """Put the command into the application."""
    command(app, "validate", epilog=_EPILOG)(validate)


def validate(
    paths: Paths = None,
    *,
    output: Format = "text",
    project: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Project file (default: kdeclare.yaml, if it is here)."),
    ] = None,
    env: Annotated[str | None, typer.Option(metavar="NAME", help="Environment of the project.")] = None,
    console: Console,
) -> ExitCode:
    """Check manifests without a cluster.

    Syntax, fields, references, duplicates and config keys, all mistakes at once, each with its place.
    """
    import os

    from kdeclare.app.validate import validate as check
    from kdeclare.report.diagnostics_text import diagnostics_text, tally
    from kdeclare.report.values import plural

    view = check(project, env, paths or (), os.environ)
    bad = any(d.is_error for d in view.diagnostics)
    if console.is_json:
        from kdeclare.report.json_output import validation_document

        console.out_json(validation_document(view))
    else:
        said = diagnostics_text(view.diagnostics, console.style)
        if said:
            console.out(f"{said}\n")
        what = f"{plural(view.resources, 'resource')} in {plural(view.files, 'file')}"
        count = tally(view.diagnostics)
        style = console.style
        if bad:
            console.out(f"{style.red('Not valid:')} {count} in {plural(view.files, 'file')}.\n")
        else:
            console.out(f"{style.green('Valid:')} {what}{f', {count}' if count else ''}.\n")
    return ExitCode.ERROR if bad else ExitCode.OK
