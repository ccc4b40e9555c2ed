"""Count the records of topics: the difference between end offset and start offset of each partition."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest, OffsetSpec

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client.faults import (
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    build_fault_from_code,
    get_error_name,
)
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.topics import describe_topics
from kdeclare.providers.kafka.client.wire import Wire, batch_items
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Topic

_PARTITIONS_PER_REQUEST = 2000
_CONSUMER_REPLICA_ID = -1
"""The replica id in requests of clients, which are not brokers."""
_LEADER_WAIT_S = 5.0
"""How long one call waits for partition leaders, in seconds. `RetryingCluster` repeats the call."""
_FIRST_POLL_S = 0.05
_MAX_POLL_S = 0.5

_UNKNOWN_TOPIC = get_error_name(UNKNOWN_TOPIC_OR_PARTITION)
_Offsets = Mapping[TopicPartition, int | Fault]
"""For each partition, the offset or record count, or a Fault that can be retried."""


def count_records(wire: Wire, freshness: Freshness, names: Sequence[str]) -> dict[str, int]:
    """Count the records of each existing topic. Raises Fault.

    Metadata can name the leader of a new partition before the broker has become the leader, several seconds
    before if hundreds of partitions were created. Requests for such partitions are repeated with refreshed
    metadata, as in Kafka's Admin client (PartitionLeaderStrategy).
    """
    topics_by_name = describe_topics(wire, freshness, names)
    counts = dict.fromkeys(topics_by_name, 0)
    pending = [
        TopicPartition(topic.name, index)
        for topic in topics_by_name.values()
        for index in range(len(topic.partitions))
    ]
    deadline = time.monotonic() + _LEADER_WAIT_S
    poll_s = _FIRST_POLL_S
    while True:
        faults: list[Fault] = []
        asked, pending = pending, []
        for partition, count in _count_partitions(wire, topics_by_name, asked).items():
            if isinstance(count, Fault):
                faults.append(count)
                pending.append(partition)
            else:
                counts[partition.topic] += count
        if not pending:
            return counts
        if time.monotonic() > deadline:
            raise faults[0]
        time.sleep(poll_s)
        poll_s = min(_MAX_POLL_S, 2 * poll_s)
        pending_names = sorted({partition.topic for partition in pending})
        topics_by_name = describe_topics(wire, freshness, pending_names)
        for name in pending_names:
            if name not in topics_by_name:  # deleted in the meantime
                del counts[name]
        pending = [partition for partition in pending if partition.topic in topics_by_name]


def _count_partitions(
    wire: Wire, topics_by_name: Mapping[str, Topic], partitions: Iterable[TopicPartition]
) -> _Offsets:
    """Return the record count of each partition, or a Fault that can be retried.

    Raises Fault for permanent errors.
    """
    counts: dict[TopicPartition, int | Fault] = {}
    partitions_by_leader: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        leader = topics_by_name[partition.topic].partitions[partition.partition].leader
        if leader is None:
            counts[partition] = build_fault_from_code(
                LEADER_NOT_AVAILABLE, f"partition {partition} has no leader", changes=False
            )
        else:
            partitions_by_leader.setdefault(leader, []).append(partition)
    requests = {
        leader: [
            # The end offset is requested last, so that records written between the requests are counted.
            _build_offsets_request(batch, spec, wire)
            for batch in batch_items(led_partitions, _PARTITIONS_PER_REQUEST)
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        ]
        for leader, led_partitions in partitions_by_leader.items()
    }
    for answers in wire.send_each(requests, _read_offsets).values():
        for earliest, latest in zip(answers[::2], answers[1::2], strict=True):
            if isinstance(earliest, Fault):
                raise earliest
            if isinstance(latest, Fault):
                raise latest
            for partition, end in latest.items():
                counts[partition] = _subtract(end, earliest[partition])
    return counts


def _subtract(end: int | Fault, start: int | Fault) -> int | Fault:
    if isinstance(start, Fault):
        return start
    if isinstance(end, Fault):
        return end
    return max(0, end - start)


def _build_offsets_request(partitions: Iterable[TopicPartition], spec: int, wire: Wire) -> Any:
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    partitions_by_topic: dict[str, list[Any]] = {}
    for topic, index in partitions:
        partition_item = topic_class.ListOffsetsPartition(
            partition_index=index, current_leader_epoch=-1, timestamp=int(spec)
        )
        partitions_by_topic.setdefault(topic, []).append(partition_item)
    return ListOffsetsRequest(
        replica_id=_CONSUMER_REPLICA_ID,
        isolation_level=0,
        topics=[topic_class(name=name, partitions=wanted) for name, wanted in partitions_by_topic.items()],
        timeout_ms=wire.request_timeout_ms,
        min_version=1,  # version 0 returns lists of segments
    )


def _read_offsets(response: Any) -> _Offsets:
    """Return the offset of each partition, or a Fault that can be retried.

    Raises Fault for permanent errors.
    """
    offsets: dict[TopicPartition, int | Fault] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            offsets[topic_partition] = partition.offset
            if partition.error_code:
                fault = build_fault_from_code(
                    partition.error_code, f"offsets of {topic_partition}", changes=False
                )
                # the topic is in the metadata, so retry if the leader does not know it yet
                if fault.kind is not FaultKind.RETRIABLE and fault.error != _UNKNOWN_TOPIC:
                    raise fault
                offsets[topic_partition] = fault
    return offsets
