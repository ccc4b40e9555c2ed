"""Balance the replicas of brokers and topics by swaps.

No swap makes the spread of a partition over racks worse.
"""

from collections.abc import Callable, Iterable, Mapping

from kdeclare.providers.kafka.reassignment.placement.assignment import (
    FOLLOWER_COST,
    Swap,
    WorkingAssignment,
)
from kdeclare.providers.kafka.reassignment.placement.swaps import find_best_swap

_ReachedFrom = Mapping[int, tuple[int, int]]
"""Maps each broker to the last swap on the path to this broker.

A swap is given as its slot and the broker that gives up the replica.
"""

TransferFilter = Callable[[int, int, int], bool]
"""A function that returns whether a replica can be transferred between two brokers.

The arguments are the index of the topic, the broker that gives up the replica, and the broker that gets it.
"""


def balance_replicas(assignment: WorkingAssignment, brokers: Iterable[int]) -> None:
    """Swap replicas until the replica counts of the brokers are as equal as possible.

    A swap requires a taker with at least two replicas fewer than the giver. If no single swap is possible,
    search for a path: several swaps that together move one replica from the giver to the taker.

    If a search finds no path, the brokers that the search reached, including the first one, are not searched
    again: no path through these brokers leads to a broker with few enough replicas.
    """
    remaining = set(brokers)
    counts, weights = assignment.count, assignment.weight
    while remaining:
        start = min(remaining, key=lambda b: (-counts[b], b))
        goals = [b for b in remaining if counts[b] <= counts[start] - 2]
        if not goals:
            return
        goals.sort(key=lambda b: (counts[b], weights[b], b))
        swap = next(filter(None, (find_best_swap(assignment, start, goal) for goal in goals)), None)
        if swap is not None:
            assignment.move([swap])
            continue
        reached_from, end = _find_reachable(assignment, start, remaining, target_count=counts[start] - 2)
        if end is None:
            remaining -= {start, *reached_from}
        else:
            assignment.move(_trace_path(reached_from, start, end))


def balance_topics(
    assignment: WorkingAssignment, brokers: Iterable[int], is_allowed: TransferFilter | None = None
) -> None:
    """Balance the replicas of each topic without making the brokers' total counts less equal.

    If a swap in one topic would make the totals less equal, a swap in a second topic compensates for the
    first swap, provided that the second topic does not become less balanced.
    """
    broker_ids = set(brokers)
    has_changed = True
    while has_changed:
        has_changed = False
        for topic in range(len(assignment.topic_counts)):
            while _improve_topic(assignment, topic, broker_ids, is_allowed):
                has_changed = True


def balance_within_topics(
    assignment: WorkingAssignment, brokers: Iterable[int], is_allowed: TransferFilter
) -> None:
    """Balance like `balance_replicas`, but only within each topic, with transfers that the filter allows."""
    broker_ids = set(brokers)
    counts = assignment.count
    has_changed = True
    while has_changed:
        has_changed = False
        for topic in range(len(assignment.topic_counts)):
            for start in sorted(broker_ids, key=lambda b: (-counts[b], b)):
                reached_from, _ = _find_reachable(assignment, start, broker_ids, topic)
                ends = [
                    b for b in reached_from if counts[b] <= counts[start] - 2 and is_allowed(topic, start, b)
                ]
                if ends:
                    assignment.move(_trace_path(reached_from, start, min(ends, key=lambda b: (counts[b], b))))
                    has_changed = True


def _improve_topic(
    assignment: WorkingAssignment, topic: int, broker_ids: set[int], is_allowed: TransferFilter | None
) -> bool:
    """Improve the balance of a topic by one path of swaps. Return False if there is no such path."""
    topic_counts, counts = assignment.topic_counts[topic], assignment.count
    present_counts = [topic_counts[b] for b in broker_ids]
    lowest = min(present_counts, default=0)
    if max(present_counts, default=0) < lowest + 2:
        return False
    starts = [b for b in broker_ids if topic_counts[b] >= lowest + 2 and topic in assignment.held[b]]
    for start in sorted(starts, key=lambda b: (-topic_counts[b], -counts[b], b)):
        reached_from, _ = _find_reachable(assignment, start, broker_ids, topic)
        ends = [b for b in reached_from if topic_counts[b] <= topic_counts[start] - 2]
        for end in sorted(ends, key=lambda b: (topic_counts[b], counts[b], assignment.weight[b], b)):
            if is_allowed is not None and not is_allowed(topic, start, end):
                continue
            return_swaps: list[Swap] | None = []
            if counts[start] <= counts[end]:
                return_swaps = _find_compensating_swaps(
                    assignment, topic, (end, start), broker_ids, is_allowed
                )
            if return_swaps is None:
                continue
            direct_swap = find_best_swap(assignment, start, end, topic)
            assignment.move([direct_swap] if direct_swap else _trace_path(reached_from, start, end))
            assignment.move(return_swaps)
            return True
    return False


