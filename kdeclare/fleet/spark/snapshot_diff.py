"""Use Spark to find the live objects that differ between two snapshots."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kdeclare.fleet.history.snapshot_diff import RowPair, SnapshotDiff, SnapshotSide, build_snapshot_diff
from kdeclare.fleet.spark.audit import require_unaltered
from kdeclare.fleet.spark.diff import KEY
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from kdeclare.fleet.spark.tables import read_table
from kdeclare.fleet.tables.rows import CLUSTER, LIVE
from kdeclare.fleet.tables.snapshots import SnapshotRecord
from kdeclare.fleet.tables.storage import Storage

_COLUMNS = (*KEY, "fingerprint", "body", "error", "is_part")


def diff_on_spark(
    spark: SparkSession, storage: Storage, before: SnapshotRecord, after: SnapshotRecord
) -> SnapshotDiff:
    """Compare the clusters of two snapshots. Only rows that differ are collected. Raises KdeclareError."""
    tables = tuple(_read_snapshot(spark, storage, record) for record in (before, after))
    with translate_spark_errors():
        earlier, later = (
            SnapshotSide(record, [row.asDict() for row in _select_notes(table).collect()])
            for record, table in zip((before, after), tables, strict=True)
        )
        pairs = _collect_pairs(*tables)
    return build_snapshot_diff(earlier, later, pairs)


def _read_snapshot(spark: SparkSession, storage: Storage, record: SnapshotRecord) -> DataFrame:
    table = read_table(spark, storage, record.path, LIVE)
    table = table.where(table.cluster.isin([cluster.name for cluster in record.clusters]))
    require_unaltered(table, record.clusters, f"{storage.uri}/{record.path}")
    return table.select(*_COLUMNS)


def _select_notes(table: DataFrame) -> DataFrame:
    return table.where((f.col("kind") == CLUSTER) | f.col("error").isNotNull())


def _collect_pairs(before: DataFrame, after: DataFrame) -> list[RowPair]:
    earlier, later = (table.where(f.col("kind") != CLUSTER) for table in (before, after))
    is_same_object = f.expr(" and ".join(f"a.{column} = b.{column}" for column in KEY))
    rows = (
        earlier.alias("a")
        .join(later.alias("b"), is_same_object, "full_outer")
        .where("a.name is null or b.name is null or not (a.fingerprint <=> b.fingerprint)")
        .select(*(f.struct(*(f"{side}.{name}" for name in _COLUMNS)).alias(side) for side in ("a", "b")))
        .collect()
    )
    return [
        tuple(None if row[side]["name"] is None else row[side].asDict() for side in ("a", "b"))  # type: ignore[misc]
        for row in rows
    ]
