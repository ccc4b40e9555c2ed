"""The history of runs, read from their journals."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError, error, summarize_diagnostics
from kdeclare.core.documents import build_document
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_object, parse_json
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.engine.executor.entries import (
    RUN_UNREADABLE,
    BeginLine,
    EndLine,
    RunRecord,
    fold_journal,
    parse_lines,
    read_run,
    read_run_plan,
)
from kdeclare.engine.planning.planfile import is_plan_file, parse_plan
from kdeclare.report.outcome import count_adopted, run_outcome
from kdeclare.report.run.views import (
    UNREADABLE,
    RunDetail,
    RunOverride,
    RunStep,
    RunSummary,
)


def list_runs(workspace: Workspace, limit: int | None = None) -> tuple[RunSummary, ...]:
    """List at most ``limit`` runs, latest first. Raises KdeclareError.

    A run that cannot be read is listed as ``unreadable``, with the reason.
    """
    return tuple(itertools.islice(iterate_runs(workspace), limit))


def iterate_runs(workspace: Workspace) -> Iterator[RunSummary]:
    """Yield the runs, latest first. Each run is read when it is needed. Raises KdeclareError."""
    store = workspace.store
    rollbacks: dict[str, list[_Rollback]] = {}
    for run_id in reversed(store.runs()):
        try:
            record, plan = read_run(store, run_id), read_run_plan(store, run_id)
        except KdeclareError as problem:
            if any(d.code != RUN_UNREADABLE for d in problem.diagnostics):
                raise
            yield _build_unreadable_summary(run_id, problem)
            continue
        run_summary = _build_summary(record, plan)
        effective_rollbacks = [item for item in rollbacks.pop(run_id, ()) if item.has_undone(run_summary)]
        if plan.undoes:
            rollbacks.setdefault(plan.undoes, []).append(_build_rollback(record, plan))
        yield replace(run_summary, undone_by=effective_rollbacks[0].run_id if effective_rollbacks else None)


@dataclass(frozen=True, slots=True)
class _Rollback:
    """A summary of a run that rolled back an earlier run.

    had_effect: whether an operation had an effect. Auxiliary operations, such as throttles, count only if
    there are no other operations.
    """

    run_id: str
    has_operations: bool
    is_over: bool
    had_effect: bool

    def has_undone(self, target: RunSummary) -> bool:
        """Return whether the rollback undid any change of the earlier run.

        A rollback without operations only releases ownership. It counts only if the earlier run changed
        nothing but ownership.
        """
        if not self.has_operations:
            return self.is_over and not target.done
        return self.had_effect


def _build_rollback(record: RunRecord, plan: Plan) -> _Rollback:
    """Build the summary of a rollback."""
    primary_operations = [
        op for op in plan.operations if not get_operation_type(op).is_auxiliary
    ] or plan.operations
    results = (record.results.get(op.id) for op in primary_operations)
    return _Rollback(
        record.run_id, bool(plan.operations), record.is_over, any(r.had_effect for r in results if r)
    )


def _build_unreadable_summary(run_id: str, problem: KdeclareError) -> RunSummary:
    return RunSummary(
        run_id=run_id,
        started=_parse_run_time(run_id),
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
        diagnostics=plan.diagnostics,
    )


def load_plan_document(workspace: Workspace, name: str) -> JsonObject:
    """Return the plan of a run or of a plan file as JSON, for comparison. Raises KdeclareError."""
    path = Path(name)
    if name in workspace.store.runs():
        return as_object(parse_json(workspace.store.read_plan_text(name)))
    if path.is_file() and is_plan_file(path):
        text = path.read_text()
        parse_plan(text, name)
        return as_object(parse_json(text))
    raise build_unknown_run_error(name, workspace.store.runs(), or_plan=True)


def build_unknown_run_error(name: str, runs: Sequence[str], *, or_plan: bool = False) -> KdeclareError:
    """Build the error for a name that is not in ``runs``. or_plan: whether a plan file is also allowed."""
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


def _build_summary(record: RunRecord, plan: Plan) -> RunSummary:
    start = record.start
    outcome = outcome_gist = "unfinished"
    if record.is_over:
        is_interrupted = record.outcome == "interrupted"
        final_outcome = run_outcome(ApplyResult(record.run_id, plan, record.results, (), is_interrupted))
        outcome, outcome_gist = final_outcome.status, final_outcome.gist
    return RunSummary(
        run_id=record.run_id,
        started=_parse_time(start.at) if start else _parse_run_time(record.run_id),
        ended=_parse_time(record.ended) if record.ended else None,
        outcome=outcome,
        gist=outcome_gist,
        user=start.who if start else "",
        command=start.command if start else "",
        plan_id=start.plan_id if start else "",
        summary=plan.summary,
        operations=len(plan.operations),
        counts=Counter(result.status for result in record.results.values()),
        undoes=plan.undoes,
        overridden=len(start.overrides) if start else 0,
        adopted=count_adopted(plan),
    )


def build_steps(run_id: str, entries: tuple[JsonValue, ...], plan: Plan) -> tuple[RunStep, ...]:
    """Return the operations of a run with their results, in the order of the plan."""
    begun_at: dict[str, datetime] = {}
    ended_at: dict[str, datetime] = {}
    for journal_line in parse_lines(run_id, entries):
        if isinstance(journal_line, BeginLine):
            # if an operation was sent several times, the first time counts
            begun_at = dict.fromkeys(journal_line.ids, _parse_time(journal_line.at)) | begun_at
        elif isinstance(journal_line, EndLine):
            ended_at |= dict.fromkeys(
                (result.id for result in journal_line.results), _parse_time(journal_line.at)
            )
    results = fold_journal(run_id, entries).results
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
            )
        )
    return tuple(steps)


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _parse_run_time(run_id: str) -> datetime:
    """Return the start time in the id of a run, for a run whose journal does not contain it."""
    return datetime.strptime(run_id[:16] + "+0000", "%Y%m%dT%H%M%SZ%z")
