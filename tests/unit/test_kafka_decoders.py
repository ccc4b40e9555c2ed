"""Our decoders return the same as kafka-python's, for bytes that kafka-python's classes encode."""

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin import CreateTopicsResponse, DescribeConfigsResponse
from kafka.protocol.metadata import MetadataResponse

from kdeclare.providers.kafka.client.decoding import created_topics
from kdeclare.providers.kafka.client.decoding.configs_decoder import RESOURCE_TYPES, decode_configs
from kdeclare.providers.kafka.client.decoding.created_topics import decode_created_topics
from kdeclare.providers.kafka.client.decoding.wire_format import RawResponse, read_uvarint, skip_tags
from kdeclare.providers.kafka.client.topics import decode_topics
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, ConfigType
from kdeclare.providers.kafka.request_values import ConfigQuery

RESULT = DescribeConfigsResponse.DescribeConfigsResult
CONFIG = RESULT.DescribeConfigsResourceResult
SYNONYM = CONFIG.DescribeConfigsSynonym

KEYS = ["a", "bb", "ccc", "retention.ms", "cleanup.policy", "k" * 130]

texts = st.none() | st.text(max_size=5) | st.just("v" * 200)


@st.composite
def draw_configs(draw: st.DrawFn) -> list[Any]:
    """Entries of one resource, mostly the same ones in the same order, as in Kafka."""
    usual = draw(st.booleans())
    names = KEYS if usual else draw(st.permutations(KEYS).map(lambda keys: keys[: draw(st.integers(0, 6))]))
    return [
        CONFIG(
            name=name,
            value="default" if (plain := draw(st.booleans())) else draw(texts),
            read_only=False if plain else draw(st.booleans()),
            config_source=5 if plain else draw(st.integers(-1, 8)),
            is_sensitive=False if plain else draw(st.booleans()),
            synonyms=[]
            if plain
            else [
                SYNONYM(name=draw(st.text(max_size=3)), value=draw(texts), source=draw(st.integers(0, 8)))
                for _ in range(draw(st.integers(0, 2)))
            ],
            config_type=2 if plain else draw(st.integers(0, 9)),
            documentation=None if plain else draw(texts),
        )
        for name in names
    ]


@st.composite
def draw_response(draw: st.DrawFn) -> tuple[bytes, Mapping[ConfigResource, ConfigQuery]]:
    """A response as bytes, and the queries that it answers."""
    results, queries = [], {}
    for index in range(draw(st.integers(0, 6))):
        scope = draw(st.sampled_from(ConfigScope))
        name = draw(st.sampled_from(["", f"name-{index}", str(index), "é" * 100 + str(index)]))
        resource = ConfigResource(scope, name)
        if resource in queries:
            continue
        keys = frozenset(draw(st.sets(st.sampled_from(KEYS), max_size=3)))
        queries[resource] = ConfigQuery(resource, keys, draw(st.booleans()))
        results.append(
            RESULT(
                error_code=draw(st.sampled_from([0, 0, 3, 29])),
                error_message=draw(texts),
                resource_type=RESOURCE_TYPES[scope],
                resource_name=name,
                configs=draw(draw_configs()),
            )
        )
    response = DescribeConfigsResponse(throttle_time_ms=draw(st.integers(0, 99)), results=results)
    return response.encode(version=4), queries


@given(draw_response())
def test_decoded_configs_equal_kafka_python(
    answer: tuple[bytes, Mapping[ConfigResource, ConfigQuery]],
) -> None:
    body, queries = answer
    theirs = decode_configs(DescribeConfigsResponse.decode(body, version=4), queries)
    assert decode_configs(RawResponse(body, 4), queries) == theirs


@pytest.mark.parametrize("length", [1, 50, 200])
def test_override_after_long_override_is_decoded(length: int) -> None:
    """The decoder compares the remaining entries with those of the previous topic all at once."""
    long = [make_entry("a", "v" * length, 1), make_entry("x", "default", 5)]
    other = [make_entry("a", "default", 5), make_entry("x", "mine", 1)]
    results = [RESULT(0, None, 2, f"t{n}", configs) for n, configs in enumerate((long, other, other))]
    body = DescribeConfigsResponse(throttle_time_ms=0, results=results).encode(version=4)
    resources = [ConfigResource(ConfigScope.TOPIC, f"t{n}") for n in range(3)]
    queries = {resource: ConfigQuery(resource, overrides=True) for resource in resources}
    found = [described.entries for described in decode_configs(RawResponse(body, 4), queries)]
    assert [{key: item.value for key, item in entries.items()} for entries in found] == [
        {"a": "v" * length},
        {"x": "mine"},
        {"x": "mine"},
    ]


