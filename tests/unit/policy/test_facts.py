"""The data of a cluster that policies can read: read once, consistently, and only on demand."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.policy.interface import PolicyViolation
from kdeclare.providers.kafka.collector import KafkaSelection, observe
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.policies.cluster_reader import ClusterReader, LiveTopicState
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.beds import MemoryBed


@pytest.fixture
def cluster() -> MemoryCluster:
    bed = MemoryBed(MemoryCluster(dict.fromkeys(range(1, 5))))
    for name in "abc":
        bed.create({0: (1, 2)}, name=name, configs={"retention.ms": "5"})
    return bed.memory


def record_calls(cluster: MemoryCluster, read: Callable[[], object]) -> list[tuple[str, tuple[str, ...]]]:
    before = len(cluster.calls)
    read()
    return [(call.method, tuple(map(str, call.items))) for call in cluster.calls[before:]]


def start_moves(cluster: MemoryCluster, *topics: str) -> None:
    """Start reassignments from brokers 1 and 2 to brokers 3 and 4."""
    cluster.move_ticks, cluster.tick_on_poll = 1, False
    targets = {TopicPartition(name, 0): (3, 4) for name in topics}
    cluster.reassign(targets, allow_replication_factor_change=False)


def finish_moves_after_topics_read(cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reassignments finish right after topics have been read."""
    read = cluster.topics

    def read_then_tick(*args: Any) -> Any:
        found = read(*args)
        cluster.tick(5)
        return found

    monkeypatch.setattr(cluster, "topics", read_then_tick)


def make_unread_reader(cluster: MemoryCluster) -> ClusterReader:
    return ClusterReader(cluster, ["a", "b"])


def make_reader_with_earlier_topics(cluster: MemoryCluster) -> ClusterReader:
    """Read topics before the reassignments finish, and no reassignments."""
    live = observe(cluster, KafkaSelection(), all_topics=True)
    cluster.tick(5)
    return ClusterReader(cluster, ["a", "b"], live, KafkaSelection())


@pytest.mark.parametrize("facts_of", [make_unread_reader, make_reader_with_earlier_topics])
def test_replicas_after_concurrent_end_of_move_are_the_target(
    cluster: MemoryCluster,
    monkeypatch: pytest.MonkeyPatch,
    facts_of: Callable[[MemoryCluster], ClusterReader],
) -> None:
    start_moves(cluster, "a")
    facts = facts_of(cluster)
    finish_moves_after_topics_read(cluster, monkeypatch)
    state = LiveTopicState("a", facts)
    assert state.num_partitions == 1
    assert state.replicas_assignments == {0: (3, 4)}
    assert state.replication_factor == 2
    assert facts.replicas("b") == {0: (1, 2)}


def test_replicas_during_move_are_the_target(cluster: MemoryCluster) -> None:
    start_moves(cluster, "a")
    assert make_unread_reader(cluster).replicas("a") == {0: (3, 4)}


def test_cluster_reader_reuses_live_state_of_plan(cluster: MemoryCluster) -> None:
    start_moves(cluster, "a")
    query = KafkaSelection(frozenset("ab"))
    live = observe(cluster, query)
    facts = ClusterReader(cluster, ["a", "b"], live, query)
    assert record_calls(cluster, lambda: (facts.replicas("a"), facts.replicas("b"))) == []
    assert facts.replicas("a") == {0: (3, 4)}


def test_cluster_reader_reads_replicas_and_counts_once(cluster: MemoryCluster) -> None:
    facts = make_unread_reader(cluster)
    names = ("a", "b")
    assert record_calls(cluster, lambda: facts.topic("a")) == [("topics", names)]
    read = record_calls(cluster, lambda: facts.replicas("a"))
    assert read == [("topics", names), ("moves", names)]
    assert record_calls(cluster, lambda: (facts.replicas("b"), facts.topic("b"))) == []


def test_deleted_topic_has_no_replicas(cluster: MemoryCluster) -> None:
    facts = ClusterReader(cluster, ["a", "gone"])
    assert facts.replicas("gone") is None
    for read in ("replicas_assignments", "replication_factor", "num_partitions"):
        with pytest.raises(PolicyViolation, match="no longer exists"):
            getattr(LiveTopicState("gone", facts), read)


def test_record_counts_are_read_for_requested_topics(cluster: MemoryCluster) -> None:
    cluster.produce("b", 3)
    facts = ClusterReader(cluster, ["a", "b", "c", "new"])
    assert record_calls(cluster, lambda: facts.topic("a")) != []
    read = partial(facts.records, "b", ["b", "new"])
    assert record_calls(cluster, read) == [("record_counts", ("b",))]
    assert record_calls(cluster, read) == []
    assert record_calls(cluster, lambda: facts.records("a", ["a", "b", "c"])) == [
        ("record_counts", ("a", "c"))
    ]
    assert record_calls(cluster, lambda: (facts.records("c", []), facts.records("new", []))) == []
    assert [facts.records(name, []) for name in ("a", "b", "c", "new")] == [0, 3, 0, 0]


def test_live_topic_state_is_not_modified_through_its_mappings(cluster: MemoryCluster) -> None:
    facts = make_unread_reader(cluster)
    state: Any = LiveTopicState("a", facts)
    state.configs.clear()
    state.replicas_assignments.clear()
    assert (state.configs, state.replicas_assignments) == ({"retention.ms": "5"}, {0: (1, 2)})
    assert LiveTopicState("a", facts).configs == {"retention.ms": "5"}


def test_cluster_reader_is_busy_only_while_reading(
    cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = make_unread_reader(cluster)
    seen: list[bool] = []
    read = cluster.topics

    def record_busy_and_read(*args: Any) -> Any:
        seen.append(facts.is_busy)
        return read(*args)

    monkeypatch.setattr(cluster, "topics", record_busy_and_read)
    assert not facts.is_busy
    facts.topic("a")
    assert seen == [True]
    assert not facts.is_busy
    cluster.faults.fail(Fault("NETWORK_EXCEPTION", "gone", FaultKind.UNKNOWN), method="record_counts")
    with pytest.raises(Fault):
        facts.records("a", ["a"])
    assert not facts.is_busy
