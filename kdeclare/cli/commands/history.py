"""``kdeclare history``."""

import sys
from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import StateOptions
from kdeclare.cli.options.single_options import RunFormat
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog(
    "kdeclare history                                    list the runs, latest first",
    "kdeclare history 20260101T120000Z-0a1b2c3d          show one run in full",
    "kdeclare history 20260101T120000Z-0a1b2c3d --format html > run.html     one page with diagrams",
    "kdeclare history diff 20260101T120000Z-0a1b2c3d it.plan",
    codes=(0, 1, 64),
)
_DIFF = "diff"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "history", epilog=_EPILOG)(history)


def history(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN_ID | diff A B",
            help="A run to show, or two runs or plan files to compare (how B differs from A).",
            show_default=False,
        ),
    ] = None,
    *,
    output: RunFormat = "text",
    steps: Annotated[bool, typer.Option("--steps", help="Show every operation of the run.")] = False,
    limit: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Show at most the last N runs; 0 shows all."),
    ] = 100,
    where: StateOptions,
    console: Console,
) -> ExitCode:
    """List past runs, show one run, or compare two runs.

    A saved plan can also be compared with a run or with a different saved plan.
    """
    if output == "html" and len(words or []) != 1:
        raise typer.BadParameter("html requires exactly one RUN_ID.", param_hint="--format")
    match words or []:
        case []:
            _show_list(console, where, min(limit, sys.maxsize) or None)
        case ["diff", a, b]:
            _show_difference(console, where, a, b)
        case [run_id] if run_id != _DIFF:
            _show_one_run(console, where, run_id, steps=steps)
        case _:
            raise typer.BadParameter("takes no arguments, one RUN_ID, or diff A B.", param_hint="RUN_ID")
    return ExitCode.OK


def _show_list(console: Console, state_options: StateOptions, limit: int | None) -> None:
    from kdeclare.app.history import list_runs
    from kdeclare.report.run.history_text import render_history_text
    from kdeclare.report.run.views import History

    workspace = state_options.workspace()
    runs = list_runs(workspace, limit)
    older_count = len(workspace.store.runs()) - len(runs)
    if console.is_json:
        console.write_document(History(runs, older_count))
    else:
        console.out(render_history_text(runs, console.style, console.width, older_count=older_count))


def _show_one_run(console: Console, state_options: StateOptions, run_id: str, *, steps: bool) -> None:
    from kdeclare.app.history import show_run
    from kdeclare.report.run.history_text import render_run_detail_text

    detail = show_run(state_options.workspace(), run_id)
    if console.is_json:
        console.write_document(detail)
    elif console.output == "html":
        from kdeclare.report.plan.plan_page import render_run_page

        console.write_page(render_run_page(detail))
    else:
        console.out(render_run_detail_text(detail, console.style, steps))


def _show_difference(console: Console, state_options: StateOptions, a: str, b: str) -> None:
    from kdeclare.app.history import load_plan_document
    from kdeclare.report.run.history_text import compare_plans, render_history_diff_text

    workspace = state_options.workspace()
    difference = compare_plans(load_plan_document(workspace, a), load_plan_document(workspace, b), a, b)
    if console.is_json:
        console.write_document(difference)
    else:
        console.out(render_history_diff_text(difference, console.style))
