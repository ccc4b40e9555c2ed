"""The slots that replicas are to take under a strategy, and a first greedy fill of them.

A strategy says which racks a partition may use, which of its replicas break the rule, and why something
cannot be placed.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kdeclare.providers.kafka.reassignment.placement.assignment import Board, Ground, Rack, Replicas, Seat
from kdeclare.providers.kafka.reassignment.placement_request import PlacementError, Strategy, Wish

Home = tuple[Rack] | None
"""The rack that a partition must be in, if there is one."""


def spreads(wish: Wish) -> bool:
    """Whether what is chosen is to be spread over racks."""
    return wish.strategy in (None, Strategy.BALANCED_LEADERS, Strategy.CROSS_RACK)


def enforced(wish: Wish) -> bool:
    """Whether what is there is to be spread over racks, too."""
    return wish.strategy is Strategy.CROSS_RACK or (wish.even and spreads(wish))


class Homes:
    """The rack that a partition must be in, where the strategy names one.

    load: replicas by broker, of everything; new partitions are given racks on top of it.
    """

    def __init__(self, ground: Ground, wish: Wish, load: Mapping[int, int]) -> None:
        self._ground = ground
        self._wish = wish
        self._load = Counter({rack: sum(load.get(b, 0) for b in ids) for rack, ids in ground.by_rack.items()})

    def home(self, topic: str, partition: int, replicas: Replicas, factor: int) -> Home:
        """The rack, or None where any broker will do. Raises PlacementError."""
        if self._wish.strategy is Strategy.STATIC_IN_RACK:
            return (self._listed(topic, partition, replicas, factor),)
        if self._wish.strategy is Strategy.IN_RACK:
            return (self._chosen(topic, partition, replicas, factor),)
        return None

    def _listed(self, topic: str, partition: int, replicas: Replicas, factor: int) -> Rack:
        racks = self._wish.racks
        if partition >= len(racks):
            listed = "1 rack is listed" if len(racks) == 1 else f"{len(racks)} racks are listed"
            raise PlacementError(f"Partition {partition} of {topic} has no rack: {listed}")
        rack = racks[partition]
        if rack not in self._ground.racks.values():
            raise PlacementError(
                f"Partition {partition} of {topic} is to be in rack {rack}, and no broker is in it"
            )
        size = len(self._room(rack, replicas))
        if size < factor:
            raise PlacementError(
                f"Partition {partition} of {topic} is to have {_replicas(factor)} in rack {rack}, "
                f"which has room for {size}"
            )
        return rack

    def _chosen(self, topic: str, partition: int, replicas: Replicas, factor: int) -> Rack:
        """The leader's, else of those large enough the one with most of the replicas, then the emptiest."""
        racks = self._ground.racks
        known = [racks[r] for r in replicas if r in racks]
        sizes = {rack: len(self._room(rack, replicas)) for rack in [*self._ground.by_rack, *known]}
        large = [rack for rack, size in sizes.items() if size >= factor]
        if not large:
            named = ", ".join(f"{_named(rack)} has {sizes[rack]}" for rack in sorted(sizes, key=str))
            raise PlacementError(
                f"Partition {partition} of {topic} is to have {_replicas(factor)} in one rack, and none has "
                f"that many brokers: {named or 'there is no broker'}"
            )
        if replicas and replicas[0] in racks and racks[replicas[0]] in large:
            return racks[replicas[0]]
        rack = min(large, key=lambda rack: (-known.count(rack), self._load[rack] / sizes[rack], str(rack)))
        self._load[rack] += factor - known.count(rack)
        return rack

    def _room(self, rack: Rack, replicas: Replicas) -> frozenset[int]:
        """The brokers of a rack that can hold a replica of the partition."""
        ground = self._ground
        staying = (r for r in replicas if ground.may_stay(r) and ground.racks[r] == rack)
        return ground.by_rack.get(rack, frozenset()).union(staying)


def _named(rack: Rack) -> str:
    return "no rack" if rack is None else f"rack {rack}"


def _replicas(factor: int) -> str:
    return "1 replica" if factor == 1 else f"{factor} replicas"


