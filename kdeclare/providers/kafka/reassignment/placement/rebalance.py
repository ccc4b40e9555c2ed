"""Make numbers of replicas, and of preferred leaders, more even by swaps.

No swap is at a cost to the racks of its slot.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from kdeclare.providers.kafka.reassignment.placement.assignment import (
    FOLLOWER,
    Board,
    Ground,
    Rack,
    Ranked,
    Replicas,
    Seat,
    Swap,
)
from kdeclare.providers.kafka.reassignment.placement.slots import Part, fill
from kdeclare.providers.kafka.reassignment.placement_request import Strategy, Wish

_Came = Mapping[int, tuple[int, int]]
"""By broker that was reached: the seat of the last swap, and the broker that gives it."""

Allowed = Callable[[int, int, int], bool]
"""Whether in a topic one broker may end up with one less, and another with one more."""


def even_out(board: Board, brokers: Iterable[int]) -> None:
    """Swap until no broker can give one replica to one that has two fewer.

    A swap in one seat may only make room for one in another, hence ways of several. What a search in
    vain has reached needs no other: no way leads out of it, and none into it goes down far enough.
    """
    left = set(brokers)
    count, weight = board.count, board.weight
    while left:
        start = min(left, key=lambda b: (-count[b], b))
        goals = [b for b in left if count[b] <= count[start] - 2]
        if not goals:
            return
        goals.sort(key=lambda b: (count[b], weight[b], b))
        swap = next(filter(None, (lightest(board, start, goal) for goal in goals)), None)
        if swap is not None:
            board.move([swap])
            continue
        came, end = _reach(board, start, left, deep=count[start] - 2)
        if end is None:
            left -= {start, *came}
        else:
            board.move(_trace(came, start, end))


def even_topics(board: Board, brokers: Iterable[int], allowed: Allowed | None = None) -> None:
    """Swap until no topic can be made more even without making the whole less so.

    Where a topic's gain would cost the whole, another topic gives back if that costs it nothing.
    """
    among = set(brokers)
    again = True
    while again:
        again = False
        for topic in range(len(board.tally)):
            while _evener_topic(board, topic, among, allowed):
                again = True


def even_out_by_topic(board: Board, brokers: Iterable[int], allowed: Allowed) -> None:
    """As `even_out`, by ways that stay within a topic and do there what is allowed."""
    among = set(brokers)
    count = board.count
    again = True
    while again:
        again = False
        for topic in range(len(board.tally)):
            for start in sorted(among, key=lambda b: (-count[b], b)):
                came, _ = _reach(board, start, among, topic)
                ends = [b for b in came if count[b] <= count[start] - 2 and allowed(topic, start, b)]
                if ends:
                    board.move(_trace(came, start, min(ends, key=lambda b: (count[b], b))))
                    again = True


def _evener_topic(board: Board, topic: int, among: set[int], allowed: Allowed | None) -> bool:
    """Make a topic more even by one way, if there is any."""
    tally, count = board.tally[topic], board.count
    numbers = [tally[b] for b in among]
    low = min(numbers, default=0)
    if max(numbers, default=0) < low + 2:
        return False
    starts = [b for b in among if tally[b] >= low + 2 and topic in board.held[b]]
    for start in sorted(starts, key=lambda b: (-tally[b], -count[b], b)):
        came, _ = _reach(board, start, among, topic)
        ends = [b for b in came if tally[b] <= tally[start] - 2]
        for end in sorted(ends, key=lambda b: (tally[b], count[b], board.weight[b], b)):
            if allowed is not None and not allowed(topic, start, end):
                continue
            back: list[Swap] | None = []
            if count[start] <= count[end]:
                back = _ways_back(board, topic, (end, start), among, allowed)
            if back is None:
                continue
            direct = lightest(board, start, end, topic)
            board.move([direct] if direct else _trace(came, start, end))
            board.move(back)
            return True
    return False


def _ways_back(
    board: Board, topic: int, ends: tuple[int, int], among: set[int], allowed: Allowed | None
) -> list[Swap] | None:
    """Swaps in other topics, from one end to the other, that make none of them less even."""
    giver, taker = ends
    found: list[Swap] = []
    for other in board.held[giver]:
        tally = board.tally[other]
        if other == topic or tally[giver] <= tally[taker]:
            continue
        if allowed is not None and not allowed(other, giver, taker):
            continue
        swap = lightest(board, giver, taker, other)
        if swap is not None:
            found.append(swap)
            if board.cost(*swap) <= FOLLOWER:
                break
    if found:
        return [min(found, key=lambda swap: board.cost(*swap))]
    return _way_round(board, topic, ends, among, allowed)


def _way_round(
    board: Board, topic: int, ends: tuple[int, int], among: set[int], allowed: Allowed | None
) -> list[Swap] | None:
    """As `_ways_back`, through brokers in between, each seat used once."""
    start, end = ends
    came: dict[int, tuple[int, int]] = {}
    unseen = among - {start}
    queue = [start]
    for giver in queue:
        for other, indices in board.held[giver].items():
            tally = board.tally[other]
            here = tally[giver]
            if other == topic or not (takers := sorted(b for b in unseen if tally[b] < here)):
                continue
            if allowed is not None:
                takers = [b for b in takers if allowed(other, giver, b)]
            for index in indices:
                for taker in takers:
                    if taker in unseen and board.fits(index, giver, taker):
                        came[taker] = (index, giver)
                        unseen.discard(taker)
                        queue.append(taker)
        if end in came:
            way = _trace(came, start, end)
            return way if len({index for index, _, _ in way}) == len(way) else None
    return None


def _reach(
    board: Board, start: int, among: set[int], topic: int | None = None, deep: int = -1
) -> tuple[dict[int, tuple[int, int]], int | None]:
    """All brokers that a way of swaps leads to, by shortest ways, up to the first with ``deep`` replicas.

    Shortest, so that two swaps of one seat cannot spoil each other.
    """
    came: dict[int, tuple[int, int]] = {}
    unseen = among - {start}
    queue = [start]
    for giver in queue:
        for index in board.held_by(giver, topic):
            if not unseen:
                break
            for taker in sorted(unseen & board.seats[index].pool):
                if board.fits(index, giver, taker):
                    came[taker] = (index, giver)
                    if board.count[taker] <= deep:
                        return came, taker
                    unseen.discard(taker)
                    queue.append(taker)
    return came, None


def _trace(came: _Came, start: int, end: int) -> list[Swap]:
    """The way from ``start`` to ``end``, last swap first."""
    way = []
    while end != start:
        index, giver = came[end]
        way.append((index, giver, end))
        end = giver
    return way


def lightest(board: Board, giver: int, taker: int, topic: int | None = None) -> Swap | None:
    """The best swap between two brokers, in one topic or in any; None if there is none.

    Best is what moves back what has moved, or moves it on. Then what makes a topic no less even, which
    another move would have to make up for; of these a follower; and of these one of the topic where the
    giver has most more than the taker.
    """
    back = _moving_back(board, giver, taker, topic)
    if back is not None:
        return back
    if topic is not None:
        return _in_topic(board, giver, taker, topic)
    pair = giver, taker
    found = _in_topics(board, giver, taker, board.ranked[pair]) if pair in board.ranked else None
    if found is None:
        board.ranked[pair] = _ranked(board, giver, taker), []
        found = _in_topics(board, giver, taker, board.ranked[pair])
    return found


def _moving_back(board: Board, giver: int, taker: int, topic: int | None) -> Swap | None:
    """A swap of what has moved already, or of what can move back."""
    guests, exiles = board.guests[giver], board.exiles[taker]
    if not guests and not exiles:
        return None
    seats = board.seats
    indices = [*guests, *(index for index in exiles if giver in seats[index].chosen)]
    indices = [
        i
        for i in indices
        if (topic is None or seats[i].topic == topic)
        and giver in seats[i].chosen
        and board.fits(i, giver, taker)
    ]
    best = min(indices, key=lambda index: board.cost(index, giver, taker), default=None)
    return None if best is None else (best, giver, taker)


def _in_topic(board: Board, giver: int, taker: int, topic: int) -> Swap | None:
    found: Swap | None = None
    for index in board.held[giver].get(topic, ()):
        if board.fits(index, giver, taker):
            if board.cost(index, giver, taker) <= FOLLOWER:
                return index, giver, taker
            found = found or (index, giver, taker)
    return found


def _in_topics(board: Board, giver: int, taker: int, ranked: Ranked) -> Swap | None:
    """The best swap in any of the ranked topics. Uses up what will not do."""
    followers, leaders = ranked
    for below in (0, len(board.seats)):
        while (topic := _first(board, giver, taker, followers, below)) is not None:
            swap = _in_topic(board, giver, taker, topic)
            if swap is not None and board.cost(*swap) <= FOLLOWER:
                return swap
            gone = heappop(followers)
            if swap is not None:
                heappush(leaders, gone)
        while (topic := _first(board, giver, taker, leaders, below)) is not None:
            swap = _in_topic(board, giver, taker, topic)
            if swap is not None:
                return swap
            heappop(leaders)
    return None


def _first(board: Board, giver: int, taker: int, heap: list[tuple[int, int]], below: int) -> int | None:
    """The topic in front, if its rank is still below a limit; ranks that have risen are put right."""
    while heap and heap[0][0] < below:
        rank, topic = heap[0]
        numbers = board.tally[topic]
        now = numbers[taker] - numbers[giver]
        if now <= rank:
            return topic
        heapreplace(heap, (now, topic))
    return None


def _ranked(board: Board, giver: int, taker: int) -> list[tuple[int, int]]:
    """The giver's topics as a heap, those first where it has more than the taker by most.

    Kept from swap to swap until it is used up, since ranking takes long.
    """
    tally = board.tally
    ranked = [(tally[topic][taker] - tally[topic][giver], topic) for topic in board.held[giver]]
    heapify(ranked)
    return ranked


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
