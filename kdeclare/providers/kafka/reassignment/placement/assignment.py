"""What placement knows of the brokers, and the assignment of replicas that it works on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from kdeclare.core.frozen import dataclass
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


Replicas = tuple[int, ...]

Swap = tuple[int, int, int]
"""Seat index, the broker that gives the replica, the broker that takes it."""


Ranked = tuple[list[tuple[int, int]], list[tuple[int, int]]]
"""Two heaps of how many replicas fewer a giver has of a topic than a taker, and the topic. In the second
heap those of which only leaders can be moved."""

FOLLOWER = 2
"""What it costs to move a follower; see `Board.cost`."""


@dataclass(slots=True)
class Seat:
    """One partition's choice: ``wanted`` brokers of ``pool`` beside those that ``stay``.

    topic: its number. spread: whether racks matter. chosen: the choice so far.
    origin: where moving costs something, the replicas that cost nothing where they are; leader first.
    """

    topic: int
    stay: Replicas
    pool: frozenset[int]
    wanted: int
    spread: bool = True
    origin: Replicas = ()
    chosen: list[int] = field(default_factory=list)

    def __contains__(self, broker: int) -> bool:
        return broker in self.chosen or broker in self.stay

    @property
    def replicas(self) -> Replicas:
        """All of them, those that stay first."""
        return (*self.stay, *self.chosen)


class Board:
    """Seats with their numbers.

    brokers: all that may appear, each with its rack. down: fenced ones; any other broker beats them,
    whatever the racks. weight: decides among brokers that are equal otherwise, the least first.
    count: replicas by broker. tally: the same by topic. held: the seats of chosen replicas, by broker
    and topic. guests: by broker, the seats of replicas that have come from elsewhere. exiles: the seats of
    those that have gone. ranked: by giver and taker, see `swapping`.
    """

    def __init__(
        self,
        seats: Sequence[Seat],
        brokers: Mapping[int, Rack],
        down: Iterable[int] = (),
        weight: Mapping[int, int] | None = None,
    ) -> None:
        self.seats = seats
        self.racks = brokers
        self.down = frozenset(down)
        self.weight = dict.fromkeys(brokers, 0) | dict(weight or {})
        self.count = dict.fromkeys(brokers, 0)
        topics = 1 + max((seat.topic for seat in seats), default=-1)
        self.tally = [dict.fromkeys(brokers, 0) for _ in range(topics)]
        self.guests: dict[int, dict[int, None]] = {broker: {} for broker in brokers}
        self.exiles: dict[int, dict[int, None]] = {broker: {} for broker in brokers}
        self.ranked: dict[tuple[int, int], Ranked] = {}
        self.held: dict[int, dict[int, dict[int, None]]] = {broker: {} for broker in brokers}
        self.used: list[dict[Rack, int]] = []
        for index, seat in enumerate(seats):
            self.used.append({})
            for broker in seat.origin:
                self.exiles[broker][index] = None
            for broker in seat.replicas:
                self._add(index, broker, 1)
            for broker in seat.chosen:
                self.held[broker].setdefault(seat.topic, {})[index] = None

    def put(self, index: int, broker: int) -> None:
        """Choose a broker for a seat."""
        seat = self.seats[index]
        seat.chosen.append(broker)
        self.held[broker].setdefault(seat.topic, {})[index] = None
        self._add(index, broker, 1)

    def move(self, swaps: Iterable[Swap]) -> None:
        """Have chosen replicas given by one broker and taken by another."""
        for index, giver, taker in swaps:
            seat = self.seats[index]
            seat.chosen.remove(giver)
            given = self.held[giver][seat.topic]
            del given[index]
            if not given:
                del self.held[giver][seat.topic]
            self._add(index, giver, -1)
            self.put(index, taker)

    def _add(self, index: int, broker: int, number: int) -> None:
        seat, used, rack = self.seats[index], self.used[index], self.racks[broker]
        used[rack] = used.get(rack, 0) + number
        self.count[broker] += number
        self.tally[seat.topic][broker] += number
        if seat.origin:
            here = broker in seat.origin
            marked = self.exiles[broker] if here else self.guests[broker]
            if (number < 0) is here:
                marked[index] = None
            else:
                del marked[index]

    def cost(self, index: int, giver: int, taker: int) -> int:
        """What a swap moves: 0 something back, 1 nothing more, 2 a follower, 3 a leader; 0 if all is new."""
        origin = self.seats[index].origin
        if not origin:
            return 0
        if giver in origin:
            return 1 if taker in origin else 2 + (giver == origin[0])
        return 0 if taker in origin else 1

    def held_by(self, broker: int, topic: int | None = None) -> Iterator[int]:
        """The seats of a broker's chosen replicas, of one topic or of all."""
        if topic is not None:
            yield from self.held[broker].get(topic, ())
            return
        for indices in self.held[broker].values():
            yield from indices

    def fits(self, index: int, giver: int, taker: int) -> bool:
        """Whether a broker can have another's place in a seat at no cost to its racks."""
        seat = self.seats[index]
        if taker not in seat.pool or taker in seat.chosen or taker in seat.stay:
            return False
        if self.down and (taker in self.down) != (giver in self.down):
            return giver in self.down
        if not seat.spread:
            return True
        there, here = self.racks[taker], self.racks[giver]
        used = self.used[index]
        return there == here or used.get(there, 0) < used[here]
