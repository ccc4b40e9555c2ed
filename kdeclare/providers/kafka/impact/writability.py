"""Compute which partitions reject records with acks=all while one broker or one rack is down, without I/O.

The rules are those of `Partition.appendRecordsToLeader` and `Partition.effectiveMinIsr` of Apache Kafka 4.3:
a leader rejects records if fewer replicas than ``min.insync.replicas`` are in sync, but never requires more
replicas than the partition has. All replicas on the other brokers are assumed to be in sync.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.ids import TopicPartition

Place = TypeVar("Place", int, str)
"""The id of a broker or the name of a rack that can be down."""


@dataclass(frozen=True, slots=True)
class ReplicaSet:
    """The replicas of a partition, as broker ids, and the effective ``min.insync.replicas`` of its topic."""

    replicas: tuple[int, ...]
    min_isr: int


def find_critical_brokers(partition: ReplicaSet) -> frozenset[int]:
    """Return the brokers whose outage makes the partition reject records."""
    return _find_critical_places(partition.replicas, partition.min_isr)


def find_critical_racks(partition: ReplicaSet, racks: Mapping[int, str]) -> frozenset[str]:
    """Return the racks whose outage makes the partition reject records.

    racks: the rack of each broker that has one. The result is empty if a broker of the partition has none.
    """
    if any(broker not in racks for broker in partition.replicas):
        return frozenset()
    return _find_critical_places([racks[broker] for broker in partition.replicas], partition.min_isr)


def _find_critical_places(places: Sequence[Place], min_isr: int) -> frozenset[Place]:
    """Return the brokers or racks whose outage makes the partition reject records.

    places: the broker or the rack of each replica.
    """
    # A leader requires at most as many replicas as there are. Once one is down, this makes no difference.
    return frozenset(place for place, lost in Counter(places).items() if len(places) - lost < min_isr)


@dataclass(frozen=True, slots=True)
class WritabilityChange(Generic[Place]):
    """The effect of a plan on the partitions that are unwritable while one broker or one rack is down.

    total: the number of partitions that were compared. before, after: the numbers of partitions that reject
        records while one broker (or rack) is down.
    newly: the partitions that are only affected after the plan, each with the brokers (or racks) on which it
        then depends. relieved: the number of partitions that are only affected before the plan.
    """

    total: int
    before: int
    after: int
    newly: Mapping[TopicPartition, frozenset[Place]]
    relieved: int

    def find_worst_place(self) -> tuple[Place, Sequence[TopicPartition]]:
        """Return the broker or rack on which the most partitions in ``newly`` depend, and these partitions.

        Raises ValueError if no partition is newly affected.
        """
        counts = Counter(place for places in self.newly.values() for place in places)
        worst = min(counts, key=lambda place: (-counts[place], place))
        return worst, sorted(partition for partition, places in self.newly.items() if worst in places)


def compare_places(
    before: Mapping[TopicPartition, frozenset[Place]], after: Mapping[TopicPartition, frozenset[Place]]
) -> WritabilityChange[Place]:
    """Compare the brokers (or racks) whose outage makes partitions reject records, before and after a plan.

    before, after: these brokers (or racks), by partition. Both mappings must have the same keys.
    """
    return WritabilityChange(
        total=len(before),
        before=sum(map(bool, before.values())),
        after=sum(map(bool, after.values())),
        newly={p: places for p, places in after.items() if places and not before[p]},
        relieved=sum(bool(places) and not after[p] for p, places in before.items()),
    )
