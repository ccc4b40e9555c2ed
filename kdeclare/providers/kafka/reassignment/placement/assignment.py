"""The brokers, and the working assignment of replicas that the stages of placement change."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.live import Broker

Rack = str | None
"""A rack; all brokers without a rack count as one rack (None), as in Kafka's own placer."""


@dataclass(frozen=True, slots=True)
class Load:
    """Replicas of the topics that are not being placed: their number, and the number of preferred leaders
    among them, by broker id."""

    replicas: Mapping[int, int] = field(default_factory=dict)
    leaders: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerSet:
    """The brokers.

    racks: the rack of every registered broker. usable: brokers that may get new replicas. by_rack: the usable
    brokers. excluded_brokers: brokers that must not hold replicas. load: replicas of other topics.
    """

    racks: Mapping[int, Rack]
    usable: frozenset[int]
    by_rack: Mapping[Rack, frozenset[int]]
    excluded_brokers: frozenset[int]
    load: Load

    @classmethod
    def of(cls, brokers: Sequence[Broker], without: frozenset[int], load: Load) -> "BrokerSet":
        """Classify the registered brokers."""
        ordered = sorted(brokers, key=lambda broker: broker.id)
        usable = frozenset(b.id for b in ordered if not b.fenced and b.id not in without)
        racks = {b.id: b.rack for b in ordered}
        groups: dict[Rack, set[int]] = {}
        for broker in sorted(usable):
            groups.setdefault(racks[broker], set()).add(broker)
        by_rack = {rack: frozenset(group) for rack, group in groups.items()}
        return cls(racks, usable, by_rack, without, load)

    def can_keep(self, broker: int) -> bool:
        """Whether a changed partition may keep its replica there: Kafka refuses unregistered brokers."""
        return broker in self.racks and broker not in self.excluded_brokers


Replicas = tuple[int, ...]

Swap = tuple[int, int, int]
"""Slot index, the broker that gives the replica away, and the broker that takes it."""


TopicRanks = tuple[list[tuple[int, int]], list[tuple[int, int]]]
"""Two heaps of topics, ordered by how many fewer replicas of a topic the giver has than the taker. The second
heap contains topics of which only leaders can be moved."""

FOLLOWER_COST = 2
"""The cost of moving a follower; see `WorkingAssignment.compute_cost`."""


@dataclass(slots=True)
class Slot:
    """The replicas of one partition: the ``kept`` ones, and ``wanted`` brokers to choose from ``pool``.

    topic: the number of its topic. spreads_racks: whether racks matter. chosen: the chosen brokers so far.
    origin: if moves have a cost, the original replicas, which cost nothing to keep; leader first.
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
        """All replicas, the kept ones first."""
        return (*self.kept, *self.chosen)


class WorkingAssignment:
    """Slots, with indexes and counters of their replicas.

    racks: the rack of every broker that may appear. down: fenced brokers; any other broker is preferred to
    them, regardless of racks. weight: breaks ties between otherwise equal brokers, the smallest first.
    count: replicas by broker. topic_counts: replicas by topic and broker. held: the slots of chosen replicas,
    by broker and topic. incoming: by broker, the slots of replicas that came from another broker. outgoing:
    by broker, the slots of replicas that left it. topic_ranks: by giver and taker, see `TopicRanks`.
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
        """Move chosen replicas from one broker to another."""
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

        0 moves a replica back, 1 moves no additional replica, 2 moves a follower, 3 moves a leader. The cost
        of new partitions is always 0.
        """
        origin = self.slots[index].origin
        if not origin:
            return 0
        if giver in origin:
            return 1 if taker in origin else 2 + (giver == origin[0])
        return 0 if taker in origin else 1

    def list_slots(self, broker: int, topic: int | None = None) -> Iterator[int]:
        """Yield the slots of a broker's chosen replicas, of one topic or of all topics."""
        if topic is not None:
            yield from self.held[broker].get(topic, ())
            return
        for indices in self.held[broker].values():
            yield from indices

    def can_swap(self, index: int, giver: int, taker: int) -> bool:
        """Whether a broker can replace another one in a slot without worsening the rack spread."""
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
