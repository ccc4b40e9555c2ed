"""``kdeclare validate``."""

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options import FindingsFormat, Paths, ProjectOptions
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare validate manifests",
    "jsonnet -y topics.jsonnet | kdeclare validate -    manifests that another program writes",
    codes=(0, 1, 3, 64),
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "validate", epilog=_EPILOG)(validate)


def validate(
    paths: Paths = None,
    *,
    output: FindingsFormat = "text",
    setting: ProjectOptions,
    console: Console,
) -> ExitCode:
    """Check manifests without connecting to a cluster.

    Checks the syntax, fields, references, duplicates, config keys and contradictions, and reports all errors
    at once with their positions.
    """
    import os

    from kdeclare.app.authoring.validate import validate as check
    from kdeclare.cli.standard_input import read_manifest_input
    from kdeclare.report.outcome import validation_outcome

    options = setting.options()
    console.concerns(options.project, _get_category)
    given = read_manifest_input(paths, setting.line)
    view = check(options.project, options.env, given.paths, os.environ, given.stream, options.variables)
    outcome = validation_outcome(view)
    if console.output == "json":
        console.write_document(view)
    elif console.output == "sarif":
        from kdeclare.report.sarif import build_validation_sarif

        console.write_json(build_validation_sarif(view, console.checkout()))
    else:
        from kdeclare.report.elements.diagnostics_text import render_diagnostics

        diagnostics_output = render_diagnostics(view.diagnostics, console.style)
        paint = console.style.red if outcome.exit_code else console.style.green
        headline_label, colon, headline_rest = outcome.headline.partition(":")
        console.out(f"{diagnostics_output}\n" if diagnostics_output else "")
        console.out(f"{paint(headline_label + colon)}{headline_rest}\n")
    return outcome.exit_code


def _get_category() -> str:
    from kdeclare.report.sarif import VALIDATION_CATEGORY

    return VALIDATION_CATEGORY
