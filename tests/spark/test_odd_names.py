"""Names of clusters and folders that Spark and Hadoop would misinterpret."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kdeclare.core.jsontypes import as_list
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.fleet.spark.history import read_versions
from kdeclare.fleet.spark.tables import open_workbench, read_table, to_spark_schema
from kdeclare.fleet.tables.row_builder import batch_rows, read_live_rows
from kdeclare.fleet.tables.rows import LIVE
from kdeclare.fleet.tables.snapshots import SnapshotCluster, SnapshotRecord, format_snapshot_path
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.fleet.tables.unfinished_tables import publish_tables
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to

pytestmark = pytest.mark.spark

NAMES = ("plain", "a:b", "a%b", "a%3Ab", "a=b", "a b", "a*[1]{b,c}?", "grün", "007")
AT = datetime(2026, 11, 21, 4, tzinfo=UTC)


@pytest.mark.parametrize("folder", ["plain", "a[1]{b}", "a*?%20 b"])
def test_snapshots_with_odd_names_are_read_back(spark: SparkSession, tmp_path: Path, folder: str) -> None:
    storage = LocalStorage(tmp_path / folder)
    (tmp_path / "a1b" / "data").mkdir(parents=True)  # a glob pattern would match this
    clusters = []
    rows = []
    for number, name in enumerate(NAMES, start=1):
        cluster = MemoryCluster({1: "a"})
        cluster.create_topics([NewTopic("orders", number, 1, None, {})])
        found = list(read_live_rows(connections_to(cluster), name, {}, AT))
        rows += [row for batch in batch_rows(found) for row in batch.to_pylist(maps_as_pydicts="strict")]
        clusters.append(SnapshotCluster(name, taken_at=AT, resources=len(found) - 1))
    path = format_snapshot_path("one", AT)
    record = SnapshotRecord("one", "shop", AT, 1.0, path, tuple(clusters))
    with open_workbench(spark, storage, "one") as bench:
        bench.write(spark.createDataFrame(rows, to_spark_schema(LIVE)), "live", ["cluster"])
        with publish_tables(bench.tables, {"live": path}, "record"):
            storage.write("record", "")
            assert {r["cluster"] for r in read_table(spark, storage, path, LIVE).collect()} == set(NAMES)
    for number, name in enumerate(NAMES, start=1):
        (version,) = read_versions(spark, storage, [record], name, LiveKey("Topic", "orders"))
        assert version.body is not None
        assert len(as_list(version.body["partitions"])) == number
