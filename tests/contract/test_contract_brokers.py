"""Broker configs through the `Cluster` protocol."""

import pytest

from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.live import ConfigSource, ConfigType
from tests.beds import (
    APPEND,
    CLUSTER_WIDE,
    DELETE,
    SET,
    SUBTRACT,
    AnyBed,
    broker_resource,
    get_error,
    get_message,
)


def test_describe_shows_brokers_with_racks(bed: AnyBed) -> None:
    info = bed.cluster.describe()
    assert [(b.id, b.rack, b.fenced) for b in info.brokers] == [
        (1, "rack-a", False),
        (2, "rack-b", False),
        (3, "rack-c", False),
    ]
    assert info.rf_guard
    assert info.version == "4.3"
    assert info.id


def test_broker_value_overrides_cluster_wide_value(bed: AnyBed) -> None:
    key = "log.cleaner.backoff.ms"
    assert bed.alter(CLUSTER_WIDE, (key, SET, "14000")) is None
    assert bed.alter(broker_resource(1), (key, SET, "13000")) is None
    bed.expect_overrides(broker_resource(1), {key: "13000"})
    bed.expect_overrides(broker_resource(2), {})
    bed.expect_overrides(CLUSTER_WIDE, {key: "14000", "min.insync.replicas": "1"})

    def check() -> None:
        one, two = bed.entry(broker_resource(1), key), bed.entry(broker_resource(2), key)
        assert (one.value, one.source) == ("13000", ConfigSource.BROKER)
        assert (two.value, two.source) == ("14000", ConfigSource.CLUSTER)

    bed.eventually(check)
    assert not bed.entry(broker_resource(1), key).read_only
    assert bed.alter(broker_resource(1), (key, DELETE, None)) is None
    bed.expect_overrides(broker_resource(1), {})


@pytest.mark.parametrize("key", ["auto.create.topics.enable", "num.partitions", "log.retention.hours"])
def test_read_only_keys_cannot_be_altered(bed: AnyBed, key: str) -> None:
    for resource in (broker_resource(1), CLUSTER_WIDE):
        answer = bed.alter(resource, (key, SET, "1"))
        assert get_error(answer) == "INVALID_REQUEST"
        assert "Cannot update these configs dynamically" in get_message(answer)
    assert bed.alter(broker_resource(1), (key, DELETE, None)) is None
    assert bed.entry(broker_resource(1), key).read_only


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("log.cleaner.threads", "many", "Not a number of type INT"),
        ("log.cleaner.backoff.ms", "-1", "Value must be at least 0"),
        ("compression.type", "zip", "String must be one of"),
        ("log.cleaner.min.cleanable.ratio", "2", "Value must be no more than 1"),
    ],
)
def test_invalid_broker_values_are_refused(bed: AnyBed, key: str, value: str, words: str) -> None:
    for resource in (broker_resource(1), CLUSTER_WIDE):
        answer = bed.alter(resource, (key, SET, value))
        assert get_error(answer) == "INVALID_REQUEST"
        assert words in get_message(answer)


def test_list_ops_on_broker_keys(bed: AnyBed) -> None:
    assert bed.alter(CLUSTER_WIDE, ("log.cleanup.policy", APPEND, "compact")) is None
    bed.expect_overrides(CLUSTER_WIDE, {"log.cleanup.policy": "delete,compact", "min.insync.replicas": "1"})
    assert bed.alter(CLUSTER_WIDE, ("log.cleanup.policy", SUBTRACT, "delete")) is None
    bed.expect_overrides(CLUSTER_WIDE, {"log.cleanup.policy": "compact", "min.insync.replicas": "1"})
    assert bed.entry(broker_resource(1), "log.cleanup.policy").type is ConfigType.LIST


@pytest.mark.parametrize("op", [APPEND, SUBTRACT])
def test_list_ops_on_non_list_broker_keys_are_refused(bed: AnyBed, op: FieldOp) -> None:
    for key in ("log.cleaner.threads", "no.such.key"):
        assert get_error(bed.alter(broker_resource(1), (key, op, "1"))) == "INVALID_CONFIG"


