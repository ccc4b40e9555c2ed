"""The history of runs, read from their journals."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from kdeclare.app.state.summaries import (
    StoredSummary,
    compute_summary,
    parse_run_time,
    read_stored_summaries,
)
from kdeclare.app.workspace import Workspace
from kdeclare.core.clock import parse_time
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, summarize_diagnostics, warning
from kdeclare.core.documents import build_document
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_object, parse_json
from kdeclare.core.plans.plan import Plan
from kdeclare.engine.executor.effects import read_effects
from kdeclare.engine.executor.entries import (
    RUN_UNREADABLE,
    BeginLine,
    EndLine,
    fold_journal,
    parse_lines,
    read_abandonment,
    read_lock_losses,
    read_run,
    read_run_plan,
)
from kdeclare.engine.planning.planfile import is_plan_file, parse_plan
from kdeclare.engine.state.port import StateStore
from kdeclare.report.run.views import (
    ABANDONED,
    UNREADABLE,
    RunDetail,
    RunOverride,
    RunStep,
    RunSummary,
)

_MAX_LOST = 5
"""The maximum number of operations that a warning about late requests lists."""


def list_runs(workspace: Workspace, limit: int | None = None) -> tuple[RunSummary, ...]:
    """List at most ``limit`` runs, latest first. Raises KdeclareError.

    A run that cannot be read is listed as ``unreadable``, with the reason.
    """
    return tuple(itertools.islice(iterate_runs(workspace), limit))


def iterate_runs(workspace: Workspace) -> Iterator[RunSummary]:
    """Yield the runs, latest first. Each run is read when it is needed. Raises KdeclareError."""
    store = workspace.store
    rollbacks: dict[str, list[StoredSummary]] = {}
    abandoned_ids = store.list_abandoned()
    for run_id, stored in read_stored_summaries(store, store.runs()[::-1]):
        mark = partial(_mark_abandoned, store) if run_id in abandoned_ids else _keep_summary
        try:
            digest = stored or compute_summary(store, run_id)
        except KdeclareError as problem:
            if any(d.code != RUN_UNREADABLE for d in problem.diagnostics):
                raise
            yield mark(_build_unreadable_summary(run_id, problem))
            continue
        run_summary = mark(digest.as_run_summary())
        effective_rollbacks = [item for item in rollbacks.pop(run_id, ()) if item.has_undone(run_summary)]
        if digest.undoes:
            rollbacks.setdefault(digest.undoes, []).append(digest)
        yield replace(run_summary, undone_by=effective_rollbacks[0].run_id if effective_rollbacks else None)


def _keep_summary(run: RunSummary) -> RunSummary:
    return run


def _mark_abandoned(store: StateStore, run: RunSummary) -> RunSummary:
    abandonment = read_abandonment(store, run.run_id)
    try:
        abandoned_at = parse_time(abandonment.at)
    except ValueError:
        abandoned_at = None
    return replace(
        run,
        outcome=ABANDONED,
        gist=ABANDONED,
        abandoned_by=abandonment.who or None,
        abandoned_at=abandoned_at,
    )


def _build_unreadable_summary(run_id: str, problem: KdeclareError) -> RunSummary:
    return RunSummary(
        run_id=run_id,
        started=parse_run_time(run_id),
        ended=None,
        outcome=UNREADABLE,
        user="",
        command="",
        plan_id="",
        problem=summarize_diagnostics(problem.diagnostics),
    )


def show_run(workspace: Workspace, run_id: str) -> RunDetail:
    """Return the details of one run. Raises KdeclareError."""
    store = workspace.store
    if run_id not in store.runs():
        raise build_unknown_run_error(run_id, store.runs())
    plan, record = load_run_plan(workspace, run_id), read_run(store, run_id)
    override_records = record.start.overrides if record.start else ()
    return build_document(
        RunDetail,
        next(run for run in iterate_runs(workspace) if run.run_id == run_id),
        plan=plan,
        steps=build_steps(run_id, store.entries(run_id), plan),
        overrides=tuple(RunOverride(**line.model_dump()) for line in override_records),
        diagnostics=(*plan.diagnostics, *report_lock_losses(store, run_id)),
        effects=read_effects(store, run_id),
    )


def report_lock_losses(store: StateStore, run_id: str) -> Iterator[Diagnostic]:
    """Yield a warning for each process that lost the lock during a run. Raises KdeclareError."""
    for loss in read_lock_losses(store, run_id):
        names = ", ".join(loss.operations[:_MAX_LOST])
        more = len(loss.operations) - _MAX_LOST
        yield warning(
            "late-requests",
            "Requests may have arrived late",
            f"The process of {loss.who} lost the state lock while requests of run {run_id} were in flight, "
            f"and noticed the loss at {loss.at}. These operations may have taken effect at any time until "
            f"then: {names}{f' and {more} more' if more > 0 else ''}.",
            hint="Run kdeclare plan to see whether the live state differs from the manifests.",
        )


def load_plan_document(workspace: Workspace, name: str) -> JsonObject:
    """Return the plan of a run, or the plan in a plan file, as JSON for a comparison. Raises KdeclareError.

    name: the id of the run, or the path of the plan file.
    """
    path = Path(name)
    if name in workspace.store.runs():
        return as_object(parse_json(workspace.store.read_plan_text(name)))
    if path.is_file() and is_plan_file(path):
        text = path.read_text()
        parse_plan(text, name)
        return as_object(parse_json(text))
    raise build_unknown_run_error(name, workspace.store.runs(), or_plan=True)


def build_unknown_run_error(name: str, runs: Sequence[str], *, or_plan: bool = False) -> KdeclareError:
    """Build the error for a name that is not the id of a run.

    runs: the ids of all runs. or_plan: whether the name could also have been the path of a plan file.
    """
    run_words = "run of this project and environment"
    explanation = f"neither a {run_words} nor a plan file" if or_plan else f"not a {run_words}"
    return KdeclareError(
        error(
            "unknown-run",
            "No such run",
            f"'{name}' is {explanation}.",
            hint=f"Run kdeclare history to list the runs. The last one is {runs[-1]}."
            if runs
            else "Check --project, --env and --state: this environment has no runs yet.",
        )
    )


def load_run_plan(workspace: Workspace, run_id: str) -> Plan:
    """Return the plan that a run executed. Raises KdeclareError."""
    return read_run_plan(workspace.store, run_id)


def build_steps(run_id: str, entries: tuple[JsonValue, ...], plan: Plan) -> tuple[RunStep, ...]:
    """Return the operations of a run with their results, in the order of the plan."""
    begun_at: dict[str, datetime] = {}
    ended_at: dict[str, datetime] = {}
    for journal_line in parse_lines(run_id, entries):
        if isinstance(journal_line, BeginLine):
            # if an operation was sent several times, the first time counts
            begun_at = dict.fromkeys(journal_line.ids, parse_time(journal_line.at)) | begun_at
        elif isinstance(journal_line, EndLine):
            ended_at |= dict.fromkeys(
                (result.id for result in journal_line.results), parse_time(journal_line.at)
            )
    results = fold_journal(run_id, entries).results
    owners = {change.id: change.owner for change in plan.changes}
    steps = []
    for op in plan.operations:
        result = results.get(op.id)
        steps.append(
            RunStep(
                id=op.id,
                verb=op.verb,
                resource=str(op.resource),
                status=result.status if result else None,
                begun=begun_at.get(op.id),
                ended=ended_at.get(op.id),
                error=result.error if result else None,
                message=result.message if result else "",
                cause=result.cause if result else None,
                owner=owners.get(op.resource),
            )
        )
    return tuple(steps)
