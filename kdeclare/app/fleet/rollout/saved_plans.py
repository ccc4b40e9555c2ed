"""Make, save and read the plans of a fleet, and record which plans were applied.

Each cluster has its own plan file.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa

from kdeclare.app.fleet.archive import TaskNeeds
from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.engine_choice import MAX_LOCAL_PLANNED, choose_engine
from kdeclare.app.fleet.job import (
    ClusterTable,
    Engine,
    FleetJob,
    FleetOptions,
    FleetRun,
    collect_table,
    open_continued_job,
    open_fleet_job,
)
from kdeclare.app.fleet.local_job import collect_locally, open_local_job
from kdeclare.app.plan import build_plan_text, make_plan
from kdeclare.core.diagnostics import KdeclareError, error, summarize_diagnostics
from kdeclare.core.documents import dump_document
from kdeclare.core.plans.plan import Plan, Summary
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.resources.changes import Action
from kdeclare.core.units import format_names
from kdeclare.engine.planning.planfile import CheckSignature, PlanFile, parse_plan_file, verify_plan
from kdeclare.engine.planning.request import PlanScope
from kdeclare.engine.signatures.signature import SignMessage, sign_plan_text
from kdeclare.fleet.overview import FleetPlan, PlanExit, PlannedCluster, parse_overview
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import FORMAT_VERSION
from kdeclare.fleet.tables.storage import Storage
from kdeclare.manifests.fleet import Fleet
from kdeclare.report.outcome import plan_outcome

OVERVIEW_FILE = "overview.json"

_PLANS_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("cluster", "plan_id", "text", "exit", "summary", "error")]
    + [("changes", pa.int64()), ("resources", pa.int64())]
)
_PLANS_TABLE = ClusterTable(
    "plans", _PLANS_SCHEMA, "Planning", by_cluster=False, of_resources=False, size_column="resources"
)


PlanCluster = Callable[[ClusterLocator, str], Iterator[pa.RecordBatch]]
"""A function that plans the cluster with the given name."""


def build_plan_file_name(cluster: str) -> str:
    """Return the name of a cluster's plan file."""
    return f"{cluster}.plan.json"


def plan_fleet(
    options: FleetOptions,
    scope: PlanScope,
    environ: Mapping[str, str],
    progress: Progress,
    command: str,
    sign: SignMessage | None = None,
) -> FleetPlan:
    """Plan every cluster like ``kdeclare plan``. Save the plans, and list them in ``overview.json``.

    sign: signs the plans; None saves them without signatures. This process signs all plans, so that the key
        is never on another machine.

    If a cluster cannot be planned, ``overview.json`` contains the error, and the cluster's earlier plan is
    deleted. Raises KdeclareError.
    """
    plan_one_cluster = partial(plan_cluster, scope=scope, command=command)
    if choose_engine(options, environ) is Engine.LOCAL:
        return _plan_locally(options, scope, environ, progress, plan_one_cluster, sign)
    with open_fleet_job(options, environ, progress, TaskNeeds.PLAN) as job:
        return _plan_on_spark(job, scope, plan_one_cluster, sign)


def _plan_locally(
    options: FleetOptions,
    scope: PlanScope,
    environ: Mapping[str, str],
    progress: Progress,
    plan_one_cluster: PlanCluster,
    sign: SignMessage | None,
) -> FleetPlan:
    with open_local_job(options, environ, progress) as job:
        plans = collect_locally(job, _PLANS_TABLE, partial(plan_one_cluster, job.locator), MAX_LOCAL_PLANNED)
        if plans.remaining:
            with open_continued_job(options, job) as spark_job:
                return _plan_on_spark(spark_job, scope, plan_one_cluster, sign, plans.remaining)
        rows = (row for name in job.names for row in job.bench.read_cluster("plans", name, _PLANS_SCHEMA))
        return _save_plans(job, scope, rows, sign)


def _plan_on_spark(
    job: FleetJob,
    scope: PlanScope,
    plan_one_cluster: PlanCluster,
    sign: SignMessage | None,
    remaining: Sequence[str] | None = None,
) -> FleetPlan:
    """Plan the clusters that are not in the table of plans yet, and save all plans.

    remaining: the names of these clusters; None if the table does not exist yet.
    """
    from kdeclare.fleet.spark.spark_errors import translate_spark_errors
    from kdeclare.fleet.spark.tables import open_workbench

    with open_workbench(job.spark, job.storage, job.identity) as bench:
        collect_table(job, bench, _PLANS_TABLE, partial(plan_one_cluster, job.locator), remaining)
        with translate_spark_errors():
            rows = bench.read("plans", _PLANS_SCHEMA).toLocalIterator()
            return _save_plans(job, scope, (row.asDict() for row in rows), sign)


