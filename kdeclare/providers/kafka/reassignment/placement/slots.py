"""Build the slots of partitions as the strategy requires, and choose the initial replicas greedily."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kdeclare.providers.kafka.reassignment.placement.assignment import (
    BrokerSet,
    Rack,
    Replicas,
    Slot,
    WorkingAssignment,
)
from kdeclare.providers.kafka.reassignment.placement_request import PlacementError, PlacementRequest, Strategy

RequiredRack = tuple[Rack] | None
"""The rack that a partition must be in, as a tuple with one element; None if any rack is allowed."""


def should_spread(request: PlacementRequest) -> bool:
    """Whether new replicas must be spread over racks."""
    return request.strategy in (None, Strategy.BALANCED_LEADERS, Strategy.CROSS_RACK)


def should_spread_existing(request: PlacementRequest) -> bool:
    """Whether existing replicas must also be spread over racks."""
    return request.strategy is Strategy.CROSS_RACK or (request.rebalance and should_spread(request))


class RackConstraints:
    """The rack that each partition must be in, if the strategy requires a rack.

    load: the number of replicas of all topics, by broker. New partitions are placed in racks with little
    load.
    """

    def __init__(self, broker_set: BrokerSet, request: PlacementRequest, load: Mapping[int, int]) -> None:
        self._broker_set = broker_set
        self._request = request
        self._load = Counter(
            {rack: sum(load.get(b, 0) for b in ids) for rack, ids in broker_set.by_rack.items()}
        )

    def home(self, topic: str, partition: int, replicas: Replicas, factor: int) -> RequiredRack:
        """Return the required rack; None if any rack is allowed. Raises PlacementError."""
        if self._request.strategy is Strategy.STATIC_IN_RACK:
            return (self._get_listed_rack(topic, partition, replicas, factor),)
        if self._request.strategy is Strategy.IN_RACK:
            return (self._choose_rack(topic, partition, replicas, factor),)
        return None

    def _get_listed_rack(self, topic: str, partition: int, replicas: Replicas, factor: int) -> Rack:
        racks = self._request.racks
        if partition >= len(racks):
            listed_text = "1 rack" if len(racks) == 1 else f"{len(racks)} racks"
            raise PlacementError(
                f"'racks' lists only {listed_text}, so partition {partition} of {topic} has no rack"
            )
        rack = racks[partition]
        if rack not in self._broker_set.racks.values():
            raise PlacementError(
                f"Partition {partition} of {topic} must be in rack {rack}, but no broker is in that rack"
            )
        capacity = len(self._list_possible_brokers(rack, replicas))
        if capacity < factor:
            raise PlacementError(
                f"Partition {partition} of {topic} must have {_format_replica_count(factor)} "
                f"in rack {rack}, but that rack only has brokers for {capacity}"
            )
        return rack

    def _choose_rack(self, topic: str, partition: int, replicas: Replicas, factor: int) -> Rack:
        """Choose a rack that has enough brokers for all replicas of the partition.

        The order of preference: the rack of the leader, the rack with the most replicas of the partition, the
        emptiest rack.
        """
        racks = self._broker_set.racks
        current_racks = [racks[r] for r in replicas if r in racks]
        capacities = {
            rack: len(self._list_possible_brokers(rack, replicas))
            for rack in [*self._broker_set.by_rack, *current_racks]
        }
        large_racks = [rack for rack, size in capacities.items() if size >= factor]
        if not large_racks:
            capacities_text = ", ".join(
                f"{capacities[rack]} {_format_rack(rack)}" for rack in sorted(capacities, key=str)
            )
            raise PlacementError(
                f"Partition {partition} of {topic} must have {_format_replica_count(factor)} in one rack, "
                f"but no rack has that many usable brokers (usable brokers: {capacities_text or 'none'})"
            )
        if replicas and replicas[0] in racks and racks[replicas[0]] in large_racks:
            return racks[replicas[0]]
        rack = min(
            large_racks,
            key=lambda rack: (-current_racks.count(rack), self._load[rack] / capacities[rack], str(rack)),
        )
        self._load[rack] += factor - current_racks.count(rack)
        return rack

    def _list_possible_brokers(self, rack: Rack, replicas: Replicas) -> frozenset[int]:
        """Return the brokers of a rack that can hold a replica of the partition."""
        broker_set = self._broker_set
        kept = (r for r in replicas if broker_set.can_keep(r) and broker_set.racks[r] == rack)
        return broker_set.by_rack.get(rack, frozenset()).union(kept)


def _format_rack(rack: Rack) -> str:
    return "without a rack" if rack is None else f"in rack {rack}"


def _format_replica_count(factor: int) -> str:
    return "1 replica" if factor == 1 else f"{factor} replicas"


def build_spread_slot(
    broker_set: BrokerSet, topic: int, replicas: Replicas, load: Mapping[int, int]
) -> Slot | None:
    """Build a slot that spreads a partition over racks with few moves.

    Return None if the partition is already spread evenly. Replicas are removed from the fullest rack, but the
    leader is never removed. A replica on a fenced broker is removed first, and then the replica on the broker
    with the most replicas (``load``). The fullest rack always contains a follower, because it holds at least
    two replicas.
    """
    kept, removed_count = [*replicas], 0
    rack_usage = Counter(broker_set.racks.get(r) for r in replicas)
    free_counts = {rack: len(group.difference(replicas)) for rack, group in broker_set.by_rack.items()}
    while (pair := _find_uneven_racks(rack_usage, free_counts)) is not None:
        full_rack, empty_rack = pair
        movable = [r for r in kept[1:] if broker_set.racks.get(r) == full_rack]
        kept.remove(max(movable, key=lambda r: (r not in broker_set.usable, load.get(r, 0), kept.index(r))))
        rack_usage.subtract([full_rack])
        rack_usage.update([empty_rack])
        free_counts[empty_rack] -= 1
        removed_count += 1
    return Slot(topic, tuple(kept), broker_set.usable, removed_count) if removed_count else None


def _find_uneven_racks(
    rack_usage: Counter[Rack], free_counts: Mapping[Rack, int]
) -> tuple[Rack, Rack] | None:
    """Return the fullest rack and the emptiest rack with a free broker.

    Return None if the numbers of replicas in the two racks differ by at most one.
    """
    highest = max(rack_usage.values())
    if highest < 2:
        return None
    taker_racks = [
        rack for rack, brokers in free_counts.items() if brokers and rack_usage[rack] <= highest - 2
    ]
    if not taker_racks:
        return None
    full_rack = min((rack for rack in rack_usage if rack_usage[rack] == highest), key=str)
    return full_rack, min(taker_racks, key=lambda rack: (rack_usage[rack], str(rack)))


def validate_static(
    broker_set: BrokerSet,
    request: PlacementRequest,
    topic: str,
    current: Sequence[Replicas],
    partition_count: int,
) -> None:
    """Raise PlacementError if the explicit assignments do not satisfy the request."""
    for partition in range(partition_count):
        replicas = current[partition] if partition < len(current) else ()
        excluded_replicas = broker_set.excluded_brokers.intersection(replicas)
        if (
            not replicas
            or excluded_replicas
            or len(replicas) != (request.replication_factor or len(replicas))
        ):
            raise PlacementError(
                f"The strategy 'static' requires assignments, but partition {partition} of {topic} has no "
                "valid assignment"
            )


class NotEnoughBrokers(PlacementError):
    """Raised if a partition cannot have the requested number of replicas.

    replication_factor: the requested number. usable: the ids of the brokers that can get new replicas.
    topic, partition: the first partition that cannot have the requested number.
    """

    def __init__(self, topic: str, partition: int, replication_factor: int, usable: tuple[int, ...]) -> None:
        self.topic = topic
        self.partition = partition
        self.replication_factor = replication_factor
        self.usable = usable
        usable_text = f"only {len(usable)} broker{' can' if len(usable) == 1 else 's can'} get new replicas"
        super().__init__(
            f"Partition {partition} of {topic} cannot have {replication_factor} replicas: {usable_text} "
            f"({', '.join(map(str, usable)) or 'none'})"
        )


class FewerPartitions(PlacementError):
    """Raised if fewer partitions are requested than a topic has. ``requested`` and ``current`` are counts."""

    def __init__(self, topic: str, requested: int, current: int) -> None:
        self.topic = topic
        self.wanted = requested
        self.current = current
        super().__init__(
            f"Topic {topic} has {current} partitions, and the number cannot be reduced to {requested}"
        )


@dataclass(slots=True)
class PartitionDraft:
    """One partition during placement.

    topic: the index of the partition's topic.
    before: the current replicas of the partition; empty for a new partition.
    slot: the replicas that stay, and the replicas to choose.
    pool: all brokers that can hold the partition; empty if the partition is fixed.
    fixed: whether the partition must not change.
    after: the replicas that are chosen so far, preferred leader first.
    """

    topic: int
    before: Replicas
    slot: Slot
    pool: frozenset[int]
    fixed: bool = False
    after: Replicas = ()


def build_drafts(
    broker_set: BrokerSet,
    request: PlacementRequest,
    current: Mapping[str, Sequence[Replicas]],
    load: Mapping[int, int],
) -> list[PartitionDraft]:
    """Build a `PartitionDraft` for each requested partition, ordered by topic and number.

    load: the number of replicas of all topics, by broker. Raises PlacementError.
    """
    if request.replication_factor is not None and request.replication_factor < 1:
        raise PlacementError(f"A replication factor must be at least 1, not {request.replication_factor}")
    rack_constraints = RackConstraints(broker_set, request, load)
    drafts: list[PartitionDraft] = []
    for topic, (name, replicas) in enumerate(sorted(current.items())):
        partition_count = len(replicas) if request.partitions is None else request.partitions
        if partition_count < len(replicas):
            raise FewerPartitions(name, partition_count, len(replicas))
        if request.strategy is Strategy.STATIC:
            validate_static(broker_set, request, name, replicas, partition_count)
        fixed_partitions = (request.fixed or {}).get(name, frozenset())
        for number in range(partition_count):
            replicas_before = tuple(replicas[number]) if number < len(replicas) else ()
            if replicas_before and (number in fixed_partitions or request.strategy is Strategy.STATIC):
                drafts.append(
                    PartitionDraft(
                        topic,
                        replicas_before,
                        Slot(topic, replicas_before, frozenset(), 0),
                        frozenset(),
                        fixed=True,
                    )
                )
                continue
            factor = _resolve_factor(request, name, replicas_before or (replicas[0] if replicas else ()))
            required_rack = rack_constraints.home(name, number, replicas_before, factor)
            drafts.append(
                _build_draft(
                    broker_set, request, required_rack, (name, topic, number), replicas_before, factor
                )
            )
    return drafts


def _resolve_factor(request: PlacementRequest, name: str, reference_replicas: Sequence[int]) -> int:
    factor = request.replication_factor or len(reference_replicas)
    if factor < 1:
        raise PlacementError(f"{name} is new, but its replication factor is not set")
    return factor


def _build_draft(
    broker_set: BrokerSet,
    request: PlacementRequest,
    required_rack: RequiredRack,
    identity: tuple[str, int, int],
    replicas_before: Replicas,
    factor: int,
) -> PartitionDraft:
    """Build the `PartitionDraft` of a partition: the replicas that stay, and the brokers for new replicas."""
    name, topic, number = identity
    pool = (
        broker_set.usable if required_rack is None else broker_set.by_rack.get(required_rack[0], frozenset())
    )
    kept = tuple(
        r
        for r in replicas_before
        if broker_set.can_keep(r) and (required_rack is None or broker_set.racks[r] == required_rack[0])
    )
    missing_count = factor - len(kept)
    if len(replicas_before) == factor and _can_stay(broker_set, request, replicas_before, kept):
        slot = Slot(topic, replicas_before, pool, 0)
    elif missing_count < 0:
        slot = Slot(topic, kept[:1], frozenset(kept[1:]), factor - 1, should_spread(request))
    elif missing_count > len(pool.difference(kept)):
        raise NotEnoughBrokers(name, number, factor, tuple(sorted(pool)))
    else:
        slot = Slot(topic, kept, pool, missing_count, should_spread(request))
    return PartitionDraft(topic, replicas_before, slot, pool)


def _can_stay(
    broker_set: BrokerSet, request: PlacementRequest, replicas_before: Replicas, kept: Replicas
) -> bool:
    """Whether a partition with the right number of replicas can stay unchanged.

    A replica on an unregistered broker stays if the request requires no change.
    """
    if len(kept) == len(replicas_before):
        return True
    must_change = (
        should_spread_existing(request)
        or request.rebalance
        or request.strategy in (Strategy.IN_RACK, Strategy.STATIC_IN_RACK)
    )
    return not must_change and broker_set.excluded_brokers.isdisjoint(replicas_before)


_FENCED_COST = 1 << 20
"""The cost of a fenced broker: more than any number of replicas in a rack."""

_CostGroups = list[tuple[Rack, int, frozenset[int]]]


def fill_slots(assignment: WorkingAssignment) -> None:
    """Choose brokers for every slot that needs more replicas.

    Each choice is greedy and prefers, in this order:

    - a broker that is not fenced
    - the rack with the fewest replicas of the slot
    - the broker with the fewest replicas of all topics
    - the broker with the fewest replicas of the slot's topic
    - the rack with the fewest replicas of all topics, so that brokers with few replicas remain in several
      racks
    - the broker with the smallest weight
    - a broker that held a replica of the partition before
    """
    # Ties between equal brokers are broken pseudo-randomly. With a fixed pattern, the same brokers would
    # share many partitions.
    rng = random.Random(0)
    tie_breakers = {broker: rng.random() for broker in sorted(assignment.racks)}
    groups_by_pool: dict[tuple[frozenset[int], bool], _CostGroups] = {}
    totals: Counter[Rack] = Counter()
    for broker, number in assignment.count.items():
        totals[assignment.racks[broker]] += number
    for index, slot in enumerate(assignment.slots):
        while len(slot.chosen) < slot.wanted:
            key = slot.pool, slot.spreads_racks
            if key not in groups_by_pool:
                groups_by_pool[key] = _group_pool(assignment, slot)
            broker_id = _find_best_broker(assignment, index, groups_by_pool[key], totals, tie_breakers)
            assignment.put(index, broker_id)
            totals[assignment.racks[broker_id]] += 1
            tie_breakers[broker_id] = rng.random()


def _group_pool(assignment: WorkingAssignment, slot: Slot) -> _CostGroups:
    """Divide the brokers in the pool of a slot into groups of brokers that always have the same cost.

    Return the rack, the base cost and the brokers of each group.
    """
    groups: dict[tuple[Rack, int], set[int]] = {}
    for broker in sorted(slot.pool):
        rack = assignment.racks[broker] if slot.spreads_racks else None
        groups.setdefault((rack, _FENCED_COST if broker in assignment.down else 0), set()).add(broker)
    return [(rack, cost, frozenset(group)) for (rack, cost), group in groups.items()]


def _find_best_broker(
    assignment: WorkingAssignment,
    index: int,
    groups: _CostGroups,
    totals: Counter[Rack],
    tie_breakers: dict[int, float],
) -> int:
    slot, usage = assignment.slots[index], assignment.rack_usage[index]
    lowest, candidates = 2 * _FENCED_COST, frozenset[int]()
    for rack, base, group in groups:
        cost = base + (usage.get(rack, 0) if slot.spreads_racks else 0)
        if cost <= lowest and (free_brokers := group.difference(slot.kept, slot.chosen)):
            candidates = candidates | free_brokers if cost == lowest else free_brokers
            lowest = cost
    counts, topic_counts, weights, racks = (
        assignment.count,
        assignment.topic_counts[slot.topic],
        assignment.weight,
        assignment.racks,
    )
    lowest_count = min(map(counts.__getitem__, candidates))
    least_loaded = [b for b in candidates if counts[b] == lowest_count]
    return min(
        least_loaded,
        key=lambda b: (topic_counts[b], totals[racks[b]], weights[b], b not in slot.origin, tie_breakers[b]),
    )
