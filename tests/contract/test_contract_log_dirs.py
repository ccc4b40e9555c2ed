"""Log directories through the `Cluster` protocol (KIP-113)."""

from dataclasses import replace

import pytest

from kdeclare.core.live.faults import FaultKind
from kdeclare.providers.kafka.ids import TopicPartition
from tests.beds import AnyBed, get_error


def list_held(bed: AnyBed, name: str) -> dict[int, list[int]]:
    """Return the partitions of a topic by broker."""
    return {broker: sorted(sizes) for broker, sizes in bed.sizes(name).items()}


def test_log_dirs_list_replicas_by_broker(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2), 1: (2, 3)})

    def check() -> None:
        assert list_held(bed, name) == {1: [0], 2: [0, 1], 3: [1]}

    bed.eventually(check)
    everything = bed.cluster.log_dirs()
    assert sorted(everything) == [1, 2, 3]
    assert TopicPartition(name, 1) in {at for found in everything[2] for at in found.sizes}
    assert all(found.path and found.error is None for dirs in everything.values() for found in dirs)


def test_log_dirs_omit_missing_topics(bed: AnyBed) -> None:
    name = bed.create({0: (1,)})

    def check() -> None:
        found = bed.cluster.log_dirs([name, "not-there"])
        assert {at for dirs in found.values() for each in dirs for at in each.sizes} == {
            TopicPartition(name, 0)
        }

    bed.eventually(check)
    for names in (["not-there"], []):
        found = bed.cluster.log_dirs(names)
        assert sorted(found) == [1, 2, 3]
        assert not any(each.sizes or each.arriving for dirs in found.values() for each in dirs)


def test_log_dirs_include_known_topics(bed: AnyBed) -> None:
    known, other, deleted = bed.create({0: (1, 2)}), bed.create({0: (3,)}), bed.name()

    def check() -> None:
        topics = dict(bed.cluster.topics([known]))
        topics[deleted] = replace(topics[known], name=deleted)
        found = bed.cluster.log_dirs([known, other, deleted], known=topics)
        assert {broker: {at for each in dirs for at in each.sizes} for broker, dirs in found.items()} == {
            1: {TopicPartition(known, 0)},
            2: {TopicPartition(known, 0)},
            3: {TopicPartition(other, 0)},
        }

    bed.eventually(check)


def test_log_dir_sizes_grow_with_records(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2), 1: (2, 1)})
    before = 0
    for _ in range(2):
        bed.produce(name, 20)

        def check(before: int = before) -> None:
            one, two = bed.sizes(name)[1], bed.sizes(name)[2]
            assert one == two
            assert one[0] > before
            assert one[1] > before

        bed.eventually(check)
        before = max(bed.sizes(name)[1].values())


def test_added_replica_grows_to_size_of_others(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})
    bed.hold_moves(name)
    bed.produce(name, 20)
    assert bed.move(name, 0, (1, 3)) is None

    def check_begun() -> None:
        sizes = bed.sizes(name)
        assert sizes[3][0] < sizes[1][0]

    bed.eventually(check_begun)
    bed.release_moves()

    def check_done() -> None:
        sizes = bed.sizes(name)
        assert sizes[3][0] == sizes[1][0]
        assert sizes[2] == {}

    bed.eventually(check_done)


def test_move_to_current_log_dir_succeeds(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2)})

    def check() -> None:
        replicas = {(TopicPartition(name, 0), broker): bed.log_dir(broker) for broker in (1, 2)}
        assert dict(bed.cluster.move_log_dirs(replicas)) == dict.fromkeys(replicas)

    bed.eventually(check)


@pytest.mark.parametrize(
    ("partition", "broker", "name"),
    [
        (0, 3, "REPLICA_NOT_AVAILABLE"),
        (7, 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_move_log_dir_of_missing_replica_is_refused(
    bed: AnyBed, partition: int, broker: int, name: str
) -> None:
    replica = TopicPartition(bed.create({0: (1, 2)}), partition), broker

    def check() -> None:
        fault = bed.cluster.move_log_dirs({replica: bed.log_dir(broker)})[replica]
        assert fault is not None
        assert (fault.error, fault.kind) == (name, FaultKind.REFUSED)

    bed.eventually(check)


def test_move_log_dir_of_missing_topic_is_refused(bed: AnyBed) -> None:
    replica = TopicPartition(bed.name(), 0), 1
    assert (
        get_error(bed.cluster.move_log_dirs({replica: bed.log_dir(1)})[replica])
        == "UNKNOWN_TOPIC_OR_PARTITION"
    )


def test_move_log_dirs_returns_result_per_replica(bed: AnyBed) -> None:
    at = TopicPartition(bed.create({0: (1, 2)}), 0)
    targets = {(at, 1): "/no/such/directory", (at, 3): bed.log_dir(3), (at, 99): "/anywhere"}

    def check() -> None:
        results = bed.cluster.move_log_dirs(targets)
        assert {broker: get_error(result) for (_, broker), result in results.items()} == {
            1: "LOG_DIR_NOT_FOUND",
            3: "REPLICA_NOT_AVAILABLE",
            99: "BROKER_NOT_AVAILABLE",
        }

    bed.eventually(check)


def test_move_log_dirs_without_replicas_returns_nothing(bed: AnyBed) -> None:
    assert dict(bed.cluster.move_log_dirs({})) == {}