def _save_plans(job: FleetRun, scope: PlanScope, rows: Iterable[Row], sign: SignMessage | None) -> FleetPlan:
    """Save the plan of each row. Write ``overview.json`` last, when all plans are saved."""
    job.storage.remove(OVERVIEW_FILE)
    clusters_by_name = {row["cluster"]: _save_plan_row(job, row, sign) for row in rows}
    clusters = tuple(clusters_by_name[name] for name in job.names)
    result = FleetPlan(job.fleet.name, job.began, job.seconds, scope.adopt, clusters)
    job.storage.write(OVERVIEW_FILE, json.dumps(dump_document(result), indent=1) + "\n")
    return result


def _save_plan_row(job: FleetRun, row: Row, sign: SignMessage | None) -> PlannedCluster:
    name, text = str(row["cluster"]), row["text"]
    if text is None:
        job.storage.remove(build_plan_file_name(name))
    else:
        text = str(text) if sign is None else sign_plan_text(str(text), sign, datetime.now(UTC))[0]
        job.storage.write(build_plan_file_name(name), text)
    return PlannedCluster(
        name,
        str(row["plan_id"]) if row["plan_id"] is not None else None,
        Summary(**json.loads(str(row["summary"]))),
        int(row["changes"] or 0),
        PlanExit(str(row["exit"])),
        str(row["error"]) if row["error"] is not None else None,
    )


def plan_cluster(
    locator: ClusterLocator, name: str, *, scope: PlanScope, command: str
) -> Iterator[pa.RecordBatch]:
    """Plan one cluster and yield the plan as one row; runs in a Spark task or in a thread."""
    row: dict[str, object] = {"cluster": name, "changes": 0, "resources": 0, "exit": "error"}
    row["summary"] = json.dumps(asdict(Summary()))
    locator.load_providers()
    try:
        with locator.files():
            workspace = locator.workspace(name)
            selector = _merge_selectors(locator.entry(name).selector, scope.selector)
            plan = make_plan(workspace, (), replace(scope, selector=selector), ignore_progress, command).plan
        row |= _describe_plan(plan)
    except KdeclareError as problem:
        row |= {
            "plan_id": None,
            "text": None,
            "exit": "error",
            "error": summarize_diagnostics(problem.diagnostics),
        }
    yield pa.RecordBatch.from_pylist([{**dict.fromkeys(_PLANS_SCHEMA.names), **row}], _PLANS_SCHEMA)


def _merge_selectors(
    fleet_selector: Mapping[str, str], requested_selector: Mapping[str, str]
) -> dict[str, str]:
    for key in fleet_selector.keys() & requested_selector.keys():
        if fleet_selector[key] != requested_selector[key]:
            detail = (
                f"The fleet file restricts this cluster to {key}={fleet_selector[key]}, but --selector "
                f"requests {key}={requested_selector[key]}."
            )
            hint = f"Leave out --selector {key}={requested_selector[key]}, or change the fleet file."
            raise KdeclareError(error("other-selector", "Selectors contradict each other", detail, hint=hint))
    return {**fleet_selector, **requested_selector}


def _describe_plan(plan: Plan) -> dict[str, object]:
    outcome = plan_outcome(plan)
    changes = sum(change.action is not Action.NO_OP for change in plan.changes)  # an orphan is a NO_OP
    row: dict[str, object] = {
        "exit": outcome.status,
        "summary": json.dumps(asdict(plan.summary)),
        "changes": changes,
        "resources": len(plan.changes),
    }
    if plan.has_errors:
        return row | {"error": summarize_diagnostics(plan.diagnostics)}
    text, plan_id = build_plan_text(plan, datetime.now(UTC))
    return row | {"text": text, "plan_id": plan_id}


_APPLIED_FILE = "applied.json"


