"""Tables of a fleet in Spark: schemas, reading and publishing, and the rows of clusters themselves."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow.parquet import read_metadata
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import DataType, StructType

from kdeclare.core.frozen import dataclass
from kdeclare.fleet.encoding import Row, record_batches
from kdeclare.fleet.rows import CLUSTER, LIVE, refuse_lost_rows_of_table
from kdeclare.fleet.spark.problems import explained
from kdeclare.fleet.spark.settings import runs_tasks_here
from kdeclare.fleet.storage import LocalStorage, Storage, cannot_read


def as_spark(type_: pa.DataType) -> DataType:
    """One type."""
    return from_arrow_type(type_)


def schema_of(schema: pa.Schema) -> StructType:
    """A whole table's."""
    return from_arrow_schema(schema)


__all__ = ["DataFrame", "Workbench", "as_it_is", "read_table", "workbench"]

_PATTERN = re.compile(r"[\\{}\[\]*?]")
_ASIDE = "_unfinished"  # what begins with an underscore, nobody who reads tables takes for one


@dataclass(frozen=True, slots=True)
class Workbench:
    """Where one command writes its tables until they are whole."""

    spark: SparkSession
    storage: Storage
    folder: str

    def write(self, table: DataFrame, name: str, partitioned_by: Sequence[str] = ()) -> str:
        """Write one, and say where.

        Raises KdeclareError, also where executors that are to share the folder with the driver wrote more
        rows than the driver finds.
        """
        path = f"{self.folder}/{name}"
        shared = self._shared_folder()
        rows = Observation()
        if shared is not None:
            table = table.observe(rows, f.count(f.lit(1)).alias("count"))
        with explained():
            table.write.partitionBy(*partitioned_by).parquet(f"{self.storage.uri}/{path}")
            written = rows.get["count"] if shared is not None else 0
        if shared is not None:
            refuse_lost_rows_of_table(name, written, _count_rows(shared / name))
        return path

    def _shared_folder(self) -> Path | None:
        """The folder, where executors outside of this process write to it as to one of their own."""
        if not isinstance(self.storage, LocalStorage) or runs_tasks_here(self.spark):
            return None
        return self.storage.folder / self.folder

    def read(self, name: str, schema: pa.Schema) -> DataFrame:
        """One that has been written."""
        return read_table(self.spark, self.storage, f"{self.folder}/{name}", schema)

    @contextmanager
    def published(self, tables: Mapping[str, str]) -> Iterator[None]:
        """Move tables, by name, to where they are to be. If the block fails, they are taken away again."""
        begun: list[str] = []
        try:
            for name, path in tables.items():
                if not self.storage.exists(path):  # or it is not ours to be taken away
                    begun.append(path)  # in object stores, half of it can be there when it fails
                self.storage.rename(f"{self.folder}/{name}", path)
            yield
        except BaseException:
            for path in begun:
                self.storage.remove(path)
            raise


def read_table(spark: SparkSession, storage: Storage, path: str, schema: pa.Schema) -> DataFrame:
    """A table by its place in a folder, with what its partitions are named by. Raises KdeclareError."""
    uri = f"{storage.uri}/{path}"
    with explained():
        return spark.read.schema(schema_of(schema)).option("basePath", uri).parquet(as_it_is(uri))


def as_it_is(uri: str) -> str:
    """A path that Spark takes for itself, and not for a pattern."""
    return _PATTERN.sub(r"\\\g<0>", uri)


def _count_rows(table: Path) -> int:
    """How many rows the driver sees in a table of its own disk."""
    try:
        return sum(read_metadata(file).num_rows for file in table.rglob("*.parquet"))
    except (OSError, pa.ArrowException) as cause:
        raise cannot_read(str(table), str(cause)) from cause


@contextmanager
def workbench(spark: SparkSession, storage: Storage, identity: str) -> Iterator[Workbench]:
    """Room for the tables of one command; whatever is still there afterwards is taken away."""
    bench = Workbench(spark, storage, f"{_ASIDE}/{identity}")
    try:
        yield bench
    finally:
        storage.remove(bench.folder)
        storage.remove_empty(_ASIDE)


def itself(table: DataFrame) -> DataFrame:
    """The row of each cluster."""
    return table.where(f.col("kind") == CLUSTER)


def with_unreachable(live: DataFrame, rows: Sequence[Row]) -> DataFrame:
    """The table of live rows, and rows of clusters that it has nothing about."""
    if not rows:
        return live
    items = [row for batch in record_batches(rows) for row in batch.to_pylist(maps_as_pydicts="strict")]
    more = live.sparkSession.createDataFrame(items, schema_of(LIVE))
    return live.unionByName(more)


def of_clusters(declared: DataFrame, live: DataFrame) -> DataFrame:
    """When each cluster was read, and ``within``, its body: null unless both of its rows are well."""
    mine = (
        itself(declared)
        .where(f.col("error").isNull())
        .select("cluster", f.lit(True).alias("well"), f.col("cluster_id").alias("planned_id"))
    )
    theirs = itself(live).select("cluster", "cluster_id", "taken_at", "body", "error")
    is_same = f.col("planned_id").isNull() | (f.col("planned_id") == f.col("cluster_id"))
    within = f.when(f.col("well") & f.col("error").isNull() & is_same, f.col("body")).alias("within")
    return theirs.join(mine, "cluster", "left").select("cluster", "taken_at", within)


def has_many(declared: DataFrame) -> DataFrame:
    """How many ``resources`` each cluster declares, and whether it is ``concerned`` by the second pass.

    That is where it has policies (``always`` on its own row), or resources that are not alone.
    """
    is_wide = (f.col("alone") == f.lit(False)) & f.col("desired").isNotNull()
    has_policies = (f.col("kind") == CLUSTER) & f.col("always")
    return declared.groupBy("cluster").agg(
        f.count("desired").alias("resources"),
        (f.count(f.when(is_wide | has_policies, f.lit(1))) > 0).alias("concerned"),
    )
