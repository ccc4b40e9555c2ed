"""Audits on Spark find the same about quotas as an in-process audit."""

from random import Random

import pytest
from pyspark.sql import SparkSession

from kdeclare.core.live.faults import Fault
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import DECLARED, LIVE
from tests.spark.test_equality import build_table, compare_tables, sort_rows
from tests.unit.fleet.quotas import generate_quotas

pytestmark = pytest.mark.spark


def build_random_tables(random: Random) -> tuple[list[Row], list[Row]]:
    """Build eight clusters; in the last one, describing quotas is not permitted."""
    declared: list[Row] = []
    live: list[Row] = []
    for number in range(8):
        made = generate_quotas(random, f"eu-{number}")
        if number == 7:
            refused = Fault("CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed.")
            made.cluster.faults.fail(refused, nth=None, method="quotas")
        declared += made.declared_rows()
        live += made.live_rows()
    return declared, live


@pytest.mark.parametrize("unmanaged_keys", [True, False])
def test_spark_and_process_find_same_quota_drift(spark: SparkSession, unmanaged_keys: bool) -> None:
    declared, live = build_random_tables(Random(7))
    expected = sort_rows(audit_rows(declared, live, unmanaged_keys=unmanaged_keys))
    kinds = {row[3] for row in expected if row[1] == "ClientQuota"}
    assert kinds == {"changed", "missing", "orphaned", "unmanaged", "pending", "unreachable"}
    assert any(row[4] == "limits.request_percentage" for row in expected)
    tables = build_table(spark, declared, DECLARED), build_table(spark, live, LIVE)
    found = compare_tables(*tables, unmanaged_keys=unmanaged_keys)
    assert sort_rows(row.asDict() for row in found.collect()) == expected
