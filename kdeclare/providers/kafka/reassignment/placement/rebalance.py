"""Make numbers of replicas, and of preferred leaders, more even by swaps.

No swap is at a cost to the racks of its slot.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from kdeclare.providers.kafka.reassignment.placement.assignment import (
    FOLLOWER_COST,
    BrokerSet,
    Rack,
    Replicas,
    Slot,
    Swap,
    TopicRanks,
    WorkingAssignment,
)
from kdeclare.providers.kafka.reassignment.placement.slots import PartitionDraft, fill_slots
from kdeclare.providers.kafka.reassignment.placement_request import PlacementRequest, Strategy

_ReachedFrom = Mapping[int, tuple[int, int]]
"""By broker that was reached: the seat of the last swap, and the broker that gives it."""

TransferFilter = Callable[[int, int, int], bool]
"""Whether in a topic one broker may end up with one less, and another with one more."""


def balance_replicas(assignment: WorkingAssignment, brokers: Iterable[int]) -> None:
    """Swap until no broker can give one replica to one that has two fewer.

    A swap in one seat may only make room for one in another, hence ways of several. What a search in
    vain has reached needs no other: no way leads out of it, and none into it goes down far enough.
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
    """Swap until no topic can be made more even without making the whole less so.

    Where a topic's gain would cost the whole, another topic gives back if that costs it nothing.
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
    """As `balance_replicas`, by ways that stay within a topic and do there what is allowed."""
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
    """Make a topic more even by one way, if there is any."""
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
    """Swaps in other topics, from one end to the other, that make none of them less even."""
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
    """As `_find_compensating_swaps`, through brokers in between, each seat used once."""
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
    """All brokers that a way of swaps leads to, by shortest ways, up to the first with ``target_count``
    replicas.

    Shortest, so that two swaps of one seat cannot spoil each other.
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
    """The way from ``start`` to ``end``, last swap first."""
    path = []
    while end != start:
        index, giver = reached_from[end]
        path.append((index, giver, end))
        end = giver
    return path


