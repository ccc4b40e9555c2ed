"""``kdeclare doctor``."""

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options import ConnectionOptions, Format
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare doctor                                        the project here, and its cluster",
    "kdeclare doctor --bootstrap-server broker:9093 --command-config client.properties",
    codes=(0, 1, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Put the command into the application."""
    command(app, "doctor", epilog=_EPILOG)(doctor)


def doctor(*, output: Format = "text", reach: ConnectionOptions, console: Console) -> ExitCode:
    """Look at all that kdeclare needs, and say what works, what does not, and what to do.

    This machine, the project and its state; how each system is reached, address by address; what one may do
    there; and which features it has. Changes nothing. Fails (1) if something that is needed does.
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
