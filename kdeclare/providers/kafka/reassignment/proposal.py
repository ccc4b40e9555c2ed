"""Propose a reassignment that spreads topics evenly over the given brokers."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, warning
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Broker, KafkaState
from kdeclare.providers.kafka.reassignment.load_aware_placer import LoadAwarePlacer
from kdeclare.providers.kafka.reassignment.placement import NotEnoughBrokers
from kdeclare.providers.kafka.reassignment.placement_request import PlacementError, PlacementRequest, Strategy

_NO_RACK = (
    "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
    "assignment without rack information."
)


def compute_proposal(
    live: KafkaState, topics: Collection[str], brokers: Sequence[int], *, rack_aware: bool
) -> dict[TopicPartition, tuple[int, ...]]:
    """Compute replicas that spread the partitions of ``topics`` evenly over ``brokers`` only.

    live: all topics, with the moves of ``topics``. Raises KdeclareError: ``no-rack``, ``not-enough-brokers``.

    Unlike Kafka's tool, kdeclare proposes only moves that improve the balance. If a partition is already
    moving to permitted brokers, the proposal keeps the target of that move.
    """
    if not topics:
        return {}
    target_brokers = [b for b in live.cluster.brokers if b.id in brokers and not b.fenced]
    if not target_brokers:
        raise _build_not_enough_error(
            "No usable brokers", "All brokers in --broker-list are fenced or not registered."
        )
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
            "Not enough brokers", f"{factor_text} because {brokers_text}. {placement_error}."
        ) from None
    except PlacementError as placement_error:
        raise _build_not_enough_error("No valid placement", f"{placement_error}.") from None
    return {
        TopicPartition(t, n): replicas
        for t, lists in replicas_by_topic.items()
        for n, replicas in enumerate(lists)
    }


def warn_unusable_brokers(live: KafkaState, brokers: Collection[int]) -> tuple[Diagnostic, ...]:
    """Warn about given brokers that cannot get replicas."""
    registered = {broker.id: broker for broker in live.cluster.brokers}
    diagnostics = []
    for id_ in sorted(brokers):
        broker = registered.get(id_)
        if broker is None:
            diagnostics.append(
                warning(
                    "unknown-broker",
                    "Broker skipped",
                    f"Broker {id_} is not registered, so the proposal does not use the broker.",
                    hint=f"Use the ids of registered brokers: {sorted(registered)}.",
                )
            )
        elif broker.fenced:
            diagnostics.append(
                warning(
                    "unknown-broker",
                    "Broker skipped",
                    f"Broker {id_} is registered but fenced, so the proposal does not use the broker.",
                    hint=f"To include broker {id_}, start the broker and generate the proposal again.",
                )
            )
    return tuple(diagnostics)


def _has_racks(brokers: Sequence[Broker]) -> bool:
    """Whether the racks of all brokers are known. Raises KdeclareError if only some racks are known."""
    rackless_ids = [broker.id for broker in brokers if broker.rack is None]
    if rackless_ids and len(rackless_ids) < len(brokers):
        summary = "Not all brokers have rack information"
        ids_text = ", ".join(map(str, rackless_ids))
        hint = (
            f"Pass --disable-rack-aware, or configure broker.rack on the brokers without a rack: {ids_text}."
        )
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
    hint = "Pass more brokers with --broker-list."
    return KdeclareError(error("not-enough-brokers", summary, detail, hint=hint))
