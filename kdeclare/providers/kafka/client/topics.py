"""Topics: Metadata, CreateTopics, DeleteTopics, CreatePartitions, and how much they hold (ListOffsets)."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import Any
from uuid import UUID

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from kafka.protocol.consumer import ListOffsetsRequest, OffsetSpec

from kdeclare.core.frozen import dataclass
from kdeclare.core.live.faults import Created, Fault, Outcome, Result
from kdeclare.providers.kafka.client.faults import (
    INVALID_TOPIC,
    LEADER_NOT_AVAILABLE,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    fault_for_code,
)
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.wire import Wire, chunks, send_batches
from kdeclare.providers.kafka.client.wire_format import (
    RawMetadataRequest,
    RawResponse,
    decode_all,
    read_count,
    read_end,
    read_string,
    skip_tags,
)
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Partition, Topic
from kdeclare.providers.kafka.port import NewPartitions, NewTopic

_NO_LEADER = -1
_PARTITION = Struct(">hiii")  # error code, index, leader, leader epoch
_LISTS = [Struct(f">{size}i") for size in range(32)]
_VERSION_WITH_ERROR_CODE = 13

# The fewest bytes of what is repeated: fixed fields, a byte for each text, list and set of tags.
_BROKER_BYTES = 11
_TOPIC_BYTES = 26
_PARTITION_BYTES = 18
_INTEGER_BYTES = 4


_NO_ID = str(UUID(int=0))
"""What brokers send where a topic has no id: metadata of a version before KIP-516."""


@dataclass(frozen=True, slots=True)
class Found:
    """The answer for one topic; ``topic`` stands only where ``error_code`` is 0."""

    name: str
    error_code: int
    topic: Topic


def id_text(topic_id: object) -> str:
    """A topic's id as text; empty where it has none."""
    return str(topic_id) if isinstance(topic_id, UUID) and topic_id.int else ""


def read_topics(response: Any) -> list[Found]:
    """Decode a response, from bytes or from kafka-python's own objects. Raises MalformedResponse."""
    if isinstance(response, RawResponse):
        return decode_all(lambda: _from_bytes(response.body, response.version))
    return list(_from_objects(response))


def _from_objects(response: Any) -> Iterable[Found]:
    for topic in response.topics:
        numbered = {
            partition.partition_index: Partition(
                tuple(partition.replica_nodes),
                None if partition.leader_id == _NO_LEADER else partition.leader_id,
                tuple(partition.isr_nodes),
            )
            for partition in topic.partitions
        }
        topic_id = id_text(topic.topic_id)
        yield Found(
            topic.name or "",
            topic.error_code,
            Topic(topic.name or "", topic_id, _in_order(numbered), bool(topic.is_internal)),
        )


def _from_bytes(data: bytes, version: int) -> Iterable[Found]:
    count, pos = read_count(data, 4, _BROKER_BYTES)  # after throttle_time_ms
    for _ in range(count):
        _, pos = read_string(data, pos + 4)
        _, pos = read_string(data, pos + 4)
        pos = skip_tags(data, pos)
    _, pos = read_string(data, pos)  # cluster id
    count, pos = read_count(data, pos + 4, _TOPIC_BYTES)  # after controller id
    shared: _Shared = {}
    for _ in range(count):
        error_code = int.from_bytes(data[pos : pos + 2], "big", signed=True)
        name, pos = read_string(data, pos + 2)
        digits = data[pos : pos + 16].hex()
        internal = data[pos + 16] != 0
        partitions, pos = _partitions(data, pos + 17, shared)
        pos = skip_tags(data, pos + 4)  # after topic_authorized_operations
        topic_id = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
        topic_id = "" if topic_id == _NO_ID else topic_id
        yield Found(name or "", error_code, Topic(name or "", topic_id, partitions, internal))
    read_end(data, pos + 2 if version >= _VERSION_WITH_ERROR_CODE else pos)


_Shared = dict[tuple[int, tuple[int, ...], tuple[int, ...]], Partition]
"""Partitions by leader, replicas and in-sync replicas: on few brokers, most are like others."""


def _partitions(data: bytes, pos: int, shared: _Shared) -> tuple[tuple[Partition, ...], int]:
    count, pos = read_count(data, pos, _PARTITION_BYTES)
    numbered = {}
    for _ in range(count):
        _, index, leader, _ = _PARTITION.unpack_from(data, pos)
        replicas, pos = _integers(data, pos + 14)
        isr, pos = _integers(data, pos)
        _, pos = _integers(data, pos)  # offline replicas
        pos = skip_tags(data, pos)
        partition = shared.get((leader, replicas, isr))
        if partition is None:
            partition = Partition(replicas, None if leader == _NO_LEADER else leader, isr)
            shared[leader, replicas, isr] = partition
        numbered[index] = partition
    return _in_order(numbered), pos


