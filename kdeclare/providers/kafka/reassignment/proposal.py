"""Proposing a reassignment: topics spread evenly over the brokers named."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, warning
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Broker, KafkaState
from kdeclare.providers.kafka.reassignment.placement import LoadAwarePlacer, NotEnoughBrokers
from kdeclare.providers.kafka.reassignment.placement_request import PlacementError, PlacementRequest, Strategy

_NO_RACK = (
    "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
    "assignment without rack information."
)


def compute_proposal(
    live: KafkaState, topics: Collection[str], brokers: Sequence[int], *, rack_aware: bool
) -> dict[TopicPartition, tuple[int, ...]]:
    """Where the partitions of ``topics`` are to be so that only ``brokers`` hold them, evenly.

    What can stay stays: other than Kafka's tool it proposes no move that makes nothing more even. A
    partition that is being moved to where it may be is left to that.
    live: all topics, with the moves of these. Raises KdeclareError: ``no-rack``, ``not-enough-brokers``.
    """
    if not topics:
        return {}
    target_brokers = [b for b in live.cluster.brokers if b.id in brokers and not b.fenced]
    if not target_brokers:
        raise _build_not_enough_error("All brokers are currently fenced", "None of the brokers named serves.")
    use_racks = rack_aware and _has_racks(target_brokers)
    current = {
        name: [live.replicas(TopicPartition(name, n)) or () for n in range(len(live.topics[name].partitions))]
        for name in sorted(topics)
    }
    target_ids = {broker.id for broker in target_brokers}
    current_ids = {r for lists in current.values() for replicas in lists for r in replicas}
    all_brokers = live.cluster.brokers if use_racks else [replace(b, rack=None) for b in live.cluster.brokers]
    request = PlacementRequest(
        strategy=Strategy.CROSS_RACK if use_racks else None,
        excluded_brokers=frozenset(current_ids.union(b.id for b in all_brokers) - target_ids),
        rebalance=True,
        fixed=_find_fixed_partitions(live, topics, target_ids),
    )
    try:
        replicas_by_topic = LoadAwarePlacer(live)(all_brokers, current, request)
    except NotEnoughBrokers as placement_error:
        brokers_text = f"only {len(target_brokers)} broker(s) are registered"
        factor_text = (
            f"The target replication factor of {placement_error.replication_factor} cannot be reached"
        )
        raise _build_not_enough_error(
            f"{factor_text} because {brokers_text}", f"{placement_error}."
        ) from None
    except PlacementError as placement_error:
        raise _build_not_enough_error("This cannot be placed", f"{placement_error}.") from None
    return {
        TopicPartition(t, n): replicas
        for t, lists in replicas_by_topic.items()
        for n, replicas in enumerate(lists)
    }


def warn_unusable_brokers(live: KafkaState, brokers: Collection[int]) -> tuple[Diagnostic, ...]:
    """What to say of brokers that were named and cannot be given anything."""
    registered = {broker.id: broker for broker in live.cluster.brokers}
    diagnostics = []
    for id_ in sorted(brokers):
        broker = registered.get(id_)
        if broker is None or broker.fenced:
            reason = "It is registered and does not serve." if broker else f"There are {sorted(registered)}."
            detail = f"Unknown broker id {id_}. {reason}"
            diagnostics.append(warning("unknown-broker", "A broker is left out", detail))
    return tuple(diagnostics)


def _has_racks(brokers: Sequence[Broker]) -> bool:
    """Whether racks are known. Raises KdeclareError where only some are."""
    rackless_ids = [broker.id for broker in brokers if broker.rack is None]
    if rackless_ids and len(rackless_ids) < len(brokers):
        summary = "Not all brokers have rack information"
        hint = f"Brokers without a rack: {', '.join(map(str, rackless_ids))}."
        raise KdeclareError(error("no-rack", summary, _NO_RACK, hint=hint))
    return not rackless_ids


def _find_fixed_partitions(
    live: KafkaState, topics: Collection[str], target_ids: set[int]
) -> dict[str, frozenset[int]]:
    fixed_partitions: dict[str, set[int]] = {}
    for partition, move in live.moves.items():
        if partition.topic in topics and target_ids.issuperset(move.target):
            fixed_partitions.setdefault(partition.topic, set()).add(partition.partition)
    return {name: frozenset(numbers) for name, numbers in fixed_partitions.items()}


def _build_not_enough_error(summary: str, detail: str) -> KdeclareError:
    hint = "Name more brokers with --broker-list."
    return KdeclareError(error("not-enough-brokers", summary, detail, hint=hint))
