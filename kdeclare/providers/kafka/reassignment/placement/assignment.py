"""The brokers, and the working assignment of replicas, which every stage of a placement changes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.live import Broker

Rack = str | None
"""A rack. All brokers without a rack count as one rack (None), as in Kafka's own placement."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load of each broker from topics that are not being placed.

    replicas: the number of replicas, by broker id. leaders: the number of preferred leaders among these
    replicas.
    """

    replicas: Mapping[int, int] = field(default_factory=dict)
    leaders: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerSet:
    """The brokers, and which of them can get replicas.

    racks: the rack of every registered broker.
    usable: brokers that can get new replicas.
    by_rack: the usable brokers, by rack.
    excluded_brokers: brokers that must not hold replicas.
    load: the replicas of topics that are not being placed.
    """

    racks: Mapping[int, Rack]
    usable: frozenset[int]
    by_rack: Mapping[Rack, frozenset[int]]
    excluded_brokers: frozenset[int]
    load: Load

    @classmethod
    def of(cls, brokers: Sequence[Broker], without: frozenset[int], load: Load) -> "BrokerSet":
        """Create the set of the registered brokers.

        Fenced brokers and the brokers in ``without`` get no new replicas.
        """
        ordered = sorted(brokers, key=lambda broker: broker.id)
        usable = frozenset(b.id for b in ordered if not b.fenced and b.id not in without)
        racks = {b.id: b.rack for b in ordered}
        groups: dict[Rack, set[int]] = {}
        for broker in sorted(usable):
            groups.setdefault(racks[broker], set()).add(broker)
        by_rack = {rack: frozenset(group) for rack, group in groups.items()}
        return cls(racks, usable, by_rack, without, load)

    def can_keep(self, broker: int) -> bool:
        """Whether a partition that changes can keep its replica on ``broker``.

        Kafka refuses targets with unregistered brokers.
        """
        return broker in self.racks and broker not in self.excluded_brokers


Replicas = tuple[int, ...]

Swap = tuple[int, int, int]
"""The index of a slot, the broker that gives up a replica (giver), and the broker that gets it (taker)."""


TopicRanks = tuple[list[tuple[int, int]], list[tuple[int, int]]]
"""Two heaps of topics, for swaps from one broker (giver) to another broker (taker).

