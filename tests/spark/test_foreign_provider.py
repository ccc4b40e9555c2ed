"""With a third-party provider, Spark finds the same as an in-process audit."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from kdeclare.app.fleet.snapshot import parse_live_key
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault
from kdeclare.core.provider.installed_providers import InstalledProvider, find_providers, use_providers
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.fleet.audit_results import build_cluster_summary
from kdeclare.fleet.audit_summary import ClusterSummary
from kdeclare.fleet.history.object_history import Turn, list_turns
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.object_counts import ObjectCount
from kdeclare.fleet.spark import diff
from kdeclare.fleet.spark.history import read_versions
from kdeclare.fleet.spark.overview import read_counts, read_snapshot_clusters
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from kdeclare.fleet.spark.tables import open_workbench
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import DECLARED, LIVE
from kdeclare.fleet.tables.snapshots import SnapshotCluster, SnapshotRecord, format_snapshot_path
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.fleet.tables.unfinished_tables import publish_tables
from kdeclare.report.fleet.snapshot_text import render_object_history_text
from tests.spark.test_equality import build_table, compare_tables, sort_rows
from tests.unit.fleet.kitchen import JarsRecord, Kettle, KettleRecord, KitchenState
from tests.unit.fleet.test_foreign_provider import (
    KITCHEN,
    make_declared_rows,
    make_jars,
    make_kettle,
    make_live_rows,
)

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def kitchen_installed() -> Iterator[None]:
    use_providers((*find_providers(), KITCHEN))
    yield
    use_providers(None)


def build_random_kitchens(random: Random) -> tuple[list[Row], list[Row]]:
    """Build both tables of three clusters; the last one could not be read."""
    declared: list[Row] = []
    live: list[Row] = []
    for number in range(3):
        name = f"eu-{number}"
        serials = [f"k{n}" for n in range(20)]
        there = {
            s: Kettle(random.randint(0, 3), random.choice("ab")) for s in serials if random.random() < 0.8
        }
        there["stray"] = Kettle(1, "a")
        shelves = frozenset(f"{random.choice('xyz')}/{n}" for n in range(20))
        items = [make_kettle(f"of {s}", s, random.randint(0, 3)) for s in serials if random.random() < 0.7]
        owned: dict[str, OwnedRecord] = {
            f"Kettle/of {s}": KettleRecord(s, random.randint(0, 3), random.choice("ab"))
            for s in serials
            if random.random() < 0.6
        }
        owned["Jars/mine"] = JarsRecord((*random.sample(sorted(shelves), 5), "x/gone"))
        declared += make_declared_rows(
            [*items, make_jars("mine", *random.sample(sorted(shelves), 5))], owned, name
        )
        live += make_live_rows(KitchenState(there, shelves), name=name)
    (last,) = (row for row in live if (row["kind"], row["name"]) == ("Cluster", "eu-2"))
    last |= {"body": None, "error": "It is gone."}
    return declared, live


@pytest.mark.parametrize("seed", range(3))
def test_spark_and_process_find_same_drift_of_other_provider(spark: SparkSession, seed: int) -> None:
    declared, live = build_random_kitchens(Random(seed))
    expected = sort_rows(audit_rows(declared, live))
    kinds = {(row[1], row[3]) for row in expected}
    assert {("Kettle", "changed"), ("Kettle", "missing"), ("Kettle", "unmanaged")} <= kinds
    assert {("Jars", "pending"), ("Jars", "unmanaged"), ("Cluster", "unreachable")} <= kinds
    found = compare_tables(build_table(spark, declared, DECLARED), build_table(spark, live, LIVE))
    assert sort_rows(row.asDict() for row in found.collect()) == expected


def summarize_clusters(declared: DataFrame, live: DataFrame) -> list[ClusterSummary]:
    overview = read_counts(declared, live).build_overview()
    return [
        build_cluster_summary(item.declared_row, item.objects, item.declared, {}, None)
        for _, item in sorted(overview.clusters.items())
    ]


def test_task_that_lacks_a_provider_fails_and_names_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = InstalledProvider("pantry", "pantry-provider", "1.0", "pantry:PROVIDER")
    monkeypatch.setattr(diff, "list_providers", lambda: (*find_providers(), absent))
    declared, live = build_random_kitchens(Random(1))
    found = compare_tables(build_table(spark, declared, DECLARED), build_table(spark, live, LIVE))
    with pytest.raises(KdeclareError) as problem, translate_spark_errors():
        found.collect()
    (diagnostic,) = problem.value.diagnostics
    assert diagnostic.code == "provider-missing"
    assert "'pantry' (pantry-provider 1.0)" in diagnostic.detail


def test_audit_reports_unread_sorts_with_reasons(spark: SparkSession) -> None:
    state = KitchenState({"k1": Kettle(1, "a")})
    live = [
        *make_live_rows(state, name="eu-0"),
        *make_live_rows(state, Fault("POWER_CUT", "no power"), name="eu-1"),
    ]
    (topic,) = (row for row in live if (row["cluster"], row["kind"]) == ("eu-1", "Topic"))
    topic |= {"body": None, "error": "Its configs cannot be read."}
    declared = [*make_declared_rows([], name="eu-0"), *make_declared_rows([], name="eu-1")]
    tables = build_table(spark, declared, DECLARED), build_table(spark, live, LIVE)
    summaries = summarize_clusters(*tables)
    reason = "The system cannot be read: no power (POWER_CUT)."
    assert {cluster.name: cluster.error for cluster in summaries} == {
        "eu-0": None,
        "eu-1": "1 of its resources could not be read. "
        f"No Jars objects were read: {reason} No Kettle objects were read: {reason}",
    }


def test_cluster_counts_come_from_its_providers(spark: SparkSession) -> None:
    state = KitchenState(
        {"k1": Kettle(1, "a"), "k2": Kettle(1, "house")}, frozenset({"top/salt", "top/mint", "low/a"})
    )
    live = [*make_live_rows(state, name="eu-0"), *make_live_rows(KitchenState(), name="eu-1")]
    topics = [row for row in live if row["kind"] == "Topic"]
    assert len(topics) == 2
    topics[0] |= {"body": f'{topics[0]["body"][:-1]},"internal":true}}'}
    first, second = read_snapshot_clusters(build_table(spark, live, LIVE))
    assert (first.topics, first.internal, second.topics, second.internal) == (1, 1, 1, 0)
    assert first.others == (ObjectCount("jar", "jars", 3), ObjectCount("kettle", "kettles", 2, internal=1))
    assert second.others == ()


def test_cluster_without_topics_is_read_in_part(spark: SparkSession) -> None:
    """A part of the cluster was read and compared."""
    live = [
        row
        for row in make_live_rows(KitchenState({"k1": Kettle(1, "a")}))
        if row["kind"] in ("Kettle", "Cluster")
    ]
    live.append({**live[-1], "name": "k2", "body": None, "error": "It is too hot."})
    tables = (
        build_table(spark, make_declared_rows([make_kettle("tea", "k1", 1)]), DECLARED),
        build_table(spark, live, LIVE),
    )
    (summary,) = summarize_clusters(*tables)
    assert (summary.topics, summary.read, summary.is_partial) == (0, 1, True)


def test_history_of_an_object_of_another_system(spark: SparkSession, tmp_path: Path) -> None:
    storage, records = LocalStorage(tmp_path), []
    story: list[tuple[KitchenState, Fault | None]] = [
        (KitchenState({"k1": Kettle(1, "a")}), None),
        (KitchenState({"k1": Kettle(5, "a")}), None),
        (KitchenState(), Fault("POWER_CUT", "no power")),
        (KitchenState(), None),
    ]
    for number, (state, fault) in enumerate(story):
        taken = datetime(2026, 3, 1 + number, tzinfo=UTC)
        name, rows = f"s{number}", make_live_rows(state, fault)
        path = format_snapshot_path(name, taken)
        here = SnapshotCluster("eu-1", taken_at=taken, resources=len(rows) - 1)
        records.append(SnapshotRecord(name, "shop", taken, 1.0, path, (here,)))
        with open_workbench(spark, storage, name) as bench:
            bench.write(build_table(spark, rows, LIVE), "live", ["cluster"])
            with publish_tables(bench.tables, {"live": path}, f"{name}.json"):
                storage.write(f"{name}.json", "")
    key = parse_live_key("Kettle/k1")
    found = read_versions(spark, storage, records, "eu-1", key)
    assert [(turn.turn, turn.error) for turn in list_turns(found, key.sort)] == [
        (Turn.APPEARED, None),
        (Turn.CHANGED, None),
        (Turn.UNKNOWN, "The system cannot be read: no power (POWER_CUT)."),
        (Turn.GONE, None),
    ]
    text = render_object_history_text("eu-1", key, found)
    assert text.startswith("Kettle/k1 on eu-1: changed 1 time in 4 snapshots.\n")
    assert "  heat  1 → 5\n" in text
    topic = parse_live_key("orders")
    assert [turn.turn for turn in list_turns(read_versions(spark, storage, records, "eu-1", topic))] == [
        Turn.APPEARED
    ]
