"""Preferred leader elections through the `Cluster` protocol (KIP-460)."""

from kdeclare.providers.kafka.ids import TopicPartition
from tests.beds import AnyBed, get_error, get_message


def wait_for_leaders(bed: AnyBed, name: str, *leaders: int) -> None:
    """Wait until the partitions have these leaders."""

    def check() -> None:
        assert tuple(p.leader for p in bed.topic(name).partitions) == leaders

    bed.eventually(check)


def test_first_replica_of_new_order_leads_after_election(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2), 1: (1, 2)})
    for index in (0, 1):
        assert bed.move(name, index, (2, 1)) is None
    wait_for_leaders(bed, name, 1, 1)
    assert bed.elect(name, 0) is None
    wait_for_leaders(bed, name, 2, 1)


def test_election_of_current_leader_succeeds(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2), 1: (2, 3)})
    partitions = [TopicPartition(name, 0), TopicPartition(name, 1), TopicPartition(name, 0)]
    assert dict(bed.cluster.elect_leaders(partitions)) == dict.fromkeys(partitions)
    wait_for_leaders(bed, name, 1, 2)


def test_out_of_sync_replica_is_not_elected(bed: AnyBed) -> None:
    name = bed.create({0: (2, 1)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (3, 1)) is None
    answer = bed.elect(name, 0)
    assert get_error(answer) == "PREFERRED_LEADER_NOT_AVAILABLE"
    assert get_message(answer) == "The preferred leader was not available."
    assert bed.topic(name).partitions[0].leader == 2
    bed.release_moves()

    def check_moved() -> None:
        assert not bed.cluster.moves([name])

    bed.eventually(check_moved)
    assert bed.elect(name, 0) is None
    wait_for_leaders(bed, name, 3)


def test_election_for_missing_partition_is_refused(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    for topic, partition, words in (
        (name, 7, f"No such partition as {name}-7"),
        ("not-there", 0, "No such topic as not-there"),
    ):
        answer = bed.elect(topic, partition)
        assert get_error(answer) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert get_message(answer) == words


def test_election_without_partitions_returns_nothing(bed: AnyBed) -> None:
    assert dict(bed.cluster.elect_leaders([])) == {}