def test_cluster_wide_value_is_described_as_written(bed: AnyBed) -> None:
    assert bed.alter(CLUSTER_WIDE, ("log.cleaner.backoff.ms", SET, " 14000 ")) is None
    bed.expect_overrides(CLUSTER_WIDE, {"log.cleaner.backoff.ms": " 14000 ", "min.insync.replicas": "1"})

    def check() -> None:
        assert bed.entry(broker_resource(1), "log.cleaner.backoff.ms").value == "14000"

    bed.eventually(check)


@pytest.mark.parametrize(
    ("key", "value", "source"),
    [
        ("log.retention.ms", None, ConfigSource.DEFAULT),
        ("log.retention.hours", "168", ConfigSource.DEFAULT),
        ("node.id", "1", ConfigSource.STATIC),
        ("broker.rack", "rack-a", ConfigSource.STATIC),
        ("log.cleaner.threads", "1", ConfigSource.DEFAULT),
    ],
)
def test_broker_config_values_and_sources(
    bed: AnyBed, key: str, value: str | None, source: ConfigSource
) -> None:
    entry = bed.entry(broker_resource(1), key)
    assert (entry.value, entry.source, entry.sensitive) == (value, source, False)


@pytest.mark.parametrize("key", ["leader.replication.throttled.rate", "no.such.key"])
def test_hidden_broker_keys_are_described_only_when_set(bed: AnyBed, key: str) -> None:
    assert bed.describe(broker_resource(1), key) == {}


def test_duplicate_or_null_broker_key_is_refused(bed: AnyBed) -> None:
    twice = bed.alter(
        CLUSTER_WIDE, ("log.cleaner.backoff.ms", SET, "1"), ("log.cleaner.backoff.ms", SET, "2")
    )
    assert get_error(twice) == "INVALID_REQUEST"
    assert get_error(bed.alter(CLUSTER_WIDE, ("log.cleaner.backoff.ms", SET, None))) == "INVALID_REQUEST"


def test_validate_only_changes_nothing(bed: AnyBed) -> None:
    key = "log.cleaner.backoff.ms"
    for resource in (broker_resource(1), CLUSTER_WIDE):
        assert bed.alter(resource, (key, SET, "12000"), validate_only=True) is None
        assert get_error(bed.alter(resource, (key, SET, "x"), validate_only=True)) == "INVALID_REQUEST"
        assert key not in bed.overrides(resource)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("log.cleaner.threads", "0", "/ by zero"),
        ("log.cleaner.threads", "3", "cannot be increased to more than double the current value 1"),
        ("remote.log.reader.threads", "21", "should not be greater than double the current value 10"),
        ("remote.log.reader.threads", "4", "should be at least half the current value 10"),
    ],
)
def test_thread_pool_steps_beyond_limits_are_refused(bed: AnyBed, key: str, value: str, words: str) -> None:
    for resource in (broker_resource(1), CLUSTER_WIDE):
        answer = bed.alter(resource, (key, SET, value), validate_only=True)
        assert get_error(answer) == "INVALID_REQUEST"
        assert words in get_message(answer)


def test_thread_pool_is_resized_in_small_steps(bed: AnyBed) -> None:
    one = broker_resource(1)
    key = "num.replica.fetchers"
    assert bed.entry(one, key).value == "1"
    answer = bed.alter(one, (key, SET, "3"))
    assert get_error(answer) == "INVALID_REQUEST"
    assert bed.alter(one, (key, SET, "2")) is None

    def check() -> None:
        assert bed.entry(one, key).value == "2"

    bed.eventually(check)
    assert bed.alter(one, (key, SET, "4")) is None
    bed.expect_overrides(one, {key: "4"})
    # not even in one step back to the default
    answer = bed.alter(one, (key, DELETE, None))
    assert get_error(answer) == "INVALID_REQUEST"
    assert bed.alter(one, (key, SET, "2")) is None
    bed.expect_overrides(one, {key: "2"})


PER_IP, OVERRIDES = "max.connections.per.ip", "max.connections.per.ip.overrides"


