"""``fleet diff``: what differs between two snapshots."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from kdeclare.cli.main import main
from kdeclare.core.documents import dump_document
from kdeclare.core.resources.changes import FieldOp
from kdeclare.fleet.tables.row_builder import Row, build_unreachable_row, read_live_rows
from kdeclare.fleet.tables.rows import CLUSTER
from kdeclare.fleet.tables.snapshots import SnapshotCluster, SnapshotRecord, format_snapshot_path
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, NewPartitions, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.fleet.fleet_runs import build_fleet_schemas
from tests.connections import connections_to
from tests.spark.real_fleet import TAKEN_AT, write_rows

FIRST, SECOND, THIRD = "20261121T040000Z-0001", "20261122T040000Z-0001", "20261123T040000Z-0001"


class Fleet:
    """A folder of snapshots of in-memory clusters."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clusters = {name: MemoryCluster({1: "a"}, cluster_id=f"id-{name}") for name in ("eu-1", "us-1")}
        for cluster in self.clusters.values():
            cluster.create_topics([NewTopic(name, 1, 1, None, {}) for name in ("orders", "clicks")])

    def take(self, snapshot_id: str, **unreachable: str) -> None:
        """Take a snapshot. unreachable: the errors of clusters that cannot be read."""
        taken_at = TAKEN_AT + timedelta(days=int(snapshot_id[6:8]) - TAKEN_AT.day)
        rows = {
            name: list(read_live_rows(connections_to(cluster), name, {}, taken_at))
            for name, cluster in self.clusters.items()
        }
        rows |= {
            name.replace("_", "-"): [build_unreachable_row(name.replace("_", "-"), {}, taken_at, reason)]
            for name, reason in unreachable.items()
        }
        path = format_snapshot_path(snapshot_id, taken_at)
        write_rows(self.folder / path, rows)
        clusters = tuple(_describe(name, listed) for name, listed in rows.items())
        record = SnapshotRecord(snapshot_id, "shop", taken_at, 1.0, path, clusters)
        (self.folder / "snapshots").mkdir(exist_ok=True)
        text = json.dumps(dump_document(record))
        (self.folder / "snapshots" / f"{snapshot_id}.json").write_text(text)

    def set_retention(self, cluster: str, topic: str, value: str) -> None:
        operation = ConfigOp("retention.ms", FieldOp.SET, value)
        resource = ConfigResource(ConfigScope.TOPIC, topic)
        self.clusters[cluster].alter_configs([ConfigAlteration(resource, (operation,))])

    def diff(self, *options: str) -> int:
        return main(["fleet", "diff", *options, "--out", str(self.folder)])


def _describe(name: str, rows: list[Row]) -> SnapshotCluster:
    own = next(row for row in rows if row["kind"] == CLUSTER)
    return SnapshotCluster(name, cluster_id=own["cluster_id"], resources=len(rows) - 1, error=own["error"])


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path)
    fleet.take(FIRST)
    fleet.set_retention("eu-1", "orders", "1000")
    fleet.clusters["eu-1"].create_partitions([NewPartitions("orders", 3)])
    fleet.clusters["eu-1"].create_topics([NewTopic("refunds", 1, 1, None, {})])
    fleet.clusters["us-1"].delete_topics({"clicks": None})
    fleet.take(SECOND)
    return fleet


def read_document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    validate(document, build_fleet_schemas()["fleet-diff"])
    return document


def test_diff_shows_what_appeared_changed_and_is_gone(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fleet.diff("--detailed-exitcode") == 2
    text = capsys.readouterr().out
    assert text.splitlines()[:2] == [
        "shop: 1 appeared, 1 gone, 1 changed in 2 clusters.",
        f"From snapshot {FIRST} (2026-11-21 04:00:00Z) to {SECOND} (2026-11-22 04:00:00Z).",
    ]
    eu, us = text.partition("eu-1\n")[2].split("us-1\n")
    assert "  ~ Topic/orders\n" in eu
    assert "retention.ms" in eu
    assert "(unset) → 1000 (1 s)" in eu
    assert "  + Topic/refunds\n" in eu
    assert us.strip() == "- Topic/clicks"


def test_diff_as_json(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    assert fleet.diff(FIRST, SECOND, "--format", "json") == 0
    document = read_document(capsys)
    assert (document["before"]["snapshot_id"], document["after"]["snapshot_id"]) == (FIRST, SECOND)
    assert [(one["cluster"], one["name"], one["change"]) for one in document["changes"]] == [
        ("eu-1", "orders", "changed"),
        ("eu-1", "refunds", "appeared"),
        ("us-1", "clicks", "gone"),
    ]
    paths = {field["path"] for field in document["changes"][0]["fields"]}
    assert "configs.retention.ms" in paths
    assert document["unknown"] == []


def test_equal_snapshots_have_no_changes(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.take(THIRD)
    assert fleet.diff("--detailed-exitcode") == 0
    assert "shop: no changes." in capsys.readouterr().out
    assert fleet.diff("2d", "--detailed-exitcode") == 2
    assert f"From snapshot {FIRST}" in capsys.readouterr().out


def test_unread_cluster_is_unknown_and_not_gone(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.take(THIRD, us_1="connection refused")
    assert fleet.diff("--format", "json") == 1
    document = read_document(capsys)
    assert document["changes"] == []
    assert document["unknown"] == [
        {"cluster": "us-1", "kind": None, "name": None, "prefix": None, "reason": "connection refused"}
    ]
    assert fleet.diff("--cluster", "eu-1") == 0


def test_cluster_that_only_one_snapshot_includes_is_unknown(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet.clusters["ap-1"] = MemoryCluster({1: "a"}, cluster_id="id-ap-1")
    fleet.take(THIRD)
    assert fleet.diff() == 1
    assert f"ap-1  Snapshot {SECOND} does not include this cluster." in capsys.readouterr().out


def test_lost_rows_are_an_error(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    next(fleet.folder.glob(f"data/*/snapshot={FIRST}/cluster=us-1/*.parquet")).unlink()
    assert fleet.diff() == 1
    assert "Snapshot rows missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["90d"], "No snapshot is that old."),
        ([SECOND, FIRST], f"The snapshot {SECOND} is not older than {FIRST}."),
        (["previous", FIRST], f"There is no snapshot before {FIRST}."),
        (["--cluster", "nope"], "Neither snapshot includes a cluster 'nope'."),
    ],
)
def test_mistakes_are_explained(
    options: list[str], reason: str, fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fleet.diff(*options) == 1
    assert reason in " ".join(capsys.readouterr().err.split())
