"""Preferred leaders: who leads where the leader has gone, and even numbers of leaders."""

from collections import Counter
from collections.abc import Sequence

from kdeclare.providers.kafka.reassignment.placement.board import Board, Replicas, Seat
from kdeclare.providers.kafka.reassignment.placement.evening import (
    Allowed,
    even_out,
    even_out_by_topic,
    even_topics,
)
from kdeclare.providers.kafka.reassignment.placement.filling import fill
from kdeclare.providers.kafka.reassignment.placement.ground import Ground, Rack
from kdeclare.providers.kafka.reassignment.placement.seats import Part
from kdeclare.providers.kafka.reassignment.placing import Strategy, Wish


def choose_leaders(ground: Ground, wish: Wish, parts: Sequence[Part], brokers: dict[int, Rack]) -> list[bool]:
    """Put a leader first in every partition; tells which of them were free to choose.

    A leader that stays leads on. One that was on an unregistered broker is followed by the first that
    stays; one that had to go otherwise by that or by one of the new, whichever makes leaders more even.
    """
    seats = [_leading(ground, part) for part in parts]
    board = _board(ground, brokers, seats)
    fill(board)
    _even(ground, wish, board)
    _lead(parts, seats)
    return [bool(seat.chosen) for seat in seats]


def even_leaders(ground: Ground, wish: Wish, parts: Sequence[Part], brokers: dict[int, Rack]) -> None:
    """Reorder replicas until preferred leaders are as even as can be. Fenced brokers lead on."""
    seats = []
    for part in parts:
        leader = part.after[0]
        if part.fixed or leader not in ground.usable:
            seats.append(Seat(part.topic, (leader,), frozenset(), 0, False))
        else:
            pool = ground.usable.intersection(part.after)
            seats.append(Seat(part.topic, (), pool, 1, False, chosen=[leader]))
    _even(ground, wish, _board(ground, brokers, seats))
    _lead(parts, seats)


def _leading(ground: Ground, part: Part) -> Seat:
    """The choice of a leader, where there is any."""
    before, after = part.before, part.after
    kept = tuple(r for r in before if r in after)
    if kept and (kept[0] == before[0] or before[0] not in ground.racks):
        return Seat(part.topic, kept[:1], frozenset(), 0, False)
    candidates = {*kept[:1], *(r for r in after if r not in before)}
    return Seat(part.topic, (), frozenset(candidates), 1, False, kept[:1])


def _board(ground: Ground, brokers: dict[int, Rack], seats: Sequence[Seat]) -> Board:
    return Board(seats, brokers, ground.racks.keys() - ground.usable, ground.load.leaders)


def _lead(parts: Sequence[Part], seats: Sequence[Seat]) -> None:
    for part, seat in zip(parts, seats, strict=True):
        (leader,) = seat.replicas
        if leader != part.after[0]:
            part.after = (leader, *(r for r in part.after if r != leader))


def _even(ground: Ground, wish: Wish, board: Board) -> None:
    if wish.strategy is Strategy.BALANCED_LEADERS:
        allowed = _within_racks(ground, board)
        even_out_by_topic(board, ground.usable, allowed)
        even_topics(board, ground.usable, allowed)
    else:
        even_out(board, ground.usable)
        even_topics(board, ground.usable)


def _within_racks(ground: Ground, board: Board) -> Allowed:
    """Whether a leader less here and one more there leaves a topic's leaders as even over racks."""

    def leads(topic: int, broker: int) -> int:
        tally, rack = board.tally[topic], ground.racks[broker]
        return sum(tally[b] for b, other in ground.racks.items() if other == rack)

    def allowed(topic: int, giver: int, taker: int) -> bool:
        same = ground.racks[giver] == ground.racks[taker]
        return same or leads(topic, giver) > leads(topic, taker)

    return allowed


