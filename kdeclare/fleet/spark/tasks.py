"""Read all clusters of a fleet in Spark tasks, and send kdeclare's code to the executors."""

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kdeclare.core.provider.package_files import list_package_files
from kdeclare.fleet.spark.connect import add_python_file
from kdeclare.fleet.spark.settings import find_local_cores, is_connect_session
from kdeclare.fleet.spark.tables import to_spark_schema
from kdeclare.version import VERSION

ReadCluster = Callable[[str], Iterable[pa.RecordBatch]]
"""A function that reads the cluster with a given name, and returns its rows.

If the cluster cannot be read, the function must return a row with the error, because an exception would fail
the whole Spark job. The function is pickled for the executors.
"""

_FORMAT = "kdeclare-clusters"


def read_clusters(
    spark: SparkSession,
    clusters: Sequence[str],
    read_cluster: ReadCluster,
    schema: pa.Schema,
    *,
    max_concurrency: int,
) -> DataFrame:
    """Return a table with the rows of all clusters. Each Spark action on the table reads all clusters again.

    schema: the schema of the batches that ``read_cluster`` returns.
    max_concurrency: the maximum number of clusters that one Spark action reads at the same time.
    """
    shares = _split_into_shares(tuple(clusters), max_concurrency, _find_task_slots(spark))
    spark.dataSource.register(_build_data_source(shares, read_cluster, schema))
    return spark.read.format(_FORMAT).load()


@dataclass
class _ClusterShare(InputPartition):
    """The names of the clusters that one Spark task reads, one after the other."""

    clusters: tuple[str, ...]


class _ClusterReader(DataSourceReader):
    def __init__(
        self, shares: Sequence[_ClusterShare], read_cluster: ReadCluster, schema: StructType
    ) -> None:
        self._shares, self._read = shares, read_cluster
        # Spark requires schemas to match exactly, including the names of the key and value fields of a map.
        self._schema = to_arrow_schema(schema, timezone="UTC")

    def partitions(self) -> Sequence[InputPartition]:
        return list(self._shares) or [_ClusterShare(())]  # for an empty list, Spark would create a partition

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _ClusterShare)
        for cluster in partition.clusters:
            for batch in self._read(cluster):
                yield batch.cast(self._schema)


def _build_data_source(
    shares: Sequence[_ClusterShare], read_cluster: ReadCluster, schema: pa.Schema
) -> type[DataSource]:
    """Return a new data source class for one table.

    Each table needs its own class, because the options of a data source can only be strings.
    """

    class Clusters(DataSource):
        @classmethod
        def name(cls) -> str:
            return _FORMAT

        def schema(self) -> StructType:
            return to_spark_schema(schema)

        def reader(self, schema: StructType) -> DataSourceReader:
            return _ClusterReader(shares, read_cluster, schema)

    return Clusters


def _split_into_shares(
    clusters: tuple[str, ...], max_concurrency: int, slots: int | None
) -> tuple[_ClusterShare, ...]:
    """Distribute clusters over tasks so that at most ``max_concurrency`` clusters are read at the same time.

    If Spark runs at most ``max_concurrency`` tasks at a time, each cluster gets its own task. Otherwise,
    there are ``max_concurrency`` tasks.

    slots: the maximum number of concurrent tasks in Spark; None if it is unknown.
    """
    if slots is not None and slots <= max_concurrency:
        return tuple(_ClusterShare((cluster,)) for cluster in clusters)
    shares = (
        _ClusterShare(clusters[first::max_concurrency])
        for first in range(min(max_concurrency, len(clusters)))
    )
    return tuple(shares)


def _find_task_slots(spark: SparkSession) -> int | None:
    """Return the maximum number of concurrent tasks; None if the number of executors can vary.

    Also return None for a Spark Connect server, because other sessions can run tasks there, too.
    """
    if is_connect_session(spark):
        return None
    context = spark.sparkContext
    cores = find_local_cores(context.master or "")
    if cores is None:
        cores = _parse_limit(context.getConf().get("spark.cores.max", ""))
    if cores is None:
        return None
    return cores // (_parse_limit(context.getConf().get("spark.task.cpus", "")) or 1)


def _parse_limit(setting: str | None) -> int | None:
    return int(setting) if setting else None


_PACKAGE = "kdeclare"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a ZIP file can store. A fixed time makes the file reproducible."""


def ship_package(spark: SparkSession) -> None:
    """Send this version of kdeclare to executors, which then use it instead of an installed version."""
    if is_connect_session(spark):
        add_python_file(spark, f"{_PACKAGE}.zip", build_package_zip())
        return
    context = spark.sparkContext
    # Executors fetch the file during the session. Spark deletes the folder at the end of the session.
    file = Path(context._temp_dir) / f"{_PACKAGE}.zip"
    file.write_bytes(build_package_zip())
    context.addPyFile(str(file))


def build_package_zip() -> bytes:
    """Return kdeclare's code and data files as an importable ZIP file. The file is reproducible."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, file in list_package_files(_PACKAGE):
            entry = zipfile.ZipInfo(str(path), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes())
        for name, text in _build_metadata().items():
            archive.writestr(zipfile.ZipInfo(f"{_PACKAGE}-{VERSION}.dist-info/{name}", _EPOCH), text)
    return buffer.getvalue()


def _build_metadata() -> Mapping[str, str]:
    """Return the package metadata that tasks need to find the providers of kdeclare."""
    installed = distribution(_PACKAGE)
    entry_points = installed.read_text("entry_points.txt") or ""
    # Tasks compare this version with the version of the providers on the driver, see `use_providers`.
    metadata = f"Metadata-Version: 2.1\nName: {_PACKAGE}\nVersion: {installed.version}\n"
    return {"METADATA": metadata, "entry_points.txt": entry_points}
