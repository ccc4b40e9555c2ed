"""Decode CreateTopics responses, but skip the configs of each topic (KIP-525).

kafka-python takes 0.05 ms per topic to decode these configs, and kdeclare does not use them.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.client.decoding.topic_ids import format_topic_id, read_topic_id
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

_COUNTS_BYTES = 6  # partitions and replication factor
_CONFIG_FLAG_BYTES = 3  # read-only, source, sensitive

# Minimum sizes of repeated items in bytes: the fixed fields, and one byte per string, array and tag section.
_MIN_TOPIC_BYTES = 28
_MIN_CONFIG_BYTES = 6

_RECENT_CONFIGS = 32
"""How many of the most recent different sets of configs are compared with the configs of each topic."""


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The result for one topic. The id is empty if the topic was not created."""

    name: str
    topic_id: str
    error_code: int
    error_message: str | None


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
    skipper = _ConfigSkipper()
    for _ in range(count):
        name, pos = read_string(data, pos)
        topic_id, pos = read_topic_id(data, pos)
        error_code = int.from_bytes(data[pos : pos + 2], "big", signed=True)
        error_message, pos = read_string(data, pos + 2)
        pos = skip_tags(data, skipper.skip(data, pos + _COUNTS_BYTES))
        yield CreatedTopic(name or "", topic_id, error_code, error_message)
    require_end(data, pos)


class _ConfigRun:
    """The bytes of configs that follow each other in a response."""

    def __init__(self, configs: Sequence[bytes]) -> None:
        self.configs = configs
        self.data = b"".join(configs)


class _ConfigSkipper:
    """Finds the ends of the configs of topics by comparing them with the configs of previous topics.

    Topics often have exactly the same configs as one of the previous topics. Otherwise, most configs are
    still the same, and brokers list them in the same order. Comparing the bytes of many configs at once takes
    less time than decoding the lengths of all their strings.
    """

    def __init__(self) -> None:
        self._runs: list[_ConfigRun] = []
        self._recent: deque[bytes] = deque(maxlen=_RECENT_CONFIGS)

    def skip(self, data: bytes, start: int) -> int:
        """Return the position after the configs of a topic. Raises MalformedResponse."""
        for known in self._recent:
            if data.startswith(known, start):
                return start + len(known)
        end = self._skip_new(data, start)
        self._recent.append(data[start:end])
        return end

    def _skip_new(self, data: bytes, start: int) -> int:
        count, pos = read_count(data, start, _MIN_CONFIG_BYTES)
        if not count:  # the topic was not created
            return pos
        if count == sum(len(run.configs) for run in self._runs):
            pos = self._skip_runs(data, pos)
        else:
            configs: list[bytes] = []
            for _ in range(count):
                end = _skip_config(data, pos)
                configs.append(data[pos:end])
                pos = end
            self._runs = [_ConfigRun(configs)]
        if pos > len(data):
            raise MalformedResponse("configs extend beyond the end of the response")
        return pos

    def _skip_runs(self, data: bytes, pos: int) -> int:
        splits: list[tuple[int, list[_ConfigRun]]] = []
        for index, run in enumerate(self._runs):
            if data.startswith(run.data, pos):
                pos += len(run.data)
            else:
                parts, pos = _split_run(run, data, pos)
                splits.append((index, parts))
        for index, parts in reversed(splits):
            self._runs[index : index + 1] = parts
        return pos


def _split_run(run: _ConfigRun, data: bytes, pos: int) -> tuple[list[_ConfigRun], int]:
    """Return the configs that correspond to a run of the previous topic, and the position after them.

    Each config that differs becomes a run of its own.
    """
    parts: list[_ConfigRun] = []
    same_configs: list[bytes] = []
    for config in run.configs:
        if data.startswith(config, pos):
            same_configs.append(config)
            pos += len(config)
            continue
        if same_configs:
            parts.append(_ConfigRun(same_configs))
            same_configs = []
        end = _skip_config(data, pos)
        parts.append(_ConfigRun((data[pos:end],)))
        pos = end
    if same_configs:
        parts.append(_ConfigRun(same_configs))
    return parts, pos


def _skip_config(data: bytes, pos: int) -> int:
    pos = skip_string(data, skip_string(data, pos))
    return skip_tags(data, pos + _CONFIG_FLAG_BYTES)
