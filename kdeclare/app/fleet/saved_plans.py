"""What is in the folder of a fleet's plans: the overview, the plans, and how far an apply of them got."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.app.fleet.plan import OVERVIEW, plan_file
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.engine.planning.planfile import PlanFile, read_plan_file, verify_plan
from kdeclare.fleet.overview import FleetPlan, PlannedCluster, read_overview
from kdeclare.fleet.rows import FORMAT_VERSION
from kdeclare.fleet.storage import Storage
from kdeclare.manifests.fleet import Fleet

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
