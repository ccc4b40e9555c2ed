"""One topic through the snapshots of a folder."""

from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f

from kdeclare.core.jsontypes import as_object, parse_json
from kdeclare.fleet.history import TopicVersion
from kdeclare.fleet.rows import LIVE
from kdeclare.fleet.snapshots import SnapshotCluster, SnapshotRecord, refuse_lost_rows
from kdeclare.fleet.spark.problems import explained
from kdeclare.fleet.spark.tables import as_it_is, schema_of
from kdeclare.fleet.storage import Storage


def versions(
    spark: SparkSession, storage: Storage, records: Sequence[SnapshotRecord], cluster: str, topic: str
) -> tuple[TopicVersion, ...]:
    """The topic in each snapshot, oldest first; only the files of that cluster are read.

    Raises KdeclareError.
    """
    paths = [as_it_is(f"{storage.uri}/{r.path}/cluster={_as_folder(spark, cluster)}") for r in records]
    with explained():
        table = spark.read.schema(schema_of(LIVE)).parquet(*paths)
        counts = table.groupBy(f.input_file_name().alias("file")).count().collect()
        rows = (
            table.where((f.col("kind") == "Topic") & (f.col("name") == topic))
            .select("body", "error", f.input_file_name().alias("file"))
            .collect()
        )
    for record in records:
        count = sum(row["count"] for row in counts if record.path in row["file"])
        refuse_lost_rows(_of(record, cluster), count, f"{storage.uri}/{record.path}")
    return tuple(
        _version(record, cluster, [r for r in rows if record.path in r["file"]]) for record in records
    )


def _as_folder(spark: SparkSession, name: str) -> str:
    """A name as Spark spells it in the folders of partitions: ``a:b`` is ``a%3Ab``."""
    jvm: Any = spark.sparkContext._jvm
    return str(jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.escapePathName(name))


def _version(record: SnapshotRecord, cluster: str, rows: Iterable[Row]) -> TopicVersion:
    own = _of(record, cluster)
    found = next(iter(rows), None)
    text = found["body"] if found is not None else None
    body = as_object(parse_json(text)) if text is not None else None
    wrong = own.error or (found["error"] if found is not None else None)
    return TopicVersion((own.taken_at or record.taken_at).astimezone(UTC), record.snapshot_id, body, wrong)


def _of(record: SnapshotRecord, cluster: str) -> SnapshotCluster:
    return next(c for c in record.clusters if c.name == cluster)
