"""One saved plan a cluster: all from one Spark job, read again, and how far an apply of them got."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa

from kdeclare.app.fleet.job import Collected, FleetJob, FleetOptions, collect, fleet_job
from kdeclare.app.fleet.reach import Reach
from kdeclare.app.plan import make_plan, saved_text
from kdeclare.core.diagnostics import KdeclareError, error, gist
from kdeclare.core.documents import dump_document
from kdeclare.core.plans.plan import Plan, Summary
from kdeclare.core.progress import Progress, quietly
from kdeclare.core.resources.changes import Action
from kdeclare.engine.planning.planfile import PlanFile, read_plan_file, verify_plan
from kdeclare.engine.planning.request import Scope
from kdeclare.fleet.overview import FleetPlan, PlanExit, PlannedCluster, read_overview
from kdeclare.fleet.rows import FORMAT_VERSION
from kdeclare.fleet.storage import Storage
from kdeclare.manifests.fleet import Fleet
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
        result = FleetPlan(job.fleet.name, job.began, job.seconds, scope.adopt, planned)
        job.storage.write(OVERVIEW, json.dumps(dump_document(result), indent=1) + "\n")
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
        row |= _describe_plan(plan)
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


def _describe_plan(plan: Plan) -> dict[str, object]:
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


_DONE = "applied.json"


def read_planned(storage: Storage, fleet: Fleet, named: Sequence[str]) -> FleetPlan:
    """What the overview says of the fleet's clusters. Raises KdeclareError where it says nothing of them.

    named: the clusters that the person asked for by name, if any; each has to be there.
    """
    where = f"{storage.uri}/{OVERVIEW}"
    if not storage.exists(OVERVIEW):
        raise KdeclareError(
            error(
                "no-overview",
                "There are no plans",
                f"{where} is not there.",
                hint="kdeclare fleet plan FLEET --out DIR makes it, and the plans beside it.",
            )
        )
    planned = read_overview(storage.read(OVERVIEW), where)
    if planned.fleet != fleet.name:
        raise KdeclareError(
            error(
                "other-fleet",
                "Plans of another fleet",
                f"{where} is about the fleet '{planned.fleet}', and this is '{fleet.name}'.",
                hint="Give the folder that kdeclare fleet plan wrote for this fleet.",
            )
        )
    chosen = [entry.name for entry in fleet.clusters]
    clusters = tuple(cluster for cluster in planned.clusters if cluster.name in chosen)
    known = {cluster.name for cluster in clusters}
    missing = [name for name in (named if clusters else chosen) if name not in known]
    if missing:
        raise KdeclareError(
            error(
                "not-planned",
                "A cluster was not planned",
                f"{where} says nothing of {list_some(missing)}.",
                hint="Plan the fleet again, with this cluster in it.",
            )
        )
    return replace(planned, clusters=clusters)


def read_cluster_plan(storage: Storage, cluster: PlannedCluster) -> PlanFile:
    """The plan of a cluster. Raises KdeclareError, also where it is not the one that the overview means."""
    name = plan_file(cluster.name)
    where = f"{storage.uri}/{name}"
    file = read_plan_file(storage.read(name), where)
    verify_plan(file, where)
    if file.plan_id != cluster.plan_id:
        raise KdeclareError(
            error(
                "other-plan",
                "A plan is not the one of the overview",
                f"{where} is plan {file.plan_id[:12]}, and {OVERVIEW} has {str(cluster.plan_id)[:12]} for "
                f"'{cluster.name}'.",
                hint="Plan the fleet again, and leave the files as they are; or apply this one alone with "
                "kdeclare apply.",
            )
        )
    return file


def read_done(storage: Storage, planned_at: str) -> dict[str, str]:
    """Plan ids by cluster that an earlier apply of the very same plans has seen through.

    planned_at: when these plans were made. Raises KdeclareError.
    """
    if not storage.exists(_DONE):
        return {}
    try:
        data = json.loads(storage.read(_DONE))
        if data["format_version"] == FORMAT_VERSION:
            if data["planned_at"] != planned_at:
                return {}
            return {str(name): str(plan_id) for name, plan_id in data["done"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise KdeclareError(
        error(
            "bad-progress",
            "Not a record of an apply",
            f"{storage.uri}/{_DONE} is not what kdeclare fleet apply writes.",
            hint="Delete it to begin anew; plans that were applied are refused as stale.",
        )
    )


def write_done(storage: Storage, planned_at: str, done: Mapping[str, str]) -> None:
    """Remember it for `read_done`. Raises KdeclareError."""
    document = {"format_version": FORMAT_VERSION, "planned_at": planned_at, "done": dict(done)}
    storage.write(_DONE, json.dumps(document, indent=1) + "\n")


def list_some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    return f"{', '.join(names[:5])}{f' and {len(names) - 5:,} more' if len(names) > 5 else ''}"
