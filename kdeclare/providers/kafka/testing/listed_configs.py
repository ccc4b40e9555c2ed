"""Configs of groups and client metrics subscriptions: keys, defaults, and validation as in Kafka 4.3.

Modeled on GroupConfig, ClientMetricsConfigs and ConfigHelper of Apache Kafka. The limits of group configs are
the defaults of ``group.<type>.min.<key>`` and ``group.<type>.max.<key>`` on brokers.
"""

import re
from collections.abc import Mapping

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, ConfigType, get_own_source
from kdeclare.providers.kafka.testing.values import (
    ConfigKey,
    InvalidValueError,
    TypedValue,
    ValueCheck,
    ValueType,
    make_choice_check,
    make_min_check,
)

_DURATION = re.compile(r"by_duration:-?P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")
_CLIENT_ATTRIBUTES = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
_INTERVAL_LIMITS_MS = (100, 3_600_000)


def _check_offset_reset(value: TypedValue) -> str | None:
    text = str(value)
    if text in ("earliest", "latest") or _DURATION.fullmatch(text):
        return None
    return (
        f"Invalid value `{text}` for configuration share.auto.offset.reset. The value must be either "
        "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )


_GROUP_ROWS: tuple[tuple[str, ValueType, str, ValueCheck | None, tuple[int | None, int | None]], ...] = (
    ("consumer.assignment.interval.ms", ValueType.INT, "1000", make_min_check(0), (0, 15_000)),
    ("consumer.heartbeat.interval.ms", ValueType.INT, "5000", make_min_check(1), (5_000, 15_000)),
    ("consumer.session.timeout.ms", ValueType.INT, "45000", make_min_check(1), (45_000, 60_000)),
    ("share.assignment.interval.ms", ValueType.INT, "1000", make_min_check(0), (0, 15_000)),
    ("share.auto.offset.reset", ValueType.STRING, "latest", _check_offset_reset, (None, None)),
    ("share.delivery.count.limit", ValueType.INT, "5", make_min_check(2), (2, 10)),
    ("share.heartbeat.interval.ms", ValueType.INT, "5000", make_min_check(1), (5_000, 15_000)),
    (
        "share.isolation.level",
        ValueType.STRING,
        "read_uncommitted",
        make_choice_check("read_committed", "read_uncommitted"),
        (None, None),
    ),
    ("share.partition.max.record.locks", ValueType.INT, "2000", make_min_check(100), (100, 4_000)),
    ("share.record.lock.duration.ms", ValueType.INT, "30000", make_min_check(1_000), (15_000, 60_000)),
    ("share.renew.acknowledge.enable", ValueType.BOOLEAN, "true", None, (None, None)),
    ("share.session.timeout.ms", ValueType.INT, "45000", make_min_check(1), (45_000, 60_000)),
    ("streams.assignment.interval.ms", ValueType.INT, "1000", make_min_check(0), (0, 15_000)),
    ("streams.heartbeat.interval.ms", ValueType.INT, "5000", make_min_check(1), (5_000, 15_000)),
    ("streams.initial.rebalance.delay.ms", ValueType.INT, "3000", make_min_check(0), (None, None)),
    ("streams.num.standby.replicas", ValueType.INT, "0", make_min_check(0), (0, 2)),
    ("streams.session.timeout.ms", ValueType.INT, "45000", make_min_check(1), (45_000, 60_000)),
)
GROUP_KEYS: Mapping[str, ConfigKey] = {
    name: ConfigKey(name, value_type, default, check) for name, value_type, default, check, _ in _GROUP_ROWS
}
_GROUP_LIMITS = {name: limits for name, _, _, _, limits in _GROUP_ROWS}
METRICS_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for key in (
        ConfigKey("interval.ms", ValueType.INT, "300000"),
        ConfigKey("match", ValueType.LIST, ""),
        ConfigKey("metrics", ValueType.LIST, ""),
    )
}
LISTED_KEYS = {ConfigScope.GROUP: GROUP_KEYS, ConfigScope.CLIENT_METRICS: METRICS_KEYS}


def describe_listed_key(
    resource: ConfigResource, overrides: Mapping[str, str], name: str
) -> ConfigEntry | None:
    """Return the DescribeConfigs entry of one key; None if Kafka does not know the key."""
    key = LISTED_KEYS[resource.scope].get(name)
    if key is None:
        return None
    config_type = ConfigType.LIST if key.type is ValueType.LIST else ConfigType.SCALAR
    if name in overrides:
        return ConfigEntry(key.normalize(overrides[name]), get_own_source(resource), config_type)
    return ConfigEntry(key.default, ConfigSource.DEFAULT, config_type)


def validate_name(resource: ConfigResource) -> None:
    """Reject an empty name. Raises Fault."""
    if not resource.name:
        text = (
            "Default group resources are not allowed."
            if resource.scope is ConfigScope.GROUP
            else "Subscription name can't be empty"
        )
        raise Fault("INVALID_REQUEST", text)


def validate_listed_configs(resource: ConfigResource, after: Mapping[str, str]) -> None:
    """Validate all overrides of a group or subscription. Raises Fault."""
    keys = LISTED_KEYS[resource.scope]
    for name in after:
        if name not in keys:
            if resource.scope is ConfigScope.GROUP:
                raise Fault("INVALID_CONFIG", f"Unknown group config name: {name}")
            raise Fault("INVALID_REQUEST", f"Unknown client metrics configuration: {name}")
    try:
        values = {name: keys[name].parse(text) for name, text in after.items()}
    except InvalidValueError as problem:
        raise Fault("INVALID_CONFIG", str(problem)) from None
    if resource.scope is ConfigScope.GROUP:
        _validate_limits(values)
    else:
        _validate_subscription(values)


def _validate_limits(values: Mapping[str, TypedValue]) -> None:
    for name, value in values.items():
        low, high = _GROUP_LIMITS[name]
        if low is not None and isinstance(value, int) and value < low:
            raise Fault(
                "INVALID_CONFIG", f"{name} must be greater than or equal to {_name_limit(name, 'min')}"
            )
        if high is not None and isinstance(value, int) and value > high:
            raise Fault("INVALID_CONFIG", f"{name} must be less than or equal to {_name_limit(name, 'max')}")


def _name_limit(name: str, limit: str) -> str:
    """Return the broker config that limits a group config."""
    group_type, _, rest = name.partition(".")
    return f"group.{group_type}.{limit}.{rest.removeprefix('num.')}"


def _validate_subscription(values: Mapping[str, TypedValue]) -> None:
    interval = values.get("interval.ms")
    low, high = _INTERVAL_LIMITS_MS
    if isinstance(interval, int) and not low <= interval <= high:
        raise Fault(
            "INVALID_REQUEST",
            f"Invalid value {interval} for interval.ms, interval must be between {low} and {high} (1 hour)",
        )
    for name in ("metrics", "match"):
        elements = values.get(name, ())
        assert isinstance(elements, tuple)
        if "" in elements:
            raise Fault("INVALID_CONFIG", f"Configuration '{name}' values must not be empty.")
    patterns = values.get("match", ())
    assert isinstance(patterns, tuple)
    for pattern in patterns:
        if not _is_client_pattern(pattern):
            raise Fault("INVALID_CONFIG", f"Illegal client matching pattern: {pattern}")


def _is_client_pattern(text: str) -> bool:
    parts = [part.strip() for part in text.split("=")]
    if len(parts) != 2 or parts[0] not in _CLIENT_ATTRIBUTES or not parts[1]:
        return False
    try:
        re.compile(parts[1])
    except re.error:
        return False
    return True
