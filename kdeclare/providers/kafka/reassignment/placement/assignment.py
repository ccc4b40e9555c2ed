"""What placement knows of the brokers, and the assignment of replicas that it works on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
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
class BrokerSet:
    """The brokers.

    racks: of every registered one. usable: those that may get new replicas. by_rack: the usable ones.
    without: those that are to hold nothing.
    """

    racks: Mapping[int, Rack]
    usable: frozenset[int]
    by_rack: Mapping[Rack, frozenset[int]]
    excluded_brokers: frozenset[int]
    load: Load

    @classmethod
    def of(cls, brokers: Sequence[Broker], without: frozenset[int], load: Load) -> "BrokerSet":
        """Sort out the registered brokers."""
        ordered = sorted(brokers, key=lambda broker: broker.id)
        usable = frozenset(b.id for b in ordered if not b.fenced and b.id not in without)
        racks = {b.id: b.rack for b in ordered}
        groups: dict[Rack, set[int]] = {}
        for broker in sorted(usable):
            groups.setdefault(racks[broker], set()).add(broker)
        by_rack = {rack: frozenset(group) for rack, group in groups.items()}
        return cls(racks, usable, by_rack, without, load)

    def can_keep(self, broker: int) -> bool:
        """Whether a partition that changes may keep its replica there: Kafka refuses unregistered ones."""
        return broker in self.racks and broker not in self.excluded_brokers


Replicas = tuple[int, ...]

Swap = tuple[int, int, int]
"""Seat index, the broker that gives the replica, the broker that takes it."""


TopicRanks = tuple[list[tuple[int, int]], list[tuple[int, int]]]
"""Two heaps of how many replicas fewer a giver has of a topic than a taker, and the topic. In the second
heap those of which only leaders can be moved."""

FOLLOWER_COST = 2
"""What it costs to move a follower; see `WorkingAssignment.cost`."""


@dataclass(slots=True)
class Slot:
    """One partition's choice: ``wanted`` brokers of ``pool`` beside those that ``kept``.

    topic: its number. spreads_racks: whether racks matter. chosen: the choice so far.
    origin: where moving costs something, the replicas that cost nothing where they are; leader first.
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
        """All of them, those that stay first."""
        return (*self.kept, *self.chosen)


class WorkingAssignment:
    """Seats with their numbers.

    racks: all that may appear, each with its rack. fenced: fenced ones; any other broker beats them,
    whatever the racks. weights: decides among brokers that are equal otherwise, the least first.
    count: replicas by broker. tally: the same by topic. held: the seats of chosen replicas, by broker
    and topic. guests: by broker, the seats of replicas that have come from elsewhere. exiles: the seats of
    those that have gone. ranked: by giver and taker, see `swapping`.
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
        """Choose a broker for a seat."""
        seat = self.slots[index]
        seat.chosen.append(broker)
        self.held[broker].setdefault(seat.topic, {})[index] = None
        self._update_counts(index, broker, 1)

    def move(self, swaps: Iterable[Swap]) -> None:
        """Have chosen replicas given by one broker and taken by another."""
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
        """What a swap moves: 0 something back, 1 nothing more, 2 a follower, 3 a leader; 0 if all is new."""
        origin = self.slots[index].origin
        if not origin:
            return 0
        if giver in origin:
            return 1 if taker in origin else 2 + (giver == origin[0])
        return 0 if taker in origin else 1

    def list_slots(self, broker: int, topic: int | None = None) -> Iterator[int]:
        """The seats of a broker's chosen replicas, of one topic or of all."""
        if topic is not None:
            yield from self.held[broker].get(topic, ())
            return
        for indices in self.held[broker].values():
            yield from indices

    def can_swap(self, index: int, giver: int, taker: int) -> bool:
        """Whether a broker can have another's place in a seat at no cost to its racks."""
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
