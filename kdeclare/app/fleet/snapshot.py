"""Take and find snapshots of a fleet, and show the history of one object across snapshots."""

import json
from collections.abc import Mapping, Sequence
from functools import partial

from kdeclare.app.fleet.archive import TaskNeeds
from kdeclare.app.fleet.cluster_rows import read_live
from kdeclare.app.fleet.engine_choice import MAX_LOCAL_ROWS, choose_engine
from kdeclare.app.fleet.job import (
    ClusterTable,
    Engine,
    FleetJob,
    FleetOptions,
    FleetRun,
    collect_table,
    open_continued_job,
    open_fleet_job,
    open_spark_storage,
)
from kdeclare.app.fleet.local_job import collect_locally, open_local_job, require_local_storage
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.documents import dump_document
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.progress import Progress
from kdeclare.core.provider.registry import CODECS
from kdeclare.core.suggestions import format_alternatives, format_suggestion
from kdeclare.fleet.history.object_history import ObjectVersion
from kdeclare.fleet.tables.records import SNAPSHOTS, build_index, build_record_path, list_record_ids
from kdeclare.fleet.tables.rows import LIVE
from kdeclare.fleet.tables.snapshots import (
    SnapshotCluster,
    SnapshotRecord,
    format_snapshot_path,
    parse_record,
)
from kdeclare.fleet.tables.storage import Storage
from kdeclare.fleet.tables.unfinished_tables import UnfinishedTables, publish_tables
from kdeclare.manifests.policies import TOPIC

LATEST = "latest"
LIVE_TABLE = ClusterTable("live", LIVE, "Reading clusters")


def take_snapshot(options: FleetOptions, environ: Mapping[str, str], progress: Progress) -> SnapshotRecord:
    """Read every cluster and write a snapshot, completely or not at all. Raises KdeclareError.

    If a cluster cannot be read, the snapshot contains the error.
    """
    if choose_engine(options, environ) is Engine.LOCAL:
        return _take_local_snapshot(options, environ, progress)
    with open_fleet_job(options, environ, progress, TaskNeeds.LIVE) as job:
        return _finish_on_spark(job)


def _take_local_snapshot(
    options: FleetOptions, environ: Mapping[str, str], progress: Progress
) -> SnapshotRecord:
    from kdeclare.fleet.local.counts import summarize_snapshot_clusters

    with open_local_job(options, environ, progress) as job:
        live = collect_locally(job, LIVE_TABLE, partial(read_live, job.locator), MAX_LOCAL_ROWS)
        if live.remaining:
            with open_continued_job(options, job) as spark_job:
                return _finish_on_spark(spark_job, live.remaining)
        clusters = tuple(
            cluster
            for name in sorted(job.names)
            for cluster in summarize_snapshot_clusters(job.bench.read_cluster("live", name, LIVE))
        )
        return _publish(job, job.bench.tables, clusters)


def _finish_on_spark(job: FleetJob, remaining: Sequence[str] | None = None) -> SnapshotRecord:
    """Read the clusters that are not in the table of the snapshot yet, and publish the table.

    remaining: the names of these clusters; None if the table does not exist yet.
    """
    from kdeclare.fleet.spark.overview import read_snapshot_clusters
    from kdeclare.fleet.spark.tables import open_workbench

    final_paths = {"live": format_snapshot_path(job.identity, job.began)}
    with open_workbench(job.spark, job.storage, job.identity, final_paths) as bench:
        collect_table(job, bench, LIVE_TABLE, partial(read_live, job.locator), remaining)
        return _publish(job, bench.tables, read_snapshot_clusters(bench.read("live", LIVE)))


def _publish(
    job: FleetRun, tables: UnfinishedTables, clusters: tuple[SnapshotCluster, ...]
) -> SnapshotRecord:
    """Publish the table of a snapshot, and write the `SnapshotRecord`, which describes the snapshot."""
    path = format_snapshot_path(job.identity, job.began)
    record = SnapshotRecord(job.identity, job.fleet.name, job.began, job.seconds, path, clusters)
    text = json.dumps(dump_document(record), indent=1) + "\n"
    record_path = build_record_path(SNAPSHOTS, record.snapshot_id)
    with publish_tables(tables, {"live": path}, record_path):
        index = build_index(job.storage, SNAPSHOTS, record.snapshot_id)
        job.storage.write_all({**index, record_path: text})
    return record


