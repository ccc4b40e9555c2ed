"""Malformed responses: our decoders raise one error, at a cost proportional to the size."""

import random
import time
import tracemalloc
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin import CreateTopicsResponse, DescribeConfigsResponse
from kafka.protocol.metadata import MetadataResponse

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.client.decoding.configs_decoder import decode_configs
from kdeclare.providers.kafka.client.decoding.created_topics import decode_created_topics
from kdeclare.providers.kafka.client.decoding.wire_format import (
    MalformedResponse,
    RawResponse,
    read_count,
    read_string,
    read_uvarint,
    skip_tags,
)
from kdeclare.providers.kafka.client.topics import decode_topics
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import ConfigQuery
from tests.fake_broker import fake_broker

REAL = Path(__file__).with_name("kafka_answers")
"""What brokers of Kafka 4.3.1 answered about twelve topics and broker 1; the names end in the version."""

TOPICS = [f"orders-{i}" for i in range(12)]
QUERIES: Mapping[ConfigResource, ConfigQuery] = {
    resource: ConfigQuery(resource, frozenset({"retention.ms"}), overrides=True)
    for resource in [
        *(ConfigResource(ConfigScope.TOPIC, name) for name in TOPICS),
        ConfigResource(ConfigScope.BROKER, "1"),
    ]
}


def decode(name: str, body: bytes) -> list[Any]:
    version = int(name.rpartition("-v")[2])
    if name.startswith("metadata"):
        return list(decode_topics(RawResponse(body, version)))
    if name.startswith("created"):
        return decode_created_topics(RawResponse(body, version))
    return list(decode_configs(RawResponse(body, version), QUERIES))


def read_recorded(name: str) -> bytes:
    return (REAL / f"{name}.bin").read_bytes()


ANSWERS = ["metadata-v13", "topic-configs-v4", "broker-configs-v4", "created-topics-v7"]


def mutate(body: bytes, seed: int) -> bytes:
    """Change one to three bytes, remove or insert pieces, or cut off the end."""
    chance, data = random.Random(seed), bytearray(body)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        how = chance.randrange(5)
        if how < 2:
            data[at] = chance.randrange(256)
        elif how == 2:
            del data[at : at + chance.randint(1, 9)]
        elif how == 3:
            data[at:at] = chance.randbytes(chance.randint(1, 6))
        else:
            del data[at:]
        data = data or bytearray(1)
    return bytes(data)


@pytest.mark.parametrize("name", ANSWERS)
def test_recorded_response_is_decoded(name: str) -> None:
    found = decode(name, read_recorded(name))
    if name.startswith("broker"):
        assert found[0].entries["log.cleaner.backoff.ms"].value == "14000"
    else:
        assert len(found) >= len(TOPICS)


@pytest.mark.parametrize("name", ANSWERS)
@given(seed=st.integers(0, 2**63))
def test_mutated_response_is_decoded_or_malformed(name: str, seed: int) -> None:
    started = time.process_time()
    with suppress(MalformedResponse):
        decode(name, mutate(read_recorded(name), seed))
    assert time.process_time() - started < 2


@given(st.binary(max_size=200), st.sampled_from(ANSWERS))
def test_random_bytes_are_decoded_or_malformed(body: bytes, name: str) -> None:
    with suppress(MalformedResponse):
        decode(name, body)


@pytest.mark.parametrize("name", ANSWERS)
def test_truncated_or_too_long_response_is_malformed(name: str) -> None:
    body = read_recorded(name)
    for end in range(4, len(body), 97):
        with pytest.raises(MalformedResponse):
            decode(name, body[:end])
    with pytest.raises(MalformedResponse, match="follow the end"):
        decode(name, body + b"\0")


def make_entries_response(count: int) -> bytes:
    kind = DescribeConfigsResponse.DescribeConfigsResult
    entry = kind.DescribeConfigsResourceResult(
        name="", value="", read_only=False, config_source=5, is_sensitive=False, synonyms=[], config_type=2
    )
    result = kind(resource_type=2, resource_name=TOPICS[0], configs=[entry] * count)
    body: bytes = DescribeConfigsResponse(throttle_time_ms=0, results=[result]).encode(version=4)
    return body