def spread_seat(ground: Ground, topic: int, replicas: Replicas, load: Mapping[int, int]) -> Seat | None:
    """A seat that spreads a partition over racks by the fewest moves; None if it is spread already.

    What goes comes from the fullest rack: a replica on a fenced broker first, then one on the broker with
    the most replicas (``load``), never the leader, which has company there.
    """
    stay, gone = [*replicas], 0
    used = Counter(ground.racks.get(r) for r in replicas)
    free = {rack: len(group.difference(replicas)) for rack, group in ground.by_rack.items()}
    while (pair := _uneven(used, free)) is not None:
        full, empty = pair
        here = [r for r in stay[1:] if ground.racks.get(r) == full]
        stay.remove(max(here, key=lambda r: (r not in ground.usable, load.get(r, 0), stay.index(r))))
        used.subtract([full])
        used.update([empty])
        free[empty] -= 1
        gone += 1
    return Seat(topic, tuple(stay), ground.usable, gone) if gone else None


def _uneven(used: Counter[Rack], free: Mapping[Rack, int]) -> tuple[Rack, Rack] | None:
    """The fullest rack, and the emptiest with a free broker if that has two replicas fewer."""
    most = max(used.values())
    if most < 2:
        return None
    takers = [rack for rack, brokers in free.items() if brokers and used[rack] <= most - 2]
    if not takers:
        return None
    full = min((rack for rack in used if used[rack] == most), key=str)
    return full, min(takers, key=lambda rack: (used[rack], str(rack)))


def static(ground: Ground, wish: Wish, topic: str, current: Sequence[Replicas], total: int) -> None:
    """Check that assignments that are written out have all that is wished for. Raises PlacementError."""
    for partition in range(total):
        replicas = current[partition] if partition < len(current) else ()
        held = ground.without.intersection(replicas)
        if not replicas or held or len(replicas) != (wish.replication_factor or len(replicas)):
            raise PlacementError(
                f"The replicas of {topic} are where its assignments say, and those of partition {partition} "
                "would have to be chosen"
            )


class NotEnoughBrokers(PlacementError):
    """A partition cannot have that many replicas.

    replication_factor: what it is to have. usable: ids of the brokers that may get its new replicas.
    topic, partition: the first one that cannot have it.
    """

    def __init__(self, topic: str, partition: int, replication_factor: int, usable: tuple[int, ...]) -> None:
        self.topic = topic
        self.partition = partition
        self.replication_factor = replication_factor
        self.usable = usable
        takers = f"{len(usable)} broker{' can' if len(usable) == 1 else 's can'} take new ones"
        super().__init__(
            f"Partition {partition} of {topic} cannot have {replication_factor} replicas: {takers} "
            f"({', '.join(map(str, usable)) or 'none'})"
        )


class FewerPartitions(PlacementError):
    """A topic cannot lose partitions. ``wanted`` and ``current`` are counts."""

    def __init__(self, topic: str, wanted: int, current: int) -> None:
        self.topic = topic
        self.wanted = wanted
        self.current = current
        super().__init__(f"{topic} has {current} partitions and cannot have {wanted}")


@dataclass(slots=True)
class Part:
    """One partition on its way.

    topic: its number. before: what it had; nothing if it is new. seat: what it keeps and may choose.
    pool: all brokers that may ever hold it; none if it is fixed, to stay as it is. after: what it has so
    far, preferred leader first.
    """

    topic: int
    before: Replicas
    seat: Seat
    pool: frozenset[int]
    fixed: bool = False
    after: Replicas = ()


def parts_of(
    ground: Ground, wish: Wish, current: Mapping[str, Sequence[Replicas]], load: Mapping[int, int]
) -> list[Part]:
    """All partitions that are to be, by topic and number. Raises PlacementError.

    load: replicas by broker, of everything.
    """
    if wish.replication_factor is not None and wish.replication_factor < 1:
        raise PlacementError(f"A replication factor must be at least 1, not {wish.replication_factor}")
    homes = Homes(ground, wish, load)
    parts: list[Part] = []
    for topic, (name, replicas) in enumerate(sorted(current.items())):
        total = len(replicas) if wish.partitions is None else wish.partitions
        if total < len(replicas):
            raise FewerPartitions(name, total, len(replicas))
        if wish.strategy is Strategy.STATIC:
            static(ground, wish, name, replicas, total)
        fixed = (wish.fixed or {}).get(name, frozenset())
        for number in range(total):
            before = tuple(replicas[number]) if number < len(replicas) else ()
            if before and (number in fixed or wish.strategy is Strategy.STATIC):
                parts.append(
                    Part(topic, before, Seat(topic, before, frozenset(), 0), frozenset(), fixed=True)
                )
                continue
            factor = _factor(wish, name, before or (replicas[0] if replicas else ()))
            home = homes.home(name, number, before, factor)
            parts.append(_part(ground, wish, home, (name, topic, number), before, factor))
    return parts


