"""What one topic was at the times of the snapshots."""

from kdeclare.app.fleet.job import FleetOptions, spark_storage
from kdeclare.app.fleet.snapshot import snapshot_record
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.progress import Progress
from kdeclare.core.suggest import did_you_mean
from kdeclare.fleet.folders import SNAPSHOTS, records
from kdeclare.fleet.history import TopicVersion
from kdeclare.fleet.snapshots import SnapshotRecord
from kdeclare.fleet.storage import Storage


def topic_history(
    options: FleetOptions, cluster: str, topic: str, progress: Progress
) -> tuple[TopicVersion, ...]:
    """Every snapshot of a folder that has the cluster, oldest first. Raises KdeclareError."""
    from kdeclare.fleet.spark.history import versions

    progress("Starting Spark", 0, 0)
    with spark_storage(options) as (spark, storage):
        snapshots = _snapshots(storage, cluster)
        progress("Reading snapshots", 0, 0)
        return versions(spark, storage, snapshots, cluster, topic)


def _snapshots(storage: Storage, cluster: str) -> list[SnapshotRecord]:
    every = [snapshot_record(storage, name) for name in records(storage, SNAPSHOTS)]
    found = [r for r in every if any(c.name == cluster for c in r.clusters)]
    if found:
        return found
    known = sorted({c.name for record in every for c in record.clusters})
    detail = f"No snapshot in {storage.uri} has a cluster '{cluster}'."
    hint = did_you_mean(cluster, known) if known else "kdeclare fleet snapshot takes one."
    raise KdeclareError(error("no-snapshot", "No such cluster", detail, hint=hint))
