"""Abandon a run that cannot be finished, so that it no longer stops other commands."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from kdeclare.app.workspace import Workspace, format_user_at_host
from kdeclare.core.clock import SystemClock, format_now, parse_time
from kdeclare.core.diagnostics import KdeclareError, error, summarize_diagnostics
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.run import Status
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.engine.executor.entries import (
    RUN_UNREADABLE,
    Abandonment,
    read_run,
    read_run_plan,
)
from kdeclare.engine.state.port import StateStore
from kdeclare.engine.state.problems import build_run_abandoned_error, build_unknown_run_error
from kdeclare.report.run.views import AbandonedRun, RunStep


def abandon_run(
    workspace: Workspace,
    run_id: str,
    confirm: Callable[[AbandonedRun], bool],
    command: str,
    progress: Progress = ignore_progress,
) -> AbandonedRun:
    """Abandon a run if ``confirm`` accepts it.

    Return the operations that the run began, and whether the run is now abandoned.

    The plan, the journal and the state stay as they are, and no system is contacted.
    Raises KdeclareError if there is no such run, or if it is finished or already abandoned.
    """
    store = workspace.store
    with store.lock(command, progress):
        run = review_run(store, run_id)
        if not confirm(run):
            return run
        abandonment = Abandonment(
            at=format_now(SystemClock()),
            who=format_user_at_host(),
            reason=run.problem,
            unsettled=[step.id for step in run.unknown],
        )
        store.abandon_run(run_id, abandonment.model_dump(mode="json"))
        return replace(run, abandoned=True)


def review_run(store: StateStore, run_id: str) -> AbandonedRun:
    """Return the operations that an unfinished or damaged run began.

    Raises KdeclareError for any other run.
    """
    if run_id not in store.runs():
        raise build_unknown_run_error(run_id)
    if run_id in store.list_abandoned():
        raise build_run_abandoned_error(run_id)
    problem = _find_damage(partial(read_run, store, run_id)) or _find_damage(
        partial(read_run_plan, store, run_id)
    )
    if not problem and read_run(store, run_id).is_over:
        raise _build_finished_error(run_id)
    entries, is_complete = store.salvage_entries(run_id)
    return AbandonedRun(
        run_id, abandoned=False, problem=problem, journal_complete=is_complete, operations=list_begun(entries)
    )


def _find_damage(read: Callable[[], object]) -> str:
    """Return why a run cannot be read; empty if it can be read. Raises KdeclareError."""
    try:
        read()
    except KdeclareError as problem:
        if any(d.code != RUN_UNREADABLE for d in problem.diagnostics):
            raise
        return summarize_diagnostics(problem.diagnostics)
    return ""


def list_begun(entries: tuple[JsonValue, ...]) -> tuple[RunStep, ...]:
    """Return the operations that a journal shows as begun, in order, each with its last known status.

    The entries can be incomplete, or come from another version of kdeclare. Entries and fields of an unknown
    form are ignored.
    """
    steps: dict[str, RunStep] = {}
    for entry in entries:
        if not isinstance(entry, Mapping):
            continue
        moment = _parse_time(entry.get("at"))
        for id_ in _as_texts(entry.get("ids")) if entry.get("event") == "begin" else ():
            step = steps.get(id_, _build_step(id_))
            steps[id_] = replace(step, status=None, begun=step.begun or moment)
        results = entry.get("results")
        for result in results if isinstance(results, list | tuple) else ():
            if isinstance(result, Mapping) and isinstance(result_id := result.get("id"), str):
                step = steps.get(result_id, _build_step(result_id))
                steps[result_id] = replace(
                    step,
                    status=_parse_status(result.get("status")),
                    ended=moment,
                    error=_as_text(result.get("error")) or None,
                    message=_as_text(result.get("message")),
                )
    return tuple(step for step in steps.values() if step.begun or step.status not in _NOT_BEGUN)


_NOT_BEGUN = frozenset({Status.SKIPPED, Status.STALE, Status.DENIED, Status.INTERRUPTED})


def _build_step(id_: str) -> RunStep:
    """Split the id of an operation, such as ``topic.create:Topic/orders``, into its type and resource."""
    verb, _, resource = id_.partition(":")
    return RunStep(id_, verb, resource)


def _parse_status(value: JsonValue) -> Status:
    try:
        return Status(_as_text(value))
    except ValueError:
        return Status.UNKNOWN


def _parse_time(value: JsonValue) -> datetime | None:
    try:
        return parse_time(_as_text(value))
    except ValueError:
        return None


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _as_texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(filter(None, map(_as_text, value))) if isinstance(value, list | tuple) else ()


def _build_finished_error(run_id: str) -> KdeclareError:
    return KdeclareError(
        error(
            "run-finished",
            "The run is finished",
            f"Run {run_id} is finished and can be read, so it does not block other commands. This command "
            "changed nothing.",
            hint=f"Run 'kdeclare history {run_id}' to see the run, or 'kdeclare rollback {run_id}' to undo "
            "it.",
        )
    )
