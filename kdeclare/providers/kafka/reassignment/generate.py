"""Proposing a reassignment: topics spread evenly over the brokers named."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, warning
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Broker, KafkaState
from kdeclare.providers.kafka.reassignment.placement import NotEnoughBrokers, SharedLoad
from kdeclare.providers.kafka.reassignment.placement_request import PlacementError, Strategy, Wish

_NO_RACK = (
    "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
    "assignment without rack information."
)


def proposal(
    live: KafkaState, topics: Collection[str], brokers: Sequence[int], *, rack_aware: bool
) -> dict[TopicPartition, tuple[int, ...]]:
    """Where the partitions of ``topics`` are to be so that only ``brokers`` hold them, evenly.

    What can stay stays: other than Kafka's tool it proposes no move that makes nothing more even. A
    partition that is being moved to where it may be is left to that.
    live: all topics, with the moves of these. Raises KdeclareError: ``no-rack``, ``not-enough-brokers``.
    """
    if not topics:
        return {}
    chosen = [b for b in live.cluster.brokers if b.id in brokers and not b.fenced]
    if not chosen:
        raise _not_enough("All brokers are currently fenced", "None of the brokers named serves.")
    aware = rack_aware and _have_racks(chosen)
    current = {
        name: [live.replicas(TopicPartition(name, n)) or () for n in range(len(live.topics[name].partitions))]
        for name in sorted(topics)
    }
    ids = {broker.id for broker in chosen}
    held = {r for lists in current.values() for replicas in lists for r in replicas}
    everyone = live.cluster.brokers if aware else [replace(b, rack=None) for b in live.cluster.brokers]
    wish = Wish(
        strategy=Strategy.CROSS_RACK if aware else None,
        without=frozenset(held.union(b.id for b in everyone) - ids),
        even=True,
        fixed=_on_their_way(live, topics, ids),
    )
    try:
        placed = SharedLoad(live)(everyone, current, wish)
    except NotEnoughBrokers as reason:
        few = f"only {len(chosen)} broker(s) are registered"
        factor = f"The target replication factor of {reason.replication_factor} cannot be reached"
        raise _not_enough(f"{factor} because {few}", f"{reason}.") from None
    except PlacementError as reason:
        raise _not_enough("This cannot be placed", f"{reason}.") from None
    return {TopicPartition(t, n): replicas for t, lists in placed.items() for n, replicas in enumerate(lists)}


def left_out(live: KafkaState, brokers: Collection[int]) -> tuple[Diagnostic, ...]:
    """What to say of brokers that were named and cannot be given anything."""
    registered = {broker.id: broker for broker in live.cluster.brokers}
    found = []
    for id_ in sorted(brokers):
        broker = registered.get(id_)
        if broker is None or broker.fenced:
            why = "It is registered and does not serve." if broker else f"There are {sorted(registered)}."
            detail = f"Unknown broker id {id_}. {why}"
            found.append(warning("unknown-broker", "A broker is left out", detail))
    return tuple(found)


def _have_racks(brokers: Sequence[Broker]) -> bool:
    """Whether racks are known. Raises KdeclareError where only some are."""
    bare = [broker.id for broker in brokers if broker.rack is None]
    if bare and len(bare) < len(brokers):
        summary = "Not all brokers have rack information"
        hint = f"Brokers without a rack: {', '.join(map(str, bare))}."
        raise KdeclareError(error("no-rack", summary, _NO_RACK, hint=hint))
    return not bare


def _on_their_way(live: KafkaState, topics: Collection[str], ids: set[int]) -> dict[str, frozenset[int]]:
    fixed: dict[str, set[int]] = {}
    for partition, move in live.moves.items():
        if partition.topic in topics and ids.issuperset(move.target):
            fixed.setdefault(partition.topic, set()).add(partition.partition)
    return {name: frozenset(numbers) for name, numbers in fixed.items()}


def _not_enough(summary: str, detail: str) -> KdeclareError:
    hint = "Name more brokers with --broker-list."
    return KdeclareError(error("not-enough-brokers", summary, detail, hint=hint))
