"""Taking snapshots of a fleet, and finding them again."""

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from kdeclare.app.fleet.collect import Collected, collect
from kdeclare.app.fleet.job import FleetJob, FleetOptions, fleet_job
from kdeclare.app.fleet.reading import read_live
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.progress import Progress
from kdeclare.fleet.folders import SNAPSHOTS, records
from kdeclare.fleet.rows import LIVE
from kdeclare.fleet.snapshots import SnapshotRecord, read_record, record_document, snapshot_path
from kdeclare.fleet.storage import Storage

if TYPE_CHECKING:
    from kdeclare.fleet.spark.tables import Workbench

LATEST = "latest"


def take_snapshot(options: FleetOptions, environ: Mapping[str, str], progress: Progress) -> SnapshotRecord:
    """Read every cluster and write what it has; all of it, or nothing. Raises KdeclareError.

    A cluster that cannot be read is in it with its error.
    """
    from kdeclare.fleet.spark.counting import snapshot_clusters
    from kdeclare.fleet.spark.tables import workbench

    with (
        fleet_job(options, environ, progress) as job,
        workbench(job.spark, job.storage, job.identity) as bench,
    ):
        collect_live(job, bench)
        path = snapshot_path(job.identity, job.began)
        clusters = snapshot_clusters(bench.read("live", LIVE))
        record = SnapshotRecord(job.identity, job.fleet.name, job.began, job.seconds, path, clusters)
        text = json.dumps(record_document(record), indent=1) + "\n"
        with bench.published({"live": path}):
            job.storage.write(f"{SNAPSHOTS}/{job.identity}.json", text)
        return record


def collect_live(job: FleetJob, bench: "Workbench") -> None:
    """Read the clusters into the table ``live``. Raises KdeclareError."""
    collect(job, bench, Collected("live", LIVE, "Reading clusters"), partial(read_live, job.reach))


def snapshot_record(storage: Storage, wanted: str) -> SnapshotRecord:
    """The record of one, or of the latest. Raises KdeclareError where there is none."""
    known = records(storage, SNAPSHOTS)
    if not known or wanted not in (*known, LATEST):
        raise KdeclareError(
            error(
                "no-snapshot",
                "No such snapshot",
                f"{storage.uri} holds {'no snapshot' if not known else f'no snapshot {wanted!r}'}.",
                hint=f"It holds {', '.join(known[-5:])}." if known else "kdeclare fleet snapshot takes one.",
            )
        )
    path = f"{SNAPSHOTS}/{known[-1] if wanted == LATEST else wanted}.json"
    return read_record(storage.read(path), f"{storage.uri}/{path}")
