"""``kdeclare history``."""

from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import RunFormat, Where
from kdeclare.core.exit_codes import ExitCode

_EPILOG = epilog(
    "kdeclare history                                    all runs, the latest first",
    "kdeclare history 20260101T120000Z-0a1b2c3d          one run in full",
    "kdeclare history 20260101T120000Z-0a1b2c3d --format html > run.html     one page, with pictures",
    "kdeclare history diff 20260101T120000Z-0a1b2c3d it.plan",
    codes=(0, 1, 64),
)
_DIFF = "diff"


def register(app: typer.Typer) -> None:
    """Put the command into the application."""
    command(app, "history", epilog=_EPILOG)(history)


def history(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN_ID | diff A B",
            help="A run; or two runs or plan files, to see how B differs from A.",
            show_default=False,
        ),
    ] = None,
    *,
    output: RunFormat = "text",
    steps: Annotated[bool, typer.Option("--steps", help="Of one run, show every operation.")] = False,
    limit: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Show at most the last N runs; 0 shows all."),
    ] = 100,
    where: Where,
    console: Console,
) -> ExitCode:
    """Show what was done.

    All runs, one run in full, or how two runs or saved plans differ.
    """
    if output == "html" and len(words or []) != 1:
        raise typer.BadParameter("html is for one RUN_ID.", param_hint="--format")
    match words or []:
        case []:
            _list(console, where, limit or None)
        case ["diff", a, b]:
            _compare(console, where, a, b)
        case [run_id] if run_id != _DIFF:
            _one(console, where, run_id, steps=steps)
        case _:
            raise typer.BadParameter("give nothing, one RUN_ID, or: diff A B.", param_hint="RUN_ID")
    return ExitCode.OK


def _list(console: Console, where: Where, limit: int | None) -> None:
    from kdeclare.app.history import list_runs
    from kdeclare.report.run.history_text import history_text
    from kdeclare.report.run.views import History

    workspace = where.workspace()
    runs = list_runs(workspace, limit)
    older = len(workspace.store.runs()) - len(runs)
    if console.is_json:
        console.out_document(History(runs, older))
    else:
        console.out(history_text(runs, console.style, console.width, older=older))


def _one(console: Console, where: Where, run_id: str, *, steps: bool) -> None:
    from kdeclare.app.history import show_run
    from kdeclare.report.run.history_text import run_detail_text

    detail = show_run(where.workspace(), run_id)
    if console.is_json:
        console.out_document(detail)
    elif console.output == "html":
        from kdeclare.report.plan.plan_page import run_html

        console.out_page(run_html(detail))
    else:
        console.out(run_detail_text(detail, console.style, steps))


def _compare(console: Console, where: Where, a: str, b: str) -> None:
    from kdeclare.app.history import plan_document_of
    from kdeclare.report.run.history_text import compare_plans, history_diff_text

    workspace = where.workspace()
    found = compare_plans(plan_document_of(workspace, a), plan_document_of(workspace, b), a, b)
    if console.is_json:
        console.out_document(found)
    else:
        console.out(history_diff_text(found, console.style))