def find_best_swap(
    assignment: WorkingAssignment, giver: int, taker: int, topic: int | None = None
) -> Swap | None:
    """The best swap between two brokers, in one topic or in any; None if there is none.

    Best is what moves back what has moved, or moves it on. Then what makes a topic no less even, which
    another move would have to make up for; of these a follower; and of these one of the topic where the
    giver has most more than the taker.
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
    """A swap of what has moved already, or of what can move back."""
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
    """The best swap in any of the ranked topics. Uses up what will not do."""
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
    """The topic in front, if its rank is still below a limit; ranks that have risen are put right."""
    while heap and heap[0][0] < limit:
        rank, topic = heap[0]
        counts = assignment.topic_counts[topic]
        current_rank = counts[taker] - counts[giver]
        if current_rank <= rank:
            return topic
        heapreplace(heap, (current_rank, topic))
    return None


def _rank_topics(assignment: WorkingAssignment, giver: int, taker: int) -> list[tuple[int, int]]:
    """The giver's topics as a heap, those first where it has more than the taker by most.

    Kept from swap to swap until it is used up, since ranking takes long.
    """
    topic_counts = assignment.topic_counts
    ranked = [
        (topic_counts[topic][taker] - topic_counts[topic][giver], topic) for topic in assignment.held[giver]
    ]
    heapify(ranked)
    return ranked


def choose_leaders(
    broker_set: BrokerSet,
    request: PlacementRequest,
    drafts: Sequence[PartitionDraft],
    brokers: dict[int, Rack],
) -> list[bool]:
    """Put a leader first in every partition; tells which of them were free to choose.

    A leader that stays leads on. One that was on an unregistered broker is followed by the first that
    stays; one that had to go otherwise by that or by one of the new, whichever makes leaders more even.
    """
    slots = [_build_leader_slot(broker_set, part) for part in drafts]
    assignment = _build_leader_assignment(broker_set, brokers, slots)
    fill_slots(assignment)
    _balance_leader_assignment(broker_set, request, assignment)
    _apply_leaders(drafts, slots)
    return [bool(seat.chosen) for seat in slots]


def balance_leaders(
    broker_set: BrokerSet,
    request: PlacementRequest,
    drafts: Sequence[PartitionDraft],
    brokers: dict[int, Rack],
) -> None:
    """Reorder replicas until preferred leaders are as even as can be. Fenced brokers lead on."""
    slots = []
    for draft in drafts:
        leader = draft.after[0]
        if draft.fixed or leader not in broker_set.usable:
            slots.append(Slot(draft.topic, (leader,), frozenset(), 0, False))
        else:
            pool = broker_set.usable.intersection(draft.after)
            slots.append(Slot(draft.topic, (), pool, 1, False, chosen=[leader]))
    _balance_leader_assignment(broker_set, request, _build_leader_assignment(broker_set, brokers, slots))
    _apply_leaders(drafts, slots)


def _build_leader_slot(broker_set: BrokerSet, draft: PartitionDraft) -> Slot:
    """The choice of a leader, where there is any."""
    replicas_before, replicas = draft.before, draft.after
    kept = tuple(r for r in replicas_before if r in replicas)
    if kept and (kept[0] == replicas_before[0] or replicas_before[0] not in broker_set.racks):
        return Slot(draft.topic, kept[:1], frozenset(), 0, False)
    candidates = {*kept[:1], *(r for r in replicas if r not in replicas_before)}
    return Slot(draft.topic, (), frozenset(candidates), 1, False, kept[:1])


def _build_leader_assignment(
    broker_set: BrokerSet, brokers: dict[int, Rack], slots: Sequence[Slot]
) -> WorkingAssignment:
    return WorkingAssignment(
        slots, brokers, broker_set.racks.keys() - broker_set.usable, broker_set.load.leaders
    )


def _apply_leaders(drafts: Sequence[PartitionDraft], slots: Sequence[Slot]) -> None:
    for draft, slot in zip(drafts, slots, strict=True):
        (leader,) = slot.replicas
        if leader != draft.after[0]:
            draft.after = (leader, *(r for r in draft.after if r != leader))


def _balance_leader_assignment(
    broker_set: BrokerSet, request: PlacementRequest, assignment: WorkingAssignment
) -> None:
    if request.strategy is Strategy.BALANCED_LEADERS:
        rack_filter = _make_rack_filter(broker_set, assignment)
        balance_within_topics(assignment, broker_set.usable, rack_filter)
        balance_topics(assignment, broker_set.usable, rack_filter)
    else:
        balance_replicas(assignment, broker_set.usable)
        balance_topics(assignment, broker_set.usable)


def _make_rack_filter(broker_set: BrokerSet, assignment: WorkingAssignment) -> TransferFilter:
    """Whether a leader less here and one more there leaves a topic's leaders as even over racks."""

    def count_rack_leaders(topic: int, broker: int) -> int:
        topic_counts, rack = assignment.topic_counts[topic], broker_set.racks[broker]
        return sum(topic_counts[b] for b, other in broker_set.racks.items() if other == rack)

    def is_allowed(topic: int, giver: int, taker: int) -> bool:
        is_same_rack = broker_set.racks[giver] == broker_set.racks[taker]
        return is_same_rack or count_rack_leaders(topic, giver) > count_rack_leaders(topic, taker)

    return is_allowed


def balance_leaders_over_racks(
    broker_set: BrokerSet, drafts: Sequence[PartitionDraft], is_free: Sequence[bool]
) -> None:
    """See to it that each topic has as many leaders in every rack as in any other, plus or minus one.

    First by leaders that were free to choose anyway, then by reordering, then by moving. A partition with
    a replica on an unregistered broker is let be, since Kafka would refuse it in any order.
    """
    indices_by_topic: dict[int, list[int]] = {}
    for index, draft in enumerate(drafts):
        indices_by_topic.setdefault(draft.topic, []).append(index)
    racks = sorted(broker_set.by_rack, key=str)
    replicas = Counter(r for part in drafts for r in part.after)
    leaders = Counter(part.after[0] for part in drafts)
    for indices in indices_by_topic.values():
        members = [drafts[index] for index in indices]
        if not _is_even(broker_set, racks, members):
            movable = [
                i for i in indices if not drafts[i].fixed and broker_set.racks.keys() >= {*drafts[i].after}
            ]
            _reorder_leaders(broker_set, racks, [drafts[i] for i in movable if is_free[i]], members)
            _reorder_leaders(broker_set, racks, [drafts[i] for i in movable], members)
            _relocate_leaders(broker_set, racks, [drafts[i] for i in movable], members, replicas, leaders)


