"""Topic configs through the `Cluster` protocol: ops, validation, sources (KIP-339)."""

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource, ConfigType
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery
from tests.beds import (
    APPEND,
    CLUSTER_WIDE,
    DELETE,
    SET,
    SUBTRACT,
    AnyBed,
    get_error,
    get_message,
    topic_resource,
)

LEADERS = "leader.replication.throttled.replicas"


def create_topic(bed: AnyBed, **configs: str) -> ConfigResource:
    """Create a topic with these overrides (underscores for dots)."""
    return topic_resource(bed.create(configs={k.replace("_", "."): v for k, v in configs.items()}))


def test_set_creates_override_and_delete_removes_it(bed: AnyBed) -> None:
    topic = create_topic(bed)
    assert bed.alter(topic, ("retention.ms", SET, "5000")) is None
    bed.expect_overrides(topic, {"retention.ms": "5000"})
    assert bed.alter(topic, ("retention.ms", DELETE, None)) is None
    bed.expect_overrides(topic, {})
    assert bed.entry(topic, "retention.ms").source is ConfigSource.DEFAULT


def test_set_to_default_creates_override(bed: AnyBed) -> None:
    topic = create_topic(bed)
    assert bed.alter(topic, ("retention.ms", SET, "604800000")) is None
    bed.expect_overrides(topic, {"retention.ms": "604800000"})
    assert bed.entry(topic, "retention.ms").source is ConfigSource.TOPIC


@pytest.mark.parametrize("key", ["retention.ms", "no.such.key"])
def test_delete_of_unset_key_does_nothing(bed: AnyBed, key: str) -> None:
    topic = create_topic(bed, segment_ms="1000000")
    assert bed.alter(topic, (key, DELETE, None)) is None
    bed.expect_overrides(topic, {"segment.ms": "1000000"})


@pytest.mark.parametrize(
    ("start", "op", "value", "end"),
    [
        (None, APPEND, "compact", "delete,compact"),
        (None, APPEND, "delete", "delete"),
        (None, SUBTRACT, "compact", "delete"),
        (None, SUBTRACT, "delete", ""),
        ("compact", APPEND, "compact", "compact"),
        ("compact", APPEND, "delete", "compact,delete"),
        ("compact,delete", SUBTRACT, "compact", "delete"),
        ("compact,delete", SUBTRACT, "delete,compact", ""),
        ("compact", SUBTRACT, "delete", "compact"),
        ("", APPEND, "compact", "compact"),
        (None, APPEND, ",", "delete"),
    ],
)
def test_list_ops_on_cleanup_policy(
    bed: AnyBed, start: str | None, op: FieldOp, value: str, end: str
) -> None:
    topic = create_topic(bed) if start is None else create_topic(bed, cleanup_policy=start)
    assert bed.alter(topic, ("cleanup.policy", op, value)) is None
    bed.expect_overrides(topic, {"cleanup.policy": end})
    assert bed.entry(topic, "cleanup.policy").type is ConfigType.LIST


@pytest.mark.parametrize(
    ("start", "op", "value", "end"),
    [
        (None, SUBTRACT, "0:9", ""),
        (None, APPEND, "0:1,0:2", "0:1,0:2"),
        ("0:1,0:2", SUBTRACT, "0:1", "0:2"),
        ("0:1,0:1", SUBTRACT, "0:1", "0:1"),  # only the first occurrence
        ("0:1,0:2,0:1", SUBTRACT, "0:1,0:1", "0:2"),
        ("0:1,", APPEND, "0:2", "0:1,0:2"),  # writing the list again drops empty elements
        ("0:1", APPEND, "0:2,,0:3", "0:1,0:2,,0:3"),
        ("0:1", APPEND, "", "0:1,"),
    ],
)
def test_list_ops_on_throttled_replicas(
    bed: AnyBed, start: str | None, op: FieldOp, value: str, end: str
) -> None:
    topic = (
        create_topic(bed) if start is None else create_topic(bed, leader_replication_throttled_replicas=start)
    )
    assert bed.alter(topic, (LEADERS, op, value)) is None
    bed.expect_overrides(topic, {LEADERS: end})


