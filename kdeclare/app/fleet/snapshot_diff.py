"""Read two snapshots of a fleet and compare them, without reading the clusters."""

from collections.abc import Mapping
from dataclasses import replace

from kdeclare.app.fleet.engine_choice import choose_engine
from kdeclare.app.fleet.job import Engine, FleetOptions, open_spark_storage
from kdeclare.app.fleet.local_job import require_local_storage
from kdeclare.app.fleet.snapshot import read_snapshot_record
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.progress import Progress
from kdeclare.fleet.history.snapshot_diff import (
    SnapshotDiff,
    SnapshotSide,
    build_snapshot_diff,
    find_differing_rows,
    select_notes,
)
from kdeclare.fleet.tables.record_ids import find_earlier_id
from kdeclare.fleet.tables.records import SNAPSHOTS, list_record_ids
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import LIVE
from kdeclare.fleet.tables.snapshots import SnapshotRecord
from kdeclare.fleet.tables.storage import LocalStorage, Storage

PREVIOUS = "previous"
"""The value of ``before`` that selects the latest snapshot taken before ``after``; see `diff_snapshots`."""


@dataclass(frozen=True, slots=True)
class ComparedSnapshots:
    """Two snapshots and the differences between them."""

    before: SnapshotRecord
    after: SnapshotRecord
    diff: SnapshotDiff


def diff_snapshots(
    options: FleetOptions, before: str, after: str, environ: Mapping[str, str], progress: Progress
) -> ComparedSnapshots:
    """Compare two snapshots in a folder. Raises KdeclareError.

    before: an id, ``previous``, a duration or a day; see `find_earlier_id`. after: an id, or ``latest``.
    options: ``clusters`` are the names of the clusters to compare; all clusters if empty.
    """
    if choose_engine(options, environ) is Engine.LOCAL:
        storage = require_local_storage("--out", options.out)
        records = _find_records(storage, before, after, options)
        progress("Reading snapshots", 0, 0)
        return ComparedSnapshots(*records, _diff_locally(storage, *records))
    from kdeclare.fleet.spark.snapshot_diff import diff_on_spark

    progress("Starting Spark", 0, 0)
    with open_spark_storage(options) as (spark, spark_storage):
        records = _find_records(spark_storage, before, after, options)
        progress("Reading snapshots", 0, 0)
        return ComparedSnapshots(*records, diff_on_spark(spark, spark_storage, *records))


def _find_records(
    storage: Storage, before: str, after: str, options: FleetOptions
) -> tuple[SnapshotRecord, SnapshotRecord]:
    later = read_snapshot_record(storage, after)
    ids = list_record_ids(storage, SNAPSHOTS)
    try:
        if before == PREVIOUS:
            earlier_ids = [id_ for id_ in ids if id_ < later.snapshot_id]
            if not earlier_ids:
                raise ValueError(f"There is no snapshot before {later.snapshot_id}.")
            earlier_id = earlier_ids[-1]
        else:
            earlier_id = find_earlier_id(before, ids, later.snapshot_id, "snapshot")
    except ValueError as reason:
        hint = "Take another snapshot, or pass the id of an earlier one."
        raise KdeclareError(error("no-snapshot", "No such snapshot", str(reason), hint=hint)) from None
    earlier = read_snapshot_record(storage, earlier_id)
    _require_clusters(options.clusters, (earlier, later))
    return _select_clusters(earlier, options), _select_clusters(later, options)


def _require_clusters(names: tuple[str, ...], records: tuple[SnapshotRecord, SnapshotRecord]) -> None:
    known = sorted({cluster.name for record in records for cluster in record.clusters})
    for name in names:
        if name not in known:
            detail = f"Neither snapshot includes a cluster '{name}'."
            hint = f"Use one of {', '.join(known[:10])}." if known else "Take a new snapshot."
            raise KdeclareError(error("no-snapshot", "No such cluster", detail, hint=hint))


def _select_clusters(record: SnapshotRecord, options: FleetOptions) -> SnapshotRecord:
    if not options.clusters:
        return record
    return replace(record, clusters=tuple(c for c in record.clusters if c.name in options.clusters))


def _diff_locally(storage: LocalStorage, before: SnapshotRecord, after: SnapshotRecord) -> SnapshotDiff:
    from kdeclare.fleet.local.audit import require_unaltered
    from kdeclare.fleet.local.tables import read_rows

    def read_snapshot(record: SnapshotRecord) -> list[Row]:
        rows = read_rows(storage, record.path, LIVE, [cluster.name for cluster in record.clusters])
        require_unaltered(rows, record.clusters, f"{storage.uri}/{record.path}")
        return rows

    earlier, later = read_snapshot(before), read_snapshot(after)
    return build_snapshot_diff(
        SnapshotSide(before, select_notes(earlier)),
        SnapshotSide(after, select_notes(later)),
        find_differing_rows(earlier, later),
    )
