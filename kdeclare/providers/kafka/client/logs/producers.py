"""Read the active producers of partitions from their leaders (DescribeProducers, KIP-664)."""

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin.transactions import DescribeProducersRequest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client.faults import (
    UNKNOWN_TOPIC_OR_PARTITION,
    build_fault_from_code,
    get_error_name,
)
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.topics import describe_topics, read_unknown_topics
from kdeclare.providers.kafka.client.wire import Wire, batch_items
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.request_values import ActiveProducer, ActiveProducers

_PARTITIONS_PER_REQUEST = 2000
_UNKNOWN_TOPIC = get_error_name(UNKNOWN_TOPIC_OR_PARTITION)
_Producers = dict[TopicPartition, ActiveProducers | Fault]


def list_producers(
    wire: Wire, freshness: Freshness, names: Sequence[str], known: Mapping[str, Topic]
) -> Mapping[TopicPartition, ActiveProducers | Fault]:
    """Return the active producers of each partition that has a leader.

    If a leader refuses to list the producers of a partition, the value is the Fault. Raises Fault if a
    request fails, or if a leader returns an error that a retry may resolve.

    known: topics that were read shortly before. If a request for them fails, all topics are read again,
        because their leaders can have changed.
    """
    if known:
        try:
            found = _ask_leaders(wire, read_unknown_topics(wire, freshness, names, known))
        except Fault as fault:
            if fault.kind is not FaultKind.RETRIABLE:
                raise
        else:
            if not any(isinstance(item, Fault) and item.error == _UNKNOWN_TOPIC for item in found.values()):
                return found
    return _ask_leaders(wire, describe_topics(wire, freshness, names))


def _ask_leaders(wire: Wire, topics: Mapping[str, Topic]) -> Mapping[TopicPartition, ActiveProducers | Fault]:
    partitions_by_leader: dict[int, list[TopicPartition]] = {}
    for topic in topics.values():
        for number, partition in enumerate(topic.partitions):
            if partition.leader is not None:
                where = TopicPartition(topic.name, number)
                partitions_by_leader.setdefault(partition.leader, []).append(where)
    requests = {
        leader: [_build_request(batch) for batch in batch_items(partitions, _PARTITIONS_PER_REQUEST)]
        for leader, partitions in partitions_by_leader.items()
    }
    found: _Producers = {}
    for answers in wire.send_each(requests, _read_producers).values():
        for answer in answers:
            if isinstance(answer, Fault):
                raise answer
            found |= answer
    return found


def _build_request(partitions: Sequence[TopicPartition]) -> Any:
    topic_class = DescribeProducersRequest.TopicRequest
    numbers_by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers_by_topic.setdefault(topic, []).append(number)
    return DescribeProducersRequest(
        topics=[
            topic_class(name=name, partition_indexes=numbers) for name, numbers in numbers_by_topic.items()
        ]
    )


def _read_producers(response: Any) -> _Producers:
    found: _Producers = {}
    for topic in response.topics:
        for partition in topic.partitions:
            where = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code:
                fault = build_fault_from_code(partition.error_code, f"producers of {where}", changes=False)
                if fault.kind is not FaultKind.REFUSED:
                    raise fault
                found[where] = fault
                continue
            found[where] = tuple(
                ActiveProducer(item.producer_id, item.last_timestamp, item.current_txn_start_offset >= 0)
                for item in partition.active_producers
            )
    return found