def _find_compensating_swaps(
    assignment: WorkingAssignment,
    topic: int,
    ends: tuple[int, int],
    broker_ids: set[int],
    is_allowed: TransferFilter | None,
) -> list[Swap] | None:
    """Find swaps in other topics that restore two brokers' total replica counts.

    The other topics stay balanced.
    ends: the broker that gives up a replica, and the broker that gets it.
    """
    giver, taker = ends
    swaps: list[Swap] = []
    for other in assignment.held[giver]:
        topic_counts = assignment.topic_counts[other]
        if other == topic or topic_counts[giver] <= topic_counts[taker]:
            continue
        if is_allowed is not None and not is_allowed(other, giver, taker):
            continue
        swap = find_best_swap(assignment, giver, taker, other)
        if swap is not None:
            swaps.append(swap)
            if assignment.compute_cost(*swap) <= FOLLOWER_COST:
                break
    if swaps:
        return [min(swaps, key=lambda swap: assignment.compute_cost(*swap))]
    return _find_compensating_path(assignment, topic, ends, broker_ids, is_allowed)


def _find_compensating_path(
    assignment: WorkingAssignment,
    topic: int,
    ends: tuple[int, int],
    broker_ids: set[int],
    is_allowed: TransferFilter | None,
) -> list[Swap] | None:
    """Find compensating swaps that pass through intermediate brokers and use each slot only once."""
    start, end = ends
    reached_from: dict[int, tuple[int, int]] = {}
    unreached = broker_ids - {start}
    queue = [start]
    for giver in queue:
        for other, indices in assignment.held[giver].items():
            topic_counts = assignment.topic_counts[other]
            giver_count = topic_counts[giver]
            if other == topic or not (
                takers := sorted(b for b in unreached if topic_counts[b] < giver_count)
            ):
                continue
            if is_allowed is not None:
                takers = [b for b in takers if is_allowed(other, giver, b)]
            for index in indices:
                for taker in takers:
                    if taker in unreached and assignment.can_swap(index, giver, taker):
                        reached_from[taker] = (index, giver)
                        unreached.discard(taker)
                        queue.append(taker)
        if end in reached_from:
            path = _trace_path(reached_from, start, end)
            return path if len({index for index, _, _ in path}) == len(path) else None
    return None


def _find_reachable(
    assignment: WorkingAssignment,
    start: int,
    broker_ids: set[int],
    topic: int | None = None,
    target_count: int = -1,
) -> tuple[dict[int, tuple[int, int]], int | None]:
    """Find the brokers that can be reached by paths of swaps.

    Stop at the first broker with at most ``target_count`` replicas. Only the shortest paths are used, so that
    no two swaps of a path use the same slot.
    """
    reached_from: dict[int, tuple[int, int]] = {}
    unreached = broker_ids - {start}
    queue = [start]
    for giver in queue:
        for index in assignment.list_slots(giver, topic):
            if not unreached:
                break
            for taker in sorted(unreached & assignment.slots[index].pool):
                if assignment.can_swap(index, giver, taker):
                    reached_from[taker] = (index, giver)
                    if assignment.count[taker] <= target_count:
                        return reached_from, taker
                    unreached.discard(taker)
                    queue.append(taker)
    return reached_from, None


def _trace_path(reached_from: _ReachedFrom, start: int, end: int) -> list[Swap]:
    """Return the path from ``start`` to ``end``, last swap first."""
    path = []
    while end != start:
        index, giver = reached_from[end]
        path.append((index, giver, end))
        end = giver
    return path
