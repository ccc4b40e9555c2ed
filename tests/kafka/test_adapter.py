"""The adapter on real brokers: behavior that the in-memory cluster of the contract tests lacks."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.retry import RetryPolicy
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.client.retrying_cluster import RetryingCluster
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import ConfigSource
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery, NewTopic
from tests.beds import all_created
from tests.polling import wait_for

if TYPE_CHECKING:
    from kdeclare.sandbox import SandboxStatus

pytestmark = pytest.mark.kafka

CLUSTER_WIDE = ConfigResource(ConfigScope.BROKER, "")
KEY = "log.cleaner.backoff.ms"


def get_resource(name: str) -> ConfigResource:
    return ConfigResource(ConfigScope.TOPIC, name)


def build_topic(name: str, partitions: int = 1) -> NewTopic:
    return NewTopic(name, partitions, 1, None, {})


@pytest.fixture(scope="module")
def kafka(sandbox: "SandboxStatus") -> Iterator[KafkaCluster]:
    cluster = connect(sandbox.bootstrap, {})
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def prefix(kafka: KafkaCluster) -> Iterator[str]:
    """A prefix for topics, which are deleted at the end."""
    made = f"adapter-{uuid4().hex[:8]}-"
    yield made
    kafka.delete_topics(dict.fromkeys([name for name in kafka.topics() if name.startswith(made)]))


def test_reads_see_preceding_writes(kafka: KafkaCluster, prefix: str) -> None:
    for number in range(10):
        name = f"{prefix}{number}"
        assert all_created(kafka.create_topics([build_topic(name)]))
        assert name in kafka.topics([name])
        for resource, key in ((get_resource(name), "retention.ms"), (CLUSTER_WIDE, KEY)):
            value = str(1000 + number)
            op = ConfigOp(key, FieldOp.SET, value)
            assert kafka.alter_configs([ConfigAlteration(resource, (op,))]) == {resource: None}
            found = kafka.configs([ConfigQuery(resource, overrides=True)])
            assert found[resource][key].value == value
        assert kafka.delete_topics({name: None}) == {name: None}
        assert kafka.topics([name]) == {}
    kafka.alter_configs([ConfigAlteration(CLUSTER_WIDE, (ConfigOp(KEY, FieldOp.DELETE, None),))])


def test_configs_equal_what_kafka_python_describes(
    kafka: KafkaCluster, prefix: str, sandbox: "SandboxStatus"
) -> None:
    items = [
        NewTopic(
            f"{prefix}{number}",
            1,
            1,
            None,
            ({"retention.ms": str(number)} if number % 3 else {})
            | ({"cleanup.policy": "compact,delete"} if number % 2 else {}),
        )
        for number in range(300)
    ]
    assert all_created(kafka.create_topics(items))
    keys = frozenset({"retention.ms", "segment.bytes"})
    queries = [ConfigQuery(get_resource(item.topic), keys, overrides=True) for item in items]
    found = kafka.configs(queries)

    from kafka.admin import ConfigResource as TheirResource
    from kafka.admin import ConfigResourceType, KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=sandbox.bootstrap)
    try:
        wanted = [TheirResource(ConfigResourceType.TOPIC, item.topic) for item in items]
        theirs = admin.describe_configs(wanted, config_filter="all")["topic"]
    finally:
        admin.close()
    for item in items:
        ours = {
            key: (entry.value, entry.source.value) for key, entry in found[get_resource(item.topic)].items()
        }
        assert ours == {
            key: (entry["value"], entry["config_source"])
            for key, entry in theirs[item.topic].items()
            if key in keys or entry["config_source"] == ConfigSource.TOPIC
        }


def test_broker_configs_come_from_that_broker(kafka: KafkaCluster) -> None:
    brokers = [ConfigResource(ConfigScope.BROKER, str(broker.id)) for broker in kafka.describe().brokers]
    absent = ConfigResource(ConfigScope.BROKER, "99")
    found = kafka.configs(
        [ConfigQuery(broker, frozenset({"node.id"})) for broker in [*brokers, absent, CLUSTER_WIDE]]
    )
    assert {resource.name: entries.get("node.id") is not None for resource, entries in found.items()} == {
        "1": True,
        "2": True,
        "3": True,
        "": False,
    }
    assert all(found[broker]["node.id"].value == broker.name for broker in brokers)


def test_replication_factor_guard_stops_one_partition_of_a_batch(kafka: KafkaCluster, prefix: str) -> None:
    name = f"{prefix}guard"
    kafka.create_topics([NewTopic(name, None, None, {0: (1, 2), 1: (2, 3)}, {})])
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    results = kafka.reassign({first: (1, 2, 3), second: (3, 2)}, allow_replication_factor_change=False)
    assert results[second] is None
    fault = results[first]
    assert fault is not None
    assert (fault.error, fault.kind) == ("INVALID_REPLICATION_FACTOR", FaultKind.REFUSED)
    assert "from 2 to 3" in fault.message
    assert kafka.topics([name])[name].partitions[1].replicas == (3, 2)


def test_record_counts_match_produced_records(
    kafka: KafkaCluster, prefix: str, sandbox: "SandboxStatus"
) -> None:
    from kafka import KafkaProducer

    full, empty = f"{prefix}full", f"{prefix}empty"
    kafka.create_topics([build_topic(full, 3), build_topic(empty, 3)])
    # metadata may name a leader before that broker has taken over
    patient = RetryingCluster(kafka, RetryPolicy())
    assert patient.record_counts([full, empty, f"{prefix}absent"]) == {full: 0, empty: 0}
    producer = KafkaProducer(bootstrap_servers=sandbox.bootstrap)
    for number in range(7):
        producer.send(full, b"x", partition=number % 3)
    producer.flush()
    producer.close()
    assert patient.record_counts([full, empty]) == {full: 7, empty: 0}


@pytest.mark.parametrize(
    ("properties", "seen"),
    [
        ({"security.protocol": "SSL"}, "the server does not speak TLS, but the client connected with TLS"),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": "x.PlainLoginModule required username=a password=b;",
            },
            "the broker does not use SASL authentication on this port",
        ),
    ],
)
def test_connect_with_unsupported_security_fails_with_reason(
    sandbox: "SandboxStatus", properties: dict[str, str], seen: str
) -> None:
    with pytest.raises(KdeclareError) as raised:
        connect(sandbox.bootstrap, properties)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "unreachable"
    assert diagnostic.detail.count(seen) == 3
    assert "security.protocol" in diagnostic.hint


def test_connect_to_controller_fails_with_hint(sandbox: "SandboxStatus") -> None:
    settings = sandbox.settings
    assert settings is not None
    with pytest.raises(KdeclareError, match="returns no metadata") as raised:
        connect(f"127.0.0.1:{settings.get_controller_port(1)}", {})
    assert "controller" in raised.value.diagnostics[0].hint


def test_log_dirs_have_total_and_usable_sizes(kafka: KafkaCluster) -> None:
    found = kafka.log_dirs([])
    assert sorted(found) == [1, 2, 3]
    for dirs in found.values():
        for each in dirs:
            assert each.total is not None
            assert each.usable is not None
            assert 0 < each.usable <= each.total


def test_reads_continue_after_broker_failure(
    sandbox: "SandboxStatus", kafka: KafkaCluster, prefix: str
) -> None:
    from kdeclare import sandbox as kafka_sandbox

    items = [build_topic(f"{prefix}{number}") for number in range(300)]
    assert all_created(kafka.create_topics(items))
    kafka_sandbox.kill_broker(sandbox.folder, 3)
    try:
        queries = [ConfigQuery(get_resource(item.topic), overrides=True) for item in items]
        assert len(kafka.configs(queries)) == 300
        assert len(kafka.topics([item.topic for item in items])) == 300
        assert sorted(kafka.log_dirs()) == [1, 2]
        three = ConfigResource(ConfigScope.BROKER, "3")
        with pytest.raises(Fault) as raised:
            kafka.configs([ConfigQuery(three, frozenset({"node.id"}))])
        assert raised.value.kind is FaultKind.RETRIABLE
        owners = [ConfigResource(ConfigScope.BROKER, name) for name in ("", "1", "2", "3")]
        part = kafka.describe_configs_partially([ConfigQuery(owner, overrides=True) for owner in owners])
        assert [owner.name for owner in owners if isinstance(part[owner], Fault)] == ["3"]
    finally:
        kafka_sandbox.start_broker(sandbox.folder, 3)
    wait_for(lambda: sorted(kafka.log_dirs([])) == [1, 2, 3], 90)