def _factor(wish: Wish, name: str, like: Sequence[int]) -> int:
    """How many replicas a partition is to have; a new one without a wish as many as partition 0."""
    factor = wish.replication_factor or len(like)
    if factor < 1:
        raise PlacementError(f"{name} is new, and its replication factor is not given")
    return factor


def _part(
    ground: Ground, wish: Wish, home: Home, of: tuple[str, int, int], before: Replicas, factor: int
) -> Part:
    """What a partition keeps, and what it chooses from."""
    name, topic, number = of
    pool = ground.usable if home is None else ground.by_rack.get(home[0], frozenset())
    keep = tuple(r for r in before if ground.may_stay(r) and (home is None or ground.racks[r] == home[0]))
    wanted = factor - len(keep)
    if len(before) == factor and _content(ground, wish, before, keep):
        seat = Seat(topic, before, pool, 0)
    elif wanted < 0:
        seat = Seat(topic, keep[:1], frozenset(keep[1:]), factor - 1, spreads(wish))
    elif wanted > len(pool.difference(keep)):
        raise NotEnoughBrokers(name, number, factor, tuple(sorted(pool)))
    else:
        seat = Seat(topic, keep, pool, wanted, spreads(wish))
    return Part(topic, before, seat, pool)


def _content(ground: Ground, wish: Wish, before: Replicas, keep: Replicas) -> bool:
    """Whether a partition of the right size may stay as it is.

    A replica on an unregistered broker is let be where nothing asks for anything.
    """
    if len(keep) == len(before):
        return True
    asked = enforced(wish) or wish.even or wish.strategy in (Strategy.IN_RACK, Strategy.STATIC_IN_RACK)
    return not asked and ground.without.isdisjoint(before)


_DOWN = 1 << 20
"""More than any number of replicas in a rack."""

_Groups = list[tuple[Rack, int, frozenset[int]]]


def fill(board: Board) -> None:
    """Choose for every seat that wants more than it has.

    Each choice is the best of its moment: up, in the rack with the fewest of the seat's replicas, with
    the fewest replicas of all topics, then of this one, then in the rack with the fewest of all, so that
    later partitions find brokers with few replicas in several racks; then by the board's weights, then one
    that the seat has had before.
    """
    # equal brokers take turns in no fixed pattern, so that partitions do not come in cliques
    dice = random.Random(0)
    thrown = {broker: dice.random() for broker in sorted(board.racks)}
    grouped: dict[tuple[frozenset[int], bool], _Groups] = {}
    totals: Counter[Rack] = Counter()
    for broker, number in board.count.items():
        totals[board.racks[broker]] += number
    for index, seat in enumerate(board.seats):
        while len(seat.chosen) < seat.wanted:
            key = seat.pool, seat.spread
            if key not in grouped:
                grouped[key] = _groups(board, seat)
            best = _best(board, index, grouped[key], totals, thrown)
            board.put(index, best)
            totals[board.racks[best]] += 1
            thrown[best] = dice.random()


def _groups(board: Board, seat: Seat) -> _Groups:
    """A pool in groups of brokers that always cost the same: each with its rack and that cost's base."""
    groups: dict[tuple[Rack, int], set[int]] = {}
    for broker in sorted(seat.pool):
        rack = board.racks[broker] if seat.spread else None
        groups.setdefault((rack, _DOWN if broker in board.down else 0), set()).add(broker)
    return [(rack, cost, frozenset(group)) for (rack, cost), group in groups.items()]


def _best(board: Board, index: int, groups: _Groups, totals: Counter[Rack], thrown: dict[int, float]) -> int:
    seat, used = board.seats[index], board.used[index]
    lowest, best = 2 * _DOWN, frozenset[int]()
    for rack, base, group in groups:
        cost = base + (used.get(rack, 0) if seat.spread else 0)
        if cost <= lowest and (free := group.difference(seat.stay, seat.chosen)):
            best = best | free if cost == lowest else free
            lowest = cost
    count, tally, weight, racks = board.count, board.tally[seat.topic], board.weight, board.racks
    least = min(map(count.__getitem__, best))
    equal = [b for b in best if count[b] == least]
    return min(equal, key=lambda b: (tally[b], totals[racks[b]], weight[b], b not in seat.origin, thrown[b]))
