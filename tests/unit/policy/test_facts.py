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


def calls(cluster: MemoryCluster, read: Callable[[], object]) -> list[tuple[str, tuple[str, ...]]]:
    before = len(cluster.calls)
    read()
    return [(call.method, tuple(map(str, call.items))) for call in cluster.calls[before:]]


def moving(cluster: MemoryCluster, *topics: str) -> None:
    """Start reassignments from brokers 1 and 2 to brokers 3 and 4."""
    cluster.move_ticks, cluster.tick_on_poll = 1, False
    targets = {TopicPartition(name, 0): (3, 4) for name in topics}
    cluster.reassign(targets, allow_replication_factor_change=False)


def ending(cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reassignments finish right after topics have been read."""
    read = cluster.topics

    def topics(*args: Any) -> Any:
        found = read(*args)
        cluster.tick(5)
        return found

    monkeypatch.setattr(cluster, "topics", topics)


def unread(cluster: MemoryCluster) -> ClusterReader:
    return ClusterReader(cluster, ["a", "b"])


def read_before(cluster: MemoryCluster) -> ClusterReader:
    """Read topics before the reassignments finish, and no reassignments."""
    live = observe(cluster, KafkaSelection(), all_topics=True)
    cluster.tick(5)
    return ClusterReader(cluster, ["a", "b"], live, KafkaSelection())


@pytest.mark.parametrize("facts_of", [unread, read_before])
def test_a_move_that_ends_meanwhile_is_not_judged_by_its_union(
    cluster: MemoryCluster,
    monkeypatch: pytest.MonkeyPatch,
    facts_of: Callable[[MemoryCluster], ClusterReader],
) -> None:
    moving(cluster, "a")
    facts = facts_of(cluster)
    ending(cluster, monkeypatch)
    state = LiveTopicState("a", facts)
    assert state.num_partitions == 1
    assert state.replicas_assignments == {0: (3, 4)}
    assert state.replication_factor == 2
    assert facts.replicas("b") == {0: (1, 2)}


def test_where_a_move_is_heading_counts(cluster: MemoryCluster) -> None:
    moving(cluster, "a")
    assert unread(cluster).replicas("a") == {0: (3, 4)}


def test_what_a_plan_has_read_is_not_read_again(cluster: MemoryCluster) -> None:
    moving(cluster, "a")
    query = KafkaSelection(frozenset("ab"))
    live = observe(cluster, query)
    facts = ClusterReader(cluster, ["a", "b"], live, query)
    assert calls(cluster, lambda: (facts.replicas("a"), facts.replicas("b"))) == []
    assert facts.replicas("a") == {0: (3, 4)}


def test_replicas_and_counts_are_read_once(cluster: MemoryCluster) -> None:
    facts = unread(cluster)
    names = ("a", "b")
    assert calls(cluster, lambda: facts.topic("a")) == [("topics", names)]
    read = calls(cluster, lambda: facts.replicas("a"))
    assert read == [("moves", ()), ("topics", names), ("moves", names)]
    assert calls(cluster, lambda: (facts.replicas("b"), facts.topic("b"))) == []


def test_a_topic_that_is_gone_has_no_replicas(cluster: MemoryCluster) -> None:
    facts = ClusterReader(cluster, ["a", "gone"])
    assert facts.replicas("gone") is None
    for read in ("replicas_assignments", "replication_factor", "num_partitions"):
        with pytest.raises(PolicyViolation, match="no longer exists"):
            getattr(LiveTopicState("gone", facts), read)


def test_records_are_read_of_those_that_the_same_is_asked_of(cluster: MemoryCluster) -> None:
    cluster.produce("b", 3)
    facts = ClusterReader(cluster, ["a", "b", "c", "new"])
    assert calls(cluster, lambda: facts.topic("a")) != []
    read = partial(facts.records, "b", ["b", "new"])
    assert calls(cluster, read) == [("record_counts", ("b",))]
    assert calls(cluster, read) == []
    assert calls(cluster, lambda: facts.records("a", ["a", "b", "c"])) == [("record_counts", ("a", "c"))]
    assert calls(cluster, lambda: (facts.records("c", []), facts.records("new", []))) == []
    assert [facts.records(name, []) for name in ("a", "b", "c", "new")] == [0, 3, 0, 0]


def test_a_policy_cannot_change_what_the_next_one_sees(cluster: MemoryCluster) -> None:
    facts = unread(cluster)
    state: Any = LiveTopicState("a", facts)
    state.configs.clear()
    state.replicas_assignments.clear()
    assert (state.configs, state.replicas_assignments) == ({"retention.ms": "5"}, {0: (1, 2)})
    assert LiveTopicState("a", facts).configs == {"retention.ms": "5"}


def test_it_is_busy_while_it_reads_and_then_no_more(
    cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = unread(cluster)
    seen: list[bool] = []
    read = cluster.topics

    def watched(*args: Any) -> Any:
        seen.append(facts.is_busy)
        return read(*args)

    monkeypatch.setattr(cluster, "topics", watched)
    assert not facts.is_busy
    facts.topic("a")
    assert seen == [True]
    assert not facts.is_busy
    cluster.faults.fail(Fault("NETWORK_EXCEPTION", "gone", FaultKind.UNKNOWN), method="record_counts")
    with pytest.raises(Fault):
        facts.records("a", ["a"])
    assert not facts.is_busy
