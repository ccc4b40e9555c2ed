"""Preferred leader elections through the `Cluster` protocol (KIP-460)."""

from kdeclare.providers.kafka.ids import TopicPartition
from tests.beds import AnyBed, error, message


def led_by(bed: AnyBed, name: str, *leaders: int) -> None:
    """Wait until the partitions have these leaders."""

    def check() -> None:
        assert tuple(p.leader for p in bed.topic(name).partitions) == leaders

    bed.eventually(check)


def test_the_first_of_a_new_order_leads_once_it_is_elected(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2), 1: (1, 2)})
    for index in (0, 1):
        assert bed.move(name, index, (2, 1)) is None
    led_by(bed, name, 1, 1)
    assert bed.elect(name, 0) is None
    led_by(bed, name, 2, 1)


def test_where_the_preferred_one_leads_nothing_is_needed(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2), 1: (2, 3)})
    partitions = [TopicPartition(name, 0), TopicPartition(name, 1), TopicPartition(name, 0)]
    assert dict(bed.cluster.elect_leaders(partitions)) == dict.fromkeys(partitions)
    led_by(bed, name, 1, 2)


def test_a_replica_that_is_not_in_sync_is_not_elected(bed: AnyBed) -> None:
    name = bed.create({0: (2, 1)})
    bed.hold_moves(name)
    assert bed.move(name, 0, (3, 1)) is None
    answer = bed.elect(name, 0)
    assert error(answer) == "PREFERRED_LEADER_NOT_AVAILABLE"
    assert message(answer) == "The preferred leader was not available."
    assert bed.topic(name).partitions[0].leader == 2
    bed.release_moves()

    def moved() -> None:
        assert not bed.cluster.moves([name])

    bed.eventually(moved)
    assert bed.elect(name, 0) is None
    led_by(bed, name, 3)


def test_what_is_not_there_cannot_be_led(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    for topic, partition, words in (
        (name, 7, f"No such partition as {name}-7"),
        ("not-there", 0, "No such topic as not-there"),
    ):
        answer = bed.elect(topic, partition)
        assert error(answer) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert message(answer) == words


def test_no_partition_to_elect_a_leader_for(bed: AnyBed) -> None:
    assert dict(bed.cluster.elect_leaders([])) == {}
