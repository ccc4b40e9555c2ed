"""The adapter's requests and how it reads responses, against a fake broker."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from kafka.protocol.admin import (
    AlterPartitionReassignmentsResponse,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
)

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.client.wire import MAX_THROTTLE_S, _compute_throttle_end, batch_items
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.request_values import (
    ConfigAlteration,
    ConfigOp,
    ConfigQuery,
    NewPartitions,
    NewTopic,
)
from tests.beds import all_created
from tests.cases import case
from tests.fake_broker import Answer, FakeBroker, fake_broker

METADATA, CREATE, DELETE, DESCRIBE, LEGACY_ALTER, GROW, ALTER, REASSIGN = 3, 19, 20, 32, 33, 37, 44, 45


@contextmanager
def run_cluster(
    answers: dict[int, Answer], versions: dict[int, int] | None = None, **options: Any
) -> Iterator[tuple[KafkaCluster, FakeBroker]]:
    with fake_broker(answers, versions) as broker:
        made = connect(broker.bootstrap, {}, **options)
        try:
            yield made, broker
        finally:
            made.close()


def make_topic(name: str, partitions: int | None = 1) -> NewTopic:
    return NewTopic(name, partitions, 1, None, {})


def make_created_response(request: Any) -> Any:
    kind = CreateTopicsResponse.CreatableTopicResult
    return CreateTopicsResponse(
        throttle_time_ms=0,
        topics=[
            kind(name=topic.name, error_code=40 if topic.name == "bad" else 0, error_message="no good")
            for topic in request.topics
        ],
    )


def make_deleted_response(request: Any) -> Any:
    kind = DeleteTopicsResponse.DeletableTopicResult
    names = request.topic_names or [topic.name for topic in request.topics]
    return DeleteTopicsResponse(
        throttle_time_ms=0, responses=[kind(name=name, error_code=0) for name in names]
    )


def make_partitions_response(request: Any) -> Any:
    kind = CreatePartitionsResponse.CreatePartitionsTopicResult
    return CreatePartitionsResponse(
        throttle_time_ms=0, results=[kind(name=topic.name, error_code=0) for topic in request.topics]
    )


def test_create_topics_batches_keep_error_of_each_item() -> None:
    names = [f"t{i}" for i in range(1200)] + ["bad"]
    with run_cluster({CREATE: make_created_response}) as (kafka, broker):
        results = kafka.create_topics([make_topic(name) for name in names])
    assert [len(request.topics) for request in broker.list_requests(CREATE)] == [500, 500, 201]
    assert list(results) == names
    assert {name for name, fault in results.items() if isinstance(fault, Fault)} == {"bad"}
    fault = results["bad"]
    assert isinstance(fault, Fault)
    assert (fault.error, fault.message, fault.kind) == ("INVALID_CONFIG", "no good", FaultKind.REFUSED)


def test_create_topics_requests_stay_below_controller_limit() -> None:
    with run_cluster({CREATE: make_created_response}) as (kafka, broker):
        kafka.create_topics([make_topic(f"t{i}", 1000) for i in range(9)], validate_only=True)
    sent = broker.list_requests(CREATE)
    assert [len(request.topics) for request in sent] == [4, 4, 1]
    assert all(request.validate_only for request in sent)


@pytest.mark.parametrize(
    ("versions", "sent"),
    [({}, (7, 6, 3)), ({CREATE: 4, DELETE: 3, GROW: 1}, (4, 3, 1))],
    ids=["current brokers", "brokers before Kafka 2.7"],
)
def test_topic_requests_use_highest_broker_version(
    versions: dict[int, int], sent: tuple[int, int, int]
) -> None:
    """From these versions on, a strict mutation quota is an error code instead of minutes of silence."""
    with run_cluster(
        {CREATE: make_created_response, DELETE: make_deleted_response, GROW: make_partitions_response},
        versions,
    ) as (kafka, broker):
        assert all_created(kafka.create_topics([make_topic("t")]))
        assert kafka.create_partitions([NewPartitions("t", 2, None)]) == {"t": None}
        assert kafka.delete_topics({"t": None}) == {"t": None}
    asked = [broker.list_requests(api)[0].API_VERSION for api in (CREATE, DELETE, GROW)]
    assert tuple(asked) == sent


def test_quota_fault_has_message_and_throttle_time() -> None:
    def respond(request: Any) -> Any:
        made = make_created_response(request)
        made.throttle_time_ms = 250
        for topic in made.topics:
            topic.error_code, topic.error_message = 89, None
        return made

    with run_cluster({CREATE: respond}) as (kafka, _):
        started = time.monotonic()
        fault = kafka.create_topics([make_topic("t")])["t"]
        kafka.topics(["t"])  # on the connection that is throttled
        assert time.monotonic() - started > 0.25
    assert isinstance(fault, Fault)
    assert (fault.error, fault.kind, fault.retry_after_s) == (
        "THROTTLING_QUOTA_EXCEEDED",
        FaultKind.RETRIABLE,
        0.25,
    )
    assert "controller_mutation_rate" in fault.message
    assert "0.2 s" in fault.message


def test_changes_under_quota_are_sent_one_after_another() -> None:
    """A broker that rejects one mutes its connection, so the next would time out with an unknown outcome."""
    with run_cluster({CREATE: lambda _: ...}, request_timeout_s=0.6) as (kafka, broker):
        kafka.create_topics([make_topic(f"t{i}") for i in range(1100)])
    assert len(broker.list_requests(CREATE)) == 3
    assert broker.connections >= 3  # each timeout ended a connection with one request


def test_throttle_end_uses_throttle_time_up_to_limit() -> None:
    """`_compute_throttle_end` uses the broker's throttle time, up to a limit."""
    connection = type("Throttled", (), {"_throttle_time": time.monotonic() + 15})()
    assert 14 < _compute_throttle_end(connection) - time.monotonic() < 16
    connection._throttle_time = time.monotonic() + 10**9
    assert _compute_throttle_end(connection) - time.monotonic() < MAX_THROTTLE_S + 1
    connection._throttle_time = 0
    assert _compute_throttle_end(connection) == 0


