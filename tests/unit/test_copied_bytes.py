"""What moves copy, the minimum time this takes, and how full disks are, compared with simulations."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.impact.copied_bytes import (
    QUOTA_WINDOW_S,
    BrokerTraffic,
    DiskUsage,
    ReplicaMove,
    ThrottleRates,
    Traffic,
    collect_replica_sizes,
    compute_disk_usage,
    compute_least_duration,
    compute_traffic,
)
from kdeclare.providers.kafka.request_values import LogDir

GIB = 2**30
BROKERS = range(1, 6)


@dataclass(frozen=True)
class MovingPartition:
    """A partition in sync, whose leader is its first replica.

    copied: the bytes that an unfinished move has already copied, by broker.
    """

    replicas: tuple[int, ...]
    target: tuple[int, ...]
    size: int
    copied: Mapping[int, int]

    def list_sizes(self) -> dict[int, int]:
        """Return the size of each replica before the move."""
        return {**self.copied, **dict.fromkeys(self.replicas, self.size)}


@st.composite
def draw_partition(draw: st.DrawFn) -> MovingPartition:
    places = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True).map(tuple)
    replicas, target = draw(places), draw(places)
    size = draw(st.integers(0, 1000))
    arriving = [broker for broker in target if broker not in replicas]
    copied = draw(st.dictionaries(st.sampled_from(arriving), st.integers(0, size))) if arriving else {}
    return MovingPartition(replicas, target, size, copied)


def build_move(number: int, partition: MovingPartition) -> ReplicaMove:
    incoming = tuple(b for b in partition.target if b not in partition.replicas)
    outgoing = tuple(b for b in partition.replicas if b not in partition.target)
    return ReplicaMove(TopicPartition("t", number), partition.replicas[0], incoming, outgoing)


def build_log_dirs(sizes: Mapping[TopicPartition, Mapping[int, int]]) -> dict[int, list[LogDir]]:
    """Return one log directory per broker with these replicas."""
    held: dict[int, dict[TopicPartition, int]] = {broker: {} for broker in BROKERS}
    for partition, by_broker in sizes.items():
        for broker, size in by_broker.items():
            held[broker][partition] = size
    return {broker: [LogDir("/d", replicas, {})] for broker, replicas in held.items()}


@pytest.mark.slow
@settings(max_examples=200)
@given(partitions=st.lists(draw_partition(), max_size=6))
def test_traffic_matches_what_brokers_hold_afterwards(partitions: Sequence[MovingPartition]) -> None:
    before: Counter[int] = Counter()
    after: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    for partition in partitions:
        before.update(partition.list_sizes())
        after.update(dict.fromkeys(partition.target, partition.size))
        for broker in partition.target:
            sent[partition.replicas[0]] += partition.size - partition.list_sizes().get(broker, 0)
    moves = [build_move(number, partition) for number, partition in enumerate(partitions)]
    sizes = {move.partition: p.list_sizes() for move, p in zip(moves, partitions, strict=True)}
    traffic = compute_traffic(moves, collect_replica_sizes(build_log_dirs(sizes)))
    assert traffic.copied == sum(sent.values()) == sum(each.sent for each in traffic.brokers.values())
    for broker in BROKERS:
        amount = traffic.brokers.get(broker, BrokerTraffic())
        assert amount.received - amount.deleted == after[broker] - before[broker]
        assert amount.sent == sent[broker]
    assert traffic.unknown == ()


def test_size_of_leader_counts() -> None:
    where = TopicPartition("t", 0)
    sizes = collect_replica_sizes(build_log_dirs({where: {1: 500, 2: 700}}))
    assert compute_traffic([ReplicaMove(where, 1, (3,), (2,))], sizes) == Traffic(
        500, {1: BrokerTraffic(sent=500), 2: BrokerTraffic(deleted=700), 3: BrokerTraffic(received=500)}
    )


def test_largest_replica_counts_if_leader_reports_no_size() -> None:
    where = TopicPartition("t", 0)
    sizes = collect_replica_sizes(build_log_dirs({where: {1: 500, 2: 700}}))
    assert compute_traffic([ReplicaMove(where, None, (3,), ())], sizes).copied == 700
    assert compute_traffic([ReplicaMove(where, 4, (3,), ())], sizes).copied == 700


def test_partition_without_size_is_unknown() -> None:
    known, unknown = TopicPartition("t", 0), TopicPartition("t", 1)
    sizes = collect_replica_sizes(build_log_dirs({known: {1: 500}}))
    traffic = compute_traffic([ReplicaMove(known, 1, (3,), ()), ReplicaMove(unknown, 1, (4,), (1,))], sizes)
    assert (traffic.copied, traffic.unknown, traffic.incomplete) == (500, (unknown,), frozenset({1, 4}))


def measure_transfer(batches: Sequence[int], rate: int, pause_s: int) -> int:
    """Return how many seconds a broker takes that always sends as much as Kafka's throttle permits.

    The mean over the quota window must not exceed the rate. It sends at the beginning of each second.
    """
    sent: list[int] = []
    for number, size in enumerate(batches):
        sent += [0] * (pause_s if number else 0)
        while size:
            now = min(size, rate * QUOTA_WINDOW_S - sum(sent[-(QUOTA_WINDOW_S - 1) :]))
            sent.append(now)
            size -= now
    return len(sent)


@settings(max_examples=200)
@given(
    batches=st.lists(st.integers(1, 5000), min_size=1, max_size=4),
    rate=st.integers(1, 100),
    pause_s=st.integers(0, 40),
)
def test_no_transfer_is_shorter_than_the_least_duration(
    batches: Sequence[int], rate: int, pause_s: int
) -> None:
    total = sum(batches)
    traffic = Traffic(total, {1: BrokerTraffic(sent=total), 2: BrokerTraffic(received=total)})
    rates = {1: ThrottleRates(rate, rate), 2: ThrottleRates(rate, rate)}
    least = compute_least_duration(traffic, rates, len(batches) - 1, pause_s)
    measured = measure_transfer(batches, rate, pause_s)
    assert least <= measured
    if pause_s == 0:
        assert measured <= least + 2 * QUOTA_WINDOW_S + len(batches), "the bound is not near"


def test_busiest_broker_determines_the_duration() -> None:
    traffic = Traffic(
        3000,
        {1: BrokerTraffic(sent=3000), 2: BrokerTraffic(received=2000), 3: BrokerTraffic(received=1000)},
    )
    rates = {broker: ThrottleRates(10, 10) for broker in (1, 2, 3)}
    assert compute_least_duration(traffic, rates) == 300 - QUOTA_WINDOW_S
    rates[1] = ThrottleRates(10, 100)  # another client set a higher rate
    assert compute_least_duration(traffic, rates) == 200 - QUOTA_WINDOW_S
    assert compute_least_duration(traffic, {}) == 0


@pytest.mark.parametrize(
    ("volumes", "usage"),
    [
        ([(100 * GIB, 40 * GIB)], DiskUsage(60 * GIB, 100 * GIB)),
        # two disks of the same type
        ([(100 * GIB, 40 * GIB), (100 * GIB, 30 * GIB)], DiskUsage(130 * GIB, 200 * GIB)),
        # two directories on one disk, to which others write between the two readings
        ([(100 * GIB, 40 * GIB), (100 * GIB, 40 * GIB - 8192)], DiskUsage(60 * GIB, 100 * GIB)),
        ([(None, None)], None),  # before Kafka 3.3
        ([(100 * GIB, 40 * GIB), (None, None)], None),  # one directory is offline
        ([], None),
    ],
)
def test_disk_usage(volumes: Sequence[tuple[int | None, int | None]], usage: DiskUsage | None) -> None:
    log_dirs = [LogDir("/d", {}, {}, total=total, usable=usable) for total, usable in volumes]
    assert compute_disk_usage(log_dirs) == usage


def test_disk_percent_includes_added_bytes() -> None:
    usage = DiskUsage(60 * GIB, 100 * GIB)
    assert (usage.compute_percent(), usage.compute_percent(15 * GIB)) == (60, 75)
    assert usage.compute_percent(-70 * GIB) == 0