@pytest.mark.parametrize("resource", [CLUSTER_WIDE, broker_resource(1)], ids=["cluster-wide", "broker"])
@pytest.mark.parametrize("validate_only", [True, False])
def test_zero_connections_per_ip_requires_overrides(
    bed: AnyBed, resource: ConfigResource, validate_only: bool
) -> None:
    answer = bed.alter(resource, (PER_IP, SET, "0"), validate_only=validate_only)
    assert get_error(answer) == "INVALID_REQUEST"
    assert get_message(answer) == (
        "requirement failed: max.connections.per.ip can be set to zero only if "
        "max.connections.per.ip.overrides property is set."
    )
    both = ((PER_IP, SET, "0"), (OVERRIDES, SET, "127.0.0.1:100"))
    assert bed.alter(resource, *both, validate_only=True) is None


@pytest.mark.parametrize("key", ["max.connections", "max.connection.creation.rate"])
@pytest.mark.parametrize("resource", [CLUSTER_WIDE, broker_resource(1)], ids=["cluster-wide", "broker"])
def test_zero_connections_are_refused(bed: AnyBed, resource: ConfigResource, key: str) -> None:
    answer = bed.alter(resource, (key, SET, "0"), validate_only=True)
    assert get_error(answer) == "INVALID_REQUEST"
    assert f"Invalid {key} 0" in get_message(answer)


def test_min_isr_with_elr_cannot_be_deleted_or_set_per_broker(bed: AnyBed) -> None:
    answer = bed.alter(CLUSTER_WIDE, ("min.insync.replicas", DELETE, None))
    assert get_error(answer) == "INVALID_CONFIG"
    assert get_message(answer) == "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    answer = bed.alter(broker_resource(1), ("min.insync.replicas", SET, "2"))
    assert get_error(answer) == "INVALID_CONFIG"
    assert get_message(answer) == "Broker-level min.insync.replicas cannot be altered while ELR is enabled."


def test_described_secret_is_none(bed: AnyBed) -> None:
    key = "listener.name.external.ssl.keystore.password"
    one = broker_resource(1)
    assert bed.alter(one, (key, SET, "hush")) is None
    bed.expect_overrides(one, {key: None})
    assert bed.entry(one, key).sensitive
    bed.alter(one, (key, DELETE, None))


@pytest.mark.parametrize(
    ("key", "value", "shown", "kind"),
    [
        ("scram-sha-256.sasl.jaas.config", "x.Module required;", None, ConfigType.PASSWORD),
        ("sasl.jaas.config", "x.Module required;", None, ConfigType.PASSWORD),
        ("plain.connections.max.reauth.ms", "1000", "1000", ConfigType.SCALAR),
        ("plain.sasl.server.callback.handler.class", "x.Handler", "x.Handler", ConfigType.SCALAR),
    ],
)
def test_listener_mechanism_keys_are_described_like_plain_keys(
    bed: AnyBed, key: str, value: str, shown: str | None, kind: ConfigType
) -> None:
    one, name = broker_resource(1), f"listener.name.external.{key}"
    assert bed.alter(one, (name, SET, value)) is None
    bed.expect_overrides(one, {name: shown})
    entry = bed.entry(one, name)
    assert (entry.type, entry.sensitive, entry.read_only) == (kind, shown is None, True)
    answer = bed.alter(CLUSTER_WIDE, (name, SET, value))
    assert get_error(answer) == "INVALID_REQUEST"
    assert "broker id must be specified" in get_message(answer)


def test_unknown_broker_key_is_kept_and_sensitive(bed: AnyBed) -> None:
    key = "log.cleaner.threadzz"
    for resource in (broker_resource(1), CLUSTER_WIDE):
        assert bed.alter(resource, (key, SET, "2")) is None

        def check(resource: ConfigResource = resource) -> None:
            entry = bed.entry(resource, key)
            assert (entry.value, entry.sensitive, entry.read_only) == (None, True, True)

        bed.eventually(check)


def test_missing_broker_has_no_configs(bed: AnyBed) -> None:
    assert bed.describe(broker_resource(99), "log.cleaner.threads") == {}
