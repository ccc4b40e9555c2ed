"""Read and change topics: Metadata, CreateTopics, DeleteTopics, CreatePartitions."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import Any
from uuid import UUID

from kafka.protocol.admin.topics import CreatePartitionsRequest, DeleteTopicsRequest

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import CreatedObject, Fault, Outcome, Result
from kdeclare.providers.kafka.client.decoding.created_topics import decode_created_topics
from kdeclare.providers.kafka.client.decoding.topic_ids import format_topic_id, read_topic_id
from kdeclare.providers.kafka.client.decoding.wire_format import (
    RawCreateTopicsRequest,
    RawMetadataRequest,
    RawResponse,
    decode_all,
    read_count,
    read_string,
    require_end,
    skip_tags,
)
from kdeclare.providers.kafka.client.faults import (
    INVALID_TOPIC,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    build_fault_from_code,
)
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.wire import Wire, batch_items, send_batches
from kdeclare.providers.kafka.live import Partition, Topic
from kdeclare.providers.kafka.request_values import NewPartitions, NewTopic

_NO_LEADER = -1
_PARTITION_STRUCT = Struct(">hiii")  # error code, index, leader, leader epoch
_INT_LIST_STRUCTS = [Struct(f">{size}i") for size in range(32)]
_VERSION_WITH_ERROR_CODE = 13

# Minimum sizes of repeated items in bytes: the fixed fields, and one byte per string, array and tag section.
_MIN_BROKER_BYTES = 11
_MIN_TOPIC_BYTES = 26
_MIN_PARTITION_BYTES = 18
_INTEGER_BYTES = 4


@dataclass(frozen=True, slots=True)
class TopicResult:
    """The response for one topic. ``topic`` is only valid if ``error_code`` is 0."""

    name: str
    error_code: int
    topic: Topic


def decode_topics(response: Any) -> list[TopicResult]:
    """Decode a metadata response that consists of bytes or of kafka-python's objects.

    Raises MalformedResponse.
    """
    if isinstance(response, RawResponse):
        return decode_all(lambda: _decode_bytes(response.body, response.version))
    return list(_decode_objects(response))


def _decode_objects(response: Any) -> Iterable[TopicResult]:
    for topic in response.topics:
        partitions_by_index = {
            partition.partition_index: Partition(
                tuple(partition.replica_nodes),
                None if partition.leader_id == _NO_LEADER else partition.leader_id,
                tuple(partition.isr_nodes),
            )
            for partition in topic.partitions
        }
        topic_id = format_topic_id(topic.topic_id)
        yield TopicResult(
            topic.name or "",
            topic.error_code,
            Topic(topic.name or "", topic_id, _sort_partitions(partitions_by_index), bool(topic.is_internal)),
        )


def _decode_bytes(data: bytes, version: int) -> Iterable[TopicResult]:
    count, pos = read_count(data, 4, _MIN_BROKER_BYTES)  # after throttle_time_ms
    for _ in range(count):
        _, pos = read_string(data, pos + 4)
        _, pos = read_string(data, pos + 4)
        pos = skip_tags(data, pos)
    _, pos = read_string(data, pos)  # cluster id
    count, pos = read_count(data, pos + 4, _MIN_TOPIC_BYTES)  # after controller id
    cache: _PartitionCache = {}
    for _ in range(count):
        error_code = int.from_bytes(data[pos : pos + 2], "big", signed=True)
        name, pos = read_string(data, pos + 2)
        topic_id, pos = read_topic_id(data, pos)
        is_internal = data[pos] != 0
        partitions, pos = _read_partitions(data, pos + 1, cache)
        pos = skip_tags(data, pos + 4)  # after topic_authorized_operations
        yield TopicResult(name or "", error_code, Topic(name or "", topic_id, partitions, is_internal))
    require_end(data, pos + 2 if version >= _VERSION_WITH_ERROR_CODE else pos)


_PartitionCache = dict[tuple[int, tuple[int, ...], tuple[int, ...]], Partition]
"""A cache of partitions, keyed by leader, replicas and in-sync replicas.

