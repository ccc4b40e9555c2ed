"""``kdeclare doctor``."""

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options import ConnectionOptions, Format
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare doctor                                        this project and its cluster",
    "kdeclare doctor --bootstrap-server broker:9093 --command-config client.properties",
    codes=(0, 1, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "doctor", epilog=_EPILOG)(doctor)


def doctor(*, output: Format = "text", reach: ConnectionOptions, console: Console) -> ExitCode:
    """Check this machine, the project, its state and its systems.

    Shows the result of each check, and how to fix problems. For each system, doctor checks the connection to
    every address, the permissions and the supported features. Changes nothing. Exits with 1 if a required
    check fails.
    """
    from kdeclare.app.doctor import run_doctor

    view = run_doctor(reach.options(), console.progress)
    if console.is_json:
        from kdeclare.report.doctor import build_doctor_document

        console.write_document(build_doctor_document(view))
    else:
        from kdeclare.report.doctor import render_doctor_text

        console.out(render_doctor_text(view, console.style, console.width))
    return view.exit_code