def _integers(data: bytes, pos: int) -> tuple[tuple[int, ...], int]:
    size, pos = read_count(data, pos, _INTEGER_BYTES)
    form = _LISTS[size] if size < len(_LISTS) else Struct(f">{size}i")
    return form.unpack_from(data, pos), pos + 4 * size


def _in_order(numbered: dict[int, Partition]) -> tuple[Partition, ...]:
    return tuple(partition for _, partition in sorted(numbered.items()))


_NAMES_A_REQUEST = 2000
_DELETE_BY_ID = 6
"""The version of DeleteTopics that takes topic ids (KIP-516)."""

_log = logging.getLogger(__name__)


def topics(wire: Wire, fresh: Freshness, names: Sequence[str] | None) -> dict[str, Topic]:
    """Topics by name, those that exist; None is all. Raises Fault."""
    parts = [None] if names is None else chunks(dict.fromkeys(names), _NAMES_A_REQUEST)
    requests = [_metadata_request(part) for part in parts]
    answers: list[list[Found] | Fault] = wire.ask(requests, read_topics, changes=False, nodes=fresh.nodes())
    found = {}
    for answer in answers:
        if isinstance(answer, Fault):
            raise answer
        for item in answer:
            if item.error_code == NONE:
                found[item.name] = item.topic
            elif item.error_code not in (UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC):
                raise fault_for_code(item.error_code, f"topic {item.name}", changes=False)
    return found


def hidden_topics(wire: Wire, names: Sequence[str]) -> frozenset[str]:
    """Topics that the principal may not describe. Raises Fault."""
    requests = [_metadata_request(part) for part in chunks(dict.fromkeys(names), _NAMES_A_REQUEST)]
    answers: list[list[Found] | Fault] = wire.ask(requests, read_topics, changes=False)
    hidden = set()
    for answer in answers:
        if isinstance(answer, Fault):
            raise answer
        hidden |= {item.name for item in answer if item.error_code == TOPIC_AUTHORIZATION_FAILED}
    return frozenset(hidden)


