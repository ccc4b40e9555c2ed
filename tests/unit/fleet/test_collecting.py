"""Live rows of clusters that are read completely or partially."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.fleet.tables import row_builder
from kdeclare.fleet.tables.row_builder import batch_rows, build_unreachable_row, read_live_rows
from kdeclare.fleet.tables.rows import LIVE
from kdeclare.providers.kafka.fleet import codec
from kdeclare.providers.kafka.fleet.facts import compute_topic_facts
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, Partition, Topic
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
REFUSED = Fault("TOPIC_AUTHORIZATION_FAILED", "Topic authorization failed")


def make_cluster(*topics: str) -> MemoryCluster:
    cluster = MemoryCluster(cluster_id="id-1")
    cluster.create_topics([NewTopic(name, 2, 2, None, {"retention.ms": "1000"}) for name in topics])
    cluster.calls.clear()
    return cluster


def make_refusing_cluster(topics: Sequence[str], *refused: str, fault: Fault = REFUSED) -> MemoryCluster:
    """A cluster that refuses the configs of some resources, in any request."""
    cluster = make_cluster(*topics)
    for resource in refused:
        cluster.faults.fail(fault, nth=None, method="configs", item=resource)
    return cluster


def broker_resource(name: str) -> ConfigResource:
    return ConfigResource(ConfigScope.BROKER, name)


def read_rows(cluster: MemoryCluster) -> dict[tuple[str, str], dict[str, Any]]:
    """Return rows after a round trip through Arrow, as from a task."""
    batches = batch_rows(read_live_rows(connections_to(cluster), "eu-1", {"tier": "gold"}, NOW))
    rows = [row for batch in batches for row in batch.to_pylist()]
    found = {(row["kind"], row["name"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_read_live_rows_returns_topics_configs_and_cluster() -> None:
    cluster = make_cluster("a", "b")
    cluster.set_overrides(broker_resource("1"), {"log.cleaner.threads": "2"})
    rows = read_rows(cluster)
    assert sorted(rows) == [
        *(("BrokerConfig", name) for name in ("1", "2", "3", "cluster-default")),
        ("Cluster", "eu-1"),
        ("Topic", "a"),
        ("Topic", "b"),
    ]
    for row in rows.values():
        assert (row["cluster"], row["cluster_id"], row["taken_at"]) == ("eu-1", "id-1", NOW)
        assert (row["labels"], row["error"]) == ([("tier", "gold")], None)
    itself = json.loads(rows["Cluster", "eu-1"]["body"])
    assert (itself["version"], len(itself["brokers"])) == ("4.3", 3)
    row = rows["Topic", "a"]
    assert json.loads(row["body"])["configs"]["retention.ms"]["value"] == "1000"
    body, hour = json.loads(row["body"]), ConfigEntry("1000", ConfigSource.TOPIC)
    size = Topic("a", body["id"], (Partition((1, 2)), Partition((2, 3))))
    assert row["has"] == compute_topic_facts(size, {"retention.ms": hour}, {}).has
    assert json.loads(rows["BrokerConfig", "1"]["body"])["configs"]["log.cleaner.threads"]["value"] == "2"
    assert len(cluster.requests("configs")) == 2  # topics together, brokers together


def test_read_live_rows_includes_moves() -> None:
    cluster = make_cluster("a")
    cluster.move_ticks = 5
    cluster.tick_on_poll = False
    cluster.reassign({TopicPartition("a", 0): (1, 2, 3)}, allow_replication_factor_change=True)
    body = json.loads(read_rows(cluster)["Topic", "a"]["body"])
    assert sorted(body["moves"]) == ["0"]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_refused_topic_configs_leave_other_rows_complete(count: int) -> None:
    names = [f"t{n}" for n in range(count)]
    rows = read_rows(make_refusing_cluster(names, "TOPIC/t0"))
    assert rows["Topic", "t0"]["body"] is None
    assert rows["Topic", "t0"]["error"] == (
        "The configs cannot be read: Topic authorization failed (TOPIC_AUTHORIZATION_FAILED)."
    )
    assert [rows["Topic", name]["error"] for name in names[1:]] == [None] * (count - 1)
    assert rows["BrokerConfig", "1"]["error"] is None
    assert rows["Cluster", "eu-1"]["error"] is None


def test_refused_configs_cost_no_extra_requests() -> None:
    names = [f"t{n:03}" for n in range(400)]
    cluster = make_refusing_cluster(names, *(f"TOPIC/{name}" for name in names[::10]))
    rows = read_rows(cluster)
    assert [name for name in names if rows["Topic", name]["error"]] == names[::10]
    assert len(cluster.requests("configs")) == 2


def test_failed_batch_affects_only_its_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_AT_ONCE", 2)
    cluster = make_cluster("a", "b", "c", "d", "e")
    cluster.faults.fail(Fault("CORRUPT_MESSAGE", "unreadable answer"), nth=2, method="configs")
    rows = read_rows(cluster)
    assert [name for name in "abcde" if rows["Topic", name]["error"]] == ["c", "d"]


def test_lost_cluster_is_not_read_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_AT_ONCE", 2)
    cluster = make_cluster("a", "b", "c", "d", "e")
    gone = Fault("REQUEST_TIMED_OUT", "no answer in 30 s", FaultKind.RETRIABLE)
    cluster.faults.fail(gone, nth=2, method="configs")
    rows = read_rows(cluster)
    assert [rows["Topic", name]["error"] is None for name in "abcde"] == [True, True, False, False, False]
    assert rows["Topic", "e"]["error"] == "The configs cannot be read: no answer in 30 s (REQUEST_TIMED_OUT)."
    assert len([c for c in cluster.requests("configs") if c.items[0].startswith("TOPIC")]) == 2


def test_unavailable_broker_affects_only_its_row() -> None:
    down = Fault("BROKER_NOT_AVAILABLE", "broker 2 is registered but not available", FaultKind.RETRIABLE)
    rows = read_rows(make_refusing_cluster(["a"], "BROKER/2", fault=down))
    assert "broker 2 is registered" in rows["BrokerConfig", "2"]["error"]
    for name in ("1", "3", "cluster-default"):
        assert rows["BrokerConfig", name]["error"] is None
    assert rows["Topic", "a"]["error"] is None


def test_fenced_broker_has_error_only_without_response() -> None:
    cluster = make_refusing_cluster(["a"], "BROKER/3")
    cluster.fence(2)
    cluster.fence(3)
    rows = read_rows(cluster)
    assert rows["BrokerConfig", "2"]["error"] is None
    assert rows["BrokerConfig", "3"]["error"]


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("describe", "CLUSTER_AUTHORIZATION_FAILED"),
        ("topics", "CLUSTER_AUTHORIZATION_FAILED"),
        ("moves", "REQUEST_TIMED_OUT"),
    ],
)
def test_unreadable_cluster_raises_fault(method: str, error: str) -> None:
    cluster = make_cluster("a")
    cluster.faults.fail(Fault(error, "no"), nth=None, method=method)
    rows = read_live_rows(connections_to(cluster), "eu-1", {}, NOW)
    with pytest.raises(Fault):
        next(rows)


def test_unreachable_cluster_becomes_error_row() -> None:
    (batch,) = batch_rows([build_unreachable_row("eu-1", {"a": "b"}, NOW, "It is gone.")])
    (row,) = batch.to_pylist()
    assert (row["kind"], row["name"], row["cluster"], row["cluster_id"]) == ("Cluster", "eu-1", "eu-1", None)
    assert (row["body"], row["error"], row["labels"]) == (None, "It is gone.", [("a", "b")])


def test_batch_rows_limits_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_builder, "ROWS_A_BATCH", 3)
    cluster = make_cluster(*"abcdefgh")
    batches = list(batch_rows(read_live_rows(connections_to(cluster), "eu-1", {}, NOW)))
    assert [batch.num_rows for batch in batches] == [3, 3, 3, 3, 1]
    assert all(batch.schema == LIVE for batch in batches)


def test_topic_deleted_during_collection_has_no_row() -> None:
    cluster = make_cluster("a", "b")
    cluster.faults.run_before(lambda other: other.delete_topics({"b": None}), method="configs")
    assert [name for kind, name in read_rows(cluster) if kind == "Topic"] == ["a"]
