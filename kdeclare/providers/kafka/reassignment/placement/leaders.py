"""Choose and balance preferred leaders, and order the replicas of each partition."""

from collections import Counter
from collections.abc import Sequence

from kdeclare.providers.kafka.reassignment.placement.assignment import (
    BrokerSet,
    Rack,
    Replicas,
    Slot,
    WorkingAssignment,
)
from kdeclare.providers.kafka.reassignment.placement.rebalance import (
    TransferFilter,
    balance_replicas,
    balance_topics,
    balance_within_topics,
)
from kdeclare.providers.kafka.reassignment.placement.slots import PartitionDraft, fill_slots
from kdeclare.providers.kafka.reassignment.placement_request import PlacementRequest, Strategy


def choose_leaders(
    broker_set: BrokerSet,
    request: PlacementRequest,
    drafts: Sequence[PartitionDraft],
    brokers: dict[int, Rack],
) -> list[bool]:
    """Choose the leader of each partition and put it first.

    Return, for each partition, whether its leader was chosen from candidates.

    A leader whose replica stays remains the leader. If a leader is on an unregistered broker, the first
    remaining replica becomes the leader. If the replica of any other leader is removed, the first remaining
    replica and the new replicas are candidates. The candidate that balances leaders best becomes the leader.
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
    """Reorder replicas until preferred leaders are balanced. Leaders on fenced brokers remain leaders."""
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
    """Build the slot for a partition's leader. The leader is either fixed, or chosen from candidates."""
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
    """Build a filter that rejects a transfer if it makes the spread of a topic's leaders over racks worse."""

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
    """Balance each topic's leaders, so that the numbers of leaders in any two racks differ by at most one.

    First change the leaders of partitions with several possible leaders, then reorder replicas, then move
    leaders. A partition with a replica on an unregistered broker is left unchanged, because Kafka would
    refuse the target in any order.
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
    """Balance leaders over racks by reordering replicas.

    The rebalance algorithm is applied to racks instead of brokers.
    """
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
    """Balance leaders over racks by moving leaders to brokers in racks that have too few leaders.

    A leader never moves to a rack that already has a replica of the partition, not even if this replica is on
    a fenced broker.
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
    """Order replicas: the leader, then kept replicas in their old order, then new replicas in ring order.

    The ring of broker ids starts at the leader. With a fixed order, all partitions of a leader would fail
    over to the same broker.
    """
    kept = [r for r in dict.fromkeys((leader, *previous)) if r in replicas]
    return (*kept, *sorted(set(replicas).difference(kept), key=lambda b: (b < leader, b)))
