"""Compute how many bytes a reassignment copies, its minimum duration, and the disk usage, without I/O."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import LogDir

QUOTA_WINDOW_S = 11
"""The time over which Kafka computes the mean rate of a throttle, in seconds.

Immediately after a pause, a broker can send as many bytes as the throttle permits in this time. The time is
the product of the defaults of ``replication.quota.window.num`` and ``replication.quota.window.size.seconds``.
"""
_SAME_VOLUME = 1000
"""Log directories with the same total size are assumed to be on the same volume if their free space differs
by less than the total size divided by this number."""


@dataclass(frozen=True, slots=True)
class ReplicaMove:
    """The move of one partition.

    leader: the broker that sends the records; None if the partition has no leader.
    incoming: the brokers that copy the partition. outgoing: the brokers that delete their replica afterwards.
    """

    partition: TopicPartition
    leader: int | None
    incoming: tuple[int, ...]
    outgoing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BrokerTraffic:
    """The bytes that a broker receives, sends as leader, and deletes during reassignments."""

    received: int = 0
    sent: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Traffic:
    """The bytes that reassignments copy.

    copied: all received bytes. brokers: the bytes of each broker that takes part. unknown: the partitions
    whose size no broker reports; they are not included. incomplete: the brokers that receive or delete
    replicas of these partitions.
    """

    copied: int
    brokers: Mapping[int, BrokerTraffic]
    unknown: tuple[TopicPartition, ...] = ()
    incomplete: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ReplicaSizes:
    """The sizes of replicas in bytes.

    by_broker: the size of each replica, by partition and broker. largest: the size of the largest replica of
        each partition.
    """

    by_broker: Mapping[tuple[TopicPartition, int], int]
    largest: Mapping[TopicPartition, int]

    def find_size(self, move: ReplicaMove) -> int | None:
        """Return the size of the leader's replica, which a new replica copies; None if unknown.

        If the leader does not report its size, the largest replica counts.
        """
        largest = self.largest.get(move.partition)
        return largest if move.leader is None else self.by_broker.get((move.partition, move.leader), largest)


def collect_replica_sizes(log_dirs: Mapping[int, Iterable[LogDir]]) -> ReplicaSizes:
    """Return the replica sizes that brokers report."""
    by_broker: dict[tuple[TopicPartition, int], int] = {}
    largest: dict[TopicPartition, int] = {}
    for broker, dirs in log_dirs.items():
        for log_dir in dirs:
            for partition, size in log_dir.sizes.items():
                by_broker[partition, broker] = size
                largest[partition] = max(size, largest.get(partition, 0))
    return ReplicaSizes(by_broker, largest)


def compute_traffic(moves: Iterable[ReplicaMove], sizes: ReplicaSizes) -> Traffic:
    """Return the bytes that the moves copy, based on the current sizes.

    Bytes that an unfinished move has already copied are not counted.
    """
    received: dict[int, int] = defaultdict(int)
    sent: dict[int, int] = defaultdict(int)
    deleted: dict[int, int] = defaultdict(int)
    unknown: list[TopicPartition] = []
    incomplete: set[int] = set()
    for move in moves:
        full_size = sizes.find_size(move)
        if full_size is None:
            unknown += [move.partition] if move.incoming else []
            incomplete.update(move.incoming, move.outgoing)
            continue
        for broker in move.incoming:
            missing = max(0, full_size - sizes.by_broker.get((move.partition, broker), 0))
            received[broker] += missing
            if move.leader is not None:
                sent[move.leader] += missing
        for broker in move.outgoing:
            deleted[broker] += sizes.by_broker.get((move.partition, broker), full_size)
    brokers = {
        broker: BrokerTraffic(received[broker], sent[broker], deleted[broker])
        for broker in sorted({*received, *sent, *deleted})
    }
    return Traffic(sum(received.values()), brokers, tuple(sorted(unknown)), frozenset(incomplete))


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """The used bytes and the total bytes of the volumes that contain a broker's log directories (KIP-827)."""

    used: int
    total: int

    def compute_percent(self, added: int = 0) -> int:
        """Return the disk usage in percent, after ``added`` more bytes have been written."""
        return round(100 * max(0, self.used + added) / self.total)


def compute_disk_usage(log_dirs: Sequence[LogDir]) -> DiskUsage | None:
    """Return the disk usage of a broker; None if the broker does not report it for all of its directories.

    Directories on the same volume count once. Clients cannot see volumes: directories that report the same
    total size and nearly the same free space are assumed to be on the same volume.
    """
    volumes: list[tuple[int, int]] = []
    for log_dir in log_dirs:
        total, usable = log_dir.total, log_dir.usable
        if not total or usable is None:
            return None
        if not any(t == total and abs(u - usable) * _SAME_VOLUME < total for t, u in volumes):
            volumes.append((total, usable))
    if not volumes:
        return None
    total = sum(size for size, _ in volumes)
    return DiskUsage(total - sum(usable for _, usable in volumes), total)


@dataclass(frozen=True, slots=True)
class ThrottleRates:
    """The throttle rates of a broker in bytes per second; None if unknown or unlimited.

    receiving: the maximum rate of its followers. sending: the maximum rate of its leaders.
    """

    receiving: int | None
    sending: int | None


def compute_least_duration(
    traffic: Traffic, rates: Mapping[int, ThrottleRates], pauses: int = 0, pause_s: float = 0
) -> float:
    """Return the minimum duration of moves, in seconds. The busiest broker determines the duration.

    rates: the rates of each throttled broker. pauses: the number of pauses of ``pause_s`` seconds. A pause
    adds less than its length to the duration: Kafka throttles the mean rate over several seconds, so a
    broker can copy faster for a short time after a pause.
    """
    least = 0.0
    for broker, amount in traffic.brokers.items():
        rate = rates.get(broker)
        for copied, limit in (
            (amount.received, rate and rate.receiving),
            (amount.sent, rate and rate.sending),
        ):
            if limit:
                least = max(least, copied / limit - QUOTA_WINDOW_S)
    return least + pauses * max(0.0, pause_s - QUOTA_WINDOW_S)
