"""Spark finds the same as a plain loop, row by row."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from kdeclare.core.parts import LiveState
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.core.resources.ids import ResourceId
from kdeclare.fleet.cluster_pass import (
    ClusterEvaluation,
    ClusterEvaluator,
    ClusterTables,
    KnownResources,
    LabelsByResource,
    find_in_cluster,
)
from kdeclare.fleet.in_process_audit import audit_rows, proves_no_drift
from kdeclare.fleet.spark.audit import find_in_whole_clusters, read_notices, select_findings
from kdeclare.fleet.spark.diff import KEY, find_drift_rows, find_duplicates
from kdeclare.fleet.spark.overview import read_counts
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import DECLARED, FINDING, LIVE
from tests.unit.fleet.fleets import Fleet, generate_fleet
from tests.unit.fleet.wholes import NOW, A, RandomCluster, build_tables

pytestmark = pytest.mark.spark

_COLUMNS = (*KEY, *FINDING.names)


def build_table(spark: SparkSession, rows: Iterable[Row], schema: pa.Schema) -> DataFrame:
    """Build a Spark table of rows."""
    listed = [{**row, "labels": list((row["labels"] or {}).items())} for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(listed, schema))


def find_with_spark(
    spark: SparkSession, fleet: Fleet, *, unmanaged_keys: bool = True
) -> list[tuple[Any, ...]]:
    """Return the findings of Spark, in order."""
    tables = build_table(spark, fleet.declared, DECLARED), build_table(spark, fleet.live, LIVE)
    found = compare_tables(*tables, unmanaged_keys=unmanaged_keys)
    return sort_rows(row.asDict() for row in found.collect())


def compare_tables(declared: DataFrame, live: DataFrame, *, unmanaged_keys: bool = True) -> DataFrame:
    """Return the findings about resources that can be compared independently of others."""
    overview = read_counts(declared, live).build_overview()
    return find_drift_rows(declared, live, overview, unmanaged_keys=unmanaged_keys)


def sort_rows(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Return rows in a comparable order."""
    return sorted((tuple(row[name] for name in _COLUMNS) for row in rows), key=repr)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 6))]
)
def test_spark_and_process_find_same_drift_in_random_fleet(spark: SparkSession, seed: int) -> None:
    fleet = generate_fleet(Random(seed), clusters=8, topics=60)
    expected = sort_rows(audit_rows(fleet.declared, fleet.live))
    assert len(expected) > 50
    assert find_with_spark(spark, fleet) == expected
    fewer = sort_rows(audit_rows(fleet.declared, fleet.live, unmanaged_keys=False))
    assert len(fewer) < len(expected)
    assert find_with_spark(spark, fleet, unmanaged_keys=False) == fewer


def test_spark_audit_skips_unchanged_topics(spark: SparkSession) -> None:
    fleet = generate_fleet(Random(11), clusters=4, topics=200, plain=True)
    plan = compare_tables(build_table(spark, fleet.declared, DECLARED), build_table(spark, fleet.live, LIVE))
    assert "ArrowEvalPython" in plan._jdf.queryExecution().toString()
    proved = sum(
        proves_no_drift(mine, seen)
        for mine in fleet.declared
        for seen in fleet.live
        if all(mine[name] == seen[name] for name in KEY)
    )
    assert proved > 100, "the fleet has enough that is in order for the test to mean something"
    assert find_with_spark(spark, fleet) == sort_rows(audit_rows(fleet.declared, fleet.live))


def test_spark_and_process_agree_on_empty_fleet(spark: SparkSession) -> None:
    empty = generate_fleet(Random(1), clusters=3, topics=0)
    assert find_with_spark(spark, empty) == sort_rows(audit_rows(empty.declared, empty.live))
    empty.declared.clear()
    empty.live.clear()
    assert find_with_spark(spark, empty) == []


def test_find_duplicates_returns_duplicate_rows(spark: SparkSession) -> None:
    fleet = generate_fleet(Random(2), clusters=2, topics=5)
    live = build_table(spark, [*fleet.live, fleet.live[-1]], LIVE)
    assert [row["name"] for row in find_duplicates(live).collect()] == [fleet.live[-1]["name"]]
    assert find_duplicates(build_table(spark, fleet.live, LIVE)).count() == 0


def _build_evaluator(cluster: str) -> ClusterEvaluator | None:
    """Policies of every second cluster: they warn about topics by the number of labels, or cannot decide."""
    if cluster.endswith("1"):
        return None

    def judge(
        live: LiveState, objects: Sequence[ResourceId], labels: LabelsByResource, known: KnownResources
    ) -> ClusterEvaluation:
        words = [(str(item), f"{len(labels.get(item, {}))} of {len(labels)}") for item in objects]
        verdicts = [Verdict("p", topic, VerdictOutcome.WARN, said) for topic, said in words]
        return ClusterEvaluation(verdicts, ["q", "r"] if cluster.endswith("2") else ())

    return judge


def test_spark_and_process_find_same_drift_in_whole_clusters(spark: SparkSession) -> None:
    declared: list[Row] = []
    live: list[Row] = []
    expected: list[Row] = []
    for number in range(12):
        made, name = RandomCluster(Random(number)), f"eu-{number}"
        mine, theirs = build_tables(made.cluster, made.declared, made.state, (None, A)[number % 2], name=name)
        mine[0]["always"] = _build_evaluator(name) is not None
        declared += mine
        live += theirs
        whole = ClusterTables(name, mine[0]["owned"], theirs[0]["body"], mine[1:], theirs[1:])
        for id_, labels, item in find_in_cluster(whole, _build_evaluator(name)).found:
            row = {column: getattr(item, column) for column in FINDING.names}
            expected.append({"cluster": name, "kind": id_.kind, "name": id_.name, **row, "labels": labels})
    tables = build_table(spark, declared, DECLARED), build_table(spark, live, LIVE)
    wide = find_in_whole_clusters(*tables, read_counts(*tables).build_overview(), _build_evaluator)
    found = select_findings(wide).collect()
    assert {row["finding"] for row in expected} == {"pending", "changed", "missing", "policy"}
    assert sort_rows(row.asDict() for row in found) == sort_rows(expected)
    assert {row["taken_at"].astimezone(UTC) for row in found} == {NOW}
    (untold,) = read_notices(wide).items()
    assert untold[0] == "eu-2"
    assert untold[1].startswith("Policy 'q' needs data that snapshots do not contain. ")
    assert " Policy 'r' needs data" in untold[1]
    assert _read_labels(row.asDict() for row in found) == _read_labels(expected)


def _read_labels(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[Any, ...], Any]:
    return {tuple(row[name] for name in KEY): row["labels"] for row in rows}


def test_spark_audit_skips_clusters_with_errors(spark: SparkSession) -> None:
    made = RandomCluster(Random(1))
    declared, live = build_tables(made.cluster, made.declared, made.state)
    declared[0] |= {"cluster_id": "another", "always": True}
    tables = build_table(spark, declared, DECLARED), build_table(spark, live, LIVE)
    found = find_in_whole_clusters(*tables, read_counts(*tables).build_overview(), _build_evaluator)
    assert found.collect() == []
