"""One saved plan a cluster, all from one Spark job."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa

from kdeclare.app.fleet.collect import Collected, collect
from kdeclare.app.fleet.job import FleetJob, FleetOptions, fleet_job
from kdeclare.app.fleet.reach import Reach
from kdeclare.app.plan import make_plan, saved_text
from kdeclare.app.scope import Scope
from kdeclare.core.changes import Action
from kdeclare.core.diagnostics import KdeclareError, error, gist
from kdeclare.core.plan import Plan, Summary
from kdeclare.core.progress import Progress, quietly
from kdeclare.fleet.overview import FleetPlan, PlanExit, PlannedCluster, overview_document
from kdeclare.report.outcome import plan_outcome

OVERVIEW = "overview.json"

_PLANS = pa.schema(
    [(name, pa.string()) for name in ("cluster", "plan_id", "text", "exit", "summary", "error")]
    + [("changes", pa.int64())]
)


def plan_file(cluster: str) -> str:
    """The name of a cluster's plan file."""
    return f"{cluster}.plan.json"


def plan_fleet(
    options: FleetOptions, scope: Scope, environ: Mapping[str, str], progress: Progress, command: str
) -> FleetPlan:
    """Plan every cluster as ``kdeclare plan`` would, and save the plans and an overview.

    What cannot be planned is in the overview with its error; a plan of an earlier time is taken away then.
    Raises KdeclareError.
    """
    from kdeclare.fleet.spark.problems import explained
    from kdeclare.fleet.spark.tables import workbench

    with (
        fleet_job(options, environ, progress) as job,
        workbench(job.spark, job.storage, job.identity) as bench,
    ):
        read = partial(read_plan, job.reach, scope, command)
        collect(job, bench, Collected("plans", _PLANS, "Planning", of_resources=False), read)
        job.storage.remove(OVERVIEW)  # until the last plan is written there is none
        found: dict[str, PlannedCluster] = {}
        with explained():
            for row in bench.read("plans", _PLANS).toLocalIterator():
                found[row["cluster"]] = _saved(job, row.asDict())
        planned = tuple(found[name] for name in job.names)
        result = FleetPlan(job.fleet.name, job.began, job.seconds, planned, scope.adopt)
        job.storage.write(OVERVIEW, json.dumps(overview_document(result), indent=1) + "\n")
        return result


def _saved(job: FleetJob, row: Mapping[str, str | int | None]) -> PlannedCluster:
    name, text = str(row["cluster"]), row["text"]
    if text is None:
        job.storage.remove(plan_file(name))
    else:
        job.storage.write(plan_file(name), str(text))
    return PlannedCluster(
        name,
        str(row["plan_id"]) if row["plan_id"] is not None else None,
        Summary(**json.loads(str(row["summary"]))),
        int(row["changes"] or 0),
        PlanExit(str(row["exit"])),
        str(row["error"]) if row["error"] is not None else None,
    )


def read_plan(reach: Reach, scope: Scope, command: str, name: str) -> Iterator[pa.RecordBatch]:
    """The plan of one cluster as one row; runs where the task runs."""
    row: dict[str, object] = {"cluster": name, "changes": 0, "exit": "error"}
    row["summary"] = json.dumps(asdict(Summary()))
    reach.load_providers()
    try:
        with reach.files():
            workspace = reach.workspace(name)
            selector = _narrowed(reach.entry(name).selector, scope.selector)
            plan = make_plan(workspace, (), replace(scope, selector=selector), quietly, command).plan
        row |= _told(plan)
    except KdeclareError as problem:
        row |= {"plan_id": None, "text": None, "exit": "error", "error": gist(problem.diagnostics)}
    yield pa.RecordBatch.from_pylist([{**dict.fromkeys(_PLANS.names), **row}], _PLANS)


def _narrowed(stated: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    """The labels of both. Raises KdeclareError where one would widen what the other narrows down."""
    for key in stated.keys() & asked.keys():
        if stated[key] != asked[key]:
            detail = (
                f"The fleet file narrows this cluster down to {key}={stated[key]}, not {key}={asked[key]}."
            )
            raise KdeclareError(error("other-selector", "Nothing is selected", detail))
    return {**stated, **asked}


def _told(plan: Plan) -> dict[str, object]:
    outcome = plan_outcome(plan)
    changes = sum(change.action is not Action.NO_OP for change in plan.changes)  # no orphans that stay
    row: dict[str, object] = {
        "exit": outcome.status,
        "summary": json.dumps(asdict(plan.summary)),
        "changes": changes,
    }
    if plan.has_errors:
        return row | {"error": gist(plan.diagnostics)}
    text, plan_id = saved_text(plan, datetime.now(UTC))
    return row | {"text": text, "plan_id": plan_id}
