"""Show a plan and ask for confirmation."""

import select
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdeclare.cli.console import Console
from kdeclare.core.diagnostics import DENIED_CHANGES, Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.core.plans.plan import Plan


# seconds; the longest time until Python notices a Ctrl-C
_POLL_S = 0.1


@dataclass
class ConfirmationPrompt:
    """Shows the plan of a run and asks for confirmation; see `app.apply.Confirm`.

    plan: the plan that was shown. since: the time of the confirmation (`time.monotonic`); 0 before the user
    confirms.
    plan_only: whether the plan is only saved, so that no confirmation is needed. plan_to_stderr: whether to
    show the plan on stderr, because stdout is used for other output.
    """

    console: Console
    question: str
    yes: bool
    plan_only: bool = False
    plan_to_stderr: bool = False
    plan: "Plan | None" = None
    since: float = 0.0

    def __call__(self, plan: "Plan", notices: tuple[Diagnostic, ...]) -> bool:
        """See `app.apply.Confirm`.

        Raises KdeclareError if the plan has errors or denials that stop the run, or if confirmation is
        required but stdin is not a terminal.
        """
        self.plan = plan
        refusal = next((notice for notice in notices if notice.code == DENIED_CHANGES), None)
        notices = tuple(notice for notice in notices if notice is not refusal)
        is_refused = plan.has_errors or refusal is not None
        must_ask = bool(plan.operations) and not (self.yes or self.plan_only or is_refused)
        self.console.notices(notices, asking=must_ask)
        if self.plan_only:
            return False
        if self.console.is_text:
            self._show_plan(plan, is_required=must_ask or is_refused)
        elif must_ask and sys.stdin.isatty():
            self.console.say(_render_plan(plan, self.console, for_stderr=True))
        if plan.has_errors:
            raise self._build_refusal(plan)
        if refusal is not None:
            raise KdeclareError(refusal, exit_code=ExitCode.DENIED)
        is_confirmed = not must_ask or prompt_for_yes(self.console, _format_question(self.question, notices))
        if must_ask and self.console.is_text:
            self.console.say("")
        self.since = time.monotonic()
        return is_confirmed

    def _show_plan(self, plan: "Plan", *, is_required: bool) -> None:
        """Show the plan, unless it only changes ownership.

        The output of the run shows changes of ownership later.
        """
        if self.plan_to_stderr:
            say = self.console.say if is_required else self.console.note
            say(_render_plan(plan, self.console, for_stderr=True))
            return
        has_details = plan.changes or plan.diagnostics or plan.verdicts
        if has_details or not plan.ownership:
            self.console.out(
                _render_plan(plan, self.console, for_stderr=False) + ("\n" if plan.has_changes else "")
            )

    def _build_refusal(self, plan: "Plan") -> KdeclareError:
        from kdeclare.report.outcome import plan_outcome

        code = plan_outcome(plan).exit_code
        if not self.console.is_text:
            return KdeclareError(*plan.diagnostics, exit_code=code)
        if plan.is_stale:
            return KdeclareError(*(d for d in plan.diagnostics if d.is_error), exit_code=code)
        return KdeclareError(
            error(
                "plan-has-errors",
                "The plan has errors",
                "The plan was not applied. Nothing was changed.",
                hint="Fix the errors shown in the plan, and run the command again.",
            )
        )


def _format_question(question: str, notices: tuple[Diagnostic, ...]) -> str:
    """Return the question, preceded by sentences about the data that the plan would delete."""
    from kdeclare.core.operations.operation import DATA_LOSS
    from kdeclare.report.elements.values import sanitize_for_terminal

    losses = [sanitize_for_terminal(notice.detail) for notice in notices if notice.code == DATA_LOSS]
    return "\n".join([*losses, question])


def prompt_for_yes(console: Console, question: str) -> bool:
    """Ask the question on the terminal and return whether the answer is 'yes'.

    Raises KdeclareError with exit code USAGE if standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise KdeclareError(
            error(
                "nobody-to-ask",
                "Confirmation required",
                "The command asks for confirmation, but standard input is not a terminal. "
                "Nothing was changed.",
                hint="Pass --yes to continue without confirmation.",
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


def build_declined_error() -> Diagnostic:
    """Build the error for a prompt that was not answered with 'yes'."""
    return error(
        "declined",
        "Not confirmed",
        "The answer to the confirmation prompt was not 'yes'. Nothing was changed.",
        hint="Run the command again, and answer 'yes' or pass --yes.",
    )


def _read_line() -> str:
    """Read the next line from the terminal. Raises KeyboardInterrupt.

    If Ctrl-C is pressed just before a blocking read, Python only sets a flag, and would not raise
    KeyboardInterrupt until a line arrives. Waiting in short steps makes Python check the flag regularly.
    """
    while not select.select([sys.stdin], [], [], _POLL_S)[0]:
        pass
    return sys.stdin.readline()


def _render_plan(plan: "Plan", console: Console, *, for_stderr: bool) -> str:
    from kdeclare.report.plan.plan_text import plan_text

    return plan_text(plan, console.err_style if for_stderr else console.style)
