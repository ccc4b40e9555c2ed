"""Reassignments through the `Cluster` protocol (KIP-455, KIP-860)."""

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move
from tests.beds import SET, AnyBed, error, message, topic_resource


def replicas_become(bed: AnyBed, name: str, *expected: tuple[int, ...]) -> None:
    """Wait until metadata shows these replicas, all in sync, and no reassignment."""

    def check() -> None:
        found = bed.topic(name).partitions
        assert tuple(p.replicas for p in found) == expected
        assert all(sorted(p.isr) == sorted(p.replicas) for p in found)
        assert not bed.cluster.moves([name])

    bed.eventually(check)


def listed(bed: AnyBed, name: str) -> Move | None:
    """Return the in-flight reassignment of partition 0."""
    return bed.cluster.moves([name]).get(TopicPartition(name, 0))


def test_a_move_completes(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2), 1: (2, 3)})
    assert bed.move(name, 0, (1, 3)) is None
    bed.release_moves()
    replicas_become(bed, name, (1, 3), (2, 3))


def test_the_leader_goes_with_its_replica(bed: AnyBed) -> None:
    name = bed.create({0: (1,)})
    assert bed.move(name, 0, (2,)) is None
    bed.release_moves()
    replicas_become(bed, name, (2,))
    assert bed.topic(name).partitions[0].leader == 2


def test_a_new_order_is_taken_at_once_and_keeps_the_leader(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2, 3)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (3, 2, 1)) is None
    replicas_become(bed, name, (3, 2, 1))
    assert bed.topic(name).partitions[0].leader == 1


def test_a_pure_removal_ends_at_once(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2, 3)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (1, 3), grow=True) is None
    replicas_become(bed, name, (1, 3))


def test_the_factor_can_grow_where_allowed(bed: AnyBed) -> None:
    name = bed.create({0: (1,)})
    assert bed.move(name, 0, (1, 2, 3), grow=True) is None
    bed.release_moves()
    replicas_become(bed, name, (1, 2, 3))


def test_a_move_in_flight_is_listed_with_what_it_adds_and_removes(bed: AnyBed) -> None:
    name = bed.create({0: (2, 1)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (3, 1)) is None

    def check() -> None:
        assert listed(bed, name) == Move((3, 1, 2), (3,), (2,))
        assert bed.topic(name).partitions[0].replicas == (3, 1, 2)

    bed.eventually(check)
    assert dict(bed.cluster.moves(["not-there"])) == {}
    assert TopicPartition(name, 0) in bed.cluster.moves()
    bed.release_moves()
    replicas_become(bed, name, (3, 1))


def test_cancel_drops_what_is_added_and_keeps_the_order_of_the_list(bed: AnyBed) -> None:
    name = bed.create({0: (2, 1)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (3, 1)) is None
    assert bed.move(name, 0, None) is None
    replicas_become(bed, name, (1, 2))  # it was (2, 1)
    assert bed.topic(name).partitions[0].leader == 2


def test_cancel_of_nothing(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    answer = bed.move(name, 0, None)
    assert error(answer) == "NO_REASSIGNMENT_IN_PROGRESS"


def test_the_guard_refuses_another_size(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2), 1: (1, 2)})
    one, two = TopicPartition(name, 0), TopicPartition(name, 1)
    results = bed.cluster.reassign({one: (1,), two: (1, 3)}, allow_replication_factor_change=False)
    assert error(results[one]) == "INVALID_REPLICATION_FACTOR"
    assert message(results[one]) == "The replication factor is changed from 2 to 1"
    assert results[two] is None
    bed.release_moves()
    replicas_become(bed, name, (1, 2), (1, 3))


def test_the_guard_compares_with_the_target_of_a_move(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (1, 3)) is None
    answer = bed.move(name, 0, (1, 2, 3))  # according to the metadata: the race of KIP-860
    assert error(answer) == "INVALID_REPLICATION_FACTOR"
    assert message(answer) == "The replication factor is changed from 2 to 3"
    assert error(bed.move(name, 0, (1,))) == "INVALID_REPLICATION_FACTOR"
    assert bed.move(name, 0, None) is None  # canceling is not guarded


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ((1, 9), "broker 9, but no such broker is registered"),
        ((1, 1), "the broker 1 more than once"),
        ((), "an empty replica list"),
        ((9,), "broker 9, but no such broker is registered"),  # before the guard existed
    ],
)
def test_impossible_targets(bed: AnyBed, target: tuple[int, ...], words: str) -> None:
    name = bed.create({0: (1, 2)})
    answer = bed.move(name, 0, target)
    assert error(answer) == "INVALID_REPLICA_ASSIGNMENT"
    assert words in message(answer)


def test_what_is_not_there_cannot_be_moved(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    assert message(bed.move(name, 7, (1, 2))) == f"Unable to find partition {name}:7."
    answer = bed.move("not-there", 0, (1, 2))
    assert error(answer) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert message(answer) == "Unable to find a topic named not-there."


def test_a_move_can_be_overridden(bed: AnyBed) -> None:
    name = bed.create({0: (1,)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (2,)) is None
    assert bed.move(name, 0, (3,)) is None
    assert listed(bed, name) == Move((3, 1, 2), (3,), (1, 2))
    # canceling leaves the union of the earlier stages
    assert bed.move(name, 0, None) is None

    def check() -> None:
        assert bed.topic(name).partitions[0].replicas == (1, 2)
        assert not bed.cluster.moves([name])

    bed.eventually(check)
    bed.release_moves()


def test_a_target_equal_to_the_union_is_acknowledged_and_ignored(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (1, 3)) is None
    assert bed.move(name, 0, (1, 2, 3), grow=True) is None
    assert listed(bed, name) == Move((1, 2, 3), (3,), (2,))
    bed.release_moves()
    replicas_become(bed, name, (1, 3))


def test_a_move_back_in_flight_never_ends_until_it_is_cancelled(bed: AnyBed) -> None:
    """The newly computed adding list is empty, so the old one stays: 3 is both added and removed."""
    name = bed.create({0: (1, 2)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (1, 3)) is None
    assert bed.move(name, 0, (1, 2)) is None
    assert listed(bed, name) == Move((1, 2, 3), (3,), (3,))
    bed.release_moves()

    def in_sync() -> None:
        assert sorted(bed.topic(name).partitions[0].isr) == [1, 2, 3]

    bed.eventually(in_sync)
    assert listed(bed, name) == Move((1, 2, 3), (3,), (3,))
    assert bed.move(name, 0, None) is None
    replicas_become(bed, name, (1, 2))


def test_partitions_added_during_a_move_get_the_size_of_the_union(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (1, 3)) is None
    assert bed.add_partitions(name, 2) is None

    def check() -> None:
        assert [len(p.replicas) for p in bed.topic(name).partitions] == [3, 3]

    bed.eventually(check)
    bed.release_moves()


def test_moves_do_not_mind_throttles_of_a_topic(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    key = "leader.replication.throttled.replicas"
    assert bed.alter(topic_resource(name), (key, SET, "0:1")) is None
    assert bed.move(name, 0, (1, 3)) is None
    bed.release_moves()
    replicas_become(bed, name, (1, 3))
    bed.expect_overrides(topic_resource(name), {key: "0:1"})


def test_nothing_to_move(bed: AnyBed) -> None:
    try:
        assert dict(bed.cluster.reassign({}, allow_replication_factor_change=False)) == {}
    except Fault as fault:  # pragma: no cover - refused as a whole
        pytest.fail(str(fault))
