"""Decode CreateTopics responses, but skip the configs of each topic (KIP-525).

kafka-python takes 0.05 ms per topic to decode these configs, and kdeclare does not use them.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.client.decoding.wire_format import (
    MalformedResponse,
    RawResponse,
    decode_all,
    read_count,
    read_string,
    require_end,
    skip_string,
    skip_tags,
)

_ID_BYTES = 16
_COUNTS_BYTES = 6  # partitions and replication factor
_CONFIG_FLAG_BYTES = 3  # read-only, source, sensitive

# Minimum sizes of repeated items in bytes: the fixed fields, and one byte per string, array and tag section.
_MIN_TOPIC_BYTES = 28
_MIN_CONFIG_BYTES = 6

_NO_ID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The result for one topic. The id is empty if the topic was not created."""

    name: str
    topic_id: str
    error_code: int
    error_message: str | None


def format_topic_id(topic_id: object) -> str:
    """Return a topic's id as a string; empty if the topic has no id."""
    return str(topic_id) if isinstance(topic_id, UUID) and topic_id != _NO_ID else ""


def decode_created_topics(response: Any) -> list[CreatedTopic]:
    """Decode a response, from bytes or from kafka-python's own objects. Raises MalformedResponse."""
    if isinstance(response, RawResponse):
        return decode_all(lambda: _decode_bytes(response.body))
    return [
        CreatedTopic(topic.name, format_topic_id(topic.topic_id), topic.error_code, topic.error_message)
        for topic in response.topics
    ]


def _decode_bytes(data: bytes) -> Iterable[CreatedTopic]:
    """Decode a CreateTopics response of version 7."""
    count, pos = read_count(data, 4, _MIN_TOPIC_BYTES)  # after throttle_time_ms
    known_configs: list[bytes] = []
    for _ in range(count):
        name, pos = read_string(data, pos)
        topic_id = format_topic_id(UUID(data[pos : pos + _ID_BYTES].hex()))
        pos += _ID_BYTES
        error_code = int.from_bytes(data[pos : pos + 2], "big", signed=True)
        error_message, pos = read_string(data, pos + 2)
        pos = skip_tags(data, _skip_configs(data, pos + _COUNTS_BYTES, known_configs))
        yield CreatedTopic(name or "", topic_id, error_code, error_message)
    require_end(data, pos)


def _skip_configs(data: bytes, start: int, known_configs: list[bytes]) -> int:
    """Return the position after the configs of a topic.

    known_configs: the bytes of each config of an earlier topic. Most configs are the same for all topics, and
    brokers list them in the same order, so comparing bytes finds the end of a config sooner than decoding
    the lengths of its strings. This function replaces configs that differ.
    """
    count, pos = read_count(data, start, _MIN_CONFIG_BYTES)
    for position, known_config in enumerate(known_configs[:count]):
        if data.startswith(known_config, pos):
            pos += len(known_config)
        else:
            end = _skip_config(data, pos)
            known_configs[position] = data[pos:end]
            pos = end
    for _ in range(count - len(known_configs)):
        end = _skip_config(data, pos)
        known_configs.append(data[pos:end])
        pos = end
    if pos > len(data):
        raise MalformedResponse("configs extend beyond the end of the response")
    return pos


def _skip_config(data: bytes, pos: int) -> int:
    pos = skip_string(data, skip_string(data, pos))
    return skip_tags(data, pos + _CONFIG_FLAG_BYTES)
