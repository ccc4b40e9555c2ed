"""Run the stages of a placement."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kdeclare.providers.kafka.live import Broker
from kdeclare.providers.kafka.reassignment.placement.assignment import (
    BrokerSet,
    Load,
    Rack,
    Replicas,
    Slot,
    WorkingAssignment,
)
from kdeclare.providers.kafka.reassignment.placement.leaders import (
    balance_leaders,
    balance_leaders_over_racks,
    choose_leaders,
    order_replicas,
)
from kdeclare.providers.kafka.reassignment.placement.rebalance import balance_replicas, balance_topics
from kdeclare.providers.kafka.reassignment.placement.slots import (
    PartitionDraft,
    build_drafts,
    build_spread_slot,
    fill_slots,
    should_spread,
    should_spread_existing,
)
from kdeclare.providers.kafka.reassignment.placement_request import PlacementRequest, Strategy

_LEADER_WEIGHT = 1 << 32
"""The weight of a leader: more than any number of replicas, so that leaders are compared before replicas."""


def place_replicas(
    brokers: Sequence[Broker],
    current: Mapping[str, Sequence[Replicas]],
    request: PlacementRequest,
    load: Load | None = None,
) -> Mapping[str, tuple[Replicas, ...]]:
    """Return the replicas, preferred leader first, of every partition of every topic. Deterministic.

    brokers: all registered brokers. Only brokers that are neither fenced nor drained get new replicas.
    current: the replicas of the existing partitions. For a partition that is moving, these are the target
        replicas of the move.
    load: the replicas and leaders of topics that are not being placed. Among equally good brokers, the least
        loaded broker is chosen.

    Priorities, in this order: the strategy; few moves; equal numbers of replicas per broker, first for all
    topics together and then for each topic; equal numbers of preferred leaders per broker, in the same way.

    New replicas are spread over as many racks as possible, as evenly as possible. All brokers without a rack
    count as one rack, so this rule has no effect if no broker has a rack. Existing replicas are moved between
    racks only if the strategy or a rebalance requires it.

    A partition that already satisfies the request stays unchanged. A partition with too few replicas keeps
    its replicas in order and gets new replicas at the end. A partition with too many replicas keeps its
    preferred leader. Replicas on fenced brokers are removed first, and then the replicas whose removal leaves
    the most racks. The remaining replicas stay in order.

    A partition that changes cannot keep a replica on an unregistered broker, because Kafka refuses such a
    target. A rack strategy or a rebalance replaces such a replica.

    Raises PlacementError, including its subclasses FewerPartitions and NotEnoughBrokers.
    """
    broker_set = BrokerSet.of(brokers, request.excluded_brokers, load or Load())
    held_counts = Counter(r for topic in current.values() for replicas in topic for r in replicas)
    racks: dict[int, Rack] = dict.fromkeys(held_counts) | dict(broker_set.racks)
    drafts = build_drafts(broker_set, request, current, held_counts + Counter(broker_set.load.replicas))
    _fill_and_balance(broker_set, drafts, [part.slot for part in drafts], racks)
    if should_spread_existing(request):
        _spread_over_racks(broker_set, drafts, racks)
    free_to_choose = choose_leaders(broker_set, request, drafts, racks)
    if request.strategy is Strategy.BALANCED_LEADERS:
        balance_leaders_over_racks(broker_set, drafts, free_to_choose)
    if request.rebalance:
        _rebalance(broker_set, request, drafts, racks)
    placed_lists = iter([order_replicas(part.after[0], part.before, part.after) for part in drafts])
    names = sorted(current)
    partition_counts = Counter(part.topic for part in drafts)
    return {
        name: tuple(next(placed_lists) for _ in range(partition_counts[topic]))
        for topic, name in enumerate(names)
    }


def _fill_and_balance(
    broker_set: BrokerSet, drafts: Sequence[PartitionDraft], slots: Sequence[Slot], racks: dict[int, Rack]
) -> None:
    """Fill all slots and balance the chosen replicas."""
    # Among equal brokers, prefer brokers that lead few partitions. Otherwise, a new partition could have no
    # replica on such a broker, and therefore no suitable leader.
    leader_counts = Counter(seat.kept[0] for seat in slots if seat.kept)
    weights = {b: leader_counts[b] * _LEADER_WEIGHT + broker_set.load.replicas.get(b, 0) for b in racks}
    assignment = WorkingAssignment(slots, racks, broker_set.racks.keys() - broker_set.usable, weights)
    fill_slots(assignment)
    candidates = {b for seat in slots if seat.wanted for b in seat.pool}
    balance_replicas(assignment, candidates)
    balance_topics(assignment, candidates)
    for draft, slot in zip(drafts, slots, strict=True):
        draft.after = slot.replicas


def _spread_over_racks(
    broker_set: BrokerSet, drafts: Sequence[PartitionDraft], racks: dict[int, Rack]
) -> None:
    """Move replicas of partitions that could be spread over more racks."""
    counts = Counter(r for part in drafts for r in part.after)
    slots = []
    for draft in drafts:
        slot = None if draft.fixed else build_spread_slot(broker_set, draft.topic, draft.after, counts)
        slots.append(slot or Slot(draft.topic, draft.after, frozenset(), 0))
    if any(seat.wanted for seat in slots):
        _fill_and_balance(broker_set, drafts, slots, racks)


def _rebalance(
    broker_set: BrokerSet, request: PlacementRequest, drafts: Sequence[PartitionDraft], racks: dict[int, Rack]
) -> None:
    """Balance replicas and then leaders, and repeat both steps until nothing improves anymore.

    No step undoes the improvements of an earlier step, so the loop terminates. Rebalancing again then changes
    nothing.
    """
    while True:
        previous = [part.after for part in drafts]
        if request.strategy is Strategy.BALANCED_LEADERS:
            balance_leaders_over_racks(broker_set, drafts, [False] * len(drafts))
        _rebalance_replicas(broker_set, request, drafts, racks)
        balance_leaders(broker_set, request, drafts, racks)
        if previous == [part.after for part in drafts]:
            return


def _rebalance_replicas(
    broker_set: BrokerSet, request: PlacementRequest, drafts: Sequence[PartitionDraft], racks: dict[int, Rack]
) -> None:
    spreads_racks = should_spread(request)
    keeps_leader = (
        request.strategy is Strategy.BALANCED_LEADERS
    )  # the racks of the leaders are already balanced
    slots = []
    for draft in drafts:
        movable = [r for r in draft.after[keeps_leader:] if r in broker_set.usable and not draft.fixed]
        kept = tuple(r for r in draft.after if r not in movable)
        slots.append(Slot(draft.topic, kept, draft.pool, len(movable), spreads_racks, draft.before, movable))
    assignment = WorkingAssignment(slots, racks, (), broker_set.load.replicas)
    balance_replicas(assignment, broker_set.usable)
    balance_topics(assignment, broker_set.usable)
    for draft, slot in zip(drafts, slots, strict=True):
        leader = next(r for r in (*draft.after, *slot.chosen) if r in slot)
        draft.after = order_replicas(leader, draft.before, slot.replicas)
