"""Observe the sizes of the replicas that a run has moved, and the duration of the moves."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation
from kdeclare.core.plans.observed_effect import (
    EffectRequest,
    EffectStatus,
    ObservedEffect,
    compare_observation,
)
from kdeclare.core.units import format_count, format_duration, format_size
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.impact.copied_bytes import collect_replica_sizes, compute_disk_usage
from kdeclare.providers.kafka.impact.topic_logs import read_before
from kdeclare.providers.kafka.impact.wording import format_reason
from kdeclare.providers.kafka.operations.partitions import get_replicas_before, get_targets
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.completion import is_reassignment
from kdeclare.providers.kafka.reassignment.operations.arguments import find_group
from kdeclare.providers.kafka.request_values import LogDir

_COPIED = "copied-bytes"
_NewReplica = tuple[TopicPartition, int]
"""A replica that a move has added: its partition, and the id of its broker."""


def observe_copied_bytes(
    cluster: Cluster, request: EffectRequest, deadline: float
) -> Iterator[ObservedEffect]:
    """Yield the sizes of the copied replicas, and the duration of the moves, for each resource.

    Moves for which the plan predicted no copied records are left out.
    deadline: no request begins after this time (`time.monotonic`).
    """
    predictions = [item for item in request.predictions if item.code == _COPIED and _copies_records(item)]
    if not predictions:
        return
    reassignments = [op for op in request.operations if is_reassignment(op)]
    replicas: dict[str, list[_NewReplica]] = defaultdict(list)
    for op in reassignments:
        replicas[str(op.resource)] += _list_new_replicas(op)
    topics = {partition.topic for item in predictions for partition, _ in replicas[item.resource]}
    log_dirs = read_before(deadline, lambda: cluster.log_dirs(sorted(topics)))
    for item in predictions:
        seconds, others = _measure_moves(item.resource, reassignments, request)
        yield _compare_moves(item, replicas[item.resource], log_dirs, seconds, others)


def _copies_records(prediction: Observation) -> bool:
    figures = prediction.figures
    return bool(figures.get("bytes_copied") or figures.get("partitions_unknown"))


def _list_new_replicas(op: Operation) -> Iterator[_NewReplica]:
    for name, target in get_targets(op).items():
        before = get_replicas_before(op, name)
        for broker in target:
            if before and broker not in before:
                yield TopicPartition.parse(name), broker


def _measure_moves(
    resource: str, reassignments: Sequence[Operation], request: EffectRequest
) -> tuple[float | None, int]:
    """Return how long the moves of a resource took, in seconds, or None if the duration is unknown.

    The duration includes the moves of other resources that share a throttle with these moves. Also return the
    number of these other resources.
    """
    groups = {find_group(op) for op in reassignments if str(op.resource) == resource}
    members = [op for op in reassignments if find_group(op) in groups]
    times = [request.times[op.id] for op in members if op.id in request.times]
    others = len({str(op.resource) for op in members} - {resource})
    if not times or len(times) < len(members):
        return None, others
    return (max(t.ended for t in times) - min(t.sent for t in times)).total_seconds(), others


def _compare_moves(
    prediction: Observation,
    replicas: Sequence[_NewReplica],
    log_dirs: Mapping[int, Sequence[LogDir]] | Fault,
    seconds: float | None,
    others: int,
) -> ObservedEffect:
    figures: dict[str, JsonValue] = {
        "bytes_held": None,
        "replicas_unknown": len(replicas),
        "seconds": None if seconds is None else round(seconds, 1),
    }
    duration = "" if seconds is None else _describe_duration(seconds, others)
    if isinstance(log_dirs, Fault):
        text = f"kdeclare could not observe the sizes of the new replicas: {format_reason(log_dirs)}."
        return compare_observation(prediction, EffectStatus.UNKNOWN, f"{text} {duration}".strip(), figures)
    sizes = collect_replica_sizes(log_dirs).by_broker
    received: dict[int, int] = defaultdict(int)
    for partition, broker in replicas:
        received[broker] += sizes.get((partition, broker), 0)
    unknown = [replica for replica in replicas if replica not in sizes]
    usage = _list_disk_usage(log_dirs, received)
    figures |= {
        "bytes_held": sum(received.values()),
        "replicas_unknown": len(unknown),
        "brokers": {
            str(broker): {"bytes_in": size, "disk_percent": usage.get(broker)}
            for broker, size in sorted(received.items())
        },
    }
    sentences = [
        f"The new replicas contain {'at least ' if unknown else ''}{format_size(sum(received.values()))}.",
        duration,
        _describe_fullest_disk(usage) if usage else "",
    ]
    status = EffectStatus.UNKNOWN if len(unknown) == len(replicas) else EffectStatus.OBSERVED
    if status is EffectStatus.UNKNOWN:
        sentences[0] = "kdeclare could not observe the sizes of the new replicas: no broker reports them."
    return compare_observation(prediction, status, " ".join(filter(None, sentences)), figures)


def _describe_duration(seconds: float, others: int) -> str:
    moves = f"This and the moves of {format_count(others, 'other resource')}" if others else "The moves"
    return f"{moves} took {format_duration(seconds)}."


def _list_disk_usage(
    log_dirs: Mapping[int, Sequence[LogDir]], received: Mapping[int, int]
) -> Mapping[int, int]:
    """Return the disk usage of the receiving brokers in percent.

    Brokers that do not report their disk usage are left out.
    """
    disks = {broker: compute_disk_usage(log_dirs.get(broker, ())) for broker in received}
    return {broker: disk.compute_percent() for broker, disk in disks.items() if disk is not None}


def _describe_fullest_disk(usage: Mapping[int, int]) -> str:
    fullest = min(usage, key=lambda broker: (-usage[broker], broker))
    return f"The disk of broker {fullest} is {usage[fullest]}% full."