To save memory, equal partitions share one object.
"""


def _read_partitions(data: bytes, pos: int, cache: _PartitionCache) -> tuple[tuple[Partition, ...], int]:
    count, pos = read_count(data, pos, _MIN_PARTITION_BYTES)
    partitions_by_index = {}
    for _ in range(count):
        _, index, leader, _ = _PARTITION_STRUCT.unpack_from(data, pos)
        replicas, pos = _read_integers(data, pos + 14)
        isr, pos = _read_integers(data, pos)
        _, pos = _read_integers(data, pos)  # offline replicas
        pos = skip_tags(data, pos)
        partition = cache.get((leader, replicas, isr))
        if partition is None:
            partition = Partition(replicas, None if leader == _NO_LEADER else leader, isr)
            cache[leader, replicas, isr] = partition
        partitions_by_index[index] = partition
    return _sort_partitions(partitions_by_index), pos


def _read_integers(data: bytes, pos: int) -> tuple[tuple[int, ...], int]:
    size = data[pos] - 1
    if 0 <= size < len(_INT_LIST_STRUCTS):  # nearly always, and then the length has one byte
        return _INT_LIST_STRUCTS[size].unpack_from(data, pos + 1), pos + 1 + _INTEGER_BYTES * size
    size, pos = read_count(data, pos, _INTEGER_BYTES)
    list_struct = _INT_LIST_STRUCTS[size] if size < len(_INT_LIST_STRUCTS) else Struct(f">{size}i")
    return list_struct.unpack_from(data, pos), pos + _INTEGER_BYTES * size


def _sort_partitions(partitions_by_index: dict[int, Partition]) -> tuple[Partition, ...]:
    if len(partitions_by_index) == 1:
        return tuple(partitions_by_index.values())
    return tuple(partition for _, partition in sorted(partitions_by_index.items()))


_NAMES_PER_REQUEST = 2000
_DELETE_BY_ID_VERSION = 6
"""The first version of DeleteTopics that accepts topic ids (KIP-516)."""

_log = logging.getLogger(__name__)


def describe_topics(wire: Wire, freshness: Freshness, names: Sequence[str] | None) -> dict[str, Topic]:
    """Return, by name, the topics in ``names`` that exist.

    If ``names`` is None, return all topics. Raises Fault.
    """
    batches = [None] if names is None else batch_items(dict.fromkeys(names), _NAMES_PER_REQUEST)
    requests = [_build_metadata_request(part) for part in batches]
    answers: list[list[TopicResult] | Fault] = wire.ask(
        requests, decode_topics, changes=False, nodes=freshness.nodes()
    )
    topics_by_name = {}
    for answer in answers:
        if isinstance(answer, Fault):
            raise answer
        for item in answer:
            if item.error_code == NONE:
                topics_by_name[item.name] = item.topic
            elif item.error_code not in (UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC):
                raise build_fault_from_code(item.error_code, f"topic {item.name}", changes=False)
    return topics_by_name


def read_unknown_topics(
    wire: Wire, freshness: Freshness, names: Iterable[str], known: Mapping[str, Topic]
) -> dict[str, Topic]:
    """Return the same as `describe_topics`, but do not read the topics in ``known`` again.

    Known topics with a partition without a leader are read again. Raises Fault.
    """
    topics_by_name = {
        name: known[name]
        for name in names
        if name in known and all(partition.leader is not None for partition in known[name].partitions)
    }
    unknown = [name for name in names if name not in topics_by_name]
    return topics_by_name | describe_topics(wire, freshness, unknown) if unknown else topics_by_name


def find_hidden_topics(wire: Wire, names: Sequence[str]) -> frozenset[str]:
    """Return the named topics that the principal is not allowed to describe. Raises Fault."""
    requests = [
        _build_metadata_request(part) for part in batch_items(dict.fromkeys(names), _NAMES_PER_REQUEST)
    ]
    answers: list[list[TopicResult] | Fault] = wire.ask(requests, decode_topics, changes=False)
    hidden = set()
    for answer in answers:
        if isinstance(answer, Fault):
            raise answer
        hidden |= {item.name for item in answer if item.error_code == TOPIC_AUTHORIZATION_FAILED}
    return frozenset(hidden)


def _build_metadata_request(names: list[str] | None) -> Any:
    topic_items = (
        None if names is None else [RawMetadataRequest.MetadataRequestTopic(name=name) for name in names]
    )
    return RawMetadataRequest(
        topics=topic_items,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def create_topics(wire: Wire, items: Sequence[NewTopic], validate_only: bool) -> dict[str, Outcome]:
    """Send CreateTopics and return a result for each topic. Raises Fault.

    Requests use the highest version that the broker supports. Since version 6, a broker with a strict
    mutation quota returns THROTTLING_QUOTA_EXCEEDED instead of delaying the response (KIP-599). Since version
    7, the response contains the id of each topic, and about 1.1 kB of configs per topic (KIP-525).
    """
    ids: dict[str, str] = {}

    def read_ids_and_codes(response: Any) -> Iterable[tuple[str, int, str | None]]:
        created = decode_created_topics(response)
        ids.update((topic.name, topic.topic_id) for topic in created)
        return _read_codes(created)

    def build_request(batch: list[NewTopic]) -> Any:
        return RawCreateTopicsRequest(
            topics=[_build_creatable_topic(topic) for topic in batch],
            timeout_ms=wire.request_timeout_ms,
            validate_only=validate_only,
        )

    results = send_batches(
        wire,
        items,
        get_key=lambda topic: topic.topic,
        build_request=build_request,
        read_codes=read_ids_and_codes,
        count_metadata_records=lambda topic: (
            1 + len(topic.configs) + max(topic.partitions or 0, len(topic.assignments or ()))
        ),
        validate_only=validate_only,
        has_quota=True,
    )
    if validate_only:
        return {**results}
    return {name: fault or CreatedObject(ids.get(name, "")) for name, fault in results.items()}


def _build_creatable_topic(topic: NewTopic) -> Any:
    topic_class = RawCreateTopicsRequest.CreatableTopic
    return topic_class(
        name=topic.topic,
        num_partitions=-1 if topic.partitions is None else topic.partitions,
        replication_factor=-1 if topic.replication_factor is None else topic.replication_factor,
        assignments=[
            topic_class.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in (topic.assignments or {}).items()
        ],
        configs=[
            topic_class.CreatableTopicConfig(name=name, value=value)
            for name, value in topic.config_texts.items()
        ],
    )


def delete_topics(wire: Wire, targets: Mapping[str, str | None]) -> dict[str, Result]:
    """Send DeleteTopics by id, or by name if the id is None, and return a result for each topic.

    If a topic does not exist, or if the principal cannot describe it, the response contains only its id.
    Raises Fault.
    """
    has_ids = any(topic_id is not None for topic_id in targets.values())
    if has_ids and wire.get_max_version(DeleteTopicsRequest.API_KEY) < _DELETE_BY_ID_VERSION:
        text = "The brokers cannot delete topics by id, which requires DeleteTopics version 6 (Kafka 2.8)."
        raise Fault("UNSUPPORTED_VERSION", text)
    names = {topic_id: name for name, topic_id in targets.items() if topic_id is not None}

    def build_request(batch: list[str]) -> Any:
        return DeleteTopicsRequest(
            topics=[_build_deletion(name, targets[name]) for name in batch],
            topic_names=batch,  # versions below 6 use this field
            timeout_ms=wire.request_timeout_ms,
            min_version=_DELETE_BY_ID_VERSION if has_ids else 0,
        )

    return send_batches(
        wire,
        list(targets),
        get_key=lambda name: name,
        build_request=build_request,
        read_codes=lambda response: (
            (names.get(format_topic_id(topic.topic_id), topic.name), topic.error_code, topic.error_message)
            for topic in response.responses
        ),
        has_quota=True,
    )


def _build_deletion(name: str, topic_id: str | None) -> Any:
    state_class = DeleteTopicsRequest.DeleteTopicState
    return state_class(name=name) if topic_id is None else state_class(name=None, topic_id=UUID(topic_id))


def create_partitions(wire: Wire, items: Sequence[NewPartitions], validate_only: bool) -> dict[str, Result]:
    """Send CreatePartitions and return a result for each topic. Raises Fault."""

    def build_request(batch: list[NewPartitions]) -> Any:
        return CreatePartitionsRequest(
            topics=[_build_added_partitions(item) for item in batch],
            timeout_ms=wire.request_timeout_ms,
            validate_only=validate_only,
        )

    return send_batches(
        wire,
        items,
        get_key=lambda item: item.topic,
        build_request=build_request,
        read_codes=lambda response: _read_codes(response.results),
        count_metadata_records=lambda item: item.total,
        validate_only=validate_only,
        has_quota=True,
    )


def _build_added_partitions(item: NewPartitions) -> Any:
    topic_class = CreatePartitionsRequest.CreatePartitionsTopic
    assignments = None  # with null, Kafka places the replicas; Kafka rejects an empty list
    if item.assignments is not None:
        assignments = [
            topic_class.CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in item.assignments
        ]
    return topic_class(name=item.topic, count=item.total, assignments=assignments)


def _read_codes(results: Iterable[Any]) -> Iterable[tuple[str, int, str | None]]:
    return ((result.name, result.error_code, result.error_message) for result in results)