def test_list_elements_with_blanks_are_distinct(bed: AnyBed) -> None:
    topic = create_topic(bed)
    assert bed.alter(topic, (LEADERS, SET, "0:1, 0:2")) is None
    assert bed.alter(topic, (LEADERS, SUBTRACT, "0:2")) is None
    bed.expect_overrides(topic, {LEADERS: "0:1,0:2"})  # described without the space
    assert bed.alter(topic, (LEADERS, SUBTRACT, " 0:2")) is None
    bed.expect_overrides(topic, {LEADERS: "0:1"})


@pytest.mark.parametrize("op", [APPEND, SUBTRACT])
@pytest.mark.parametrize("key", ["retention.ms", "no.such.key"])
def test_list_ops_on_non_list_keys_are_refused(bed: AnyBed, key: str, op: FieldOp) -> None:
    topic = create_topic(bed)
    answer = bed.alter(topic, (key, op, "1"))
    assert get_error(answer) == "INVALID_CONFIG"
    assert get_message(answer) == f"Can't {op} to key {key} because its type is not LIST."


def test_duplicate_key_is_refused(bed: AnyBed) -> None:
    topic = create_topic(bed)
    answer = bed.alter(topic, ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    assert get_error(answer) == "INVALID_REQUEST"
    assert get_message(answer) == "Error due to duplicate config keys"
    bed.expect_overrides(topic, {})


def test_null_value_is_refused(bed: AnyBed) -> None:
    topic = create_topic(bed, compression_type="producer")
    answer = bed.alter(topic, ("retention.bytes", SET, None), ("compression.type", SET, "lz4"))
    assert get_error(answer) == "INVALID_REQUEST"
    assert get_message(answer) == "Null value not supported for : retention.bytes"
    bed.expect_overrides(topic, {"compression.type": "producer"})


def test_invalid_key_fails_only_its_resource(bed: AnyBed) -> None:
    bad, good = create_topic(bed), create_topic(bed)
    items = [
        ConfigAlteration(bad, (ConfigOp("retention.ms", SET, "7"), ConfigOp("segment.ms", SET, "x"))),
        ConfigAlteration(good, (ConfigOp("retention.ms", SET, "7"),)),
        ConfigAlteration(topic_resource("not-there"), (ConfigOp("retention.ms", SET, "7"),)),
    ]
    results = bed.cluster.alter_configs(items)
    assert get_error(results[bad]) == "INVALID_CONFIG"
    assert results[good] is None
    assert get_error(results[topic_resource("not-there")]) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert "does not exist" in get_message(results[topic_resource("not-there")])
    bed.expect_overrides(good, {"retention.ms": "7"})
    bed.expect_overrides(bad, {})


def test_duplicate_resource_is_refused(bed: AnyBed) -> None:
    topic = create_topic(bed)
    items = [ConfigAlteration(topic, (ConfigOp(key, SET, "7"),)) for key in ("retention.ms", "flush.ms")]
    answer = bed.cluster.alter_configs(items)[topic]
    assert get_error(answer) == "INVALID_REQUEST"
    assert get_message(answer) == "Each resource must appear at most once."
    bed.expect_overrides(topic, {})


def test_validate_only_validates_and_changes_nothing(bed: AnyBed) -> None:
    topic = create_topic(bed)
    assert bed.alter(topic, ("retention.ms", SET, "7"), validate_only=True) is None
    assert get_error(bed.alter(topic, ("retention.ms", SET, "x"), validate_only=True)) == "INVALID_CONFIG"
    bed.expect_overrides(topic, {})


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("no.such.key", "1", "Unknown topic config name: no.such.key"),
        (
            "min.cleanable.dirty.ratio",
            "1.1",
            "Invalid value 1.1 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "retention.ms",
            "-2",
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        (
            "segment.bytes",
            "100000",
            "Invalid value 100000 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "retention.ms",
            "soon",
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
        ),
        ("retention.ms", "", "Invalid value  for configuration retention.ms: Not a number of type LONG"),
        (
            "segment.bytes",
            "2147483648",
            "Invalid value 2147483648 for configuration segment.bytes: Not a number of type INT",
        ),
        (
            "preallocate",
            "yes",
            "Invalid value yes for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "compression.type",
            "zip",
            "Invalid value zip for configuration compression.type: String must be one of: "
            "uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            "cleanup.policy",
            "compact,archive",
            "Invalid value archive for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: "
            "Value must be between 1 and 9 or equal to -1",
        ),
        ("cleanup.policy", "delete,", "Configuration 'cleanup.policy' values must not be empty."),
        ("cleanup.policy", ",", "Configuration 'cleanup.policy' values must not be empty."),
        ("remote.storage.enable", "true", "Tiered Storage functionality is disabled in the broker."),
        ("min.insync.replicas", "0", "Value must be at least 1"),
    ],
)
def test_invalid_topic_values_are_refused(bed: AnyBed, key: str, value: str, words: str) -> None:
    topic = create_topic(bed)
    answer = bed.alter(topic, (key, SET, value))
    assert get_error(answer) == "INVALID_CONFIG"
    assert words in get_message(answer)
    bed.expect_overrides(topic, {})


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("retention.ms", " 5 ", "5"),
        ("retention.ms", "+5", "5"),
        ("preallocate", "TRUE", "true"),
        ("min.cleanable.dirty.ratio", "0.50", "0.5"),
        ("min.cleanable.dirty.ratio", "1", "1.0"),
        ("min.cleanable.dirty.ratio", "0.0001", "1.0E-4"),
        ("cleanup.policy", "", ""),
        ("cleanup.policy", " delete , compact ", "delete,compact"),
        ("cleanup.policy", "delete,delete", "delete"),
        ("leader.replication.throttled.replicas", "0:1,0:1", "0:1,0:1"),
        ("leader.replication.throttled.replicas", "0:1,,0:2,", "0:1,,0:2,"),
        ("min.cleanable.dirty.ratio", "NaN", "NaN"),
        ("retention.ms", "٣", "3"),
        ("internal.segment.bytes", "1000", "1000"),
        ("retention.bytes", "-500", "-500"),
        ("min.insync.replicas", "5", "5"),
        ("leader.replication.throttled.replicas", "*", "*"),
    ],
)
def test_valid_topic_values_are_described(bed: AnyBed, key: str, value: str, shown: str) -> None:
    topic = create_topic(bed)
    assert bed.alter(topic, (key, SET, value)) is None
    bed.expect_overrides(topic, {key: shown})