def test_batch_items_keeps_every_item() -> None:
    assert batch_items(range(5), 2) == [[0, 1], [2, 3], [4]]
    assert batch_items([1, 9000, 1], count_metadata_records=lambda n: n) == [[1], [9000], [1]]
    assert batch_items([]) == []


def test_empty_calls_send_no_request() -> None:
    with run_cluster({}) as (kafka, broker):
        assert kafka.create_topics([]) == {}
        assert kafka.configs([]) == {}
        assert kafka.reassign({}, allow_replication_factor_change=True) == {}
    assert not broker.list_requests(CREATE)


@pytest.mark.parametrize(("validate_only", "kind"), [(False, FaultKind.UNKNOWN), (True, FaultKind.RETRIABLE)])
def test_lost_connection_after_sending_change_is_unknown(validate_only: bool, kind: FaultKind) -> None:
    with run_cluster({CREATE: lambda _: None}) as (kafka, _), pytest.raises(Fault) as raised:
        kafka.create_topics([make_topic("t")], validate_only=validate_only)
    assert (raised.value.error, raised.value.kind) == ("NETWORK_EXCEPTION", kind)


@pytest.mark.parametrize(("validate_only", "kind"), [(False, FaultKind.UNKNOWN), (True, FaultKind.RETRIABLE)])
def test_time_out_of_change_is_unknown(validate_only: bool, kind: FaultKind) -> None:
    with run_cluster({CREATE: lambda _: ...}, request_timeout_s=0.3) as (kafka, _):
        begun = time.monotonic()
        with pytest.raises(Fault) as raised:
            kafka.create_topics([make_topic("t")], validate_only=validate_only)
        assert time.monotonic() - begun < 25, "the usual time-out is 30 s"
    assert (raised.value.error, raised.value.kind) == ("REQUEST_TIMED_OUT", kind)


def test_response_before_disconnect_is_read() -> None:
    """One connection for each, because a connection that has just ended can look usable."""
    for name in "abc":
        with run_cluster({CREATE: lambda request: (make_created_response(request),)}) as (kafka, _):
            assert all_created(kafka.create_topics([make_topic(name)]))


def test_lost_request_affects_only_its_items() -> None:
    def respond(request: Any) -> Any:
        return None if request.topics[0].name == "t500" else make_created_response(request)

    with run_cluster({CREATE: respond}) as (kafka, _):
        results = kafka.create_topics([make_topic(f"t{i}") for i in range(1500)])
    first = (result for name, result in results.items() if int(name[1:]) < 500)
    kinds = {result.kind if isinstance(result, Fault) else None for result in first}
    assert len(results) == 1500
    assert {results[f"t{i}"].kind for i in range(500, 1000)} == {FaultKind.UNKNOWN}  # type: ignore[union-attr]
    assert kinds <= {None, FaultKind.UNKNOWN}  # in flight on the same connection


def test_lost_broker_before_sending_is_retriable() -> None:
    with run_cluster({CREATE: lambda _: None}, request_timeout_s=1) as (kafka, broker):
        broker.close()
        with pytest.raises(Fault):
            kafka.create_topics([make_topic("t")])  # the connection is lost
        with pytest.raises(Fault) as raised:
            kafka.create_topics([make_topic("t")])
    assert (raised.value.error, raised.value.kind) == ("NETWORK_EXCEPTION", FaultKind.RETRIABLE)
    assert f"127.0.0.1:{broker.port}" in raised.value.message
    assert "ECONNREFUSED" in raised.value.message


