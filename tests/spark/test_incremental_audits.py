"""Audits on Spark that carry over findings of unchanged clusters, and the numbers of their Spark jobs."""

from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.spark.audit_counts import count_tables
from kdeclare.fleet.spark.overview import read_counts
from kdeclare.fleet.tables.fingerprints import (
    RowsFingerprint,
    hash_declared_row,
    hash_finding_row,
    hash_live_row,
    merge_hashes,
)
from kdeclare.fleet.tables.rows import DECLARED, FINDINGS, LIVE
from tests.spark.test_equality import build_table
from tests.thoroughness import pick
from tests.unit.fleet.changing_fleet import make_changing_fleet
from tests.unit.fleet.fleets import generate_fleet
from tests.unit.fleet.test_incremental_audits import list_unchanged

pytestmark = pytest.mark.spark

ROUNDS = pick(3, 5)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.sampled
@pytest.mark.thorough
def test_incremental_audits_on_both_engines_equal_full_audits(
    seed: int, in_shared_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engines alternate, so that each one carries over findings of the other one."""
    fleet = make_changing_fleet(tmp_path / "fleet", monkeypatch, seed)
    carried = {"local": 0, "spark": 0}
    for number in range(ROUNDS):
        engine, other = ("spark", "local") if number % 2 == seed % 2 else ("local", "spark")
        fleet.take_snapshot()
        incremental, full = fleet.audit("incremental", engine), fleet.audit("full", other, "--full")
        fleet.expect_same(incremental, full)
        assert not list_unchanged(full)
        carried[engine] += len(list_unchanged(incremental))
        for _ in range(fleet.chance.choice((1, 2))):
            fleet.change_something()
    assert min(carried.values()) > 0


def count_jobs(spark: SparkSession) -> tuple[int, int]:
    """Return how many Spark jobs and SQL queries the session has run."""
    jvm: Any = spark
    jobs = jvm.sparkContext._jsc.sc().statusStore().jobsList(None).size()
    return jobs, jvm._jsparkSession.sharedState().statusStore().executionsCount()


@pytest.mark.thorough
def test_small_audit_needs_few_spark_jobs(
    in_shared_spark: None, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starting jobs takes most of the time of a small audit. Two entries of this fleet share a cluster."""
    fleet = make_changing_fleet(tmp_path / "fleet", monkeypatch, 3)
    limits = {"first": (24, 9), "unchanged": (24, 11), "full": (31, 11)}  # Spark jobs, and SQL queries
    for what, limit in limits.items():
        fleet.take_snapshot()
        before = count_jobs(spark)
        fleet.audit("audits", "spark", *(["--full"] if what == "full" else []))
        counts = tuple(now - then for now, then in zip(count_jobs(spark), before, strict=True))
        assert all(count <= most for count, most in zip(counts, limit, strict=True)), (what, counts)


@pytest.mark.parametrize("seed", range(3))
def test_engines_compute_same_fingerprints(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    fleet = generate_fleet(Random(seed), clusters=3, topics=30)
    declared = [row | {"row_hash": hash_declared_row(row)} for row in fleet.declared]
    live = [
        row | {"fingerprint": None if number % 9 else row["fingerprint"]}
        for number, row in enumerate(fleet.live)
    ]
    tables = build_table(spark, declared, DECLARED), build_table(spark, live, LIVE)
    overview = read_counts(*tables).build_overview()
    assert len(overview.clusters) > 1
    for name, item in overview.clusters.items():
        own, theirs = ([row for row in rows if row["cluster"] == name] for rows in (declared, live))
        assert item.declared_rows == RowsFingerprint(len(own), merge_hashes(row["row_hash"] for row in own))
        assert item.live_rows == RowsFingerprint(len(theirs), merge_hashes(map(hash_live_row, theirs)))
    rows = [
        dict.fromkeys(FINDINGS.names) | found | {"labels": labels}
        for found, labels in zip(
            audit_rows(fleet.declared, fleet.live),
            cycle((None, {}, {"team": "Größe", "a": ""})),
            strict=False,
        )
    ]
    counted = count_tables({"findings": build_table(spark, rows, FINDINGS)})["findings"]
    assert counted.count == len(rows) > 20
    for name, rows_of_cluster in counted.by_cluster.items():
        mine = [hash_finding_row(row) for row in rows if row["cluster"] == name]
        assert rows_of_cluster == RowsFingerprint(len(mine), merge_hashes(mine))
