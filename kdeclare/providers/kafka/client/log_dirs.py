"""Log directories of brokers: DescribeLogDirs and AlterReplicaLogDirs (KIP-113)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.admin import AlterReplicaLogDirsRequest, DescribeLogDirsRequest

from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.providers.kafka.client.describe_cluster import describe
from kdeclare.providers.kafka.client.faults import (
    CLUSTER_AUTHORIZATION_FAILED,
    REPLICA_NOT_AVAILABLE,
    error_name,
    fault_for_code,
    unanswered,
)
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.topics import topics
from kdeclare.providers.kafka.client.wire import Wire, chunks
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.port import LogDir

Partitions = Mapping[str, Iterable[int]]
"""Indexes by topic."""
Replica = tuple[TopicPartition, int]
"""A partition, and the broker that holds a copy of it or is to hold one."""


def log_dirs(wire: Wire, fresh: Freshness, names: Sequence[str] | None) -> dict[int, tuple[LogDir, ...]]:
    """Log directories by broker; all brokers are asked at the same time, silent ones are left out.

    Raises Fault where a broker refuses, or none answers.
    """
    wanted = None if names is None else _partitions(wire, fresh, names)
    _look_for_new_brokers(wire)
    answers = wire.ask_each({broker: [_describe(wanted)] for broker in wire.brokers()}, _directories)
    found: dict[int, tuple[LogDir, ...]] = {}
    silent: list[Fault] = []
    for broker, (answer,) in answers.items():
        if not isinstance(answer, Fault):
            found[broker] = answer
        elif answer.kind is FaultKind.REFUSED:
            raise answer
        else:
            silent.append(answer)
    if silent:
        wire.refresh()
        if not found:
            raise silent[0]
    return found


def _look_for_new_brokers(wire: Wire) -> None:
    """Have brokers found that have come, or come back: whoever asks again asks them too."""
    known = wire.brokers()
    if any(broker.id not in known and not broker.fenced for broker in describe(wire).brokers):
        wire.refresh()


def _partitions(wire: Wire, fresh: Freshness, names: Sequence[str]) -> Partitions:
    """All partitions of the topics that exist: a request for topics has to name them."""
    return {name: range(len(topic.partitions)) for name, topic in topics(wire, fresh, names).items()}


def _describe(wanted: Partitions | None) -> Any:
    if wanted is None:
        return DescribeLogDirsRequest(topics=None)
    kind = DescribeLogDirsRequest.DescribableLogDirTopic
    return DescribeLogDirsRequest(
        topics=[kind(topic=name, partitions=list(indexes)) for name, indexes in wanted.items()]
    )


def _directories(response: Any) -> tuple[LogDir, ...]:
    # before version 3 an empty answer is how a broker says that it is not allowed
    code = response.error_code or (0 if response.results else CLUSTER_AUTHORIZATION_FAILED)
    if code:
        raise fault_for_code(code, None, changes=False)
    return tuple(_directory(result) for result in response.results)


def _directory(result: Any) -> LogDir:
    sizes: dict[TopicPartition, int] = {}
    arriving: dict[TopicPartition, int] = {}
    for topic in result.topics:
        for partition in topic.partitions:
            held = arriving if partition.is_future_key else sizes
            held[TopicPartition(topic.name, partition.partition_index)] = partition.partition_size
    return LogDir(
        path=result.log_dir,
        sizes=sizes,
        arriving=arriving,
        total=_known(result.total_bytes),
        usable=_known(result.usable_bytes),
        error=error_name(result.error_code) if result.error_code else None,
    )


def _known(size: int | None) -> int | None:
    """Bytes of a volume; the protocol's -1 stands for a broker that does not say."""
    return None if size is None or size < 0 else size


def move_log_dirs(wire: Wire, targets: Mapping[Replica, str]) -> dict[Replica, Result]:
    """AlterReplicaLogDirs at the brokers concerned, a result for each replica.

    REPLICA_NOT_AVAILABLE is an answer here, and not worth another attempt: the broker takes a note.
    """
    live = set(wire.brokers())
    results: dict[Replica, Result] = dict.fromkeys(targets)
    parts: dict[int, list[list[Replica]]] = {}
    for broker, replicas in _by_broker(targets).items():
        if broker in live:
            parts[broker] = chunks(replicas)
        else:
            results |= {replica: _not_serving(broker) for replica in replicas}
    requests = {broker: [_alter(part, targets) for part in batches] for broker, batches in parts.items()}
    for broker, answers in wire.ask_each(requests, _altered, changes=True).items():
        for part, answer in zip(parts[broker], answers, strict=True):
            for at, _ in part:
                results[at, broker] = answer if isinstance(answer, Fault) else answer.get(at, unanswered())
    if any(fault is not None and fault.kind is FaultKind.RETRIABLE for fault in results.values()):
        wire.refresh()
    return results


def _by_broker(replicas: Iterable[Replica]) -> dict[int, list[Replica]]:
    grouped: dict[int, list[Replica]] = {}
    for replica in replicas:
        grouped.setdefault(replica[1], []).append(replica)
    return grouped


def _not_serving(broker: int) -> Fault:
    return Fault("BROKER_NOT_AVAILABLE", f"broker {broker} is not serving", FaultKind.RETRIABLE)


def _alter(part: Iterable[Replica], targets: Mapping[Replica, str]) -> Any:
    paths: dict[str, dict[str, list[int]]] = {}
    for replica in part:
        topic, index = replica[0]
        paths.setdefault(targets[replica], {}).setdefault(topic, []).append(index)
    kind = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    return AlterReplicaLogDirsRequest(
        dirs=[
            kind(
                path=path,
                topics=[
                    kind.AlterReplicaLogDirTopic(name=name, partitions=indexes)
                    for name, indexes in by_topic.items()
                ],
            )
            for path, by_topic in paths.items()
        ]
    )


def _altered(response: Any) -> dict[TopicPartition, Result]:
    return {
        TopicPartition(topic.topic_name, partition.partition_index): _result(partition.error_code)
        for topic in response.results
        for partition in topic.partitions
    }


def _result(code: int) -> Result:
    if code == REPLICA_NOT_AVAILABLE:
        return Fault(error_name(code), "")
    return fault_for_code(code, None, changes=True) if code else None
