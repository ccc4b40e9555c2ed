"""Conformance cases for configs."""

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.live import ConfigSource
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.beds import (
    APPEND,
    CLUSTER_WIDE,
    DELETE,
    SET,
    SUBTRACT,
    AnyBed,
    MemoryBed,
    broker_resource,
    get_error,
    get_message,
    topic_resource,
)
from tests.cases import case

LEADERS = "leader.replication.throttled.replicas"


@case("OPS-02")
def test_delete_ignores_value(bed: AnyBed) -> None:
    topic = topic_resource(bed.create(configs={"cleanup.policy": "compact"}))
    assert bed.alter(topic, ("cleanup.policy", DELETE, "ignored")) is None
    bed.expect_overrides(topic, {})


@case("OPS-05")
def test_subtract_of_absent_element_changes_nothing(bed: AnyBed) -> None:
    topic = topic_resource(bed.create(configs={LEADERS: "7:8"}))
    assert bed.alter(topic, (LEADERS, SUBTRACT, "1:2")) is None
    bed.expect_overrides(topic, {LEADERS: "7:8"})


@case("OPS-07")
def test_append_to_unset_list_starts_from_default(bed: AnyBed) -> None:
    topic = topic_resource(bed.create())
    assert bed.alter(topic, ("cleanup.policy", APPEND, "compact")) is None
    bed.expect_overrides(topic, {"cleanup.policy": "delete,compact"})


@case("OPS-10")
def test_subtract_on_unset_empty_list_leaves_empty_override(bed: AnyBed) -> None:
    topic = topic_resource(bed.create())
    assert bed.entry(topic, LEADERS).source is ConfigSource.DEFAULT
    assert bed.alter(topic, (LEADERS, SUBTRACT, "0:9")) is None
    bed.expect_overrides(topic, {LEADERS: ""})
    assert bed.entry(topic, LEADERS).source is ConfigSource.TOPIC


@case("OPS-15")
def test_list_elements_are_compared_as_written(bed: AnyBed) -> None:
    topic = topic_resource(bed.create(configs={LEADERS: "0:1, 0:2"}))
    assert bed.alter(topic, (LEADERS, SUBTRACT, "0:2")) is None
    bed.expect_overrides(topic, {LEADERS: "0:1,0:2"})
    if isinstance(bed, MemoryBed):
        assert bed.memory.overrides(topic) == {LEADERS: "0:1, 0:2"}


@case("OPS-17")
def test_set_to_default_creates_override(bed: AnyBed) -> None:
    topic = topic_resource(bed.create())
    assert bed.alter(topic, ("retention.ms", SET, "604800000")) is None
    bed.expect_overrides(topic, {"retention.ms": "604800000"})
    assert bed.entry(topic, "retention.ms").source is ConfigSource.TOPIC


@case("OPS-19")
def test_duplicate_key_fails_only_its_resource(bed: AnyBed) -> None:
    one, two = topic_resource(bed.create()), topic_resource(bed.create())
    ratio = "min.cleanable.dirty.ratio"
    ops = (
        ConfigOp(ratio, SET, "0.75"),
        ConfigOp(ratio, SET, "0.65"),
        ConfigOp("compression.type", SET, "gzip"),
    )
    results = bed.cluster.alter_configs(
        [ConfigAlteration(one, ops), ConfigAlteration(two, (ConfigOp(ratio, SET, "0.9"),))]
    )
    assert get_error(results[one]) == "INVALID_REQUEST"
    assert get_message(results[one]) == "Error due to duplicate config keys"
    assert results[two] is None
    bed.expect_overrides(two, {ratio: "0.9"})
    bed.expect_overrides(one, {})


@case("OPS-21")
def test_null_value_is_refused(bed: AnyBed) -> None:
    topic = topic_resource(bed.create(configs={"compression.type": "producer"}))
    answer = bed.alter(topic, ("retention.bytes", SET, None), ("compression.type", SET, "lz4"))
    assert get_error(answer) == "INVALID_REQUEST"
    assert get_message(answer) == "Null value not supported for : retention.bytes"
    bed.expect_overrides(topic, {"compression.type": "producer"})


@case("VAL-02")
def test_ratio_above_one_is_refused(bed: AnyBed) -> None:
    topic = topic_resource(bed.create())
    answer = bed.alter(topic, ("min.cleanable.dirty.ratio", SET, "1.1"))
    assert get_error(answer) == "INVALID_CONFIG"
    assert "Value must be no more than 1" in get_message(answer)


