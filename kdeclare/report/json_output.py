"""What scripts read: runs, status, history and validation as JSON-able data.

A plan's document is ``kdeclare.engine.planning.planfile.plan_document``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from kdeclare.core.diagnostics import Diagnostic, in_order
from kdeclare.core.exits import ExitCode
from kdeclare.core.jsontypes import Json
from kdeclare.core.operations import Operation
from kdeclare.core.run import MoveProgress, OperationResult, RunResult, Status
from kdeclare.engine.planning.plan_document import (
    diagnostic_document,
    plan_id,
    summary_document,
    timestamp,
    verdict_document,
)
from kdeclare.report.outcome import adopting, run_outcome, validation_outcome
from kdeclare.report.plan_compare import compare_plans
from kdeclare.report.views import RunDetail, RunStep, RunSummary, StatusView, ValidationView

FORMAT_VERSION = "1.0"


def run_document(run: RunResult, identity: str | None = None, seconds: float | None = None) -> dict[str, Any]:
    """The result of apply or rollback (docs/schemas/run.schema.json).

    identity: the plan's id where it was read from a file; else it is the one that the run knows.
    """
    outcome = run_outcome(run)
    operations = [_operation(o, run.results.get(o.id)) for o in run.plan.operations]
    counts = Counter(operation["status"] for operation in operations)
    return {
        "format_version": FORMAT_VERSION,
        "run_id": run.run_id,
        "outcome": outcome.status,
        "headline": outcome.headline,
        "exit_code": int(outcome.exit_code),
        "interrupted": run.interrupted,
        "project": run.plan.project,
        "env": run.plan.env,
        "cluster": {"id": run.plan.cluster.id, "name": run.plan.cluster.name},
        "plan_id": identity or run.identity or plan_id(run.plan),
        "undoes": run.plan.undoes,
        "seconds": seconds,
        "summary": summary_document(run.plan.summary),
        "adopted": adopting(run.plan),
        "counts": {status.value: counts[status.value] for status in Status},
        "operations": operations,
        "verdicts": [verdict_document(v) for v in run.verdicts],
        "diagnostics": _diagnostics((*run.plan.diagnostics, *run.diagnostics)),
    }


def status_document(view: StatusView) -> dict[str, Any]:
    """What goes on right now."""
    return {
        "format_version": FORMAT_VERSION,
        "project": view.project,
        "env": view.env,
        "cluster": view.cluster,
        "lock": view.lock
        and {
            "who": view.lock.who,
            "pid": view.lock.pid,
            "what": view.lock.what,
            "since": view.lock.since,
        },
        "unfinished": [
            _summary(item.run) | {"unknown": [_step(s) for s in item.unknown], "not_begun": item.not_begun}
            for item in view.unfinished
        ],
        "moves": [
            {
                "topic": move.topic,
                "partition": move.partition,
                "replicas": list(move.replicas),
                "adding": list(move.adding),
                "removing": list(move.removing),
                "target": list(move.target),
                "run_id": move.run_id,
                "waits_for": list(move.waits_for),
                "down": list(move.down),
            }
            for move in view.moves
        ],
        "progress": view.progress and _progress(view.progress),
        "throttles": view.throttles,
        "last": view.last and _summary(view.last),
    }


def _progress(moves: MoveProgress) -> dict[str, Any]:
    return {
        "partitions": moves.partitions,
        "partitions_total": moves.partitions_total,
        "bytes": moves.bytes,
        "bytes_total": moves.bytes_total,
        "bytes_per_second": moves.rate,
        "seconds_left": moves.left_s,
        "stalled": [item.partition for item in moves.waiting if item.stalled],
    }


def history_document(runs: Sequence[RunSummary], older: int = 0) -> dict[str, Any]:
    """The list of runs in the order given; ``older``: how many more there are."""
    return {"format_version": FORMAT_VERSION, "runs": [_summary(run) for run in runs], "older": older}


def run_detail_document(detail: RunDetail) -> dict[str, Any]:
    """One run in full; its plan stands beside it in the state folder, so only its id is given."""
    return (
        {"format_version": FORMAT_VERSION}
        | _summary(detail.run)
        | {
            "steps": [_step(step) for step in detail.steps],
            "overrides": [asdict(override) for override in detail.overrides],
            "diagnostics": _diagnostics(detail.diagnostics),
        }
    )


def history_diff_document(
    a: Mapping[str, Json], b: Mapping[str, Json], names: tuple[str, str]
) -> dict[str, Any]:
    """How plan document ``b`` differs from ``a``."""
    return {
        "format_version": FORMAT_VERSION,
        "a": names[0],
        "b": names[1],
        "differences": [
            {"resource": d.resource, "path": d.path, "a": d.a, "b": d.b} for d in compare_plans(a, b)
        ],
    }


def validation_document(view: ValidationView) -> dict[str, Any]:
    """What validate found; ``valid`` is false when there is an error or a denial."""
    return {
        "format_version": FORMAT_VERSION,
        "valid": validation_outcome(view).exit_code is ExitCode.OK,
        "files": view.files,
        "resources": view.resources,
        "diagnostics": _diagnostics(view.diagnostics),
    }


def problem_document(diagnostics: Iterable[Diagnostic], exit_code: ExitCode) -> dict[str, Any]:
    """What a command that failed as a whole prints where JSON was asked for."""
    return {
        "format_version": FORMAT_VERSION,
        "outcome": "error",
        "exit_code": int(exit_code),
        "diagnostics": _diagnostics(diagnostics),
    }


def _diagnostics(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    return [diagnostic_document(item) for item in in_order(diagnostics)]


def _operation(operation: Operation, result: OperationResult | None) -> dict[str, Any]:
    status = result.status if result else Status.INTERRUPTED
    return {
        "id": operation.id,
        "verb": operation.verb,
        "resource": str(operation.resource),
        "status": status.value,
        "error": result.error if result else None,
        "message": result.message if result else "",
        "cause": result.cause if result else None,
    }


def _summary(run: RunSummary) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "started": timestamp(run.started),
        "ended": _time(run.ended),
        "outcome": run.outcome,
        "user": run.user,
        "command": run.command,
        "plan_id": run.plan_id,
        "undoes": run.undoes,
        "undone_by": run.undone_by,
        "overridden": run.overridden,
        "summary": summary_document(run.summary),
        "adopted": run.adopted,
        "operations": run.operations,
        "counts": {status.value: run.counts.get(status, 0) for status in Status},
        "problem": run.problem,
    }


def _step(step: RunStep) -> dict[str, Any]:
    return {
        "id": step.id,
        "verb": step.verb,
        "resource": step.resource,
        "status": step.status and step.status.value,
        "begun": _time(step.begun),
        "ended": _time(step.ended),
        "error": step.error,
        "message": step.message,
        "cause": step.cause,
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)