The heaps are ordered by the number of replicas of a topic on the taker, minus the number on the giver. The
second heap contains the topics that only allow swaps of leaders.
"""

FOLLOWER_COST = 2
"""The cost of moving a follower; see `WorkingAssignment.compute_cost`."""


@dataclass(slots=True)
class Slot:
    """The replicas of one partition during placement.

    topic: the index of the partition's topic.
    kept: the replicas that stay.
    pool: the brokers that can be chosen.
    wanted: the number of brokers to choose, in addition to the kept replicas.
    chosen: the brokers that have been chosen.
    spreads_racks: whether to spread the replicas over racks.
    origin: the original replicas, leader first; empty if moves cost nothing. An original replica that stays
        costs nothing.
    """

    topic: int
    kept: Replicas
    pool: frozenset[int]
    wanted: int
    spreads_racks: bool = True
    origin: Replicas = ()
    chosen: list[int] = field(default_factory=list)

    def __contains__(self, broker: int) -> bool:
        return broker in self.chosen or broker in self.kept

    @property
    def replicas(self) -> Replicas:
        """All replicas: first the kept replicas, then the chosen replicas."""
        return (*self.kept, *self.chosen)


class WorkingAssignment:
    """Slots, with indexes and counters of their replicas.

    racks: the rack of every broker that a slot can contain.
    down: fenced brokers. They are chosen last, regardless of racks.
    weight: the weight of each broker. Among otherwise equal brokers, the smallest weight wins.
    count: the number of replicas of each broker.
    topic_counts: the number of replicas by topic and broker.
    held: the slots of chosen replicas, by broker and topic.
    incoming: by broker, the slots of replicas that moved to the broker.
    outgoing: by broker, the slots of replicas that moved away from the broker.
    topic_ranks: the topics to swap, by giver and taker; see `TopicRanks`.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        racks: Mapping[int, Rack],
        fenced: Iterable[int] = (),
        weights: Mapping[int, int] | None = None,
    ) -> None:
        self.slots = slots
        self.racks = racks
        self.down = frozenset(fenced)
        self.weight = dict.fromkeys(racks, 0) | dict(weights or {})
        self.count = dict.fromkeys(racks, 0)
        topic_count = 1 + max((seat.topic for seat in slots), default=-1)
        self.topic_counts = [dict.fromkeys(racks, 0) for _ in range(topic_count)]
        self.incoming: dict[int, dict[int, None]] = {broker: {} for broker in racks}
        self.outgoing: dict[int, dict[int, None]] = {broker: {} for broker in racks}
        self.topic_ranks: dict[tuple[int, int], TopicRanks] = {}
        self.held: dict[int, dict[int, dict[int, None]]] = {broker: {} for broker in racks}
        self.rack_usage: list[dict[Rack, int]] = []
        for index, slot in enumerate(slots):
            self.rack_usage.append({})
            for broker in slot.origin:
                self.outgoing[broker][index] = None
            for broker in slot.replicas:
                self._update_counts(index, broker, 1)
            for broker in slot.chosen:
                self.held[broker].setdefault(slot.topic, {})[index] = None

    def put(self, index: int, broker: int) -> None:
        """Choose a broker for a slot."""
        seat = self.slots[index]
        seat.chosen.append(broker)
        self.held[broker].setdefault(seat.topic, {})[index] = None
        self._update_counts(index, broker, 1)

    def move(self, swaps: Iterable[Swap]) -> None:
        """Apply the swaps. Each swap moves a chosen replica to a different broker."""
        for index, giver, taker in swaps:
            seat = self.slots[index]
            seat.chosen.remove(giver)
            given = self.held[giver][seat.topic]
            del given[index]
            if not given:
                del self.held[giver][seat.topic]
            self._update_counts(index, giver, -1)
            self.put(index, taker)

    def _update_counts(self, index: int, broker: int, delta: int) -> None:
        slot, usage, rack = self.slots[index], self.rack_usage[index], self.racks[broker]
        usage[rack] = usage.get(rack, 0) + delta
        self.count[broker] += delta
        self.topic_counts[slot.topic][broker] += delta
        if slot.origin:
            is_origin = broker in slot.origin
            moved_slots = self.outgoing[broker] if is_origin else self.incoming[broker]
            if (delta < 0) is is_origin:
                moved_slots[index] = None
            else:
                del moved_slots[index]

    def compute_cost(self, index: int, giver: int, taker: int) -> int:
        """Return the cost of a swap.

        0: the swap moves a replica back. 1: the swap does not change the number of moved replicas. 2: the
        swap moves a follower. 3: the swap moves a leader. Swaps of new partitions always cost 0.
        """
        origin = self.slots[index].origin
        if not origin:
            return 0
        if giver in origin:
            return 1 if taker in origin else 2 + (giver == origin[0])
        return 0 if taker in origin else 1

    def list_slots(self, broker: int, topic: int | None = None) -> Iterator[int]:
        """Yield the indexes of the slots in which a broker was chosen, for one topic or for all topics."""
        if topic is not None:
            yield from self.held[broker].get(topic, ())
            return
        for indices in self.held[broker].values():
            yield from indices

    def can_swap(self, index: int, giver: int, taker: int) -> bool:
        """Whether ``taker`` can replace ``giver`` in a slot without making the spread over racks worse."""
        slot = self.slots[index]
        if taker not in slot.pool or taker in slot.chosen or taker in slot.kept:
            return False
        if self.down and (taker in self.down) != (giver in self.down):
            return giver in self.down
        if not slot.spreads_racks:
            return True
        taker_rack, giver_rack = self.racks[taker], self.racks[giver]
        usage = self.rack_usage[index]
        return taker_rack == giver_rack or usage.get(taker_rack, 0) < usage[giver_rack]