@case("VAL-04")
def test_retention_and_cleanup_value_ranges(bed: AnyBed) -> None:
    topic = topic_resource(bed.create())
    good = {
        "retention.ms": ("-1", "0"),
        "retention.bytes": ("-1", "-500"),
        "cleanup.policy": ("delete", "compact", "compact,delete", ""),
    }
    for key, values in good.items():
        for value in values:
            assert bed.alter(topic, (key, SET, value)) is None
    assert get_error(bed.alter(topic, ("retention.ms", SET, "-2"))) == "INVALID_CONFIG"


@case("VAL-06")
def test_throttled_replicas_syntax(bed: AnyBed) -> None:
    topic = topic_resource(bed.create())
    good = ("*", "* ", "", " ", "100:10", "100:10,12:10", "100:10,12:10,15:1  ", "100:0,")
    bad = ("100", "100:", "100:0,10", "100:0,10:", "100 :0", "100: 0", "*,100:10")
    answers = {value: get_error(bed.alter(topic, (LEADERS, SET, value))) for value in good + bad}
    assert answers == {**dict.fromkeys(good), **dict.fromkeys(bad, "INVALID_CONFIG")}


@case("VAL-09")
def test_remote_storage_with_data_cannot_be_disabled() -> None:
    bed = MemoryBed(MemoryCluster(tiered=True))
    topic = topic_resource(bed.create(configs={"remote.storage.enable": "true"}))
    answer = bed.alter(topic, ("remote.storage.enable", SET, "false"))
    assert get_error(answer) == "INVALID_CONFIG"
    assert "It is invalid to disable remote storage without deleting remote data" in get_message(answer)
    assert get_error(bed.alter(topic, ("remote.storage.enable", DELETE, None))) == "INVALID_CONFIG"
    both = (("remote.storage.enable", SET, "false"), ("remote.log.delete.on.disable", SET, "true"))
    assert bed.alter(topic, *both) is None


@case("VAL-14")
def test_segment_size_below_minimum_is_refused(bed: AnyBed) -> None:
    topic = topic_resource(bed.create())
    assert get_error(bed.alter(topic, ("segment.bytes", SET, "100000"))) == "INVALID_CONFIG"


@case("EFF-01")
def test_strongest_config_source_determines_value_and_unit() -> None:
    bed = MemoryBed(MemoryCluster({1: "a"}, static={"log.roll.hours": "123"}))
    topic = topic_resource(bed.create())
    hours = 3_600_000
    assert bed.entry(topic, "segment.ms").value == str(123 * hours)
    assert bed.entry(topic, "segment.ms").source is ConfigSource.STATIC
    # brokers do not allow altering log.roll.hours; the precedence is the same for all keys
    bed.memory.set_overrides(CLUSTER_WIDE, {"log.roll.hours": "456"})
    assert bed.entry(topic, "segment.ms").source is ConfigSource.CLUSTER
    bed.memory.set_overrides(broker_resource(1), {"log.roll.hours": "789"})
    entry = bed.entry(topic, "segment.ms")
    assert (entry.value, entry.source) == ("2840400000", ConfigSource.BROKER)


@case("EFF-04")
def test_new_topic_config_sources() -> None:
    bed = MemoryBed(MemoryCluster({1: "a"}, static={"log.roll.jitter.ms": "123", "log.roll.hours": "2"}))
    assert bed.alter(CLUSTER_WIDE, ("log.retention.ms", SET, "10800000")) is None
    assert bed.alter(broker_resource(1), ("log.cleaner.delete.retention.ms", SET, "34")) is None
    topic = topic_resource(bed.create(configs={"index.interval.bytes": "9999999"}))
    expected = {
        "cleanup.policy": ("delete", ConfigSource.DEFAULT),
        "retention.ms": ("10800000", ConfigSource.CLUSTER),
        "delete.retention.ms": ("34", ConfigSource.BROKER),
        "segment.jitter.ms": ("123", ConfigSource.STATIC),
        "segment.ms": ("7200000", ConfigSource.STATIC),
        "index.interval.bytes": ("9999999", ConfigSource.TOPIC),
    }
    found = bed.cluster.configs([ConfigQuery(topic, frozenset(expected))])[topic]
    assert {key: (entry.value, entry.source) for key, entry in found.items()} == expected


@case("EFF-06")
def test_broker_secret_is_not_described() -> None:
    bed = MemoryBed(MemoryCluster({1: "a"}, static={"ssl.truststore.password": "x"}))
    entry = bed.entry(broker_resource(1), "ssl.truststore.password")
    assert (entry.value, entry.sensitive, entry.read_only) == (None, True, False)
    assert entry.source is not ConfigSource.DEFAULT