def _metadata_request(names: list[str] | None) -> Any:
    wanted = None if names is None else [RawMetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return RawMetadataRequest(
        topics=wanted,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def create_topics(wire: Wire, items: Sequence[NewTopic], validate_only: bool) -> dict[str, Outcome]:
    """CreateTopics, a result for each name. Raises Fault.

    Sent in the highest version that the broker has: from version 6 on, brokers answer a strict mutation
    quota with THROTTLING_QUOTA_EXCEEDED instead of holding the answer back (KIP-599). The price is
    that answers repeat all configs of every topic (KIP-525): 1.1 kB and 0.05 ms per topic to decode. From
    version 7 on, answers have the ids of the created topics.
    """
    ids: dict[str, str] = {}

    def read_codes(response: Any) -> Iterable[tuple[str, int, str | None]]:
        ids.update((topic.name, id_text(topic.topic_id)) for topic in response.topics)
        return _read_codes(response.topics)

    def request(part: list[NewTopic]) -> Any:
        return CreateTopicsRequest(
            topics=[_creatable(topic) for topic in part],
            timeout_ms=wire.request_timeout_ms,
            validate_only=validate_only,
        )

    results = send_batches(
        wire,
        items,
        key=lambda topic: topic.topic,
        request=request,
        codes=read_codes,
        records=lambda topic: (
            1 + len(topic.configs) + max(topic.partitions or 0, len(topic.assignments or ()))
        ),
        validate_only=validate_only,
        has_quota=True,
    )
    if validate_only:
        return {**results}
    return {name: fault or Created(ids.get(name, "")) for name, fault in results.items()}


def _creatable(topic: NewTopic) -> Any:
    kind = CreateTopicsRequest.CreatableTopic
    return kind(
        name=topic.topic,
        num_partitions=-1 if topic.partitions is None else topic.partitions,
        replication_factor=-1 if topic.replication_factor is None else topic.replication_factor,
        assignments=[
            kind.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in (topic.assignments or {}).items()
        ],
        configs=[
            kind.CreatableTopicConfig(name=name, value=value) for name, value in topic.config_texts.items()
        ],
    )


def delete_topics(wire: Wire, targets: Mapping[str, str | None]) -> dict[str, Result]:
    """DeleteTopics by id, or by name where the id is None; a result for each name. Raises Fault.

    Brokers answer with the id alone for a topic that does not exist, or that one may not see.
    """
    by_id = any(topic_id is not None for topic_id in targets.values())
    if by_id and wire.max_version(DeleteTopicsRequest.API_KEY) < _DELETE_BY_ID:
        text = "The brokers cannot delete topics by id: that takes DeleteTopics version 6 (Kafka 2.8)."
        raise Fault("UNSUPPORTED_VERSION", text)
    names = {topic_id: name for name, topic_id in targets.items() if topic_id is not None}

    def request(part: list[str]) -> Any:
        return DeleteTopicsRequest(
            topics=[_doomed(name, targets[name]) for name in part],
            topic_names=part,  # what versions below 6 take instead
            timeout_ms=wire.request_timeout_ms,
            min_version=_DELETE_BY_ID if by_id else 0,
        )

    return send_batches(
        wire,
        list(targets),
        key=lambda name: name,
        request=request,
        codes=lambda response: (
            (names.get(id_text(topic.topic_id), topic.name), topic.error_code, topic.error_message)
            for topic in response.responses
        ),
        has_quota=True,
    )


def _doomed(name: str, topic_id: str | None) -> Any:
    kind = DeleteTopicsRequest.DeleteTopicState
    return kind(name=name) if topic_id is None else kind(name=None, topic_id=UUID(topic_id))


def create_partitions(wire: Wire, items: Sequence[NewPartitions], validate_only: bool) -> dict[str, Result]:
    """CreatePartitions, a result for each topic. Raises Fault."""

    def request(part: list[NewPartitions]) -> Any:
        return CreatePartitionsRequest(
            topics=[_growing(item) for item in part],
            timeout_ms=wire.request_timeout_ms,
            validate_only=validate_only,
        )

    return send_batches(
        wire,
        items,
        key=lambda item: item.topic,
        request=request,
        codes=lambda response: _read_codes(response.results),
        records=lambda item: item.total,
        validate_only=validate_only,
        has_quota=True,
    )


def _growing(item: NewPartitions) -> Any:
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    placed = None  # Kafka places; an empty list is another request, which it refuses
    if item.assignments is not None:
        placed = [kind.CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in item.assignments]
    return kind(name=item.topic, count=item.total, assignments=placed)


def _read_codes(results: Iterable[Any]) -> Iterable[tuple[str, int, str | None]]:
    return ((result.name, result.error_code, result.error_message) for result in results)


_PARTITIONS_A_REQUEST = 2000
_CONSUMER = -1
"""The replica id of whoever is no broker."""


def record_counts(wire: Wire, fresh: Freshness, names: Sequence[str]) -> dict[str, int]:
    """Offsets between the start and the end of each topic that exists. Raises Fault."""
    found = topics(wire, fresh, names)
    requests = {}
    for leader, partitions in _group_by_leader(found).items():
        parts = chunks(partitions, _PARTITIONS_A_REQUEST)
        # The end last: a record that comes in between is counted rather than missed.
        requests[leader] = [
            _offsets_request(part, spec, wire)
            for part in parts
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        ]
    counts = dict.fromkeys(found, 0)
    for answers in wire.ask_each(requests, _read_offsets).values():
        for earliest, latest in zip(answers[::2], answers[1::2], strict=True):
            if isinstance(earliest, Fault):
                raise earliest
            if isinstance(latest, Fault):
                raise latest
            for partition, end in latest.items():
                counts[partition.topic] += max(0, end - earliest[partition])
    return counts


def _group_by_leader(found: Mapping[str, Topic]) -> dict[int, list[TopicPartition]]:
    led: dict[int, list[TopicPartition]] = {}
    for topic in found.values():
        for index, partition in enumerate(topic.partitions):
            at = TopicPartition(topic.name, index)
            if partition.leader is None:
                raise fault_for_code(LEADER_NOT_AVAILABLE, f"partition {at} has no leader", changes=False)
            led.setdefault(partition.leader, []).append(at)
    return led


def _offsets_request(partitions: list[TopicPartition], spec: int, wire: Wire) -> Any:
    kind = ListOffsetsRequest.ListOffsetsTopic
    grouped: dict[str, list[Any]] = {}
    for topic, index in partitions:
        wanted = kind.ListOffsetsPartition(
            partition_index=index, current_leader_epoch=-1, timestamp=int(spec)
        )
        grouped.setdefault(topic, []).append(wanted)
    return ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=0,
        topics=[kind(name=name, partitions=wanted) for name, wanted in grouped.items()],
        timeout_ms=wire.request_timeout_ms,
        min_version=1,  # version 0 answers with lists of segments
    )


def _read_offsets(response: Any) -> dict[TopicPartition, int]:
    offsets = {}
    for topic in response.topics:
        for partition in topic.partitions:
            at = TopicPartition(topic.name, partition.partition_index)
            if partition.error_code:
                raise fault_for_code(partition.error_code, f"offsets of {at}", changes=False)
            offsets[at] = partition.offset
    return offsets
