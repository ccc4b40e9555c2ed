"""Where a topic's replicas go: the least movement, then racks, then even numbers. Pure.

Every partition is a `_Seat`: replicas that stay, brokers to choose from, and how many to choose. The
`_Chooser` fills all seats greedily (fewest replicas in the rack, then fewest on the broker) and then
swaps choices until no swap makes the numbers more even. Keeping, dropping, adding and leading differ
only in the seats.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kdeclare.model.live import Broker, Snapshot

_Rack = str | None
_Weight = tuple[int, int]
_Rank = tuple[int, _Weight, float]

_DOWN = 1 << 20


class PlacementError(ValueError):
    """What was asked for cannot be placed."""


class NotEnoughBrokers(PlacementError):
    """A partition cannot have that many replicas.

    replication_factor: what was asked for. usable: ids of the brokers that may get new replicas.
    partition: the first one that cannot have it.
    """

    def __init__(self, replication_factor: int, usable: tuple[int, ...], partition: int) -> None:
        self.replication_factor = replication_factor
        self.usable = usable
        self.partition = partition
        super().__init__(
            f"Partition {partition} cannot have {replication_factor} replicas: {len(usable)} brokers "
            f"can take new ones ({', '.join(map(str, usable)) or 'none'})"
        )


class FewerPartitions(PlacementError):
    """A topic cannot lose partitions. ``wanted`` and ``current`` are counts."""

    def __init__(self, wanted: int, current: int) -> None:
        self.wanted = wanted
        self.current = current
        super().__init__(f"A topic with {current} partitions cannot have {wanted}")


@dataclass
class _Seat:
    """One partition's choice: ``wanted`` of ``pool`` beside those that ``stay``."""

    stay: tuple[int, ...]
    pool: frozenset[int]
    wanted: int
    chosen: list[int] = field(default_factory=list)


def place(
    brokers: Sequence[Broker],
    current: Sequence[tuple[int, ...]],
    partitions: int,
    replication_factor: int,
    load: Mapping[int, int] | None = None,
) -> tuple[tuple[int, ...], ...]:
    """The replicas, preferred leader first, of partitions 0 … ``partitions`` − 1. Deterministic.

    brokers: all registered ones. Only those that are not fenced get new replicas.
    current: the true replicas of the partitions that exist (never a described list during a move).
    load: replicas of other topics by broker; among equally good brokers the one with less is taken.
        Who places several topics adds each result to it before the next.

    A partition that has ``replication_factor`` replicas stays as it is. One with fewer keeps them in
    order and gets more behind them. One with more keeps its preferred leader, loses replicas on fenced
    brokers first, then those whose loss leaves the most racks, and keeps the order of the rest. A
    replica on a broker that is not registered cannot stay in a partition that changes, since Kafka
    refuses such a target.

    A partition's replicas are spread over as many racks as possible, as evenly as possible; brokers
    without a rack count as one rack together, as they do in Kafka's own placer (so without any racks
    the rule is void). As far as that and what stays allow, the topic's replicas are spread evenly over
    brokers, and so are, as far as the replicas allow, leaders: those of new partitions make up for those
    that stay.

    Raises FewerPartitions, NotEnoughBrokers, and PlacementError for a replication factor below 1.
    """
    if replication_factor < 1:
        raise PlacementError(f"A replication factor must be at least 1, not {replication_factor}")
    if partitions < len(current):
        raise FewerPartitions(partitions, len(current))
    racks = {b.id: b.rack for b in brokers}
    usable = frozenset(b.id for b in brokers if not b.fenced)

    seats = [_seat(replicas, replication_factor, racks, usable) for replicas in current]
    seats += [_Seat((), usable, replication_factor) for _ in range(len(current), partitions)]
    for partition, seat in enumerate(seats):
        if seat.wanted > len(seat.pool.difference(seat.stay)):
            raise NotEnoughBrokers(replication_factor, tuple(sorted(usable)), partition)
    counts = Counter(b for seat in seats for b in seat.stay)
    # who leads little comes first among equals, or a new partition may find no such leader to choose
    leads = Counter(seat.stay[0] for seat in seats if seat.stay)
    load = load or {}
    _Chooser(racks, usable, {b: (leads[b], load.get(b, 0)) for b in racks}, counts).fill(seats)

    leaders = _leaders(seats)
    before = [*current, *[()] * (partitions - len(current))]
    return tuple(
        _in_order((leader, *replicas), {*seat.stay, *seat.chosen})
        for leader, replicas, seat in zip(leaders, before, seats, strict=True)
    )


