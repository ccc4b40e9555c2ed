"""Conformance cases for topics, partitions and replica placement."""

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import NewPartitions, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster, PartitionState
from tests.beds import AnyBed, MemoryBed, all_created, get_error, get_message, topic_resource
from tests.cases import case


def topic_with_counts(name: str, partitions: int | None, factor: int | None) -> NewTopic:
    """Return a topic that is defined by counts."""
    return NewTopic(name, partitions, factor, None, {})


@case("CRT-02")
def test_creation_without_usable_brokers_is_refused() -> None:
    cluster = MemoryCluster({0: None, 1: None, 2: None}, static={"default.replication.factor": "3"})
    for broker in range(3):
        cluster.fence(broker)
    answer = cluster.create_topics([topic_with_counts("foo", -1, -1)])["foo"]
    assert get_error(answer) == "INVALID_REPLICATION_FACTOR"
    assert (
        get_message(answer)
        == "Unable to replicate the partition 3 time(s): All brokers are currently fenced."
    )
    manual = NewTopic("bar", None, None, {0: (0, 1)}, {})
    assert get_error(cluster.create_topics([manual])["bar"]) == "INVALID_REPLICA_ASSIGNMENT"


@case("CRT-04")
def test_validate_only_refuses_too_many_replicas(bed: AnyBed) -> None:
    name = bed.name()
    answer = bed.cluster.create_topics([topic_with_counts(name, 1, 4)], validate_only=True)[name]
    assert get_error(answer) == "INVALID_REPLICATION_FACTOR"
    assert "only 3 broker(s) are registered" in get_message(answer)
    assert name not in bed.cluster.topics([name])


@case("CRT-09")
@pytest.mark.parametrize(
    ("lists", "words"),
    [
        (((),), "empty replica list"),
        (((1, 2, 9),), "broker 9, but no such broker is registered"),
        (((1, 2, 2),), "broker 2 more than once"),
        (
            ((1, 2, 3), (1, 2)),
            "2 replica(s), but this is not consistent with previous partitions, which have 3",
        ),
    ],
)
def test_bad_assignments_are_refused(bed: AnyBed, lists: tuple[tuple[int, ...], ...], words: str) -> None:
    name = bed.name()
    answer = bed.cluster.create_topics([NewTopic(name, None, None, dict(enumerate(lists)), {})])[name]
    assert get_error(answer) == "INVALID_REPLICA_ASSIGNMENT"
    assert words in get_message(answer)


@case("CRT-11")
def test_placement_includes_unavailable_brokers() -> None:
    cluster = MemoryCluster({0: None, 1: None, 2: None}, static={"default.replication.factor": "3"})
    cluster.set_broker(1, shutting_down=True)
    cluster.fence(2)
    assert all_created(cluster.create_topics([topic_with_counts("foo", -1, -1)]))
    partition = cluster.topics(["foo"])["foo"].partitions[0]
    assert sorted(partition.replicas) == [0, 1, 2]
    assert (partition.isr, partition.leader) == ((0,), 0)


@case("CRT-14")
def test_topic_with_unknown_config_is_not_created(bed: AnyBed) -> None:
    name = bed.name()
    answer = bed.cluster.create_topics([NewTopic(name, 1, 1, None, {"no.such": "1"})])[name]
    assert get_error(answer) == "INVALID_CONFIG"
    assert name not in bed.cluster.topics([name])


@case("NAM-01")
def test_empty_and_dot_names_are_refused(bed: AnyBed) -> None:
    woo = bed.name("woo")
    results = bed.cluster.create_topics([topic_with_counts(name, 1, 1) for name in ("", ".", woo)])
    assert {name: get_error(result) for name, result in results.items()} == {
        "": "INVALID_TOPIC_EXCEPTION",
        ".": "INVALID_TOPIC_EXCEPTION",
        woo: None,
    }


@case("NAM-03")
def test_name_length_is_limited(bed: AnyBed) -> None:
    longest = bed.delete_at_end(bed.prefix + "x" * (249 - len(bed.prefix)))
    results = bed.cluster.create_topics(
        [topic_with_counts(longest, 1, 1), topic_with_counts(longest + "x", 1, 1)]
    )
    assert get_error(results[longest]) is None
    assert get_error(results[longest + "x"]) == "INVALID_TOPIC_EXCEPTION"