def _count_leaders(
    broker_set: BrokerSet, racks: Sequence[Rack], drafts: Sequence[PartitionDraft]
) -> dict[Rack, int]:
    counts = Counter(broker_set.racks[p.after[0]] for p in drafts if p.after[0] in broker_set.racks)
    return {rack: counts[rack] for rack in racks}


def _is_even(broker_set: BrokerSet, racks: Sequence[Rack], drafts: Sequence[PartitionDraft]) -> bool:
    counts = _count_leaders(broker_set, racks, drafts).values()
    return max(counts, default=0) - min(counts, default=0) <= 1


def _reorder_leaders(
    broker_set: BrokerSet,
    racks: Sequence[Rack],
    movable_drafts: Sequence[PartitionDraft],
    members: Sequence[PartitionDraft],
) -> None:
    """Even out leaders over racks by reordering some of a topic's partitions. Racks play the brokers."""
    rack_numbers = {rack: n for n, rack in enumerate(racks)}
    slots = []
    movable_ids = {id(part) for part in movable_drafts if part.after[0] in broker_set.usable}
    for draft in members:
        rack = broker_set.racks.get(draft.after[0])
        leader_rack = (
            (rack_numbers[rack],) if draft.after[0] in broker_set.racks and rack in rack_numbers else ()
        )
        if id(draft) in movable_ids:
            pool = frozenset(rack_numbers[broker_set.racks[r]] for r in draft.after if r in broker_set.usable)
            slots.append(Slot(0, (), pool, 1, False, leader_rack, [*leader_rack]))
        else:
            slots.append(Slot(0, leader_rack, frozenset(), 0, False))
    balance_replicas(WorkingAssignment(slots, dict.fromkeys(rack_numbers.values())), rack_numbers.values())
    for draft, slot in zip(members, slots, strict=True):
        if slot.chosen and slot.chosen[0] != rack_numbers[broker_set.racks[draft.after[0]]]:
            rack_brokers = broker_set.by_rack[racks[slot.chosen[0]]]
            leader = next(r for r in draft.after if r in rack_brokers)
            draft.after = (leader, *(r for r in draft.after if r != leader))


def _relocate_leaders(
    broker_set: BrokerSet,
    racks: Sequence[Rack],
    movable_drafts: Sequence[PartitionDraft],
    members: Sequence[PartitionDraft],
    replicas: Counter[int],
    leaders: Counter[int],
) -> None:
    """Even out leaders over racks by having leaders replaced by brokers of racks with too few.

    Not where a fenced broker of that rack has a replica already: the two would share the rack.
    """
    while True:
        counts = _count_leaders(broker_set, racks, members)
        options = [
            (counts[rack] - counts[broker_set.racks[part.after[0]]], replicas[part.after[0]], number, rack)
            for number, part in enumerate(movable_drafts)
            for rack in racks
            if counts[rack] <= counts.get(broker_set.racks[part.after[0]], 0) - 2
            and all(broker_set.racks[r] != rack for r in part.after)
        ]
        if not options:
            return
        _, _, draft_index, rack = min(options, key=lambda option: (option[0], -option[1], *option[2:3]))
        draft = movable_drafts[draft_index]
        leader = min(broker_set.by_rack[rack], key=lambda b: (replicas[b], leaders[b], b))
        replicas.subtract([draft.after[0]])
        leaders.subtract([draft.after[0]])
        replicas.update([leader])
        leaders.update([leader])
        draft.after = (leader, *draft.after[1:])


def order_replicas(leader: int, previous: Replicas, replicas: Replicas) -> Replicas:
    """The leader, what was there in its old order, and what is new, in ring order from the leader on.

    Without the ring, all partitions of one leader would fail over to the same broker's next.
    """
    kept = [r for r in dict.fromkeys((leader, *previous)) if r in replicas]
    return (*kept, *sorted(set(replicas).difference(kept), key=lambda b: (b < leader, b)))