def _seat(
    replicas: tuple[int, ...], wanted: int, racks: Mapping[int, _Rack], usable: frozenset[int]
) -> _Seat:
    """What a partition that exists keeps, and what it chooses from."""
    if len(replicas) == wanted:
        return _Seat(replicas, frozenset(), 0)
    stay = tuple(r for r in replicas if r in racks)
    if len(stay) > wanted:
        return _Seat(stay[:1], frozenset(stay[1:]), wanted - 1)
    return _Seat(stay, usable, wanted - len(stay))


def _leaders(seats: Sequence[_Seat]) -> list[int]:
    """The preferred leader of each seat: the first that stays, or one of those that were chosen.

    Leading is a choice like any other: of one, where racks do not matter.
    """
    counts = Counter(seat.stay[0] for seat in seats if seat.stay)
    leading = [_Seat(seat.stay[:1], frozenset(seat.chosen), 0 if seat.stay else 1) for seat in seats]
    everyone = frozenset(b for seat in leading for b in (*seat.stay, *seat.pool))
    _Chooser(dict.fromkeys(everyone), everyone, dict.fromkeys(everyone, (0, 0)), counts).fill(leading)
    return [(*seat.stay, *seat.chosen)[0] for seat in leading]


def _in_order(replicas: tuple[int, ...], target: set[int]) -> tuple[int, ...]:
    """What was there in its old order; what is new behind it, in ring order from the leader on.

    Without the ring, all partitions of one leader would fail over to the same broker's next.
    """
    kept = tuple(dict.fromkeys(r for r in replicas if r in target))
    return (*kept, *sorted(target.difference(kept), key=lambda b: (b < kept[0], b)))


