"""Read the versions of one live object from the snapshots in a folder."""

from collections.abc import Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from kdeclare.core.live.live_codec import LiveKey
from kdeclare.fleet.history.finding_history import FindingSubject, select_subject
from kdeclare.fleet.history.object_history import ObjectVersion
from kdeclare.fleet.history.object_versions import build_version, get_cluster
from kdeclare.fleet.local.tables import format_partition
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from kdeclare.fleet.spark.tables import escape_glob, open_reader, read_table, to_spark_schema
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import CLUSTER, FINDINGS, LIVE
from kdeclare.fleet.tables.snapshots import SnapshotRecord, require_all_rows
from kdeclare.fleet.tables.storage import Storage


def read_versions(
    spark: SparkSession, storage: Storage, records: Sequence[SnapshotRecord], cluster: str, key: LiveKey
) -> tuple[ObjectVersion, ...]:
    """Read one live object from each snapshot in ``records``, in the same order. Raises KdeclareError.

    cluster: the name of the cluster. The files of other clusters are not read.
    key: the type and key of the object.
    """
    paths = [escape_glob(f"{storage.uri}/{r.path}/{format_partition(cluster)}") for r in records]
    with translate_spark_errors():
        table = open_reader(spark, to_spark_schema(LIVE)).parquet(*paths)
        counts = table.groupBy(f.input_file_name().alias("file")).count().collect()
        rows = (
            table.where(_build_object_filter(key))
            .select("kind", "name", "body", "error", "is_part", f.input_file_name().alias("file"))
            .collect()
        )
    for record in records:
        count = sum(row["count"] for row in counts if record.path in row["file"])
        require_all_rows(get_cluster(record, cluster), count, f"{storage.uri}/{record.path}")
    return tuple(
        build_version(record, cluster, key, [r.asDict() for r in rows if record.path in r["file"]])
        for record in records
    )


def read_subject_findings(
    spark: SparkSession, storage: Storage, path: str, subject: FindingSubject
) -> tuple[int, list[Row]]:
    """Return the number of findings in a table of an audit, and the findings about one object.

    path: the table, relative to the folder of audits. Raises KdeclareError.
    """
    table = read_table(spark, storage, path, FINDINGS)
    has_name = (
        (f.col("cluster") == subject.cluster)
        & (f.col("kind") == subject.kind)
        & f.col("name").isin(sorted(subject.names))
    )
    with translate_spark_errors():
        named_rows = [row.asDict() for row in table.where(has_name).collect()]
        return table.count(), [dict(row) for row in select_subject(named_rows, subject)]


def _build_object_filter(key: LiveKey) -> Column:
    """Return a condition that selects the rows about the live object, its type, and the whole cluster.

    The rows about the type contain an error if the type could not be read, or not completely. The row about
    the whole cluster shows which systems were read.
    """
    is_of_type = f.col("name").isin(key.key, "") | f.coalesce("is_part", f.lit(False))
    return ((f.col("kind") == key.sort) & is_of_type) | (f.col("kind") == CLUSTER)
