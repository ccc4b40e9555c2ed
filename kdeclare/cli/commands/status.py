"""``kdeclare status``."""

import json
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions
from kdeclare.cli.options.single_options import Format
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.core.diagnostics import Diagnostic
    from kdeclare.report.run.views import StatusView


_EPILOG = build_epilog("kdeclare status --watch      until all work is finished", codes=(0, 1, 64, 130))
_POLL_S = 2.0
_CLEAR = "\x1b[H\x1b[2J"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "status", epilog=_EPILOG)(status)


def status(
    *,
    watch: Annotated[
        bool, typer.Option("--watch", help="Refresh the output until all work is finished.")
    ] = False,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Show unfinished runs, ongoing work and the state lock.

    Ongoing work is work that a system has not finished yet, such as a reassignment.

    If a run has crashed, kdeclare first determines the outcome of the operations that were in progress. With
    --watch, kdeclare cleans up when the work is finished: it removes throttles and elects preferred leaders.
    """
    from kdeclare.app.status import watch_status

    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    last_text = ""
    last_notices: tuple[Diagnostic, ...] = ()
    for view, notices in watch_status(workspace, clean_up=watch):
        console.notices(notice for notice in notices if notice not in last_notices)
        last_notices = notices
        text = _render(console, view, one_line=watch)
        if text != last_text:
            clear = _CLEAR if watch and console.style.on and sys.stdout.isatty() else ""
            console.out(clear + text, pages=not watch)
        last_text = text
        if not watch or not (view.unfinished or view.ongoing or view.lock):
            break
        time.sleep(_POLL_S)
    return ExitCode.OK


def _render(console: Console, view: "StatusView", *, one_line: bool) -> str:
    """Render the status. one_line: write the JSON document on one line, for a stream of documents."""
    if console.is_json:
        from kdeclare.report.run.documents import dump_status

        document = dump_status(view)
        return json.dumps(document, indent=None if one_line else 2, ensure_ascii=False) + "\n"
    from kdeclare.report.run.status_text import render_status_text

    return render_status_text(view, console.style)