def read_overview(storage: Storage) -> FleetPlan:
    """Read ``overview.json``, which lists the plans in a folder. Raises KdeclareError."""
    location = f"{storage.uri}/{OVERVIEW_FILE}"
    if not storage.exists(OVERVIEW_FILE):
        raise KdeclareError(
            error(
                "no-overview",
                "No plans found",
                f"{location} does not exist.",
                hint="Run kdeclare fleet plan FLEET --out DIR to create the plans.",
            )
        )
    return parse_overview(storage.read(OVERVIEW_FILE), location)


def read_fleet_plan(storage: Storage, fleet: Fleet, requested_names: Sequence[str]) -> FleetPlan:
    """Read ``overview.json``, and return the plans of the clusters in ``fleet``.

    requested_names: the clusters that the user selected by name, or an empty sequence.
    Raises KdeclareError if the file is for a different fleet, lists none of the fleet's clusters, or does not
    list all requested clusters.
    """
    fleet_plan = read_overview(storage)
    location = f"{storage.uri}/{OVERVIEW_FILE}"
    if fleet_plan.fleet != fleet.name:
        raise KdeclareError(
            error(
                "other-fleet",
                "Plans of another fleet",
                f"{location} belongs to the fleet '{fleet_plan.fleet}', but the fleet file is for "
                f"'{fleet.name}'.",
                hint="Use --out to pass the folder that kdeclare fleet plan wrote for this fleet.",
            )
        )
    fleet_names = [entry.name for entry in fleet.clusters]
    clusters = tuple(cluster for cluster in fleet_plan.clusters if cluster.name in fleet_names)
    planned_names = {cluster.name for cluster in clusters}
    missing_names = [
        name for name in (requested_names if clusters else fleet_names) if name not in planned_names
    ]
    if missing_names:
        raise KdeclareError(
            error(
                "not-planned",
                "Cluster was not planned",
                f"{location} has no plan for {format_names(missing_names)}.",
                hint="Run kdeclare fleet plan again, including the missing clusters.",
            )
        )
    return replace(fleet_plan, clusters=clusters)


def read_cluster_plan(
    storage: Storage, cluster: PlannedCluster, check_signature: CheckSignature | None = None
) -> PlanFile:
    """Read the plan of a cluster.

    check_signature: see `CheckSignature`; None accepts all plans.
    Raises KdeclareError, for example if ``overview.json`` lists a different plan id for the cluster.
    """
    file_name = build_plan_file_name(cluster.name)
    location = f"{storage.uri}/{file_name}"
    cluster_plan = parse_plan_file(storage.read(file_name), location, check_signature)
    verify_plan(cluster_plan, location)
    if cluster_plan.plan_id != cluster.plan_id:
        raise KdeclareError(
            error(
                "other-plan",
                "Plan does not match the list of saved plans",
                f"{location} contains plan {cluster_plan.plan_id[:12]}, but {OVERVIEW_FILE} lists "
                f"{str(cluster.plan_id)[:12]} for '{cluster.name}'.",
                hint="Plan the fleet again and do not change the files, or apply this plan alone with "
                "kdeclare apply.",
            )
        )
    return cluster_plan


def read_applied_plans(storage: Storage, planned_at: str) -> dict[str, str]:
    """Return, by cluster, the ids of the plans that an earlier fleet apply finished.

    planned_at: when the fleet was planned. A record for other plans is ignored. Raises KdeclareError.
    """
    if not storage.exists(_APPLIED_FILE):
        return {}
    try:
        data = json.loads(storage.read(_APPLIED_FILE))
        if data["format_version"] == FORMAT_VERSION:
            if data["planned_at"] != planned_at:
                return {}
            return {str(name): str(plan_id) for name, plan_id in data["done"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise KdeclareError(
        error(
            "bad-progress",
            "Invalid record of applied plans",
            f"{storage.uri}/{_APPLIED_FILE} does not have the format that kdeclare fleet apply writes.",
            hint="Delete the file and run the command again. Plans that were already "
            "applied are refused as stale.",
        )
    )


def write_applied_plans(storage: Storage, planned_at: str, applied_plan_ids: Mapping[str, str]) -> None:
    """Record which plans were applied; `read_applied_plans` returns this record. Raises KdeclareError."""
    document = {"format_version": FORMAT_VERSION, "planned_at": planned_at, "done": dict(applied_plan_ids)}
    storage.write(_APPLIED_FILE, json.dumps(document, indent=1) + "\n")