@case("EFF-08")
def test_missing_topic_has_no_configs(bed: AnyBed) -> None:
    missing = topic_resource(bed.name())
    query = ConfigQuery(missing, frozenset({"retention.ms"}), overrides=True)
    assert missing not in bed.cluster.configs([query])


@case("BRK-01")
@pytest.mark.parametrize(
    ("key", "value"),
    [("auto.create.topics.enable", "false"), ("auto.leader.rebalance.enable", "false"), ("broker.id", "1")],
)
def test_read_only_broker_keys_are_refused(bed: AnyBed, key: str, value: str) -> None:
    answer = bed.alter(broker_resource(1), (key, SET, value))
    assert get_error(answer) == "INVALID_REQUEST"
    assert "Cannot update these configs dynamically" in get_message(answer)
    assert bed.entry(broker_resource(1), key).read_only


@case("BRK-03")
@pytest.mark.parametrize(
    "key", ["ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password", "ssl.key.password"]
)
def test_ssl_keys_require_listener_prefix_and_broker(bed: AnyBed, key: str) -> None:
    prefixed = f"listener.name.external.{key}"

    def try_set(broker: bool, name: str) -> str | None:
        resource = broker_resource(1) if broker else CLUSTER_WIDE
        return get_error(bed.alter(resource, (name, SET, "JKS"), validate_only=True))

    assert try_set(True, prefixed) is None
    assert {try_set(True, key), try_set(False, key), try_set(False, prefixed)} == {"INVALID_REQUEST"}


@case("BRK-05")
def test_thread_pool_at_most_doubles_or_halves(bed: AnyBed) -> None:
    one = broker_resource(1)
    now = int(bed.entry(one, "num.io.threads").value or "0")
    good, bad = (2 * now, now // 2), (2 * now + 1, now // 2 - 1, 0)
    answers = {
        size: get_error(bed.alter(one, ("num.io.threads", SET, str(size)), validate_only=True))
        for size in good + bad
    }
    assert answers == {**dict.fromkeys(good), **dict.fromkeys(bad, "INVALID_REQUEST")}


@case("BRK-07")
def test_misspelled_broker_keys_are_accepted(bed: AnyBed) -> None:
    assert bed.alter(CLUSTER_WIDE, ("log.cleaner.threadzz", SET, "2")) is None


@case("BRK-11")
def test_throttle_rates_are_described_only_when_set(bed: AnyBed) -> None:
    one = broker_resource(1)
    leader, follower = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
    dirs = "replica.alter.log.dirs.io.max.bytes.per.second"
    assert bed.alter(one, (leader, SET, "123"), (follower, SET, "456")) is None
    bed.expect_overrides(one, {leader: "123", follower: "456"})
    assert bed.alter(one, (leader, DELETE, ""), (follower, SET, "654"), (dirs, SET, "987")) is None
    bed.expect_overrides(one, {follower: "654", dirs: "987"})
    assert leader not in bed.describe(one, leader)


@case("ISR-01")
def test_min_isr_above_factor_is_accepted(bed: AnyBed) -> None:
    name = bed.create({0: (1, 2, 3)})
    assert bed.alter(topic_resource(name), ("min.insync.replicas", SET, "5")) is None
    bed.expect_overrides(topic_resource(name), {"min.insync.replicas": "5"})
    if isinstance(bed, MemoryBed):
        assert bed.memory.get_effective_min_isr(name) == 3


@case("POL-02")
def test_policy_violation_fails_only_its_resource() -> None:
    bed = MemoryBed(MemoryCluster())
    topic = topic_resource(bed.create(name="t1"))
    bed.memory.faults.fail(Fault("POLICY_VIOLATION", "Expected: no"), item="TOPIC/t1")
    items = [
        ConfigAlteration(topic, (ConfigOp("retention.ms", SET, "1"),)),
        ConfigAlteration(broker_resource(1), (ConfigOp("log.cleaner.backoff.ms", SET, "1"),)),
    ]
    results = bed.cluster.alter_configs(items)
    assert get_error(results[topic]) == "POLICY_VIOLATION"
    assert results[broker_resource(1)] is None
    assert bed.overrides(topic) == {}


@case("CRT-06")
def test_null_config_of_new_topic_is_refused(bed: AnyBed) -> None:
    name = bed.name()
    configs: dict[str, str] = {"retention.bytes": None}  # type: ignore[dict-item]
    answer = bed.cluster.create_topics([NewTopic(name, None, None, None, configs)])[name]
    assert get_error(answer) == "INVALID_CONFIG"
    assert get_message(answer) == "Null value not supported for topic configs: retention.bytes"
    assert name not in bed.cluster.topics([name])