def test_related_keys_are_validated_together(bed: AnyBed) -> None:
    topic = create_topic(bed)
    answer = bed.alter(topic, ("min.compaction.lag.ms", SET, "50"), ("max.compaction.lag.ms", SET, "40"))
    assert get_error(answer) == "INVALID_CONFIG"
    assert "min.compaction.lag.ms (50) > max.compaction.lag.ms (40)" in get_message(answer)
    both = (("min.compaction.lag.ms", SET, "30"), ("max.compaction.lag.ms", SET, "40"))
    assert bed.alter(topic, *both) is None
    assert get_error(bed.alter(topic, ("min.compaction.lag.ms", SET, "50"))) == "INVALID_CONFIG"
    bed.expect_overrides(topic, {"min.compaction.lag.ms": "30", "max.compaction.lag.ms": "40"})


def test_value_length_is_limited(bed: AnyBed) -> None:
    topic = create_topic(bed)
    longest = ",".join(["0:1"] * 8191 + ["0:1"])
    assert len(longest) == 32767
    assert bed.alter(topic, (LEADERS, SET, longest)) is None
    answer = bed.alter(topic, (LEADERS, APPEND, "0:2"))
    assert get_error(answer) == "INVALID_CONFIG"
    assert "exceeds the maximum value size of 32767 bytes" in get_message(answer)


def test_oversized_value_fails_the_request(bed: AnyBed) -> None:
    topic = create_topic(bed)
    with pytest.raises(Fault) as caught:
        bed.alter(topic, (LEADERS, SET, "0" * 32768))
    assert (caught.value.error, caught.value.kind) == ("NETWORK_EXCEPTION", FaultKind.UNKNOWN)
    bed.expect_overrides(topic, {})