def test_item_missing_from_response_is_unknown() -> None:
    with run_cluster({CREATE: lambda _: CreateTopicsResponse(throttle_time_ms=0, topics=[])}) as (kafka, _):
        fault = kafka.create_topics([make_topic("t")])["t"]
    assert isinstance(fault, Fault)
    assert fault.kind is FaultKind.UNKNOWN


def make_reassigned_response(request: Any) -> Any:
    topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        error_code=0,
        error_message=None,
        responses=[
            topic(
                name=sent.name,
                partitions=[
                    topic.ReassignablePartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=0 if partition.replicas is None else 38,
                        error_message="changed from 3 to 2",
                    )
                    for partition in sent.partitions
                ],
            )
            for sent in request.topics
        ],
    )


MOVE, CANCEL = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize("allow", [True, False])
def test_reassign_sends_replication_factor_guard(allow: bool) -> None:
    with run_cluster({REASSIGN: make_reassigned_response}) as (kafka, broker):
        results = kafka.reassign({MOVE: (1, 2), CANCEL: None}, allow_replication_factor_change=allow)
    (sent,) = broker.list_requests(REASSIGN)
    assert sent.allow_replication_factor_change is allow
    assert results[CANCEL] is None
    assert str(results[MOVE]) == "INVALID_REPLICATION_FACTOR: changed from 3 to 2"


def test_reassign_is_not_sent_to_broker_without_guard() -> None:
    with run_cluster({REASSIGN: make_reassigned_response}, {REASSIGN: 0}) as (kafka, broker):
        results = kafka.reassign({MOVE: (1, 2), CANCEL: None}, allow_replication_factor_change=False)
    assert not broker.list_requests(REASSIGN)
    assert set(results) == {MOVE, CANCEL}
    for fault in results.values():
        assert fault is not None
        assert (fault.error, fault.kind) == ("UNSUPPORTED_VERSION", FaultKind.REFUSED)
        assert "does not support the AllowReplicationFactorChange option" in fault.message


@pytest.mark.parametrize(("allow", "unguarded"), [(True, False), (True, True), (False, True)])
def test_reassign_without_guard_accepts_version_0(allow: bool, unguarded: bool) -> None:
    with run_cluster({REASSIGN: make_reassigned_response}, {REASSIGN: 0}) as (kafka, broker):
        kafka.reassign({CANCEL: None}, allow_replication_factor_change=allow, unguarded=unguarded)
    (sent,) = broker.list_requests(REASSIGN)
    assert sent.API_VERSION == 0


def test_reassign_without_permission_is_fault() -> None:
    def respond(_: Any) -> Any:
        return AlterPartitionReassignmentsResponse(
            throttle_time_ms=0, error_code=31, error_message="no", responses=[]
        )

    with run_cluster({REASSIGN: respond}) as (kafka, _), pytest.raises(Fault) as raised:
        kafka.reassign({MOVE: (1,)}, allow_replication_factor_change=True)
    assert (raised.value.error, raised.value.kind) == ("CLUSTER_AUTHORIZATION_FAILED", FaultKind.REFUSED)


def test_alter_configs_sends_operations_of_kip_339() -> None:
    def respond(request: Any) -> Any:
        kind = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
        return IncrementalAlterConfigsResponse(
            throttle_time_ms=0,
            responses=[
                kind(
                    error_code=0,
                    error_message=None,
                    resource_type=r.resource_type,
                    resource_name=r.resource_name,
                )
                for r in request.resources
            ],
        )

    ops = (
        ConfigOp("a", FieldOp.SET, "1"),
        ConfigOp("b", FieldOp.DELETE, "ignored"),
        ConfigOp("c", FieldOp.APPEND, "x,y"),
        ConfigOp("d", FieldOp.SUBTRACT, "z"),
    )
    topic, everywhere, one = (
        ConfigResource(ConfigScope.TOPIC, "t"),
        ConfigResource(ConfigScope.BROKER, ""),
        ConfigResource(ConfigScope.BROKER, "1"),
    )
    with run_cluster({ALTER: respond}) as (kafka, broker):
        items = [ConfigAlteration(resource, ops) for resource in (topic, everywhere, one)]
        assert kafka.alter_configs(items) == {topic: None, everywhere: None, one: None}
    first, second = broker.list_requests(ALTER)
    assert [(r.resource_type, r.resource_name) for r in first.resources] == [(2, "t"), (4, "")]
    assert [(r.resource_type, r.resource_name) for r in second.resources] == [(4, "1")]
    sent = [(c.name, c.config_operation, c.value) for c in first.resources[0].configs]
    assert sent == [("a", 0, "1"), ("b", 1, None), ("c", 2, "x,y"), ("d", 3, "z")]


