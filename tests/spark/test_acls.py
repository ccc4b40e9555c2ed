"""Audits on Spark find the same about ACLs as an in-process audit."""

from random import Random

import pytest
from pyspark.sql import SparkSession

from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.spark.overview import read_counts
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import DECLARED, LIVE
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.acl.record import AclRecord
from tests.spark.test_equality import build_table, compare_tables, sort_rows
from tests.unit.fleet.fleets import make_desired
from tests.unit.fleet.quotas import QuotaCluster

pytestmark = pytest.mark.spark

_PRINCIPALS = ("User:a", "User:b", "User:Zoë")
_BINDINGS = [
    parse_binding(f"ALLOW {principal} {operation} {resource} from *")
    for principal in _PRINCIPALS
    for operation in ("READ", "WRITE")
    for resource in ("topic:orders", "topic:p*")
]


def build_random_tables(random: Random) -> tuple[list[Row], list[Row]]:
    """Build clusters in which some Acls remove unmanaged bindings, partly of the same principals."""
    declared: list[Row] = []
    live: list[Row] = []
    for number in range(8):
        items = [
            make_desired(
                "Acl",
                name,
                {"team": name},
                principals=random.sample(_PRINCIPALS, random.randint(1, 2)),
                bindings=[{"topic": "orders", "allow": ["READ"]}] if random.random() < 0.5 else [],
                unmanagedBindings=random.choice(["keep", "remove"]),
            )
            for name in ("y", "x")
        ]
        made = QuotaCluster(f"eu-{number}")
        made.desired, made.left_out = (items, []) if random.random() < 0.7 else (items[:1], items[1:])
        made.owned = {"Acl/old": AclRecord(tuple(random.sample(_BINDINGS, 2)))}
        made.cluster.create_acls(random.sample(_BINDINGS, 8))
        declared += made.declared_rows()
        live += made.live_rows()
    return declared, live


def test_spark_and_process_find_same_drift_of_acls(spark: SparkSession) -> None:
    declared, live = build_random_tables(Random(5))
    expected = sort_rows(audit_rows(declared, live))
    assert {row[3] for row in expected} >= {"orphaned", "pending", "unmanaged"}
    removed = [row for row in expected if row[5] == "SUBTRACT"]
    assert {row[2] for row in removed} == {"x", "y"}
    tables = build_table(spark, declared, DECLARED), build_table(spark, live, LIVE)
    assert sort_rows(row.asDict() for row in compare_tables(*tables).collect()) == expected
    assert not any(item.has_second_pass for item in read_counts(*tables).build_overview().clusters.values())
