"""Spark finds every type of drift of every kind, of kdeclare's providers and of the example."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kdeclare_flags import provider as flags
from pyspark.sql import SparkSession

from kdeclare.core.provider.installed_providers import find_providers, use_providers
from kdeclare.fleet.findings import FindingKind
from kdeclare.fleet.local.audit import LocalTables, find_all
from kdeclare.fleet.spark.audit import find_in_whole_clusters, select_findings
from kdeclare.fleet.spark.diff import find_drift_rows
from kdeclare.fleet.spark.overview import read_counts
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import DECLARED, LIVE
from tests.spark.test_equality import build_table, sort_rows
from tests.unit.fleet.kind_scenarios import FINDINGS, FLAGS, SCENARIOS, expect_findings, run_scenario

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def found(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[list[Row], list[Row]]]:
    """The findings of both engines in all scenarios."""
    use_providers((*find_providers(), FLAGS))
    package = Path(flags.__file__).parent
    archive = shutil.make_archive(
        str(tmp_path_factory.mktemp("flags") / "flags"), "zip", package.parent, package.name
    )
    spark.sparkContext.addPyFile(archive)  # the tasks must be able to import the provider
    declared: list[Row] = []
    live: list[Row] = []
    for kind in SCENARIOS:
        tables = run_scenario(kind, tmp_path_factory.mktemp(kind))
        declared += tables.declared
        live += tables.live
    tables_of_spark = build_table(spark, declared, DECLARED), build_table(spark, live, LIVE)
    overview = read_counts(*tables_of_spark).build_overview()
    rows = find_drift_rows(*tables_of_spark, overview).collect()
    rows += select_findings(find_in_whole_clusters(*tables_of_spark, overview, _evaluate_nothing)).collect()
    local, _ = find_all(LocalTables(declared, live, list(SCENARIOS)), _evaluate_nothing)
    yield [row.asDict() for row in rows], local
    use_providers(None)


def _evaluate_nothing(cluster: str) -> None:
    """No cluster has policies."""


@pytest.mark.parametrize("finding", FINDINGS)
@pytest.mark.parametrize("kind", SCENARIOS)
def test_spark_audit_finds_drift(kind: str, finding: FindingKind, found: tuple[list[Row], list[Row]]) -> None:
    expect_findings(kind, finding, [row for row in found[0] if row["cluster"] == kind])


def test_engines_find_same_drift_of_all_kinds(found: tuple[list[Row], list[Row]]) -> None:
    of_spark, local = found
    assert sort_rows(of_spark) == sort_rows(local)