def make_topics_response(partitions: int) -> bytes:
    kind = MetadataResponse.MetadataResponseTopic
    made = [
        kind.MetadataResponsePartition(
            error_code=0,
            partition_index=index,
            leader_id=1,
            leader_epoch=0,
            replica_nodes=[1],
            isr_nodes=[1],
            offline_replicas=[],
        )
        for index in range(partitions)
    ]
    topic = kind(error_code=0, name="t", topic_id=UUID(int=1), is_internal=False, partitions=made)
    response = MetadataResponse(
        throttle_time_ms=0, brokers=[], cluster_id="c", controller_id=1, topics=[topic], error_code=0
    )
    body: bytes = response.encode(version=13)
    return body


def make_created_response(configs: int, topics: int = 1) -> bytes:
    kind = CreateTopicsResponse.CreatableTopicResult
    entry = kind.CreatableTopicConfigs(
        name="", value="", read_only=False, config_source=5, is_sensitive=False
    )
    made = [
        kind(
            name="t",
            topic_id=UUID(int=1),
            error_code=0,
            error_message=None,
            num_partitions=1,
            replication_factor=1,
            configs=[entry] * (configs + n),
        )
        for n in range(topics)
    ]
    body: bytes = CreateTopicsResponse(throttle_time_ms=0, topics=made).encode(version=7)
    return body


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "body", "per_byte"),
    [
        ("topic-configs-v4", make_entries_response(15_900), 30),  # 143 kB that once decoded to 1,089 MiB
        (
            "topic-configs-v4",
            make_entries_response(1_990),
            120,
        ),  # as many as the decoder keeps for comparison
        ("metadata-v13", make_topics_response(6_000), 30),
        ("created-topics-v7", make_created_response(15_900), 30),
        ("created-topics-v7", make_created_response(500, topics=40), 30),
        ("created-topics-v7", b"\0\0\0\0\xff\xff\xff\xff\x0f" + bytes(100), 30),
        ("topic-configs-v4", b"\0\0\0\0\xff\xff\xff\xff\x0f" + bytes(100), 30),
        ("metadata-v13", b"\0\0\0\0\xff\xff\xff\xff\x0f" + bytes(100), 30),
    ],
    ids=[
        "many entries",
        "entries of a pattern",
        "many partitions",
        "configs of one created topic",
        "other configs of each created topic",
        "billions of created topics",
        "billions of results",
        "of brokers",
    ],
)
def test_decoding_memory_is_proportional_to_size(name: str, body: bytes, per_byte: int) -> None:
    tracemalloc.start()
    try:
        with suppress(MalformedResponse):
            decode(name, body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000 + per_byte * len(body)


@pytest.mark.parametrize(
    "read_piece",
    [
        lambda: read_uvarint(b"\xff" * 9, 0),
        lambda: read_count(b"\x7f" + bytes(100), 0, 4),
        lambda: read_string(b"\x09abc", 0),
        lambda: skip_tags(b"\x01\x00\x09", 0),
    ],
    ids=["uvarint", "count", "string", "tags"],
)
def test_length_beyond_the_end_is_malformed(read_piece: Callable[[], object]) -> None:
    with pytest.raises(MalformedResponse):
        read_piece()


class BrokenResponse:
    """A response whose last bytes, including a count of tagged fields, are invalid."""

    API_VERSION = 0

    def __init__(self, response: Any) -> None:
        self._response = response

    def with_header(self, **options: Any) -> None:
        self._response.API_VERSION = self.API_VERSION
        self._response.with_header(**options)

    def encode(self, **options: Any) -> bytes:
        data: bytes = self._response.encode(**options)
        return data[:-3] + b"\xff\xff\xff"


def test_malformed_response_is_corrupt_message_fault() -> None:
    """A response of the right length with invalid content raises only a Fault."""

    def respond(request: Any) -> Any:
        made = broker.metadata(request)
        return BrokenResponse(made) if any(topic.name == "t" for topic in request.topics or ()) else made

    with fake_broker({3: respond}) as broker:
        kafka = connect(broker.bootstrap, {})
        try:
            with pytest.raises(Fault) as raised:
                kafka.topics(["t"])
        finally:
            kafka.close()
    assert (raised.value.error, raised.value.kind) == ("CORRUPT_MESSAGE", FaultKind.REFUSED)
