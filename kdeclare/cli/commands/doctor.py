"""``kdeclare doctor``."""

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import Format, Reach
from kdeclare.core.exit_codes import ExitCode

_EPILOG = epilog(
    "kdeclare doctor                                        the project here, and its cluster",
    "kdeclare doctor --bootstrap-server broker:9093 --command-config client.properties",
    codes=(0, 1, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Put the command into the application."""
    command(app, "doctor", epilog=_EPILOG)(doctor)


def doctor(*, output: Format = "text", reach: Reach, console: Console) -> ExitCode:
    """Look at all that kdeclare needs, and say what works, what does not, and what to do.

    This machine, the project and its state; how each system is reached, address by address; what one may do
    there; and which features it has. Changes nothing. Fails (1) if something that is needed does.
    """
    from kdeclare.app.doctor import examined

    view = examined(reach.options(), console.progress)
    if console.is_json:
        from kdeclare.report.doctor import describe_examination

        console.out_document(describe_examination(view))
    else:
        from kdeclare.report.doctor import doctor_text

        console.out(doctor_text(view, console.style, console.width))
    return view.exit_code
