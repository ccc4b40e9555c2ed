"""After a run, count the partitions that would reject records while one broker or one rack is down."""

from collections.abc import Iterator, Mapping, Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation
from kdeclare.core.plans.observed_effect import (
    EffectRequest,
    EffectStatus,
    ObservedEffect,
    compare_observation,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.units import format_count
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.impact.outage_impact import OUTAGE_CODES, describe_outage
from kdeclare.providers.kafka.impact.topic_logs import read_before
from kdeclare.providers.kafka.impact.topic_settings import MIN_ISR, read_configs
from kdeclare.providers.kafka.impact.wording import format_reason
from kdeclare.providers.kafka.impact.writability import (
    ReplicaSet,
    find_critical_brokers,
    find_critical_racks,
)
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.operations.partitions import get_replicas_before, get_targets
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.completion import is_reassignment

_TOPIC = "Topic"


@dataclass(frozen=True, slots=True)
class _Placements:
    """The replicas, ``min.insync.replicas`` and racks as they are after a run."""

    topics: Mapping[str, Topic]
    configs: Mapping[str, Mapping[str, str] | Fault]
    racks: Mapping[int, str]


def observe_outage_effects(
    cluster: Cluster, request: EffectRequest, deadline: float
) -> Iterator[ObservedEffect]:
    """Yield, for each predicted number of partitions that depend on one broker or rack, the actual number.

    A prediction is left out if kdeclare cannot find exactly the partitions that the plan counted.
    deadline: no request begins after this time (`time.monotonic`).
    """
    predictions = [item for item in request.predictions if item.code in OUTAGE_CODES]
    if not predictions:
        return
    partitions = {item.resource: _list_partitions(item, request) for item in predictions}
    names = sorted({partition.topic for each in partitions.values() for partition in each})
    placements = read_before(deadline, lambda: _read_placements(cluster, names))
    for item in predictions:
        if isinstance(placements, Fault):
            yield _build_unknown(item, placements)
        else:
            yield from _count_again(item, partitions[item.resource], placements)


def _list_partitions(
    prediction: Observation, request: EffectRequest
) -> Mapping[TopicPartition, tuple[int, ...]]:
    """Return the partitions that a prediction may have counted, with their replicas before the run.

    For a partition that the run did not move, the replicas are empty. For a resource that moves partitions of
    several topics, omit the partitions of each topic that has its own prediction.
    """
    id_ = ResourceId.parse(prediction.resource)
    moved = _list_moved(request.operations)
    if id_.kind == _TOPIC:
        total = prediction.figures.get("partitions_total")
        numbers = range(total if isinstance(total, int) else 0)
        partitions = (TopicPartition(id_.name, number) for number in numbers)
        return {partition: moved.get(partition, ("", ()))[1] for partition in partitions}
    own = {item.resource for item in request.predictions if item.code in OUTAGE_CODES}
    return {
        partition: before
        for partition, (resource, before) in moved.items()
        if resource == prediction.resource and f"{_TOPIC}/{partition.topic}" not in own
    }


def _list_moved(
    operations: Sequence[Operation],
) -> Mapping[TopicPartition, tuple[str, tuple[int, ...]]]:
    """Return the resource that moved each partition, and the replicas before the move."""
    return {
        TopicPartition.parse(name): (str(op.resource), get_replicas_before(op, name))
        for op in operations
        if is_reassignment(op)
        for name in get_targets(op)
    }


def _read_placements(cluster: Cluster, names: Sequence[str]) -> _Placements:
    brokers = cluster.describe().brokers
    racks = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
    return _Placements(cluster.topics(names), read_configs(cluster, names), racks)


def _count_again(
    prediction: Observation, partitions: Mapping[TopicPartition, tuple[int, ...]], placements: _Placements
) -> Iterator[ObservedEffect]:
    kind = "rack" if prediction.figures.get("down") == "rack" else "broker"
    critical, counted, unsynced = 0, 0, 0
    for where, before in partitions.items():
        topic, configs = placements.topics.get(where.topic), placements.configs.get(where.topic)
        if topic is None or where.partition >= len(topic.partitions):
            yield _build_unknown(prediction, f"partition {where} does not exist")
            return
        if not isinstance(configs, Mapping):
            yield _build_unknown(prediction, configs or "the configs were not described")
            return
        current = topic.partitions[where.partition]
        replicas = ReplicaSet(current.replicas, int(configs.get(MIN_ISR, "1")))
        if kind == "rack":
            if not placements.racks.keys() >= {*before, *current.replicas}:
                continue
            critical += bool(find_critical_racks(replicas, placements.racks))
        else:
            critical += bool(find_critical_brokers(replicas))
        counted += 1
        unsynced += len(current.isr) < len(current.replicas)
    if counted != prediction.figures.get("partitions_total"):
        return
    text = f"{describe_outage(prediction.resource, critical, counted, kind)}."
    if unsynced:
        text += f" {format_count(unsynced, 'partition')} {'have' if unsynced > 1 else 'has'} replicas that "
        text += "are not in sync."
    is_expected = critical == prediction.figures.get("partitions_after")
    status = EffectStatus.OBSERVED if is_expected else EffectStatus.UNEXPECTED
    figures = {"partitions": critical, "partitions_total": counted, "partitions_not_in_sync": unsynced}
    yield compare_observation(prediction, status, text, figures)


def _build_unknown(prediction: Observation, reason: Fault | str) -> ObservedEffect:
    text = f"kdeclare could not observe the partitions: {format_reason(reason)}."
    return compare_observation(prediction, EffectStatus.UNKNOWN, text)