@case("PRT-02")
def test_assignments_of_added_partitions_are_validated(bed: AnyBed) -> None:
    one, two, three, four = (bed.create(partitions=count, factor=2) for count in (5, 4, 2, 2))
    results = bed.cluster.create_partitions(
        [
            NewPartitions(one, 6, ((1, 3),)),
            NewPartitions(two, 5, ((1,),)),
            NewPartitions(three, 4, ((1, 2),)),
            NewPartitions(four, 3, ((9, 1),)),
        ]
    )
    assert results[one] is None
    for name, words in (
        (two, "1 replica(s), but this is not consistent with previous partitions, which have 2"),
        (three, "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
        (four, "broker 9, but no such broker is registered"),
    ):
        assert get_error(results[name]) == "INVALID_REPLICA_ASSIGNMENT"
        assert words in get_message(results[name])


@case("PRT-04")
def test_partition_counts_fail_individually(bed: AnyBed) -> None:
    one, two = bed.create(partitions=3), bed.create(partitions=3)
    results = bed.cluster.create_partitions([NewPartitions(one, 4), NewPartitions(two, 2)])
    assert results[one] is None
    assert get_error(results[two]) == "INVALID_PARTITIONS"

    def check() -> None:
        assert len(bed.topic(one).partitions) == 4
        assert len(bed.topic(two).partitions) == 3

    bed.eventually(check)


@case("PRT-06")
def test_added_partition_during_move_gets_union_size() -> None:
    bed = MemoryBed(MemoryCluster(dict.fromkeys(range(1, 7)), move_ticks=1))
    name = bed.create({0: (1, 2, 3)})
    assert bed.move(name, 0, (4, 5, 6)) is None
    assert bed.add_partitions(name, 2) is None
    assert len(bed.topic(name).partitions[1].replicas) == 6


@case("PRT-08")
def test_exceeded_quota_is_returned_and_not_retried() -> None:
    bed = MemoryBed(MemoryCluster())
    name = bed.create()
    bed.memory.faults.fail(
        Fault("THROTTLING_QUOTA_EXCEEDED", "", FaultKind.RETRIABLE), method="create_partitions", item=name
    )
    assert get_error(bed.add_partitions(name, 3)) == "THROTTLING_QUOTA_EXCEEDED"
    assert len(bed.memory.requests("create_partitions")) == 1


@case("DEL-01")
def test_deletion_removes_configs(bed: AnyBed) -> None:
    overrides = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}
    name = bed.create(partitions=3, configs=overrides)
    assert bed.cluster.delete_topics({name: None}) == {name: None}

    def check_gone() -> None:
        assert name not in bed.cluster.topics([name])

    bed.eventually(check_gone)
    bed.create(name=name)
    bed.expect_overrides(topic_resource(name), {})


@case("DEL-03")
def test_recreated_topic_has_another_id(bed: AnyBed) -> None:
    name = bed.create(name=bed.name(".bar"), partitions=2)
    before = bed.topic(name).topic_id
    assert bed.cluster.delete_topics({name: None}) == {name: None}

    def check_gone() -> None:
        assert name not in bed.cluster.topics([name])

    bed.eventually(check_gone)
    bed.create(name=name, partitions=4)
    assert len(bed.topic(name).partitions) == 4
    assert bed.topic(name).topic_id != before


def place_topic(cluster: MemoryCluster, partitions: int, factor: int) -> list[tuple[int, ...]]:
    """Return the replicas of a new topic."""
    assert all_created(cluster.create_topics([topic_with_counts("t", partitions, factor)]))
    return [p.replicas for p in cluster.topics(["t"])["t"].partitions]


@case("PLC-01")
@pytest.mark.parametrize("seed", range(20))
def test_placement_spreads_over_three_racks(seed: int) -> None:
    racks = {10: "1", 11: "1", 20: "2", 21: "2", 30: "3", 31: "3"}
    cluster = MemoryCluster(dict(racks), seed=seed)
    cluster.fence(20)
    rows = place_topic(cluster, 3, 4)
    for row in rows:
        assert len(set(row)) == 4
        assert row[0] != 20
        assert {racks[b] for b in row[:3]} == {"1", "2", "3"}
    assert len({racks[row[0]] for row in rows}) == 3


@case("PLC-04")
@pytest.mark.parametrize("seed", range(20))
def test_placement_uses_racks_of_fenced_brokers(seed: int) -> None:
    racks = {10: "1", 11: "1", 20: "2", 21: "2", 30: "3", 31: "3", 40: "4", 41: "4"}
    fenced = {20, 21, 30, 31, 40}
    cluster = MemoryCluster(dict(racks), seed=seed)
    for broker in fenced:
        cluster.fence(broker)
    for row in place_topic(cluster, 3, 4):
        assert {racks[b] for b in row} == {"1", "2", "3", "4"}
        assert row[0] not in fenced
        assert 40 not in row or 41 in row


@case("PLC-07")
@pytest.mark.parametrize("seed", range(20))
def test_placement_is_even(seed: int) -> None:
    racks = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack1", 4: "rack3", 5: "rack3"}
    cluster = MemoryCluster(dict(racks), seed=seed)
    rows = place_topic(cluster, 18, 3)
    for count in (18, 36):
        assert all({racks[b] for b in row} == {"rack1", "rack2", "rack3"} for row in rows)
        assert {sum(b in row for row in rows) for b in racks} == {count // 2}
        assert {sum(b == row[0] for row in rows) for b in racks} == {count // 6}
        if count == 18:
            assert cluster.create_partitions([NewPartitions("t", 36)]) == {"t": None}
            rows = [p.replicas for p in cluster.topics(["t"])["t"].partitions]


def test_set_partition_accepts_any_state() -> None:
    bed = MemoryBed(MemoryCluster())
    where = TopicPartition(bed.create({0: (1, 2)}), 0)
    state = PartitionState((1, 2), (1,), 1)
    bed.memory.set_partition(where, state)
    assert bed.memory.partition(where) == state
