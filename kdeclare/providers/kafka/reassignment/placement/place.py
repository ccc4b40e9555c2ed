"""The stages of placement, one after the other."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kdeclare.providers.kafka.live import Broker
from kdeclare.providers.kafka.reassignment.placement.board import Board, Replicas, Seat
from kdeclare.providers.kafka.reassignment.placement.evening import even_out, even_topics
from kdeclare.providers.kafka.reassignment.placement.filling import fill
from kdeclare.providers.kafka.reassignment.placement.ground import Ground, Load, Rack
from kdeclare.providers.kafka.reassignment.placement.leading import (
    balance_over_racks,
    choose_leaders,
    even_leaders,
    ordered,
)
from kdeclare.providers.kafka.reassignment.placement.rules import enforced, spread_seat, spreads
from kdeclare.providers.kafka.reassignment.placement.seats import Part, parts_of
from kdeclare.providers.kafka.reassignment.placing import Strategy, Wish

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
