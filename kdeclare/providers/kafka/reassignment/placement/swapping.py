"""The best single swap between two brokers."""

from heapq import heapify, heappop, heappush, heapreplace

from kdeclare.providers.kafka.reassignment.placement.board import FOLLOWER, Board, Ranked, Swap


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
