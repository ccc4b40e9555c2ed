"""Read and change log directories: DescribeLogDirs and AlterReplicaLogDirs (KIP-113)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.admin.cluster import AlterReplicaLogDirsRequest, DescribeLogDirsRequest

from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.providers.kafka.client.describe_cluster import describe_cluster
from kdeclare.providers.kafka.client.faults import (
    CLUSTER_AUTHORIZATION_FAILED,
    REPLICA_NOT_AVAILABLE,
    build_fault_from_code,
    build_unanswered_fault,
    get_error_name,
)
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.topics import read_unknown_topics
from kdeclare.providers.kafka.client.wire import Wire, batch_items
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.request_values import LogDir

PartitionIndexes = Mapping[str, Iterable[int]]
"""Partition numbers by topic."""
Replica = tuple[TopicPartition, int]
"""A replica: a partition, and the broker that has or will have the replica."""


def describe_log_dirs(
    wire: Wire, freshness: Freshness, names: Sequence[str] | None, known: Mapping[str, Topic]
) -> dict[int, tuple[LogDir, ...]]:
    """Return the log directories by broker. Brokers that do not respond are omitted.

    known: topics that were read shortly before.

    Raises Fault if a broker refuses the request or no broker responds.
    """
    topics = None if names is None else read_unknown_topics(wire, freshness, names, known)
    partitions_by_topic = None if topics is None else _list_partitions(topics)
    _refresh_for_new_brokers(wire)
    answers = wire.send_each(
        {broker: [_build_describe_request(partitions_by_topic)] for broker in wire.brokers()}, _read_log_dirs
    )
    dirs_by_broker: dict[int, tuple[LogDir, ...]] = {}
    unanswered_faults: list[Fault] = []
    for broker, (answer,) in answers.items():
        if not isinstance(answer, Fault):
            dirs_by_broker[broker] = answer
        elif answer.kind is FaultKind.REFUSED:
            raise answer
        else:
            unanswered_faults.append(answer)
    if unanswered_faults:
        wire.request_refresh()
        if not dirs_by_broker:
            raise unanswered_faults[0]
    return dirs_by_broker


def _refresh_for_new_brokers(wire: Wire) -> None:
    """If an unfenced broker is missing from the metadata, refresh the metadata for later requests."""
    known_brokers = wire.brokers()
    if any(broker.id not in known_brokers and not broker.fenced for broker in describe_cluster(wire).brokers):
        wire.request_refresh()


def _list_partitions(topics: Mapping[str, Topic]) -> PartitionIndexes:
    """Return the partitions of the topics. DescribeLogDirs requests must list partitions."""
    return {name: range(len(topic.partitions)) for name, topic in topics.items()}


def _build_describe_request(partitions_by_topic: PartitionIndexes | None) -> Any:
    if partitions_by_topic is None:
        return DescribeLogDirsRequest(topics=None)
    topic_class = DescribeLogDirsRequest.DescribableLogDirTopic
    return DescribeLogDirsRequest(
        topics=[
            topic_class(topic=name, partitions=list(indexes)) for name, indexes in partitions_by_topic.items()
        ]
    )


def _read_log_dirs(response: Any) -> tuple[LogDir, ...]:
    # before version 3, an empty response means that the request is not authorized
    code = response.error_code or (0 if response.results else CLUSTER_AUTHORIZATION_FAILED)
    if code:
        raise build_fault_from_code(code, None, changes=False)
    return tuple(_read_log_dir(result) for result in response.results)


def _read_log_dir(result: Any) -> LogDir:
    sizes: dict[TopicPartition, int] = {}
    arriving: dict[TopicPartition, int] = {}
    for topic in result.topics:
        for partition in topic.partitions:
            replica_sizes = arriving if partition.is_future_key else sizes
            replica_sizes[TopicPartition(topic.name, partition.partition_index)] = partition.partition_size
    return LogDir(
        path=result.log_dir,
        sizes=sizes,
        arriving=arriving,
        total=_normalize_size(result.total_bytes),
        usable=_normalize_size(result.usable_bytes),
        error=get_error_name(result.error_code) if result.error_code else None,
    )


def _normalize_size(size: int | None) -> int | None:
    """Return the size of a volume in bytes; None if the broker returns -1 (unknown)."""
    return None if size is None or size < 0 else size


def move_log_dirs(wire: Wire, targets: Mapping[Replica, str]) -> dict[Replica, Result]:
    """Send AlterReplicaLogDirs to the affected brokers and return a result for each replica.

    REPLICA_NOT_AVAILABLE is not retried: the broker remembers the directory and uses it when the replica is
    created.
    """
    live_brokers = set(wire.brokers())
    results: dict[Replica, Result] = dict.fromkeys(targets)
    batches_by_broker: dict[int, list[list[Replica]]] = {}
    for broker, replicas in _group_by_broker(targets).items():
        if broker in live_brokers:
            batches_by_broker[broker] = batch_items(replicas)
        else:
            results |= {replica: _build_not_serving_fault(broker) for replica in replicas}
    requests = {
        broker: [_build_alter_request(part, targets) for part in batches]
        for broker, batches in batches_by_broker.items()
    }
    for broker, answers in wire.send_each(requests, _read_results, changes=True).items():
        for batch, answer in zip(batches_by_broker[broker], answers, strict=True):
            for partition, _ in batch:
                results[partition, broker] = (
                    answer if isinstance(answer, Fault) else answer.get(partition, build_unanswered_fault())
                )
    if any(fault is not None and fault.kind is FaultKind.RETRIABLE for fault in results.values()):
        wire.request_refresh()
    return results


def _group_by_broker(replicas: Iterable[Replica]) -> dict[int, list[Replica]]:
    replicas_by_broker: dict[int, list[Replica]] = {}
    for replica in replicas:
        replicas_by_broker.setdefault(replica[1], []).append(replica)
    return replicas_by_broker


def _build_not_serving_fault(broker: int) -> Fault:
    return Fault("BROKER_NOT_AVAILABLE", f"broker {broker} is not available", FaultKind.RETRIABLE)


def _build_alter_request(replicas: Iterable[Replica], targets: Mapping[Replica, str]) -> Any:
    topics_by_path: dict[str, dict[str, list[int]]] = {}
    for replica in replicas:
        topic, index = replica[0]
        topics_by_path.setdefault(targets[replica], {}).setdefault(topic, []).append(index)
    dir_class = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    return AlterReplicaLogDirsRequest(
        dirs=[
            dir_class(
                path=path,
                topics=[
                    dir_class.AlterReplicaLogDirTopic(name=name, partitions=indexes)
                    for name, indexes in by_topic.items()
                ],
            )
            for path, by_topic in topics_by_path.items()
        ]
    )


def _read_results(response: Any) -> dict[TopicPartition, Result]:
    return {
        TopicPartition(topic.topic_name, partition.partition_index): _build_result(partition.error_code)
        for topic in response.results
        for partition in topic.partitions
    }


def _build_result(code: int) -> Result:
    if code == REPLICA_NOT_AVAILABLE:
        return Fault(get_error_name(code), "")
    return build_fault_from_code(code, None, changes=True) if code else None
