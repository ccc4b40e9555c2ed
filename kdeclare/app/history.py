"""What was done, and what goes on: read from the journals, and for moves from the cluster."""

import json
from collections import Counter
from datetime import datetime
from pathlib import Path

from kdeclare.app.recovering import recover_if_possible
from kdeclare.app.workspace import Workspace
from kdeclare.applying.entries import BeginLine, EndLine, RunRecord, fold, lines
from kdeclare.model.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.model.ids import TopicPartition
from kdeclare.model.jsontypes import Json
from kdeclare.model.live import Move
from kdeclare.model.plan import Plan
from kdeclare.model.run import RunResult
from kdeclare.planning.planfile import is_plan_file, read_plan
from kdeclare.report.outcome import run_outcome
from kdeclare.report.views import (
    MoveInFlight,
    RunDetail,
    RunStep,
    RunSummary,
    StatusView,
    UnfinishedRun,
)


def list_runs(workspace: Workspace) -> tuple[RunSummary, ...]:
    """All runs, latest first. Raises KdeclareError."""
    store = workspace.store
    records = [fold(run_id, store.entries(run_id)) for run_id in store.runs()]
    undone = {r.start.undoes: r.run_id for r in records if r.start and r.start.undoes}
    return tuple(
        _summary(record, _plan(workspace, record.run_id), undone.get(record.run_id))
        for record in reversed(records)
    )


def show_run(workspace: Workspace, run_id: str) -> RunDetail:
    """One run in full. Raises KdeclareError."""
    store = workspace.store
    if run_id not in store.runs():
        raise unknown_run(run_id)
    entries = store.entries(run_id)
    record = fold(run_id, entries)
    plan = _plan(workspace, run_id)
    undone = next((s.undone_by for s in list_runs(workspace) if s.run_id == run_id), None)
    return RunDetail(_summary(record, plan, undone), plan, _steps(run_id, entries, plan), plan.diagnostics)


def plan_document_of(workspace: Workspace, name: str) -> Json:
    """The plan of a run, or of a plan file, as JSON; for comparing. Raises KdeclareError."""
    path = Path(name)
    if name in workspace.store.runs():
        return json.loads(workspace.store.plan_text(name))
    if path.is_file() and is_plan_file(path):
        text = path.read_text()
        read_plan(text, name)
        return json.loads(text)
    raise unknown_run(name)


def unknown_run(name: str) -> KdeclareError:
    """What to say of a name that is no run."""
    return KdeclareError(
        error(
            "unknown-run",
            "No such run",
            f"'{name}' is neither a run of this project and environment nor a plan file.",
            hint="kdeclare history lists the runs.",
        )
    )


def look(workspace: Workspace) -> tuple[StatusView, tuple[Diagnostic, ...]]:
    """What goes on right now; settles what a crashed run left open. Raises KdeclareError."""
    store = workspace.store
    with workspace.cluster() as cluster:
        notices = recover_if_possible(store, cluster, "status")
        moves = cluster.moves()
    runs = list_runs(workspace)
    open_ = [run for run in runs if run.outcome == "unfinished"]
    view = StatusView(
        project=workspace.project.name,
        env=workspace.project.environment.name,
        cluster=workspace.cluster_name,
        unfinished=tuple(_unfinished(workspace, run) for run in open_),
        moves=tuple(_in_flight(partition, move) for partition, move in sorted(moves.items())),
        lock=store.holder(),
        last=next((run for run in runs if run.ended is not None), None),
    )
    return view, notices


def _plan(workspace: Workspace, run_id: str) -> Plan:
    return read_plan(workspace.store.plan_text(run_id), f"run {run_id}")


def _summary(record: RunRecord, plan: Plan, undone_by: str | None) -> RunSummary:
    start = record.start
    outcome = "unfinished"
    if record.is_over:
        stopped = record.outcome == "interrupted"
        outcome = run_outcome(RunResult(record.run_id, plan, record.results, (), stopped)).status
    return RunSummary(
        run_id=record.run_id,
        started=_moment(start.at) if start else _moment_of(record.run_id),
        ended=_moment(record.ended) if record.ended else None,
        outcome=outcome,
        user=start.who if start else "",
        command=start.command if start else "",
        plan_id=start.plan_id if start else "",
        summary=plan.summary,
        operations=len(plan.operations),
        counts=Counter(result.status for result in record.results.values()),
        undoes=plan.undoes,
        undone_by=undone_by,
    )


def _steps(run_id: str, entries: tuple[Json, ...], plan: Plan) -> tuple[RunStep, ...]:
    begun: dict[str, datetime] = {}
    ended: dict[str, datetime] = {}
    for line in lines(run_id, entries):
        if isinstance(line, BeginLine):
            begun |= dict.fromkeys(line.ids, _moment(line.at))
        elif isinstance(line, EndLine):
            ended |= dict.fromkeys((result.id for result in line.results), _moment(line.at))
    results = fold(run_id, entries).results
    steps = []
    for op in plan.operations:
        result = results.get(op.id)
        steps.append(
            RunStep(
                id=op.id,
                verb=op.verb,
                resource=str(op.resource),
                status=result.status if result else None,
                begun=begun.get(op.id),
                ended=ended.get(op.id),
                error=result.error if result else None,
                message=result.message if result else "",
                cause=result.cause if result else None,
            )
        )
    return tuple(steps)


def _unfinished(workspace: Workspace, run: RunSummary) -> UnfinishedRun:
    entries = workspace.store.entries(run.run_id)
    open_ = set(fold(run.run_id, entries).unsettled)
    steps = _steps(run.run_id, entries, _plan(workspace, run.run_id))
    return UnfinishedRun(run, tuple(step for step in steps if step.id in open_))


def _in_flight(partition: TopicPartition, move: Move) -> MoveInFlight:
    return MoveInFlight(partition.topic, partition.partition, move.replicas, move.adding, move.removing)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _moment_of(run_id: str) -> datetime:
    """When a run began whose journal has no line yet, by its id."""
    return datetime.strptime(run_id[:16] + "+0000", "%Y%m%dT%H%M%SZ%z")
