"""What the commands that change something by hand share: options, the run, and what is said of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.asking import Asking
from kdeclare.cli.console import Console
from kdeclare.cli.options import measured
from kdeclare.cli.running import Manner, carry_out
from kdeclare.core.exits import ExitCode

if TYPE_CHECKING:
    from kdeclare.app.apply import How
    from kdeclare.app.by_hand.run import Manners
    from kdeclare.app.scope import Scope
    from kdeclare.report.by_hand_views import HandView


@dataclass(frozen=True)
class Afterwards:
    """What is done once the cluster has done its part."""

    write_manifest: Annotated[
        bool,
        typer.Option(
            "--write-manifest", help="Put the change into the manifest too, comments and layout kept."
        ),
    ] = False
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for moves of replicas to end.")] = (
        False
    )
    verify_timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            callback=measured,
            help="How long to read metadata until it shows what was done.",
        ),
    ] = 30.0

    def manners(self, scope: "Scope", console: Console) -> "Manners":
        """As the use-cases want it."""
        from kdeclare.app.by_hand.run import Manners

        return Manners(scope, self.verify_timeout, write=self.write_manifest, tell=console.say)


def run_by_hand(
    console: Console,
    question: str,
    act: "Callable[[How], HandView | None]",
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
        lambda view, seconds: _shown(console, view, seconds),
    )


def _shown(console: Console, view: "HandView", seconds: float) -> ExitCode:
    from kdeclare.report.by_hand_views import hand_exit_code

    if console.is_json:
        from kdeclare.report.by_hand_json import hand_document

        console.out_json(hand_document(view, round(seconds, 3)))
        return hand_exit_code(view)
    if view.run is None:
        console.notices(problem for problems in view.failed.values() for problem in problems)
    from kdeclare.report.by_hand_text import hand_text

    console.out(hand_text(view, console.style))
    return hand_exit_code(view)
