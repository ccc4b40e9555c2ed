"""A task a cluster: what a function reads of each cluster, as one table."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kdeclare.fleet.spark.defaults import local_cores
from kdeclare.fleet.spark.schemas import schema_of

Read = Callable[[str], Iterable[pa.RecordBatch]]
"""Reads the cluster of one name. It travels to the executors as a pickle.

What is wrong with a cluster is for its rows to say; what it raises fails the job.
"""

_FORMAT = "kdeclare-clusters"


def each_cluster(
    spark: SparkSession, clusters: Sequence[str], read: Read, schema: pa.Schema, *, at_once: int
) -> DataFrame:
    """The rows of all clusters; Spark's plans hold nothing but the number of clusters.

    schema: of every batch that ``read`` gives. at_once: clusters that are read at a time, at most: as
    long as one action runs at a time. Every action on the table reads all clusters anew.
    """
    shares = _shares(tuple(clusters), at_once, _slots(spark))
    spark.dataSource.register(_source(shares, read, schema))
    return spark.read.format(_FORMAT).load()


@dataclass
class _Share(InputPartition):
    """Clusters that one task reads, one after the other."""

    clusters: tuple[str, ...]


class _Reader(DataSourceReader):
    def __init__(self, shares: Sequence[_Share], read: Read, schema: StructType) -> None:
        self._shares, self._read = shares, read
        # Spark compares the two to the letter, down to how the fields of a map are called.
        self._schema = to_arrow_schema(schema, timezone="UTC")

    def partitions(self) -> Sequence[InputPartition]:
        return list(self._shares) or [_Share(())]  # Spark makes one of its own of none

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Share)
        for cluster in partition.clusters:
            for batch in self._read(cluster):
                yield batch.cast(self._schema)


def _source(shares: Sequence[_Share], read: Read, schema: pa.Schema) -> type[DataSource]:
    """A class of its own for each table: Spark pickles classes, and only strings as their options."""

    class Clusters(DataSource):
        @classmethod
        def name(cls) -> str:
            return _FORMAT

        def schema(self) -> StructType:
            return schema_of(schema)

        def reader(self, schema: StructType) -> DataSourceReader:
            return _Reader(shares, read, schema)

    return Clusters


def _shares(clusters: tuple[str, ...], at_once: int, slots: int | None) -> tuple[_Share, ...]:
    """A task each where Spark cannot run more of them at a time than may be; otherwise as many as may be."""
    if slots is not None and slots <= at_once:
        return tuple(_Share((cluster,)) for cluster in clusters)
    shares = (_Share(clusters[first::at_once]) for first in range(min(at_once, len(clusters))))
    return tuple(shares)


def _slots(spark: SparkSession) -> int | None:
    """How many tasks can ever run at a time; None where executors come and go."""
    context = spark.sparkContext
    cores = local_cores(context.master or "")
    if cores is None:
        cores = _limit(context.getConf().get("spark.cores.max", ""))
    if cores is None:
        return None
    return cores // (_limit(context.getConf().get("spark.task.cpus", "")) or 1)


def _limit(setting: str | None) -> int | None:
    return int(setting) if setting else None