def test_describe_returns_only_requested_keys(bed: AnyBed) -> None:
    topic = create_topic(bed, retention_ms="7", flush_ms="9")
    keys = frozenset({"retention.ms", "segment.ms", "no.such.key"})
    found = bed.cluster.configs([ConfigQuery(topic, keys), ConfigQuery(topic_resource("not-there"), keys)])
    assert {r: set(entries) for r, entries in found.items()} == {topic: {"retention.ms", "segment.ms"}}
    with_overrides = bed.describe(topic, "segment.ms")
    assert set(with_overrides) == {"retention.ms", "flush.ms", "segment.ms"}


def test_partial_describe_fails_only_refused_resource(bed: AnyBed) -> None:
    topic, nobody = create_topic(bed, retention_ms="7"), ConfigResource(ConfigScope.BROKER, "nobody")
    queries = [ConfigQuery(r, overrides=True) for r in (nobody, topic, topic_resource("not-there"))]
    found = bed.cluster.describe_configs_partially(queries)
    assert list(found) == [nobody, topic]
    assert found[topic] == bed.describe(topic)
    refused = found[nobody]
    assert isinstance(refused, Fault)
    assert (refused.error, refused.kind) == ("INVALID_REQUEST", FaultKind.REFUSED)
    assert "Broker id must be an integer, but it is: nobody" in refused.message
    with pytest.raises(Fault, match="INVALID_REQUEST"):
        bed.cluster.configs(queries)


def test_topic_inherits_cluster_wide_value_of_synonym(bed: AnyBed) -> None:
    topic = create_topic(bed)
    assert bed.alter(CLUSTER_WIDE, ("log.flush.interval.ms", SET, "77000")) is None

    def check() -> None:
        entry = bed.entry(topic, "flush.ms")
        assert (entry.value, entry.source) == ("77000", ConfigSource.CLUSTER)

    bed.eventually(check)
    bed.expect_overrides(topic, {})
    assert bed.alter(topic, ("flush.ms", SET, "66000")) is None
    bed.expect_overrides(topic, {"flush.ms": "66000"})


def test_list_op_starts_from_key_default_not_broker_value(bed: AnyBed) -> None:
    topic = create_topic(bed)
    assert bed.alter(CLUSTER_WIDE, ("log.cleanup.policy", SET, "compact")) is None

    def check_inherited() -> None:
        assert bed.entry(topic, "cleanup.policy").value == "compact"

    bed.eventually(check_inherited)
    assert bed.alter(topic, ("cleanup.policy", APPEND, "compact")) is None
    bed.expect_overrides(topic, {"cleanup.policy": "delete,compact"})


def test_elr_sets_cluster_wide_min_isr(bed: AnyBed) -> None:
    topic = create_topic(bed)
    entry = bed.entry(topic, "min.insync.replicas")
    assert (entry.value, entry.source) == ("1", ConfigSource.CLUSTER)
    assert bed.overrides(CLUSTER_WIDE)["min.insync.replicas"] == "1"


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("", "INVALID_REQUEST", "Default topic resources are not allowed."),
        ("a b", "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: 'a b' contains one or more characters"),
        ("..", "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: '..' is not allowed"),
    ],
)
def test_alter_of_invalid_topic_name_is_refused(
    bed: AnyBed, name: str, code: str, words: str, validate_only: bool
) -> None:
    topic = topic_resource(name)
    for key, op, value in (("retention.ms", SET, "5"), ("nope", SET, "5"), ("retention.ms", DELETE, None)):
        answer = bed.alter(topic, (key, op, value), validate_only=validate_only)
        assert get_error(answer) == code
        assert words in get_message(answer)
    assert bed.cluster.configs([ConfigQuery(topic, frozenset({"retention.ms"}), overrides=True)]) == {}


@pytest.mark.parametrize("validate_only", [False, True])
def test_alter_of_missing_topic_is_refused_after_key_validation(bed: AnyBed, validate_only: bool) -> None:
    topic = topic_resource("not-there")
    for op, value in ((SET, "5"), (DELETE, None)):
        answer = bed.alter(topic, ("retention.ms", op, value), validate_only=validate_only)
        assert get_error(answer) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert get_message(answer) == "The topic 'not-there' does not exist."
    answer = bed.alter(topic, ("nope", SET, "5"), validate_only=validate_only)
    assert get_error(answer) == "INVALID_CONFIG"
