"""What apply and rollback share: one run, from the question to the exit code."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeVar

from kdeclare.cli.confirmation import Asking
from kdeclare.cli.console import Console
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen import dataclass

if TYPE_CHECKING:
    from kdeclare.app.apply import How
    from kdeclare.app.workspace import Workspace
    from kdeclare.core.plans.run import RunResult


T = TypeVar("T")

_UNTOUCHED = "Manifests stay as they are: revert them as well, or the next apply does again what was undone."


@dataclass(frozen=True, slots=True)
class Manner:
    """How to go about a run, as far as the options say."""

    fail_fast: bool = False
    wait: bool = True
    move_timeout_s: float | None = None
    follow_timeout_s: float | None = None
    visibility_timeout_s: float | None = None
    skip_stale: bool = False
    overrides: Mapping[str, str] = field(default_factory=dict)


def carry_out(
    console: Console,
    asking: Asking,
    manner: Manner,
    act: "Callable[[How], T | None]",
    show: Callable[[T, float], ExitCode],
) -> ExitCode:
    """Run ``act``, show what came of it, and say how to exit.

    act: its result is None where the person said no. show: is given the result, and the seconds since the
    answer. Raises KdeclareError.
    """
    from kdeclare.app.apply import How
    from kdeclare.engine.executor.progress_tracker import RunOptions

    options = RunOptions(fail_fast=manner.fail_fast, wait=manner.wait)
    if manner.move_timeout_s is not None:
        options = replace(options, move_timeout_s=manner.move_timeout_s)
    if manner.follow_timeout_s is not None:
        options = replace(options, follow_timeout_s=manner.follow_timeout_s)
    if manner.visibility_timeout_s is not None:
        options = replace(options, visibility_timeout_s=manner.visibility_timeout_s)
    how = How(
        console.command,
        asking,
        console.progress,
        options,
        manner.skip_stale,
        stopping,
        manner.overrides,
    )
    console.progress("Connecting", 0, 0)
    try:
        result = act(how)
    except KeyboardInterrupt:
        raise cut_short(begun=bool(asking.since)) from None
    if result is not None:
        return show(result, time.monotonic() - asking.since)
    if asking.only_show:
        return ExitCode.OK
    if console.is_json:
        return console.fail([error("declined", "Nothing was changed")], ExitCode.ERROR)
    console.say("Nothing was changed.")
    return ExitCode.ERROR


def run_shown(
    console: Console, workspace: "Workspace", identity: str | None = None
) -> "Callable[[RunResult, float], ExitCode]":
    """Shows a run. identity: the plan's id where it was read from a file."""
    return lambda result, seconds: _shown(console, workspace, result, identity, seconds)


def _shown(
    console: Console, workspace: "Workspace", result: "RunResult", identity: str | None, seconds: float
) -> ExitCode:
    from kdeclare.app.apply import undoes_manifests
    from kdeclare.report.outcome import run_outcome

    outcome = run_outcome(result)
    if console.is_json:
        from kdeclare.report.run.documents import describe_run

        console.out_document(describe_run(result, identity, round(seconds, 3)))
    elif console.output == "html":
        console.out_page(_page(workspace, result, identity))
    elif result.run_id is not None or outcome.status != "done":
        from kdeclare.report.run.run_text import run_text

        console.out(run_text(result, console.style, seconds))
    if undoes_manifests(workspace, result):
        console.note(_UNTOUCHED)
    return outcome.exit_code


def _page(workspace: "Workspace", result: "RunResult", identity: str | None) -> str:
    """Of the run as its journal tells it, or of its plan where there was nothing to run."""
    from kdeclare.app.history import show_run
    from kdeclare.report.plan.plan_page import plan_html, run_html

    if result.run_id is None:
        return plan_html(result.plan, identity or result.identity)
    detail = show_run(workspace, result.run_id)
    return run_html(replace(detail, diagnostics=(*detail.diagnostics, *result.diagnostics)))


def stopping() -> None:
    """Say that Ctrl-C is heeded. Called from a signal handler: buffered streams are out of bounds."""
    os.write(
        2, b"\nStopping: what is under way is finished, nothing new begins. Ctrl-C again ends at once.\n"
    )


def cut_short(*, begun: bool) -> KdeclareError:
    """A second Ctrl-C, or one before the run was ``begun``."""
    detail = "Nothing was changed."
    if begun:
        detail = "The run was cut short; the next plan, apply or status settles what was under way."
    return KdeclareError(error("interrupted", "Interrupted", detail), exit_code=ExitCode.INTERRUPTED)
