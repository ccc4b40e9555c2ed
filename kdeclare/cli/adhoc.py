"""What ad hoc commands of providers share: options, the run, and what is said of it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.asking import Asking
from kdeclare.cli.console import Console
from kdeclare.cli.options import measured
from kdeclare.cli.running import Manner, carry_out
from kdeclare.core.exits import ExitCode

if TYPE_CHECKING:
    from kdeclare.app.apply import How
    from kdeclare.report.adhoc_views import AdhocResult


WriteManifest = Annotated[
    bool,
    typer.Option("--write-manifest", help="Put the change into the manifest too, comments and layout kept."),
]
VerifyTimeout = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        callback=measured,
        help="How long to read metadata until it shows what was done.",
    ),
]


def run_and_show(
    console: Console,
    question: str,
    act: "Callable[[How], AdhocResult | None]",
    overrides: Mapping[str, str],
    *,
    yes: bool,
    wait: bool = True,
) -> ExitCode:
    """Ask, run, and show what came of each resource. Raises KdeclareError."""
    manner = Manner(wait=wait, skip_stale=True, overrides=overrides)
    return carry_out(
        console,
        Asking(console, question, yes),
        manner,
        act,
        lambda view, seconds: _show_result(console, view, seconds),
    )


def _show_result(console: Console, view: "AdhocResult", seconds: float) -> ExitCode:
    from kdeclare.report.adhoc_views import adhoc_exit_code

    if console.is_json:
        from kdeclare.report.adhoc_documents import adhoc_document

        console.out_json(adhoc_document(view, round(seconds, 3)))
        return adhoc_exit_code(view)
    if view.run is None:
        console.notices(problem for problems in view.failed.values() for problem in problems)
    from kdeclare.report.adhoc_text import adhoc_text

    console.out(adhoc_text(view, console.style))
    return adhoc_exit_code(view)
