"""Read the versions of one live object from the snapshots in a folder."""

from collections.abc import Sequence
from datetime import UTC
from typing import Any

from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as f

from kdeclare.core.jsontypes import as_object, parse_json
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.provider.registry import CODECS
from kdeclare.fleet.history import ObjectVersion
from kdeclare.fleet.live_state import explain_unread
from kdeclare.fleet.rows import CLUSTER, LIVE
from kdeclare.fleet.snapshots import SnapshotCluster, SnapshotRecord, require_all_rows
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from kdeclare.fleet.spark.tables import escape_glob, to_spark_schema
from kdeclare.fleet.storage import Storage


def read_versions(
    spark: SparkSession, storage: Storage, records: Sequence[SnapshotRecord], cluster: str, key: LiveKey
) -> tuple[ObjectVersion, ...]:
    """Read one live object from each snapshot in ``records``, in the same order. Raises KdeclareError.

    cluster: the name of the cluster. The files of other clusters are not read.
    key: the type and key of the object.
    """
    paths = [
        escape_glob(f"{storage.uri}/{r.path}/cluster={_escape_folder_name(spark, cluster)}") for r in records
    ]
    with translate_spark_errors():
        table = spark.read.schema(to_spark_schema(LIVE)).parquet(*paths)
        counts = table.groupBy(f.input_file_name().alias("file")).count().collect()
        rows = (
            table.where(_build_object_filter(key))
            .select("kind", "name", "body", "error", f.input_file_name().alias("file"))
            .collect()
        )
    for record in records:
        count = sum(row["count"] for row in counts if record.path in row["file"])
        require_all_rows(_get_cluster(record, cluster), count, f"{storage.uri}/{record.path}")
    return tuple(
        _build_version(record, cluster, key, [r for r in rows if record.path in r["file"]])
        for record in records
    )


def _escape_folder_name(spark: SparkSession, name: str) -> str:
    """Escape a name in the same way as Spark does for partition folders: ``a:b`` becomes ``a%3Ab``."""
    jvm: Any = spark.sparkContext._jvm
    return str(jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.escapePathName(name))


def _build_object_filter(key: LiveKey) -> Column:
    """Return a condition that selects the rows of the live object, of its type, and of the cluster itself.

    The row of the type contains an error if the type could not be read. The row of the cluster shows which
    systems were read.
    """
    itself = (f.col("kind") == key.sort) & f.col("name").isin(key.key, "")
    return itself | (f.col("kind") == CLUSTER)


def _build_version(record: SnapshotRecord, cluster: str, key: LiveKey, rows: Sequence[Row]) -> ObjectVersion:
    cluster_record = _get_cluster(record, cluster)
    bodies = {(row["kind"], row["name"]): row["body"] for row in rows}
    errors = {(row["kind"], row["name"]): row["error"] for row in rows}
    text = bodies.get(key)
    error = cluster_record.error or errors.get(key)
    if text is None and error is None:
        error = errors.get((key.sort, "")) or _explain_unread(key, bodies.get((CLUSTER, cluster)))
    body = as_object(parse_json(text)) if text is not None else None
    return ObjectVersion(
        (cluster_record.taken_at or record.taken_at).astimezone(UTC), record.snapshot_id, body, error
    )


def _explain_unread(key: LiveKey, cluster: str | None) -> str | None:
    """Return the reason why a snapshot does not contain the objects of a system other than Kafka.

    Return None if the system was read.
    """
    codec = CODECS.get(key.sort)
    if cluster is None or codec is None or codec.identifies_system:
        return None
    return explain_unread(key, cluster)


def _get_cluster(record: SnapshotRecord, cluster: str) -> SnapshotCluster:
    return next(c for c in record.clusters if c.name == cluster)
