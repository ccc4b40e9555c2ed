"""Taking snapshots of a fleet, finding them again, and what one object was at their times."""

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from kdeclare.app.fleet.job import Collected, FleetJob, FleetOptions, collect, fleet_job
from kdeclare.app.fleet.reading import read_live
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.documents import dump_document
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.progress import Progress
from kdeclare.core.provider.registry import CODECS
from kdeclare.fleet.rows import LIVE
from kdeclare.fleet.snapshots import SnapshotRecord, read_record, snapshot_path
from kdeclare.fleet.storage import SNAPSHOTS, Storage, records

if TYPE_CHECKING:
    from kdeclare.fleet.spark.tables import Workbench
from kdeclare.app.fleet.job import spark_storage
from kdeclare.core.suggest import did_you_mean, one_of
from kdeclare.fleet.history import ObjectVersion
from kdeclare.manifests.policies import TOPIC

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
        text = json.dumps(dump_document(record), indent=1) + "\n"
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


def find_live_key(word: str) -> LiveKey:
    """Return the live object that a person means: a topic, or KIND/NAME, as the name of no topic has a slash.

    NAME is that of the object: a resource can be called otherwise. Raises KdeclareError.
    """
    kind, slash, name = word.partition("/")
    if not slash:
        return LiveKey(TOPIC, word)
    if kind not in CODECS:
        hint = did_you_mean(kind, CODECS) or f"Snapshots have {one_of(sorted(CODECS))}."
        detail = f"Snapshots have no objects of kind '{kind}'."
        raise KdeclareError(error("unknown-kind", "Unknown kind", detail, hint=hint))
    return LiveKey(kind, name)


def report_unknown_object(cluster: str, key: LiveKey, snapshots: int) -> Diagnostic:
    """Return what to say where no snapshot has an object."""
    if key.sort == TOPIC:
        detail = f"None of {snapshots} snapshots has a topic '{key.key}' in cluster '{cluster}'."
        return error("no-such-topic", "No such topic", detail)
    detail = f"None of {snapshots} snapshots has {key.sort} '{key.key}' in cluster '{cluster}'."
    hint = (
        "Write the name of the object as the snapshot has it: findings of unmanaged objects show such names."
    )
    return error("no-such-object", "No such object", detail, hint=hint)


def object_history(
    options: FleetOptions, cluster: str, key: LiveKey, progress: Progress
) -> tuple[ObjectVersion, ...]:
    """One live object in every snapshot of a folder that has the cluster, oldest first.

    Raises KdeclareError.
    """
    from kdeclare.fleet.spark.history import versions

    progress("Starting Spark", 0, 0)
    with spark_storage(options) as (spark, storage):
        snapshots = _snapshots(storage, cluster)
        progress("Reading snapshots", 0, 0)
        return versions(spark, storage, snapshots, cluster, key)


def _snapshots(storage: Storage, cluster: str) -> list[SnapshotRecord]:
    every = [snapshot_record(storage, name) for name in records(storage, SNAPSHOTS)]
    found = [r for r in every if any(c.name == cluster for c in r.clusters)]
    if found:
        return found
    known = sorted({c.name for record in every for c in record.clusters})
    detail = f"No snapshot in {storage.uri} has a cluster '{cluster}'."
    hint = did_you_mean(cluster, known) if known else "kdeclare fleet snapshot takes one."
    raise KdeclareError(error("no-snapshot", "No such cluster", detail, hint=hint))
