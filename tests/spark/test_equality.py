"""What Spark finds is what a plain loop over the same function finds, row by row."""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from kdeclare.fleet.encoding import Row
from kdeclare.fleet.facts import proves_order
from kdeclare.fleet.in_process import audit
from kdeclare.fleet.rows import DECLARED, FOUND, LIVE
from kdeclare.fleet.spark.diffing import KEY, duplicates, findings
from tests.unit.fleet.fleets import Fleet, random_fleet

pytestmark = pytest.mark.spark

_COLUMNS = (*KEY, *FOUND.names)


def table(spark: SparkSession, rows: Iterable[Row], schema: pa.Schema) -> DataFrame:
    """Rows as Spark has them."""
    listed = [{**row, "labels": list((row["labels"] or {}).items())} for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(listed, schema))


def found_by_spark(
    spark: SparkSession, fleet: Fleet, *, unmanaged_keys: bool = True
) -> list[tuple[Any, ...]]:
    """What Spark finds, in order."""
    tables = table(spark, fleet.declared, DECLARED), table(spark, fleet.live, LIVE)
    found = findings(*tables, unmanaged_keys=unmanaged_keys)
    return in_order(row.asDict() for row in found.collect())


def in_order(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Comparable whatever the order was."""
    return sorted((tuple(row[name] for name in _COLUMNS) for row in rows), key=repr)


@pytest.mark.parametrize("seed", range(6))
def test_a_random_fleet(spark: SparkSession, seed: int) -> None:
    fleet = random_fleet(Random(seed), clusters=8, topics=60)
    expected = in_order(audit(fleet.declared, fleet.live))
    assert len(expected) > 50
    assert found_by_spark(spark, fleet) == expected
    fewer = in_order(audit(fleet.declared, fleet.live, unmanaged_keys=False))
    assert len(fewer) < len(expected)
    assert found_by_spark(spark, fleet, unmanaged_keys=False) == fewer


def test_what_is_in_order_is_not_even_looked_at(spark: SparkSession) -> None:
    fleet = random_fleet(Random(11), clusters=4, topics=200, plain=True)
    plan = findings(table(spark, fleet.declared, DECLARED), table(spark, fleet.live, LIVE))
    assert "ArrowEvalPython" in plan._jdf.queryExecution().toString()
    proved = sum(
        proves_order(mine, seen)
        for mine in fleet.declared
        for seen in fleet.live
        if all(mine[name] == seen[name] for name in KEY)
    )
    assert proved > 100, "the fleet has enough that is in order for the test to mean something"
    assert found_by_spark(spark, fleet) == in_order(audit(fleet.declared, fleet.live))


def test_empty_clusters_and_an_empty_fleet(spark: SparkSession) -> None:
    empty = random_fleet(Random(1), clusters=3, topics=0)
    assert found_by_spark(spark, empty) == in_order(audit(empty.declared, empty.live))
    empty.declared.clear()
    empty.live.clear()
    assert found_by_spark(spark, empty) == []


def test_duplicates_are_told(spark: SparkSession) -> None:
    fleet = random_fleet(Random(2), clusters=2, topics=5)
    live = table(spark, [*fleet.live, fleet.live[-1]], LIVE)
    assert [row["name"] for row in duplicates(live).collect()] == [fleet.live[-1]["name"]]
    assert duplicates(table(spark, fleet.live, LIVE)).count() == 0
