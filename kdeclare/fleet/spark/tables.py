"""Read, write and publish the tables of a fleet with Spark."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow.parquet import read_metadata
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import DataType, StructType

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.row_builder import Row, batch_rows
from kdeclare.fleet.rows import CLUSTER, LIVE, require_written_rows
from kdeclare.fleet.spark.settings import has_local_tasks
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from kdeclare.fleet.storage import LocalStorage, Storage, build_read_error
from kdeclare.fleet.unfinished_tables import open_unfinished_folder


def to_spark_type(type_: pa.DataType) -> DataType:
    """Convert an Arrow type to a Spark type."""
    return from_arrow_type(type_)


def to_spark_schema(schema: pa.Schema) -> StructType:
    """Convert an Arrow schema to a Spark schema."""
    return from_arrow_schema(schema)


__all__ = ["DataFrame", "Workbench", "escape_glob", "open_workbench", "read_table"]

_GLOB_CHARACTERS = re.compile(r"[\\{}\[\]*?]")


@dataclass(frozen=True, slots=True)
class Workbench:
    """The temporary folder in which a command writes its tables until they are complete."""

    spark: SparkSession
    storage: Storage
    folder: str

    def write(
        self, table: DataFrame, name: str, partitioned_by: Sequence[str] = (), *, append: bool = False
    ) -> str:
        """Write a table, and return its path in the storage.

        append: whether to add the rows to an existing table, which must be in a folder of this machine.
        Raises KdeclareError, for example if this machine does not see rows that executors wrote.
        """
        path = f"{self.folder}/{name}"
        shared_folder = self._find_shared_folder()
        observation = Observation()
        if shared_folder is not None:
            table = table.observe(observation, f.count(f.lit(1)).alias("count"))
        with translate_spark_errors():
            mode = "append" if append else "error"
            table.write.partitionBy(*partitioned_by).parquet(f"{self.storage.uri}/{path}", mode)
            written_count = observation.get["count"] if shared_folder is not None else 0
        if shared_folder is not None:
            require_written_rows(name, written_count, _count_rows(shared_folder / name))
        return path

    def _find_shared_folder(self) -> Path | None:
        """Return the local path of the folder if remote executors write to the folder; otherwise None."""
        if not isinstance(self.storage, LocalStorage) or has_local_tasks(self.spark):
            return None
        return self.storage.folder / self.folder

    def read(self, name: str, schema: pa.Schema) -> DataFrame:
        """Read a table that `write` has written."""
        return read_table(self.spark, self.storage, f"{self.folder}/{name}", schema)


def read_table(spark: SparkSession, storage: Storage, path: str, schema: pa.Schema) -> DataFrame:
    """Read a table, including its partition columns. Raises KdeclareError."""
    uri = f"{storage.uri}/{path}"
    with translate_spark_errors():
        return spark.read.schema(to_spark_schema(schema)).option("basePath", uri).parquet(escape_glob(uri))


def escape_glob(uri: str) -> str:
    """Escape the characters in a path that Spark would interpret as a glob pattern."""
    return _GLOB_CHARACTERS.sub(r"\\\g<0>", uri)


def _count_rows(table: Path) -> int:
    """Return the number of rows that this machine sees in a table in a local folder."""
    try:
        return sum(read_metadata(file).num_rows for file in table.rglob("*.parquet"))
    except (OSError, pa.ArrowException) as cause:
        raise build_read_error(str(table), str(cause)) from cause


@contextmanager
def open_workbench(spark: SparkSession, storage: Storage, command_id: str) -> Iterator[Workbench]:
    """Provide a temporary folder for the tables of one command, and delete the folder after the block."""
    with open_unfinished_folder(storage, command_id) as folder:
        yield Workbench(spark, storage, folder)


def select_cluster_rows(table: DataFrame) -> DataFrame:
    """Return the clusters' own rows, of kind `CLUSTER`."""
    return table.where(f.col("kind") == CLUSTER)


def append_unreachable(live: DataFrame, rows: Sequence[Row]) -> DataFrame:
    """Append rows for unreachable clusters to the table of live objects."""
    if not rows:
        return live
    row_dicts = [row for batch in batch_rows(rows) for row in batch.to_pylist(maps_as_pydicts="strict")]
    unreachable = live.sparkSession.createDataFrame(row_dicts, to_spark_schema(LIVE))
    return live.unionByName(unreachable)


def build_cluster_context(declared: DataFrame, live: DataFrame) -> DataFrame:
    """Return a table with the columns ``cluster``, ``taken_at`` and ``within``.

    ``taken_at`` is the time at which the cluster was read. ``within`` is the cluster-level live state as
    JSON. ``within`` is null if the resources of the cluster cannot be compared, because one of the cluster's
    own rows has an error or is missing, or because the state belongs to a different cluster.
    """
    declared_clusters = (
        select_cluster_rows(declared)
        .where(f.col("error").isNull())
        .select("cluster", f.lit(True).alias("well"), f.col("cluster_id").alias("planned_id"))
    )
    live_clusters = select_cluster_rows(live).select("cluster", "cluster_id", "taken_at", "body", "error")
    is_same_cluster = f.col("planned_id").isNull() | (f.col("planned_id") == f.col("cluster_id"))
    cluster_body = f.when(f.col("well") & f.col("error").isNull() & is_same_cluster, f.col("body")).alias(
        "within"
    )
    return live_clusters.join(declared_clusters, "cluster", "left").select(
        "cluster", "taken_at", cluster_body
    )


def count_declared(declared: DataFrame) -> DataFrame:
    """Return the number of declared ``resources`` of each cluster, and whether the cluster is ``concerned``.

    A cluster is ``concerned`` if it needs the second pass of an audit, which processes all its rows together.
    This is the case if its project has policies (``always`` in the cluster's own row), or if it has resources
    that cannot be compared independently of others (not ``alone``).
    """
    is_resource = f.coalesce(f.col("live_sort") != "", f.lit(True))  # not a group of unmanaged objects
    is_interdependent = (f.col("alone") == f.lit(False)) & f.col("desired").isNotNull()
    has_policies = (f.col("kind") == CLUSTER) & f.col("always")
    return declared.groupBy("cluster").agg(
        f.count(f.when(is_resource, f.col("desired"))).alias("resources"),
        (f.count(f.when(is_interdependent | has_policies, f.lit(1))) > 0).alias("concerned"),
    )