def balance_over_racks(ground: Ground, parts: Sequence[Part], free: Sequence[bool]) -> None:
    """See to it that each topic has as many leaders in every rack as in any other, plus or minus one.

    First by leaders that were free to choose anyway, then by reordering, then by moving. A partition with
    a replica on an unregistered broker is let be, since Kafka would refuse it in any order.
    """
    by_topic: dict[int, list[int]] = {}
    for index, part in enumerate(parts):
        by_topic.setdefault(part.topic, []).append(index)
    racks = sorted(ground.by_rack, key=str)
    replicas = Counter(r for part in parts for r in part.after)
    leaders = Counter(part.after[0] for part in parts)
    for indices in by_topic.values():
        members = [parts[index] for index in indices]
        if not _is_even(ground, racks, members):
            movable = [i for i in indices if not parts[i].fixed and ground.racks.keys() >= {*parts[i].after}]
            _reorder(ground, racks, [parts[i] for i in movable if free[i]], members)
            _reorder(ground, racks, [parts[i] for i in movable], members)
            _relocate(ground, racks, [parts[i] for i in movable], members, replicas, leaders)


def _leads(ground: Ground, racks: Sequence[Rack], parts: Sequence[Part]) -> dict[Rack, int]:
    counts = Counter(ground.racks[p.after[0]] for p in parts if p.after[0] in ground.racks)
    return {rack: counts[rack] for rack in racks}


def _is_even(ground: Ground, racks: Sequence[Rack], parts: Sequence[Part]) -> bool:
    counts = _leads(ground, racks, parts).values()
    return max(counts, default=0) - min(counts, default=0) <= 1


def _reorder(ground: Ground, racks: Sequence[Rack], some: Sequence[Part], members: Sequence[Part]) -> None:
    """Even out leaders over racks by reordering some of a topic's partitions. Racks play the brokers."""
    number = {rack: n for n, rack in enumerate(racks)}
    seats = []
    movable = {id(part) for part in some if part.after[0] in ground.usable}
    for part in members:
        rack = ground.racks.get(part.after[0])
        here = (number[rack],) if part.after[0] in ground.racks and rack in number else ()
        if id(part) in movable:
            pool = frozenset(number[ground.racks[r]] for r in part.after if r in ground.usable)
            seats.append(Seat(0, (), pool, 1, False, here, [*here]))
        else:
            seats.append(Seat(0, here, frozenset(), 0, False))
    even_out(Board(seats, dict.fromkeys(number.values())), number.values())
    for part, seat in zip(members, seats, strict=True):
        if seat.chosen and seat.chosen[0] != number[ground.racks[part.after[0]]]:
            group = ground.by_rack[racks[seat.chosen[0]]]
            leader = next(r for r in part.after if r in group)
            part.after = (leader, *(r for r in part.after if r != leader))


def _relocate(
    ground: Ground,
    racks: Sequence[Rack],
    some: Sequence[Part],
    members: Sequence[Part],
    replicas: Counter[int],
    leaders: Counter[int],
) -> None:
    """Even out leaders over racks by having leaders replaced by brokers of racks with too few.

    Not where a fenced broker of that rack has a replica already: the two would share the rack.
    """
    while True:
        counts = _leads(ground, racks, members)
        options = [
            (counts[rack] - counts[ground.racks[part.after[0]]], replicas[part.after[0]], number, rack)
            for number, part in enumerate(some)
            for rack in racks
            if counts[rack] <= counts.get(ground.racks[part.after[0]], 0) - 2
            and all(ground.racks[r] != rack for r in part.after)
        ]
        if not options:
            return
        _, _, number, rack = min(options, key=lambda option: (option[0], -option[1], *option[2:3]))
        part = some[number]
        leader = min(ground.by_rack[rack], key=lambda b: (replicas[b], leaders[b], b))
        replicas.subtract([part.after[0]])
        leaders.subtract([part.after[0]])
        replicas.update([leader])
        leaders.update([leader])
        part.after = (leader, *part.after[1:])


def ordered(leader: int, before: Replicas, after: Replicas) -> Replicas:
    """The leader, what was there in its old order, and what is new, in ring order from the leader on.

    Without the ring, all partitions of one leader would fail over to the same broker's next.
    """
    kept = [r for r in dict.fromkeys((leader, *before)) if r in after]
    return (*kept, *sorted(set(after).difference(kept), key=lambda b: (b < leader, b)))
