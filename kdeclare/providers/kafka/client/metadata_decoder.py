"""Metadata responses as Topics."""

from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct
from typing import Any
from uuid import UUID

from kdeclare.providers.kafka.client.compact import decode_all, read_count, read_end, read_string, skip_tags
from kdeclare.providers.kafka.client.raw import RawResponse
from kdeclare.providers.kafka.live import Partition, Topic

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
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
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


def _partitions(
    data: bytes, pos: int, shared: dict[tuple[int, ...], tuple[int, ...]]
) -> tuple[tuple[Partition, ...], int]:
    count, pos = read_count(data, pos, _PARTITION_BYTES)
    numbered = {}
    for _ in range(count):
        _, index, leader, _ = _PARTITION.unpack_from(data, pos)
        replicas, pos = _integers(data, pos + 14)
        isr, pos = _integers(data, pos)
        _, pos = _integers(data, pos)  # offline replicas
        pos = skip_tags(data, pos)
        replicas = shared.setdefault(replicas, replicas)
        isr = shared.setdefault(isr, isr)
        numbered[index] = Partition(replicas, None if leader == _NO_LEADER else leader, isr)
    return _in_order(numbered), pos


def _integers(data: bytes, pos: int) -> tuple[tuple[int, ...], int]:
    size, pos = read_count(data, pos, _INTEGER_BYTES)
    form = _LISTS[size] if size < len(_LISTS) else Struct(f">{size}i")
    return form.unpack_from(data, pos), pos + 4 * size


def _in_order(numbered: dict[int, Partition]) -> tuple[Partition, ...]:
    return tuple(partition for _, partition in sorted(numbered.items()))