def make_entry(name: str, value: str | None, source: int, kind: int = 5) -> Any:
    return CONFIG(
        name=name,
        value=value,
        read_only=False,
        config_source=source,
        is_sensitive=False,
        synonyms=[],
        config_type=kind,
        documentation=None,
    )


def make_result(name: str, *entries: Any, scope: int = 2) -> Any:
    return RESULT(
        error_code=0, error_message=None, resource_type=scope, resource_name=name, configs=list(entries)
    )


def decode_with_our_decoder(query: ConfigQuery, *results: Any) -> list[Mapping[str, ConfigEntry]]:
    """What our decoder keeps of each result, all of them asked for as ``query`` asks."""
    scope = query.resource.scope
    queries = {}
    for item in results:
        resource = ConfigResource(scope, item.resource_name)
        queries[resource] = ConfigQuery(resource, query.keys, query.overrides)
    body = DescribeConfigsResponse(throttle_time_ms=0, results=list(results)).encode(version=4)
    return [item.entries for item in decode_configs(RawResponse(body, 4), queries)]


TOPIC = ConfigResource(ConfigScope.TOPIC, "")


def test_overrides_are_decoded_at_any_position() -> None:
    inherited = [make_entry("a", "1", 5), make_entry("b", "2", 4), make_entry("c", "3", 5)]
    overridden = [make_entry("a", "9", 1), make_entry("b", "8", 1), make_entry("c", "7", 1, kind=7)]
    rows = [
        [overridden[0], inherited[1], overridden[2]],
        inherited,
        [inherited[0], overridden[1], inherited[2]],
        inherited,
        [*inherited, make_entry("new", "x", 1)],
        [make_entry("first", "x", 1), *inherited],
        inherited[1:],
        [],
    ]
    found = decode_with_our_decoder(
        ConfigQuery(TOPIC, overrides=True), *[make_result(f"t{i}", *row) for i, row in enumerate(rows)]
    )
    assert [sorted(entries) for entries in found] == [["a", "c"], [], ["b"], [], ["new"], ["first"], [], []]
    assert found[0]["c"] == ConfigEntry("7", ConfigSource.TOPIC, ConfigType.LIST)


def test_requested_keys_are_decoded_for_any_source() -> None:
    row = [make_entry("a", "1", 5), make_entry("b", None, 4), make_entry("c", "3", 1)]
    query = ConfigQuery(TOPIC, frozenset({"b", "zz"}))
    found = decode_with_our_decoder(query, make_result("t0", *row), make_result("t1", *row))
    assert found == [{"b": ConfigEntry(None, ConfigSource.STATIC)}] * 2


def test_equal_overrides_share_one_object() -> None:
    """Up to a limit of values per key; beyond it, each topic has its own object."""
    values = [str(n % 12) for n in range(36)]
    topics = [
        make_result(
            f"t{n}", make_entry("a", "default", 5), make_entry("b", value, 1), make_entry("c", value, 1)
        )
        for n, value in enumerate(values)
    ]

    found = decode_with_our_decoder(ConfigQuery(TOPIC, overrides=True), *topics)

    assert [{key: item.value for key, item in entries.items()} for entries in found] == [
        {"b": value, "c": value} for value in values
    ]
    assert all(found[n]["b"] is found[n + 24]["b"] for n in range(1, 8))


def test_skipped_entries_share_one_object() -> None:
    row = [make_entry("a", "1", 5), make_entry("b", "2", 5)]
    first, second = decode_with_our_decoder(
        ConfigQuery(TOPIC, frozenset({"b"})), make_result("t0", *row), make_result("t1", *row)
    )
    assert first["b"] is second["b"]


@pytest.mark.parametrize(("name", "own"), [("1", "broker"), ("", "cluster")])
def test_broker_overrides_belong_to_that_resource_only(name: str, own: str) -> None:
    row = [
        make_entry("broker", "1", 2),
        make_entry("cluster", "2", 3),
        make_entry("static", "3", 4),
        make_entry("topic", "4", 1),
    ]
    query = ConfigQuery(ConfigResource(ConfigScope.BROKER, name), overrides=True)
    (found,) = decode_with_our_decoder(query, make_result(name, *row, scope=4))
    assert list(found) == [own]