def make_describe_answers(
    code: int, version: int, *, of: str | None = None
) -> tuple[dict[int, Answer], dict[int, int]]:
    """Answer DescribeConfigs with an error code for one resource, or for all."""

    def respond(request: Any) -> Any:
        kind = DescribeConfigsResponse.DescribeConfigsResult
        entry = kind.DescribeConfigsResourceResult
        return DescribeConfigsResponse(
            throttle_time_ms=0,
            results=[
                kind(
                    error_code=code if of in (None, r.resource_name) else 0,
                    error_message="why",
                    resource_type=r.resource_type,
                    resource_name=r.resource_name,
                    configs=[
                        entry(
                            name="mine",
                            value="1",
                            read_only=False,
                            config_source=1,
                            synonyms=[],
                            config_type=5,
                        ),
                        entry(
                            name="not",
                            value="1",
                            read_only=False,
                            config_source=5,
                            synonyms=[],
                            config_type=5,
                        ),
                    ],
                )
                for r in request.resources
            ],
        )

    return {DESCRIBE: respond}, {DESCRIBE: version}


@case("OPS-26")
def test_alter_configs_is_not_sent_to_broker_with_only_legacy_request() -> None:
    """AlterConfigs (before KIP-339) would remove each override that the request does not name."""
    topic = ConfigResource(ConfigScope.TOPIC, "t1")
    with run_cluster({}, {ALTER: -1, LEGACY_ALTER: 2}) as (kafka, broker):
        with pytest.raises(Fault) as raised:
            kafka.alter_configs([ConfigAlteration(topic, (ConfigOp("k2", FieldOp.SET, "901"),))])
        asked = {request.API_KEY for request in broker.requests}
    assert (raised.value.error, raised.value.kind) == ("UNSUPPORTED_VERSION", FaultKind.REFUSED)
    assert not asked & {ALTER, LEGACY_ALTER}


@pytest.mark.parametrize("version", [1, 3, 4])
def test_configs_are_read_in_old_and_new_versions(version: int) -> None:
    topics = [ConfigResource(ConfigScope.TOPIC, f"t{i}") for i in range(600)]
    answers, versions = make_describe_answers(0, version)
    with run_cluster(answers, versions) as (kafka, broker):
        found = kafka.configs([ConfigQuery(topic, overrides=True) for topic in topics])
    assert set(found) == set(topics)
    assert all(list(entries) == ["mine"] for entries in found.values())
    assert all(
        r.configuration_keys is None for sent in broker.list_requests(DESCRIBE) for r in sent.resources
    )


def test_configs_omit_missing_and_raise_for_forbidden_resources() -> None:
    query = ConfigQuery(ConfigResource(ConfigScope.TOPIC, "t"), frozenset({"mine"}))
    with run_cluster(*make_describe_answers(3, 4)) as (kafka, broker):
        assert kafka.configs([query, query]) == {}
    (resource,) = broker.list_requests(DESCRIBE)[0].resources
    assert resource.configuration_keys == ["mine"]
    with run_cluster(*make_describe_answers(29, 4)) as (kafka, _), pytest.raises(Fault) as raised:
        kafka.configs([query])
    assert raised.value.error == "TOPIC_AUTHORIZATION_FAILED"
    assert "t" in raised.value.message


@pytest.mark.parametrize("version", [1, 4])
def test_describe_configs_partially_reports_forbidden_resource(version: int) -> None:
    one, other = (ConfigResource(ConfigScope.TOPIC, name) for name in ("one", "other"))
    with run_cluster(*make_describe_answers(29, version, of="one")) as (kafka, broker):
        found = kafka.describe_configs_partially(
            [ConfigQuery(topic, overrides=True) for topic in (one, other)]
        )
    assert list(found) == [one, other]
    refused = found[one]
    assert isinstance(refused, Fault)
    assert (refused.error, refused.message) == ("TOPIC_AUTHORIZATION_FAILED", "TOPIC one: why")
    assert not isinstance(found[other], Fault)
    assert len(broker.list_requests(DESCRIBE)) == 1


def test_create_topics_is_thread_safe() -> None:
    with run_cluster({CREATE: make_created_response}) as (kafka, broker), ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda i: kafka.create_topics([make_topic(f"t{i}")]), range(200)))
    assert [list(results) for results in found] == [[f"t{i}"] for i in range(200)]
    assert len(broker.list_requests(CREATE)) == 200


def test_closed_cluster_rejects_requests_and_leaves_no_thread() -> None:
    before = threading.active_count()
    with run_cluster({}) as (kafka, _):
        kafka.close()
        with pytest.raises(Fault, match="closed"):
            kafka.topics()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("kafka-io")]
    assert threading.active_count() <= before + 3  # the broker's own
