"""The stages of placement, one after the other."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Broker, KafkaState
from kdeclare.providers.kafka.reassignment.placement.assignment import (
    Board,
    Ground,
    Load,
    Rack,
    Replicas,
    Seat,
)
from kdeclare.providers.kafka.reassignment.placement.rebalance import (
    balance_over_racks,
    choose_leaders,
    even_leaders,
    even_out,
    even_topics,
    ordered,
)
from kdeclare.providers.kafka.reassignment.placement.slots import (
    Part,
    enforced,
    fill,
    parts_of,
    spread_seat,
    spreads,
)
from kdeclare.providers.kafka.reassignment.placement_request import Strategy, Wish

_LEADS = 1 << 32
"""More than any number of replicas: a weight of leaders first and replicas second."""


def place(
    brokers: Sequence[Broker],
    current: Mapping[str, Sequence[Replicas]],
    wish: Wish,
    load: Load | None = None,
) -> Mapping[str, tuple[Replicas, ...]]:
    """The replicas, preferred leader first, of every partition of every topic. Deterministic.

    brokers: all registered ones. Only those that are neither fenced nor drained get new replicas.
    current: the true replicas of the partitions that exist (never a described list during a move).
    load: what brokers hold of other topics; among equally good brokers the one with less is taken.

    In this order of weight: the strategy; the least movement; even numbers of replicas over brokers, for
    all topics together and then for each; and the same for preferred leaders.

    What is chosen is spread over as many racks as possible, as evenly as possible; brokers without a rack
    count as one rack together (so without any racks the rule is void). What stays is not broken up for
    it, unless the strategy or a rebalance asks.

    A partition that has what is wished for stays as it is. One with fewer replicas keeps them in order
    and gets more behind them. One with more keeps its preferred leader, loses replicas on fenced brokers
    first, then those whose loss leaves the most racks, and keeps the order of the rest. A replica on an
    unregistered broker cannot stay in a partition that changes, since Kafka refuses such a target; a
    strategy about racks and a rebalance replace it.

    Raises PlacementError, and of that FewerPartitions and NotEnoughBrokers.
    """
    ground = Ground.of(brokers, wish.without, load or Load())
    held = Counter(r for topic in current.values() for replicas in topic for r in replicas)
    racks: dict[int, Rack] = dict.fromkeys(held) | dict(ground.racks)
    parts = parts_of(ground, wish, current, held + Counter(ground.load.replicas))
    _choose(ground, parts, [part.seat for part in parts], racks)
    if enforced(wish):
        _spread(ground, parts, racks)
    free = choose_leaders(ground, wish, parts, racks)
    if wish.strategy is Strategy.BALANCED_LEADERS:
        balance_over_racks(ground, parts, free)
    if wish.even:
        _rebalance(ground, wish, parts, racks)
    placed = iter([ordered(part.after[0], part.before, part.after) for part in parts])
    names = sorted(current)
    totals = Counter(part.topic for part in parts)
    return {name: tuple(next(placed) for _ in range(totals[topic])) for topic, name in enumerate(names)}


def _choose(ground: Ground, parts: Sequence[Part], seats: Sequence[Seat], racks: dict[int, Rack]) -> None:
    """Fill all seats and even out what was chosen."""
    # who leads little comes first among equals, or a new partition may find no such leader to choose
    leads = Counter(seat.stay[0] for seat in seats if seat.stay)
    weight = {b: leads[b] * _LEADS + ground.load.replicas.get(b, 0) for b in racks}
    board = Board(seats, racks, ground.racks.keys() - ground.usable, weight)
    fill(board)
    chosen = {b for seat in seats if seat.wanted for b in seat.pool}
    even_out(board, chosen)
    even_topics(board, chosen)
    for part, seat in zip(parts, seats, strict=True):
        part.after = seat.replicas


def _spread(ground: Ground, parts: Sequence[Part], racks: dict[int, Rack]) -> None:
    """Repair partitions that are not on as many racks as they can be."""
    counts = Counter(r for part in parts for r in part.after)
    seats = []
    for part in parts:
        seat = None if part.fixed else spread_seat(ground, part.topic, part.after, counts)
        seats.append(seat or Seat(part.topic, part.after, frozenset(), 0))
    if any(seat.wanted for seat in seats):
        _choose(ground, parts, seats, racks)


def _rebalance(ground: Ground, wish: Wish, parts: Sequence[Part], racks: dict[int, Rack]) -> None:
    """Even out replicas and then leaders, until there is nothing left to gain.

    No step makes an earlier one's numbers worse, so this ends; and what it ends with it leaves alone.
    """
    while True:
        before = [part.after for part in parts]
        if wish.strategy is Strategy.BALANCED_LEADERS:
            balance_over_racks(ground, parts, [False] * len(parts))
        _even_replicas(ground, wish, parts, racks)
        even_leaders(ground, wish, parts, racks)
        if before == [part.after for part in parts]:
            return


def _even_replicas(ground: Ground, wish: Wish, parts: Sequence[Part], racks: dict[int, Rack]) -> None:
    spread = spreads(wish)
    pinned = wish.strategy is Strategy.BALANCED_LEADERS  # their racks are right
    seats = []
    for part in parts:
        movable = [r for r in part.after[pinned:] if r in ground.usable and not part.fixed]
        stay = tuple(r for r in part.after if r not in movable)
        seats.append(Seat(part.topic, stay, part.pool, len(movable), spread, part.before, movable))
    board = Board(seats, racks, (), ground.load.replicas)
    even_out(board, ground.usable)
    even_topics(board, ground.usable)
    for part, seat in zip(parts, seats, strict=True):
        leader = next(r for r in (*part.after, *seat.chosen) if r in seat)
        part.after = ordered(leader, part.before, seat.replicas)


class SharedLoad:
    """Places topics on top of what the cluster has and of what was placed before them.

    barred: by topic, brokers that may get nothing new of it, as something else that is declared would move
    it away again. has_moved: whether anything was put elsewhere than it was.
    """

    def __init__(self, live: KafkaState, barred: Mapping[str, frozenset[int]] | None = None) -> None:
        """Counts nothing yet: most plans leave all replicas where they are."""
        self._live: KafkaState | None = live
        self._barred = barred or {}
        self.has_moved = False
        self._replicas: Counter[int] = Counter()
        self._leaders: Counter[int] = Counter()
        self._placed: dict[str, tuple[Replicas, ...]] = {}

    def __call__(
        self, brokers: Sequence[Broker], current: Mapping[str, Sequence[Replicas]], wish: Wish
    ) -> Mapping[str, tuple[Replicas, ...]]:
        """See `place`."""
        self._count_once()
        alike: dict[frozenset[int], dict[str, Sequence[Replicas]]] = {}
        for name, replicas in current.items():
            alike.setdefault(self._barred.get(name, frozenset()), {})[name] = replicas
        placed: dict[str, tuple[Replicas, ...]] = {}
        for barred in sorted(alike, key=sorted):
            placed |= self._place(brokers, alike[barred], wish, barred)
        return placed

    def _count_once(self) -> None:
        """Count the true replicas that every broker has now."""
        if self._live is None:
            return
        live, self._live = self._live, None
        for name, topic in live.topics.items():
            if live.moves:
                numbers = range(len(topic.partitions))
                held = tuple(live.replicas(TopicPartition(name, n)) or () for n in numbers)
            else:
                held = tuple(partition.replicas for partition in topic.partitions)
            self._keep(name, held)

    def _place(
        self,
        brokers: Sequence[Broker],
        current: Mapping[str, Sequence[Replicas]],
        wish: Wish,
        barred: frozenset[int],
    ) -> Mapping[str, tuple[Replicas, ...]]:
        if wish.even or wish.strategy:  # whoever arranges must not count on what will be moved away
            wish = replace(wish, without=wish.without | barred)
        usable = [replace(b, fenced=b.fenced or b.id in barred) for b in brokers]
        others = Load(+(self._replicas - self._of(current)), +(self._leaders - self._led(current)))
        placed = place(usable, current, wish, others)
        self.has_moved |= any(placed[name] != tuple(map(tuple, current[name])) for name in current)
        for name, replicas in placed.items():
            self._keep(name, replicas)
        return placed

    def _keep(self, name: str, replicas: tuple[Replicas, ...]) -> None:
        old = self._placed.get(name, ())
        for sign, assignment in ((-1, old), (1, replicas)):
            for partition in assignment:
                for broker in partition:
                    self._replicas[broker] += sign
                for broker in partition[:1]:
                    self._leaders[broker] += sign
        self._placed[name] = replicas

    def _of(self, current: Mapping[str, Sequence[Replicas]]) -> Counter[int]:
        return Counter(r for name in current for replicas in self._placed.get(name, ()) for r in replicas)

    def _led(self, current: Mapping[str, Sequence[Replicas]]) -> Counter[int]:
        return Counter(r for name in current for replicas in self._placed.get(name, ()) for r in replicas[:1])


def rack_findings(brokers: Sequence[Broker]) -> tuple[str, ...]:
    """A sentence or two for each oddity; nothing where no broker has a rack, since then no rule holds."""
    racks: dict[str, list[int]] = {}
    bare: list[int] = []
    for broker in sorted(brokers, key=lambda broker: broker.id):
        (bare if broker.rack is None else racks.setdefault(broker.rack, [])).append(broker.id)
    if not racks:
        return ()
    return (*_bare(bare), *_unequal(racks))


def _bare(bare: Sequence[int]) -> tuple[str, ...]:
    if not bare:
        return ()
    if len(bare) == 1:
        return (f"Broker {bare[0]} has no rack. It counts as a rack of its own.",)
    return (f"Brokers {_listed(bare)} have no rack. Together they count as one rack.",)


def _unequal(racks: dict[str, list[int]]) -> tuple[str, ...]:
    sizes = {len(ids) for ids in racks.values()}
    if len(sizes) == 1:
        return ()
    named = "; ".join(f"{rack} has {_brokers(ids)}" for rack, ids in sorted(racks.items()))
    small = sorted(rack for rack, ids in racks.items() if len(ids) == min(sizes))
    whose = f"rack {small[0]}" if len(small) == 1 else f"racks {_listed(small)}"
    return (
        f"The racks are of unequal size: {named}. Where replicas are spread over racks, the brokers of "
        f"{whose} will hold more of them than the others.",
    )


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {_listed(ids)}"


def _listed(items: Sequence[int] | Sequence[str]) -> str:
    texts = [str(item) for item in items]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