class _Chooser:
    """Fills seats so that racks come first and numbers second.

    usable: preferred to all other brokers, whatever the racks. counts: what the brokers have already.
    weights: decide among brokers of equal counts, the least first.
    """

    def __init__(
        self,
        racks: Mapping[int, _Rack],
        usable: frozenset[int],
        weights: Mapping[int, _Weight],
        counts: Mapping[int, int],
    ) -> None:
        self._racks = racks
        self._usable = usable
        self._weights = weights
        self._counts = dict(counts)
        # equal brokers take turns in no fixed pattern, so that partitions do not come in cliques
        self._dice = random.Random(0)
        self._groups: dict[frozenset[int], list[tuple[int, set[int]]]] = {}

    def fill(self, seats: Sequence[_Seat]) -> None:
        """Choose for every seat that wants more than it has."""
        brokers = sorted(set().union(*(seat.pool for seat in seats if seat.wanted)))
        for broker in brokers:
            self._counts.setdefault(broker, 0)
        rank = {broker: self._rank(broker) for broker in brokers}
        for seat in seats:
            while len(seat.chosen) < seat.wanted:
                best = self._next(seat, rank)
                seat.chosen.append(best)
                self._counts[best] += 1
                rank[best] = self._rank(best)
        self._even_out(seats, set(brokers))

    def _rank(self, broker: int) -> _Rank:
        return self._counts[broker], self._weights[broker], self._dice.random()

    def _next(self, seat: _Seat, rank: Mapping[int, _Rank]) -> int:
        """The best broker for one more replica."""
        used = self._used(seat)
        taken = {*seat.stay, *seat.chosen}
        lowest, best = 2 * _DOWN, set[int]()
        for one, alike in self._alike(seat.pool):
            cost = self._cost(one, used)
            if cost <= lowest and (free := alike - taken):
                best = best | free if cost == lowest else free
                lowest = cost
        return min(best, key=rank.__getitem__)

    def _alike(self, pool: frozenset[int]) -> list[tuple[int, set[int]]]:
        """A pool in groups of brokers that always cost the same, each with one of them."""
        if pool not in self._groups:
            groups: dict[tuple[_Rack, bool], set[int]] = {}
            for broker in sorted(pool):
                groups.setdefault((self._racks.get(broker), broker in self._usable), set()).add(broker)
            self._groups[pool] = [(min(group), group) for group in groups.values()]
        return self._groups[pool]

    def _used(self, seat: _Seat) -> dict[_Rack, int]:
        """How many replicas of the seat are in each rack."""
        used: dict[_Rack, int] = {}
        for broker in (*seat.stay, *seat.chosen):
            rack = self._racks.get(broker)
            used[rack] = used.get(rack, 0) + 1
        return used

    def _cost(self, broker: int, used: Mapping[_Rack, int]) -> int:
        """What one more replica on a broker does to the spread; a broker that is down beats no rack."""
        return used.get(self._racks.get(broker), 0) + (0 if broker in self._usable else _DOWN)

    def _even_out(self, seats: Sequence[_Seat], brokers: set[int]) -> None:
        """Swap choices, none at the cost of racks, until no broker can give one to one with two fewer.

        A swap in one seat may only make room for one in another, hence ways of several. What a search
        in vain has reached needs no other: no way leads out of it, and none into it goes down far
        enough.
        """
        held: dict[int, dict[int, None]] = {broker: {} for broker in brokers}
        for index, seat in enumerate(seats):
            for broker in seat.chosen:
                held[broker][index] = None
        while brokers:
            start = min(brokers, key=lambda b: (-self._counts[b], b))
            if self._counts[start] - min(self._counts[b] for b in brokers) < 2:
                return
            way, reached = self._way_down(start, seats, held)
            for index, giver, taker in way:
                seats[index].chosen.remove(giver)
                seats[index].chosen.append(taker)
                del held[giver][index]
                held[taker][index] = None
                self._counts[giver] -= 1
                self._counts[taker] += 1
            if not way:
                brokers = brokers - reached

    def _way_down(
        self, start: int, seats: Sequence[_Seat], held: Mapping[int, Mapping[int, None]]
    ) -> tuple[list[tuple[int, int, int]], set[int]]:
        """The shortest way of swaps (seat, giver, taker) to a broker with two fewer, if there is one.

        Shortest, so that two swaps of one seat cannot spoil each other. Also all that was reached.
        """
        came: dict[int, tuple[int, int, int]] = {}
        unseen = set(held) - {start}
        queue = [start]
        for giver in queue:
            for index in held[giver]:
                if not unseen:
                    break
                seat = seats[index]
                for taker in self._takers(seat, giver, unseen):
                    came[taker] = (index, giver, taker)
                    if self._counts[taker] <= self._counts[start] - 2:
                        return _trace(came, start, taker), set(came)
                    unseen.discard(taker)
                    queue.append(taker)
        return [], {start, *came}

    def _takers(self, seat: _Seat, giver: int, among: set[int]) -> list[int]:
        """Who could have the giver's place in a seat, at no cost to its racks."""
        few, many = (seat.pool, among) if len(seat.pool) < len(among) else (among, seat.pool)
        takers = [b for b in few if b in many and b not in seat.stay and b not in seat.chosen]
        if not takers:
            return []
        used = self._used(seat)
        used[self._racks.get(giver)] -= 1
        cost = self._cost(giver, used)
        return sorted(b for b in takers if self._cost(b, used) <= cost)


def _trace(came: Mapping[int, tuple[int, int, int]], start: int, end: int) -> list[tuple[int, int, int]]:
    """The way from ``start`` to ``end``, last swap first."""
    way = []
    while end != start:
        way.append(came[end])
        end = came[end][1]
    return way


class SharedLoad:
    """Places topic after topic, each on top of what the cluster has and of what was placed before it."""

    def __init__(self, live: Snapshot) -> None:
        """Counts the replicas that every broker has now."""
        self._load = Counter(r for t in live.topics.values() for p in t.partitions for r in p.replicas)

    def __call__(
        self,
        brokers: Sequence[Broker],
        current: Sequence[tuple[int, ...]],
        partitions: int,
        replication_factor: int,
        load: Mapping[int, int] | None = None,
    ) -> tuple[tuple[int, ...], ...]:
        """See `place`; ``load`` comes on top of what is counted here."""
        others = self._load - Counter(r for replicas in current for r in replicas)
        placed = place(brokers, current, partitions, replication_factor, others + Counter(load))
        self._load = others + Counter(r for replicas in placed for r in replicas)
        return placed
