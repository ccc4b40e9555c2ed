"""Reassignments through the `Cluster` protocol (KIP-455, KIP-860)."""

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move
from tests.beds import SET, AnyBed, get_error, get_message, topic_resource


def wait_for_replicas(bed: AnyBed, name: str, *expected: tuple[int, ...]) -> None:
    """Wait until metadata shows these replicas, all in sync, and no reassignment."""

    def check() -> None:
        found = bed.topic(name).partitions
        assert tuple(p.replicas for p in found) == expected
        assert all(sorted(p.isr) == sorted(p.replicas) for p in found)
        assert not bed.cluster.moves([name])

    bed.eventually(check)


def find_move(bed: AnyBed, name: str) -> Move | None:
    """Return the in-flight reassignment of partition 0."""
    return bed.cluster.moves([name]).get(TopicPartition(name, 0))


def test_move_completes(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2), 1: (2, 3)})
    assert bed.move(name, 0, (1, 3)) is None
    bed.release_moves()
    wait_for_replicas(bed, name, (1, 3), (2, 3))


def test_move_of_leader_elects_new_leader(bed: AnyBed) -> None:
    name = bed.create({0: (1,)})
    assert bed.move(name, 0, (2,)) is None
    bed.release_moves()
    wait_for_replicas(bed, name, (2,))
    assert bed.topic(name).partitions[0].leader == 2


def test_reordering_is_immediate_and_keeps_leader(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2, 3)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (3, 2, 1)) is None
    wait_for_replicas(bed, name, (3, 2, 1))
    assert bed.topic(name).partitions[0].leader == 1


def test_replica_removal_is_immediate(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2, 3)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (1, 3), grow=True) is None
    wait_for_replicas(bed, name, (1, 3))


def test_factor_grows_when_allowed(bed: AnyBed) -> None:
    name = bed.create({0: (1,)})
    assert bed.move(name, 0, (1, 2, 3), grow=True) is None
    bed.release_moves()
    wait_for_replicas(bed, name, (1, 2, 3))


def test_move_in_flight_lists_adding_and_removing_replicas(bed: AnyBed) -> None:
    name = bed.create({0: (2, 1)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (3, 1)) is None

    def check() -> None:
        assert find_move(bed, name) == Move((3, 1, 2), (3,), (2,))
        assert bed.topic(name).partitions[0].replicas == (3, 1, 2)

    bed.eventually(check)
    assert dict(bed.cluster.moves(["not-there"])) == {}
    assert TopicPartition(name, 0) in bed.cluster.moves()
    bed.release_moves()
    wait_for_replicas(bed, name, (3, 1))


def test_cancel_drops_added_replicas_and_keeps_order(bed: AnyBed) -> None:
    name = bed.create({0: (2, 1)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (3, 1)) is None
    assert bed.move(name, 0, None) is None
    wait_for_replicas(bed, name, (1, 2))  # it was (2, 1)
    assert bed.topic(name).partitions[0].leader == 2


def test_cancel_without_move_is_refused(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    answer = bed.move(name, 0, None)
    assert get_error(answer) == "NO_REASSIGNMENT_IN_PROGRESS"


def test_guard_refuses_different_factor(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2), 1: (1, 2)})
    one, two = TopicPartition(name, 0), TopicPartition(name, 1)
    results = bed.cluster.reassign({one: (1,), two: (1, 3)}, allow_replication_factor_change=False)
    assert get_error(results[one]) == "INVALID_REPLICATION_FACTOR"
    assert get_message(results[one]) == "The replication factor is changed from 2 to 1"
    assert results[two] is None
    bed.release_moves()
    wait_for_replicas(bed, name, (1, 2), (1, 3))


def test_guard_compares_with_target_of_move_in_flight(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (1, 3)) is None
    answer = bed.move(name, 0, (1, 2, 3))  # according to the metadata: the race of KIP-860
    assert get_error(answer) == "INVALID_REPLICATION_FACTOR"
    assert get_message(answer) == "The replication factor is changed from 2 to 3"
    assert get_error(bed.move(name, 0, (1,))) == "INVALID_REPLICATION_FACTOR"
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
def test_impossible_targets_are_refused(bed: AnyBed, target: tuple[int, ...], words: str) -> None:
    name = bed.create({0: (1, 2)})
    answer = bed.move(name, 0, target)
    assert get_error(answer) == "INVALID_REPLICA_ASSIGNMENT"
    assert words in get_message(answer)


def test_move_of_missing_partition_is_refused(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    assert get_message(bed.move(name, 7, (1, 2))) == f"Unable to find partition {name}:7."
    answer = bed.move("not-there", 0, (1, 2))
    assert get_error(answer) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert get_message(answer) == "Unable to find a topic named not-there."


def test_move_in_flight_can_be_overridden(bed: AnyBed) -> None:
    name = bed.create({0: (1,)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (2,)) is None
    assert bed.move(name, 0, (3,)) is None
    assert find_move(bed, name) == Move((3, 1, 2), (3,), (1, 2))
    # canceling leaves the union of the earlier stages
    assert bed.move(name, 0, None) is None

    def check() -> None:
        assert bed.topic(name).partitions[0].replicas == (1, 2)
        assert not bed.cluster.moves([name])

    bed.eventually(check)
    bed.release_moves()


def test_target_equal_to_union_is_acknowledged_and_ignored(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (1, 3)) is None
    assert bed.move(name, 0, (1, 2, 3), grow=True) is None
    assert find_move(bed, name) == Move((1, 2, 3), (3,), (2,))
    bed.release_moves()
    wait_for_replicas(bed, name, (1, 3))


def test_move_back_in_flight_never_ends_until_canceled(bed: AnyBed) -> None:
    """The newly computed adding list is empty, so the old one stays: 3 is both added and removed."""
    name = bed.create({0: (1, 2)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (1, 3)) is None
    assert bed.move(name, 0, (1, 2)) is None
    assert find_move(bed, name) == Move((1, 2, 3), (3,), (3,))
    bed.release_moves()

    def check_in_sync() -> None:
        assert sorted(bed.topic(name).partitions[0].isr) == [1, 2, 3]

    bed.eventually(check_in_sync)
    assert find_move(bed, name) == Move((1, 2, 3), (3,), (3,))
    assert bed.move(name, 0, None) is None
    wait_for_replicas(bed, name, (1, 2))


def test_partitions_added_during_move_get_union_size(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (1, 3)) is None
    assert bed.add_partitions(name, 2) is None

    def check() -> None:
        assert [len(p.replicas) for p in bed.topic(name).partitions] == [3, 3]

    bed.eventually(check)
    bed.release_moves()


def test_move_keeps_topic_throttle(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    key = "leader.replication.throttled.replicas"
    assert bed.alter(topic_resource(name), (key, SET, "0:1")) is None
    assert bed.move(name, 0, (1, 3)) is None
    bed.release_moves()
    wait_for_replicas(bed, name, (1, 3))
    bed.expect_overrides(topic_resource(name), {key: "0:1"})


def test_reassign_without_partitions_returns_nothing(bed: AnyBed) -> None:
    try:
        assert dict(bed.cluster.reassign({}, allow_replication_factor_change=False)) == {}
    except Fault as fault:  # pragma: no cover - refused as a whole
        pytest.fail(str(fault))