def read_snapshot_record(storage: Storage, snapshot_id: str) -> SnapshotRecord:
    """Read the `SnapshotRecord` of a snapshot. Raises KdeclareError if the snapshot does not exist.

    snapshot_id: an id, or ``latest``.
    """
    snapshot_ids = list_record_ids(storage, SNAPSHOTS)
    if not snapshot_ids or snapshot_id not in (*snapshot_ids, LATEST):
        raise KdeclareError(
            error(
                "no-snapshot",
                "No such snapshot",
                f"There is no snapshot {f'{snapshot_id!r} ' if snapshot_ids else ''}in {storage.uri}.",
                hint=f"Use the id of a recent snapshot: {', '.join(snapshot_ids[-5:])}."
                if snapshot_ids
                else "Run kdeclare fleet snapshot to take one.",
            )
        )
    path = build_record_path(SNAPSHOTS, snapshot_ids[-1] if snapshot_id == LATEST else snapshot_id)
    return parse_record(storage.read(path), f"{storage.uri}/{path}")


def parse_live_key(text: str) -> LiveKey:
    """Parse the name of a topic, or ``KIND/NAME`` for an object of any other kind.

    A topic name never contains a slash. NAME is the name of the live object, which can differ from the name
    of its resource. Raises KdeclareError.
    """
    kind, slash, name = text.partition("/")
    if not slash:
        return LiveKey(TOPIC, text)
    if kind not in CODECS:
        hint = format_suggestion(kind, CODECS) or f"Use {format_alternatives(sorted(CODECS))}."
        detail = f"Snapshots have no objects of kind '{kind}'."
        raise KdeclareError(error("unknown-kind", "Unknown kind", detail, hint=hint))
    return LiveKey(kind, name)


def build_unknown_object_error(cluster: str, key: LiveKey, snapshots: int) -> Diagnostic:
    """Return the error for an object that is not in any snapshot."""
    if key.sort == TOPIC:
        detail = f"No snapshot has a topic '{key.key}' in cluster '{cluster}' (snapshots: {snapshots})."
        return error("no-such-topic", "No such topic", detail, hint="Check the name of the topic.")
    detail = f"No snapshot has {key.sort} '{key.key}' in cluster '{cluster}' (snapshots: {snapshots})."
    hint = "Use the name of the live object, as shown in audit findings about unmanaged objects."
    return error("no-such-object", "No such object", detail, hint=hint)


def read_object_history(
    options: FleetOptions, cluster: str, key: LiveKey, environ: Mapping[str, str], progress: Progress
) -> tuple[ObjectVersion, ...]:
    """Read one live object from every snapshot that includes the cluster, oldest first.

    Raises KdeclareError.
    """
    if choose_engine(options, environ) is Engine.LOCAL:
        from kdeclare.fleet.local.history import read_local_versions

        local_storage = require_local_storage("--out", options.out)
        return read_local_versions(local_storage, _find_snapshots(local_storage, cluster), cluster, key)
    from kdeclare.fleet.spark.history import read_versions

    progress("Starting Spark", 0, 0)
    with open_spark_storage(options) as (spark, storage):
        snapshots = _find_snapshots(storage, cluster)
        progress("Reading snapshots", 0, 0)
        return read_versions(spark, storage, snapshots, cluster, key)


def _find_snapshots(storage: Storage, cluster: str) -> list[SnapshotRecord]:
    all_records = [read_snapshot_record(storage, name) for name in list_record_ids(storage, SNAPSHOTS)]
    matching_records = [r for r in all_records if any(c.name == cluster for c in r.clusters)]
    if matching_records:
        return matching_records
    cluster_names = sorted({c.name for record in all_records for c in record.clusters})
    detail = f"No snapshot in {storage.uri} includes a cluster '{cluster}'."
    hint = (
        format_suggestion(cluster, cluster_names)
        if cluster_names
        else "Run kdeclare fleet snapshot to take a snapshot."
    )
    raise KdeclareError(error("no-snapshot", "No such cluster", detail, hint=hint))
