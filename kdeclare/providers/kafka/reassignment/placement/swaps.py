"""Find the best single swap: a slot, the giver and the taker."""

from heapq import heapify, heappop, heappush, heapreplace

from kdeclare.providers.kafka.reassignment.placement.assignment import (
    FOLLOWER_COST,
    Swap,
    TopicRanks,
    WorkingAssignment,
)


def find_best_swap(
    assignment: WorkingAssignment, giver: int, taker: int, topic: int | None = None
) -> Swap | None:
    """Return the best swap between two brokers, in one topic or in all topics; None if no swap is possible.

    The best swaps move a replica that was already moved, either back or to a different broker. Next come
    swaps that do not unbalance a topic, because each unbalanced topic requires one more move later. Among
    equally good swaps, swaps of followers are preferred to swaps of leaders. If the swaps are still equal,
    the topic with the largest difference between the giver's and the taker's number of replicas is preferred.
    """
    restoring_swap = _find_restoring_swap(assignment, giver, taker, topic)
    if restoring_swap is not None:
        return restoring_swap
    if topic is not None:
        return _find_swap_in_topic(assignment, giver, taker, topic)
    pair = giver, taker
    swap = (
        _find_swap_in_ranked_topics(assignment, giver, taker, assignment.topic_ranks[pair])
        if pair in assignment.topic_ranks
        else None
    )
    if swap is None:
        assignment.topic_ranks[pair] = _rank_topics(assignment, giver, taker), []
        swap = _find_swap_in_ranked_topics(assignment, giver, taker, assignment.topic_ranks[pair])
    return swap


def _find_restoring_swap(
    assignment: WorkingAssignment, giver: int, taker: int, topic: int | None
) -> Swap | None:
    """Find a swap that moves a replica back, or that moves an already moved replica again."""
    incoming, outgoing = assignment.incoming[giver], assignment.outgoing[taker]
    if not incoming and not outgoing:
        return None
    slots = assignment.slots
    indices = [*incoming, *(index for index in outgoing if giver in slots[index].chosen)]
    indices = [
        i
        for i in indices
        if (topic is None or slots[i].topic == topic)
        and giver in slots[i].chosen
        and assignment.can_swap(i, giver, taker)
    ]
    best_index = min(indices, key=lambda index: assignment.compute_cost(index, giver, taker), default=None)
    return None if best_index is None else (best_index, giver, taker)


def _find_swap_in_topic(assignment: WorkingAssignment, giver: int, taker: int, topic: int) -> Swap | None:
    fallback: Swap | None = None
    for index in assignment.held[giver].get(topic, ()):
        if assignment.can_swap(index, giver, taker):
            if assignment.compute_cost(index, giver, taker) <= FOLLOWER_COST:
                return index, giver, taker
            fallback = fallback or (index, giver, taker)
    return fallback


def _find_swap_in_ranked_topics(
    assignment: WorkingAssignment, giver: int, taker: int, ranked: TopicRanks
) -> Swap | None:
    """Find the best swap in the ranked topics. Remove topics without a possible swap from the heaps."""
    followers, leaders = ranked
    for limit in (0, len(assignment.slots)):
        while (topic := _find_first_topic(assignment, giver, taker, followers, limit)) is not None:
            swap = _find_swap_in_topic(assignment, giver, taker, topic)
            if swap is not None and assignment.compute_cost(*swap) <= FOLLOWER_COST:
                return swap
            entry = heappop(followers)
            if swap is not None:
                heappush(leaders, entry)
        while (topic := _find_first_topic(assignment, giver, taker, leaders, limit)) is not None:
            swap = _find_swap_in_topic(assignment, giver, taker, topic)
            if swap is not None:
                return swap
            heappop(leaders)
    return None


def _find_first_topic(
    assignment: WorkingAssignment, giver: int, taker: int, heap: list[tuple[int, int]], limit: int
) -> int | None:
    """Return the topic with the lowest rank, or None if that rank is not below ``limit``.

    If the first rank in the heap is outdated, compute it again.
    """
    while heap and heap[0][0] < limit:
        rank, topic = heap[0]
        counts = assignment.topic_counts[topic]
        current_rank = counts[taker] - counts[giver]
        if current_rank <= rank:
            return topic
        heapreplace(heap, (current_rank, topic))
    return None


def _rank_topics(assignment: WorkingAssignment, giver: int, taker: int) -> list[tuple[int, int]]:
    """Build a heap of the topics with replicas on ``giver``. The first topic is the best one for a swap.

    The rank is the taker's number of replicas minus the giver's number of replicas. Building the heap is
    slow, so the heap is used for several swaps, until it is empty.
    """
    topic_counts = assignment.topic_counts
    ranked = [
        (topic_counts[topic][taker] - topic_counts[topic][giver], topic) for topic in assignment.held[giver]
    ]
    heapify(ranked)
    return ranked
