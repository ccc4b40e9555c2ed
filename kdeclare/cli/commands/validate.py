"""``kdeclare validate``."""

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import FindingsFormat, Paths, Setting
from kdeclare.core.exit_codes import ExitCode

_EPILOG = epilog("kdeclare validate manifests", codes=(0, 1, 3, 64))


def register(app: typer.Typer) -> None:
    """Put the command into the application."""
    command(app, "validate", epilog=_EPILOG)(validate)


def validate(
    paths: Paths = None,
    *,
    output: FindingsFormat = "text",
    setting: Setting,
    console: Console,
) -> ExitCode:
    """Check manifests without a cluster.

    Syntax, fields, references, duplicates, config keys, contradictions: all mistakes at once, each with its
    place.
    """
    import os

    from kdeclare.app.authoring.validate import validate as check
    from kdeclare.report.outcome import validation_outcome

    options = setting.options()
    console.concerns(options.project, _category)
    view = check(options.project, options.env, paths or (), os.environ)
    outcome = validation_outcome(view)
    if console.output == "json":
        console.out_document(view)
    elif console.output == "sarif":
        from kdeclare.report.sarif import validation_sarif

        console.out_json(validation_sarif(view, console.checkout()))
    else:
        from kdeclare.report.elements.diagnostics_text import diagnostics_text

        said = diagnostics_text(view.diagnostics, console.style)
        paint = console.style.red if outcome.exit_code else console.style.green
        word, colon, rest = outcome.headline.partition(":")
        console.out(f"{said}\n" if said else "")
        console.out(f"{paint(word + colon)}{rest}\n")
    return outcome.exit_code


def _category() -> str:
    from kdeclare.report.sarif import VALIDATION

    return VALIDATION
