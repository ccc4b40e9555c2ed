"""Run apply, rollback and ad hoc commands: ask for confirmation, show the result, return the exit code."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeVar

from kdeclare.cli.confirmation import ConfirmationPrompt, build_declined_error
from kdeclare.cli.console import Console
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.app.apply import ApplyOptions
    from kdeclare.app.workspace import Workspace
    from kdeclare.core.plans.plan_origin import PlanOrigin
    from kdeclare.core.plans.run import ApplyResult


T = TypeVar("T")

_MANIFESTS_UNCHANGED = (
    "The manifests are unchanged. Revert them too, or the next apply makes the same changes again."
)


@dataclass(frozen=True, slots=True)
class ApplyFlags:
    """The command-line options of a run. A timeout of None means the default timeout."""

    fail_fast: bool = False
    wait: bool = True
    move_timeout_s: float | None = None
    follow_timeout_s: float | None = None
    visibility_timeout_s: float | None = None
    skip_stale: bool = False
    overrides: Mapping[str, str] = field(default_factory=dict)
    stops_on_denial: bool | None = None


def execute_run(
    console: Console,
    prompt: ConfirmationPrompt,
    apply_flags: ApplyFlags,
    run_command: "Callable[[ApplyOptions], T | None]",
    show: Callable[[T, float], ExitCode],
) -> ExitCode:
    """Run ``run_command``, show its result and return the exit code.

    run_command: asks for confirmation, executes the run and returns the result; returns None if the user
    declines. show: takes the result and the number of seconds since the confirmation, shows the result, and
    returns the exit code. Raises KdeclareError.
    """
    from kdeclare.app.apply import ApplyOptions
    from kdeclare.engine.executor.progress_tracker import RunOptions

    run_options = RunOptions(fail_fast=apply_flags.fail_fast, wait=apply_flags.wait)
    if apply_flags.move_timeout_s is not None:
        run_options = replace(run_options, move_timeout_s=apply_flags.move_timeout_s)
    if apply_flags.follow_timeout_s is not None:
        run_options = replace(run_options, follow_timeout_s=apply_flags.follow_timeout_s)
    if apply_flags.visibility_timeout_s is not None:
        run_options = replace(run_options, visibility_timeout_s=apply_flags.visibility_timeout_s)
    apply_options = ApplyOptions(
        console.command,
        prompt,
        console.progress,
        run_options,
        apply_flags.skip_stale,
        announce_stop,
        apply_flags.overrides,
        stops_on_denial=apply_flags.stops_on_denial,
    )
    console.progress("Connecting", 0, 0)
    try:
        result = run_command(apply_options)
    except KeyboardInterrupt:
        raise build_interrupted_error(has_started=bool(prompt.since)) from None
    if result is not None:
        return show(result, time.monotonic() - prompt.since)
    if prompt.plan_only:
        return ExitCode.OK
    if console.is_json:
        return console.fail([build_declined_error()], ExitCode.ERROR)
    console.say("Nothing was changed.")
    return ExitCode.ERROR


def make_run_presenter(
    console: Console,
    workspace: "Workspace",
    identity: str | None = None,
    origin: "PlanOrigin | None" = None,
) -> "Callable[[ApplyResult, float], ExitCode]":
    """Return a function that shows the result of a run.

    identity: the id of the plan, if the plan was read from a file. origin: when the plan was made, and from
        which commit, for an HTML page.
    """
    return lambda result, seconds: _show_result(console, workspace, result, identity, seconds, origin)


def _show_result(
    console: Console,
    workspace: "Workspace",
    result: "ApplyResult",
    identity: str | None,
    seconds: float,
    origin: "PlanOrigin | None",
) -> ExitCode:
    from kdeclare.app.apply import is_manifest_rollback
    from kdeclare.app.authoring.restored_manifests import MANIFESTS_WRITTEN
    from kdeclare.report.outcome import run_outcome

    outcome = run_outcome(result)
    if console.is_json:
        from kdeclare.report.run.documents import build_run_document

        console.write_document(build_run_document(result, identity, round(seconds, 3)))
    elif console.output == "html":
        console.write_page(_render_page(workspace, result, identity, origin))
    elif result.run_id is not None or outcome.status != "done":
        from kdeclare.report.run.run_text import render_run_text

        console.out(render_run_text(result, console.style, seconds))
    is_written = any(d.code == MANIFESTS_WRITTEN for d in result.diagnostics)
    if not is_written and is_manifest_rollback(workspace, result):
        console.note(_MANIFESTS_UNCHANGED)
    return outcome.exit_code


def _render_page(
    workspace: "Workspace", result: "ApplyResult", identity: str | None, origin: "PlanOrigin | None"
) -> str:
    """Render the HTML page of the run, or of the plan if the plan had no operations."""
    from kdeclare.app.history import show_run
    from kdeclare.report.plan.plan_page import render_plan_page, render_run_page

    if result.run_id is None:
        return render_plan_page(result.plan, identity or result.identity, origin)
    detail = show_run(workspace, result.run_id)
    detail = replace(detail, diagnostics=(*detail.diagnostics, *result.diagnostics))
    return render_run_page(detail, origin)


def announce_stop() -> None:
    """Announce that the run is stopping. Called in a signal handler, which must not use buffered streams."""
    os.write(
        2,
        b"\nStopping: waiting for operations in progress; no new operations start. "
        b"Press Ctrl-C again to exit at once.\n",
    )


def build_interrupted_error(*, has_started: bool) -> KdeclareError:
    """Build the error for a second Ctrl-C during a run, or for a Ctrl-C before the run.

    has_started: whether the run had started.
    """
    detail = "Nothing was changed."
    if has_started:
        detail = (
            "The run was stopped immediately. The next plan, apply or status determines the outcome of the "
            "operations that were in progress."
        )
    return KdeclareError(error("interrupted", "Interrupted", detail), exit_code=ExitCode.INTERRUPTED)
