"""What placement knows of the brokers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kdeclare.providers.kafka.live import Broker

Rack = str | None
"""Brokers without a rack are in one rack together, as they are in Kafka's own placer."""


@dataclass(frozen=True, slots=True)
class Load:
    """What brokers hold of topics that are not being placed: how many replicas, and how many of them are
    preferred leaders, by broker id."""

    replicas: Mapping[int, int] = field(default_factory=dict)
    leaders: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ground:
    """The brokers.

    racks: of every registered one. usable: those that may get new replicas. by_rack: the usable ones.
    without: those that are to hold nothing.
    """

    racks: Mapping[int, Rack]
    usable: frozenset[int]
    by_rack: Mapping[Rack, frozenset[int]]
    without: frozenset[int]
    load: Load

    @classmethod
    def of(cls, brokers: Sequence[Broker], without: frozenset[int], load: Load) -> "Ground":
        """Sort out the registered brokers."""
        ordered = sorted(brokers, key=lambda broker: broker.id)
        usable = frozenset(b.id for b in ordered if not b.fenced and b.id not in without)
        racks = {b.id: b.rack for b in ordered}
        groups: dict[Rack, set[int]] = {}
        for broker in sorted(usable):
            groups.setdefault(racks[broker], set()).add(broker)
        by_rack = {rack: frozenset(group) for rack, group in groups.items()}
        return cls(racks, usable, by_rack, without, load)

    def may_stay(self, broker: int) -> bool:
        """Whether a partition that changes may keep its replica there: Kafka refuses unregistered ones."""
        return broker in self.racks and broker not in self.without
