"""Showing a plan and asking for a yes."""

import select
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdeclare.cli.console import Console
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.core.plans.plan import Plan


# s; how long a Ctrl-C can go unseen
_STEP = 0.1


@dataclass
class Asking:
    """The ``Confirm`` of a run.

    plan: the plan that was shown; since: when the answer was given, for how long the run took.
    only_show: the plan is only saved, nobody is asked. aside: the plan goes to stderr, as stdout is for
    something else.
    """

    console: Console
    question: str
    yes: bool
    only_show: bool = False
    aside: bool = False
    plan: "Plan | None" = None
    since: float = 0.0

    def __call__(self, plan: "Plan", notices: tuple[Diagnostic, ...]) -> bool:
        """See `app.apply.Confirm`. Raises KdeclareError where nobody can be asked, and for a bad plan."""
        self.plan = plan
        must_ask = bool(plan.operations) and not (self.yes or self.only_show or plan.has_errors)
        self.console.notices(notices, asking=must_ask)
        if self.only_show:
            return False
        if self.console.is_text:
            self._show(plan, must_be_seen=must_ask or plan.has_errors)
        elif must_ask and sys.stdin.isatty():
            self.console.say(_text(plan, self.console, for_stderr=True))
        if plan.has_errors:
            raise self._refused(plan)
        agreed = not must_ask or is_yes(self.console, _with_losses(self.question, notices))
        if must_ask and self.console.is_text:
            self.console.say("")
        self.since = time.monotonic()
        return agreed

    def _show(self, plan: "Plan", *, must_be_seen: bool) -> None:
        """Where all is in order and only ownership is taken, the run's own words say it all."""
        if self.aside:
            say = self.console.say if must_be_seen else self.console.note
            say(_text(plan, self.console, for_stderr=True))
            return
        says_more = plan.changes or plan.diagnostics or plan.verdicts
        if says_more or not plan.ownership:
            self.console.out(_text(plan, self.console, for_stderr=False) + ("\n" if plan.has_changes else ""))

    def _refused(self, plan: "Plan") -> KdeclareError:
        from kdeclare.report.outcome import plan_outcome

        code = plan_outcome(plan).exit_code
        if not self.console.is_text:
            return KdeclareError(*plan.diagnostics, exit_code=code)
        if plan.is_stale:
            return KdeclareError(*(d for d in plan.diagnostics if d.is_error), exit_code=code)
        return KdeclareError(error("plan-has-errors", "The plan has errors", "Nothing was changed."))


def _with_losses(question: str, notices: tuple[Diagnostic, ...]) -> str:
    """The question, after what deleting topics would take with them."""
    from kdeclare.core.operations.operation import LOSES_DATA
    from kdeclare.report.elements.values import clean

    losses = [clean(notice.detail) for notice in notices if notice.code == LOSES_DATA]
    return "\n".join([*losses, question])


def is_yes(console: Console, question: str) -> bool:
    """Ask on the terminal. Raises KdeclareError (wrong usage) where there is none."""
    if not sys.stdin.isatty():
        raise KdeclareError(
            error(
                "nobody-to-ask",
                "Nobody is here to be asked",
                "This would change something, and stdin is no terminal. Nothing was changed.",
                hint="Give --yes where nobody is to be asked.",
            ),
            exit_code=ExitCode.USAGE,
        )
    console.say(f"{question} Only 'yes' is accepted: ", end="")
    try:
        answer = _read_line()
    except KeyboardInterrupt:
        console.say("")
        raise
    if not answer.endswith("\n"):
        console.say("")
    return answer.strip() == "yes"


def _read_line() -> str:
    """The next line from the terminal. Raises KeyboardInterrupt.

    A Ctrl-C just before a blocking read only sets Python's flag, and the read would go on until there is a
    line. Waiting in steps lets it be seen at once.
    """
    while not select.select([sys.stdin], [], [], _STEP)[0]:
        pass
    return sys.stdin.readline()


def _text(plan: "Plan", console: Console, *, for_stderr: bool) -> str:
    from kdeclare.report.plan.plan_text import plan_text

    return plan_text(plan, console.err_style if for_stderr else console.style)
