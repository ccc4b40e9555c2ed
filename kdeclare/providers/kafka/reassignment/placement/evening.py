"""Making numbers more even by swaps, each at no cost to the racks of its seat."""

from collections.abc import Callable, Iterable, Mapping

from kdeclare.providers.kafka.reassignment.placement.board import FOLLOWER, Board, Swap
from kdeclare.providers.kafka.reassignment.placement.swapping import lightest

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