CREATED = CreateTopicsResponse.CreatableTopicResult
created_configs = st.lists(
    st.builds(
        CREATED.CreatableTopicConfigs,
        name=st.sampled_from(KEYS),
        value=texts,
        read_only=st.booleans(),
        config_source=st.integers(-1, 8),
        is_sensitive=st.booleans(),
    ),
    max_size=4,
)


@given(st.data())
def test_decoded_created_topics_equal_kafka_python(data: st.DataObject) -> None:
    blocks = data.draw(st.lists(created_configs, min_size=1, max_size=6))
    topics = [
        CREATED(
            name=data.draw(st.text(max_size=5)),
            topic_id=data.draw(st.uuids() | st.just(UUID(int=0))),
            error_code=data.draw(st.sampled_from([0, 0, 36, 40])),
            error_message=data.draw(texts),
            num_partitions=1,
            replication_factor=1,
            configs=data.draw(st.sampled_from(blocks)),
        )
        for _ in range(data.draw(st.integers(0, 12)))
    ]
    body = CreateTopicsResponse(throttle_time_ms=0, topics=topics).encode(version=7)
    theirs = decode_created_topics(CreateTopicsResponse.decode(body, version=7))
    kept = data.draw(st.sampled_from([0, 2, 32]))
    with patch.object(created_topics, "_RECENT_CONFIGS", kept):
        assert decode_created_topics(RawResponse(body, 7)) == theirs


partitions = st.builds(
    MetadataResponse.MetadataResponseTopic.MetadataResponsePartition,
    error_code=st.integers(0, 10),
    partition_index=st.integers(0, 40),
    leader_id=st.integers(-1, 5),
    leader_epoch=st.integers(-1, 9),
    replica_nodes=st.lists(st.integers(0, 2**31 - 1), max_size=40),
    isr_nodes=st.lists(st.integers(0, 5), max_size=4),
    offline_replicas=st.lists(st.integers(0, 5), max_size=2),
)
metadata_topics = st.builds(
    MetadataResponse.MetadataResponseTopic,
    error_code=st.sampled_from([0, 3, 5, 29]),
    name=st.text(max_size=5) | st.just("n" * 200),
    topic_id=st.uuids(),
    is_internal=st.booleans(),
    partitions=st.lists(partitions, max_size=4, unique_by=lambda p: p.partition_index),
    authorized_operations=st.just(None),
)
brokers = st.builds(
    MetadataResponse.MetadataResponseBroker,
    node_id=st.integers(0, 9),
    host=st.text(max_size=3),
    port=st.integers(0, 65535),
    rack=st.none() | st.text(max_size=3),
)


@given(
    st.sampled_from([11, 12, 13]),
    st.lists(metadata_topics, max_size=4),
    st.lists(brokers, max_size=3),
    st.none() | st.text(max_size=22),
)
def test_decoded_topics_equal_kafka_python(
    version: int, topics: list[Any], known: list[Any], cluster_id: str | None
) -> None:
    body = MetadataResponse(
        throttle_time_ms=1, brokers=known, cluster_id=cluster_id, controller_id=1, topics=topics, error_code=0
    ).encode(version=version)
    theirs = decode_topics(MetadataResponse.decode(body, version=version))
    assert decode_topics(RawResponse(body, version)) == theirs


def test_topic_ids_have_text_format_of_kafka() -> None:
    topic_id = UUID("12345678-9abc-def0-1234-56789abcdef0")
    topic = MetadataResponse.MetadataResponseTopic(
        error_code=0, name="t", topic_id=topic_id, is_internal=True, partitions=[], authorized_operations=None
    )
    body = MetadataResponse(
        throttle_time_ms=0, brokers=[], cluster_id="c", controller_id=1, topics=[topic], error_code=0
    ).encode(version=12)
    (found,) = decode_topics(RawResponse(body, 12))
    assert found.topic.topic_id == str(topic_id)
    assert found.topic.internal


def test_varints_and_tags_are_decoded() -> None:
    assert read_uvarint(b"\x7f", 0) == (127, 1)
    assert read_uvarint(b"\x00\x80\x80\x04", 1) == (65536, 4)
    assert skip_tags(b"\x02\x05\x01a\x06\x02bc!", 0) == 8
