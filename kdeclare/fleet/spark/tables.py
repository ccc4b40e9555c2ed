"""Read, write and publish the tables of a fleet with Spark."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyarrow.parquet import read_metadata
from pyspark.sql import DataFrame, DataFrameReader, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import DataType, StructType

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from kdeclare.fleet.tables.row_builder import Row, batch_rows
from kdeclare.fleet.tables.rows import CLUSTER, LIVE, require_written_rows
from kdeclare.fleet.tables.storage import LocalStorage, Storage, build_read_error, build_write_error
from kdeclare.fleet.tables.unfinished_tables import UnfinishedTables, open_unfinished_tables


def to_spark_type(type_: pa.DataType) -> DataType:
    """Convert an Arrow type to a Spark type."""
    return from_arrow_type(type_)


def to_spark_schema(schema: pa.Schema) -> StructType:
    """Convert an Arrow schema to a Spark schema."""
    return from_arrow_schema(schema)


__all__ = [
    "DataFrame",
    "Workbench",
    "count_rows",
    "create_table",
    "escape_glob",
    "open_reader",
    "open_workbench",
    "parse_micros",
    "read_table",
]

IS_GROUP_ROW = "coalesce(live_sort = '' and live_key <> '', false)"
"""An SQL condition: whether a row of `DECLARED` is about a group of unmanaged objects to remove."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GLOB_CHARACTERS = re.compile(r"[\\{}\[\]*?]")


@dataclass(frozen=True, slots=True)
class Workbench:
    """Writes the tables of a command, and makes sure that none of their rows are missing."""

    spark: SparkSession
    storage: Storage
    tables: UnfinishedTables
    _complete_tables: dict[str, DataFrame] = field(default_factory=dict)

    def write(
        self, table: DataFrame, name: str, partitioned_by: Sequence[str] = (), *, append: bool = False
    ) -> None:
        """Write a table, and make sure that all of its rows can be read.

        Spark counts the rows while it writes them. Executors on other machines can write rows to disks that
        this machine does not see, and files can be lost.

        append: whether to add the rows to an existing table that this command has written without Spark.
        Raises KdeclareError.
        """
        path = self.tables.find_path(name) if append else self.tables.begin_table(name)
        expected_count = 0
        if append and self.storage.exists(path):
            expected_count = self._count_written(path, self._read_table(path, table.schema))
        observation = Observation()
        observed_table = table.observe(observation, f.count(f.lit(1)).alias("count"))
        with translate_spark_errors():
            mode = "append" if append else "error"
            observed_table.write.partitionBy(*partitioned_by).parquet(f"{self.storage.uri}/{path}", mode)
            expected_count += observation.get["count"]
        self.tables.add_files(name, self.storage.list_files(path))
        written_table = self._read_table(path, table.schema)
        require_written_rows(name, expected_count, self._count_written(path, written_table))
        self._complete_tables[name] = written_table

    def read(self, name: str, schema: pa.Schema) -> DataFrame:
        """Return a table of this command. Raises KdeclareError.

        Spark lists the files of a table only once. If one of them is lost later, a query of the table fails.
        """
        if name not in self._complete_tables:  # written without Spark
            path = self.tables.find_path(name)
            self.tables.add_files(name, self.storage.list_files(path))
            self._complete_tables[name] = self._read_table(path, to_spark_schema(schema))
        return self._complete_tables[name].select(*schema.names)

    def _count_written(self, path: str, table: DataFrame) -> int:
        """Count the rows of a table that this machine can read. No Spark job is needed for a local folder."""
        if not isinstance(self.storage, LocalStorage):
            return count_rows(table)
        folder = self.storage.folder / path
        try:
            return sum(read_metadata(file).num_rows for file in folder.rglob("*.parquet"))
        except (OSError, pa.ArrowException) as cause:
            raise build_read_error(str(folder), str(cause)) from cause

    def _read_table(self, path: str, schema: StructType) -> DataFrame:
        return _read_files(self.spark, f"{self.storage.uri}/{path}", schema)


def read_table(spark: SparkSession, storage: Storage, path: str, schema: pa.Schema) -> DataFrame:
    """Read a table, including its partition columns. Raises KdeclareError."""
    return _read_files(spark, f"{storage.uri}/{path}", to_spark_schema(schema))


def _read_files(spark: SparkSession, uri: str, schema: StructType) -> DataFrame:
    with translate_spark_errors():
        return open_reader(spark, schema).option("basePath", uri).parquet(escape_glob(uri))


def open_reader(spark: SparkSession, schema: StructType) -> DataFrameReader:
    """Return a reader that fails if a file is lost or damaged, regardless of the user's Spark settings."""
    reader = spark.read.schema(schema)
    return reader.option("ignoreMissingFiles", "false").option("ignoreCorruptFiles", "false")


def count_rows(table: DataFrame) -> int:
    """Return the number of rows of a table. Raises KdeclareError."""
    with translate_spark_errors():
        return table.count()


def parse_micros(micros: int) -> datetime:
    """Convert ``unix_micros`` to a time in UTC. Spark would use the time zone of this machine."""
    return _EPOCH + timedelta(microseconds=micros)


def create_table(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return an Arrow table as a Spark table. Raises KdeclareError.

    Spark reads the rows from a temporary file that this process writes.
    """
    try:
        with translate_spark_errors():
            if not table.num_rows:  # Spark Connect accepts no empty Arrow table
                return _create_empty_table(spark, table.schema)
            return spark.createDataFrame(table)
    except OSError as cause:
        raise build_write_error("a temporary file for Spark", cause.strerror or str(cause)) from cause


def _create_empty_table(spark: SparkSession, schema: pa.Schema) -> DataFrame:
    # `createDataFrame` would start a Python process to read no rows, which takes a second.
    columns = (f.lit(None).cast(field.dataType).alias(field.name) for field in to_spark_schema(schema))
    return spark.range(0).select(*columns)


def quote_sql(text: str) -> str:
    """Return text as a string literal of Spark SQL."""
    # Even in a literal, Spark would replace ``${name}`` with the value of a setting.
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


def escape_glob(uri: str) -> str:
    """Escape the characters in a path that Spark would interpret as a glob pattern."""
    return _GLOB_CHARACTERS.sub(r"\\\g<0>", uri)


@contextmanager
def open_workbench(
    spark: SparkSession, storage: Storage, command_id: str, final_paths: Mapping[str, str] | None = None
) -> Iterator[Workbench]:
    """Provide the tables of one command. Finally, delete those that the ``with`` block did not publish.

    final_paths: the final path of each table that the command publishes, by table name.
    """
    with open_unfinished_tables(storage, command_id, final_paths) as tables:
        yield Workbench(spark, storage, tables)


def select_cluster_rows(table: DataFrame) -> DataFrame:
    """Return the rows about whole clusters, of kind `CLUSTER`."""
    return table.where(f.col("kind") == CLUSTER)


def append_unreachable(live: DataFrame, rows: Sequence[Row]) -> DataFrame:
    """Append rows for unreachable clusters to the table of live objects."""
    if not rows:
        return live
    row_dicts = [row for batch in batch_rows(rows) for row in batch.to_pylist(maps_as_pydicts="strict")]
    unreachable = live.sparkSession.createDataFrame(row_dicts, to_spark_schema(LIVE))
    return live.unionByName(unreachable)
