"""One task per cluster, and never more concurrently than allowed."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from kdeclare.fleet.spark.tasks import ReadCluster, read_clusters
from kdeclare.fleet.tables.rows import LIVE

pytestmark = pytest.mark.spark

NAMES = pa.schema([("name", pa.string()), ("row", pa.int64())])
CLUSTERS = [f"c{number}" for number in range(6)]


def build_rows(cluster: str, numbers: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"name": cluster, "row": n} for n in numbers], NAMES)


def make_slow_reader(folder: Path, seconds: float) -> ReadCluster:
    """A reader that records when each read started and ended."""

    def read(cluster: str) -> Iterator[pa.RecordBatch]:
        began = time.time()
        yield build_rows(cluster, [1])
        time.sleep(seconds)
        yield build_rows(cluster, [2, 3])
        (folder / cluster).write_text(f"{began} {time.time()}")

    return read


def count_concurrent_reads(folder: Path) -> int:
    spans = [tuple(map(float, path.read_text().split())) for path in folder.iterdir()]
    return max(sum(began <= moment < ended for began, ended in spans) for moment, _ in spans)


@pytest.mark.parametrize(("at_once", "partitions", "most"), [(1, 1, 1), (2, 6, 2), (100, 6, 2)])
def test_read_clusters_limits_concurrency(
    spark: SparkSession, tmp_path: Path, at_once: int, partitions: int, most: int
) -> None:
    table = read_clusters(spark, CLUSTERS, make_slow_reader(tmp_path, 0.3), NAMES, max_concurrency=at_once)
    found = sorted((row["name"], row["row"]) for row in table.collect())
    assert found == [(cluster, n) for cluster in CLUSTERS for n in (1, 2, 3)]
    assert table.rdd.getNumPartitions() == partitions
    assert count_concurrent_reads(tmp_path) <= most


def test_read_clusters_keeps_tables_apart(spark: SparkSession) -> None:
    first = read_clusters(spark, ["a"], lambda name: [build_rows(name, [1])], NAMES, max_concurrency=1)
    second = read_clusters(spark, ["b"], lambda name: [build_rows(name, [2])], NAMES, max_concurrency=1)
    assert [tuple(row) for row in first.union(second).collect()] == [("a", 1), ("b", 2)]


def test_read_clusters_without_rows_returns_empty_table(spark: SparkSession) -> None:
    assert read_clusters(spark, ["a", "b"], lambda _: [], NAMES, max_concurrency=2).collect() == []
    assert (
        read_clusters(spark, [], lambda name: [build_rows(name, [1])], NAMES, max_concurrency=2).collect()
        == []
    )


def test_read_clusters_keeps_all_column_types(spark: SparkSession) -> None:
    row = {
        "taken_at": 1_700_000_000_123_456,
        "cluster": "a",
        "kind": "Topic",
        "labels": [("team", "x")],
        "partitions": 3,
        "has": [-(2**63), 2**63 - 1],
    }
    batch = pa.RecordBatch.from_pylist([row, {"cluster": "a"}], LIVE)
    got = read_clusters(spark, ["a"], lambda _: [batch], LIVE, max_concurrency=1).toArrow()
    assert got.to_pylist() == batch.to_pylist()


def test_query_plan_contains_no_cluster_data(spark: SparkSession) -> None:
    secret = "hunter2"
    table = read_clusters(
        spark, ["c-name"], lambda name: [build_rows(name + secret, [1])], NAMES, max_concurrency=1
    )
    plan = table._jdf.queryExecution().toString()
    assert secret not in plan
    assert "kdeclare-clusters" in plan


def test_bug_in_task_is_raised(spark: SparkSession) -> None:
    def bug(cluster: str) -> Iterator[pa.RecordBatch]:
        yield build_rows(cluster, [1])
        raise ZeroDivisionError("not for " + cluster)

    table = read_clusters(spark, ["a"], bug, NAMES, max_concurrency=1)
    with (
        pytest.raises(KdeclareError, match="ZeroDivisionError: not for a") as raised,
        translate_spark_errors(),
    ):
        table.collect()
    assert raised.value.diagnostics[0].code == "internal-error"
    assert raised.value.__cause__ is not None
