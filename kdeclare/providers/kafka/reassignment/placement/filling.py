"""Choosing for seats what they want, greedily."""

import random
from collections import Counter

from kdeclare.providers.kafka.reassignment.placement.board import Board, Seat
from kdeclare.providers.kafka.reassignment.placement.ground import Rack

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
