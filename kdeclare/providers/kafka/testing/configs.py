"""Config overrides of the in-memory cluster: storage, effective values, and changes (KIP-339).

Modeled on ConfigAdminManager (in the broker), ConfigurationControlManager and ConfigHelper of Apache Kafka.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, ConfigType
from kdeclare.providers.kafka.request_values import ConfigOp
from kdeclare.providers.kafka.testing.definitions import (
    BROKER_KEYS,
    MILLISECONDS_PER_UNIT,
    QUOTA_KEYS,
    SYNONYMS,
    TOPIC_KEYS,
)
from kdeclare.providers.kafka.testing.listed_configs import LISTED_KEYS, validate_listed_configs
from kdeclare.providers.kafka.testing.validation import (
    is_read_only,
    strip_listener_prefix,
    validate_broker_configs,
    validate_topic_configs,
)
from kdeclare.providers.kafka.testing.values import ConfigKey, ValueType

MAX_VALUE_LENGTH = 32767
"""The maximum length of a value in characters (Short.MAX_VALUE). Since 4.1.0, longer values are rejected."""

CLUSTER_WIDE = ConfigResource(ConfigScope.BROKER, "")
MIN_ISR = "min.insync.replicas"


@dataclass
class ConfigStore:
    """The config overrides and the static configs of the in-memory cluster.

    asked: the broker that responds to requests about topics.
    tiered: whether the brokers run with remote.log.storage.system.enable.
    elr: whether eligible leader replicas are enabled, as in a freshly formatted 4.3 cluster.
    """

    asked: int
    tiered: bool = False
    elr: bool = True
    overrides: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    static: dict[int, dict[str, str]] = field(default_factory=dict)

    def of(self, resource: ConfigResource) -> Mapping[str, str]:
        """Return the overrides of one resource, as stored."""
        return self.overrides.get(resource, {})

    def store(self, resource: ConfigResource, values: Mapping[str, str]) -> None:
        """Replace the overrides of one resource."""
        if values:
            self.overrides[resource] = dict(values)
        else:
            self.overrides.pop(resource, None)

    # effective values

    def find_broker_value(
        self,
        broker: int,
        names: Iterable[str],
        substitutes: Mapping[ConfigResource, Mapping[str, str]] | None = None,
    ) -> tuple[str, str, ConfigSource] | None:
        """Return the name, stored value and source of the synonym that takes precedence.

        Return None if no synonym is set.

        substitutes: overrides to use instead of the stored overrides of some resources, so that a change can
            be evaluated before it is made.
        """
        broker_resource = ConfigResource(ConfigScope.BROKER, str(broker))
        overrides = {**self.overrides, **(substitutes or {})}
        layers = (
            (overrides.get(broker_resource, {}), ConfigSource.BROKER),
            (overrides.get(CLUSTER_WIDE, {}), ConfigSource.CLUSTER),
            (self.static.get(broker, {}), ConfigSource.STATIC),
        )
        for values, source in layers:
            for name in names:
                if name in values:
                    return name, values[name], source
        return None

    def describe_topic_key(self, topic: str, name: str) -> ConfigEntry:
        """Return the DescribeConfigs entry for a known key of a topic."""
        key = TOPIC_KEYS[name]
        overrides = self.of(ConfigResource(ConfigScope.TOPIC, topic))
        config_type = _get_config_type(key)
        if name in overrides:
            return ConfigEntry(key.normalize(overrides[name]), ConfigSource.TOPIC, config_type)
        inherited = self.find_broker_value(self.asked, SYNONYMS[name]) if SYNONYMS[name] else None
        if inherited is None:
            return ConfigEntry(key.default, ConfigSource.DEFAULT, config_type)
        synonym, text, source = inherited
        if synonym in MILLISECONDS_PER_UNIT:
            return ConfigEntry(_to_milliseconds(synonym, text), source, config_type)
        return ConfigEntry(key.normalize(text), source, config_type)

    def describe_broker_key(self, broker: int, name: str) -> ConfigEntry | None:
        """Return the DescribeConfigs entry for a key of a broker; None if there is no entry."""
        setting = self.find_broker_value(broker, (name,))
        key = BROKER_KEYS.get(strip_listener_prefix(name))
        if key is None:
            return None if setting is None else _build_unknown_entry(name, setting[2])
        if setting is None:
            if name in QUOTA_KEYS or name != key.name:
                return None
            value = None if key.sensitive else key.default
            return ConfigEntry(
                value, ConfigSource.DEFAULT, _get_config_type(key), key.sensitive, is_read_only(name)
            )
        value = None if key.sensitive else key.normalize(setting[1])
        inherited_value = None
        if setting[2] is ConfigSource.BROKER and not key.sensitive:
            broker_resource = ConfigResource(ConfigScope.BROKER, str(broker))
            inherited = self.find_broker_value(broker, (name,), {broker_resource: {}})
            inherited_value = key.default if inherited is None else key.normalize(inherited[1])
        return ConfigEntry(
            value, setting[2], _get_config_type(key), key.sensitive, is_read_only(name), inherited_value
        )

    def describe_cluster_key(self, name: str) -> ConfigEntry | None:
        """Return the DescribeConfigs entry for a key of the cluster-wide configs; None if it is not set."""
        text = self.of(CLUSTER_WIDE).get(name)
        if text is None:
            return None
        key = BROKER_KEYS.get(strip_listener_prefix(name))
        if key is None:
            return _build_unknown_entry(name, ConfigSource.CLUSTER)
        value = None if key.sensitive else text
        return ConfigEntry(
            value, ConfigSource.CLUSTER, _get_config_type(key), key.sensitive, is_read_only(name)
        )

    def is_topic_flag_set(self, topic: str, name: str) -> bool:
        """Return the effective value of a boolean topic key."""
        return self.describe_topic_key(topic, name).value == "true"

    # changes

    def apply_ops(self, resource: ConfigResource, ops: Iterable[ConfigOp]) -> dict[str, str]:
        """Return the overrides that would result from ``ops``, without storing them. Raises Fault.

        The resulting overrides are validated together.
        """
        requested_ops = tuple(ops)
        _validate_ops(requested_ops)
        before = self.of(resource)
        is_topic = resource.scope is ConfigScope.TOPIC
        after = dict(before)
        is_listed = resource.scope in LISTED_KEYS
        # Kafka refuses APPEND and SUBTRACT for all keys of groups and subscriptions
        keys = {} if is_listed else TOPIC_KEYS if is_topic else BROKER_KEYS
        for op in requested_ops:
            after = _apply_op(after, op, keys, by_controller=is_topic or is_listed)
        if is_listed:
            validate_listed_configs(resource, after)
        elif not is_topic:
            validate_broker_configs(self, resource, before, after)
            self._validate_elr(resource, requested_ops, after)
        changed_keys = {
            op.key for op in requested_ops if not is_topic or before.get(op.key) != after.get(op.key)
        }
        if any(len(after.get(key, "")) > MAX_VALUE_LENGTH for key in changed_keys):
            raise Fault(
                "INVALID_CONFIG",
                "The configuration value cannot be added because it exceeds the maximum value size of "
                "32767 bytes.",
            )
        if is_topic and changed_keys:
            validate_topic_configs(self, before, after)
        return after

    def build_topic_overrides(self, values: Mapping[str, str | None]) -> dict[str, str]:
        """Return the validated overrides of a new topic. Raises Fault."""
        null_keys = [key for key, value in values.items() if value is None]
        if null_keys:
            names = ",".join(null_keys)
            raise Fault("INVALID_CONFIG", f"Null value not supported for topic configs: {names}")
        overrides = {key: value for key, value in values.items() if value is not None}
        if any(len(value) > MAX_VALUE_LENGTH for value in overrides.values()):
            raise Fault(
                "INVALID_CONFIG",
                "The configuration value cannot be added because it exceeds the maximum value size of "
                "32767 bytes.",
            )
        validate_topic_configs(self, {}, overrides)
        return overrides

    def _validate_elr(
        self, resource: ConfigResource, ops: tuple[ConfigOp, ...], after: Mapping[str, str]
    ) -> None:
        if not self.elr or not any(op.key == MIN_ISR for op in ops):
            return
        if resource != CLUSTER_WIDE:
            raise Fault(
                "INVALID_CONFIG", "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
            )
        if MIN_ISR not in after:
            raise Fault(
                "INVALID_CONFIG", "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
            )


def _build_unknown_entry(name: str, source: ConfigSource) -> ConfigEntry:
    return ConfigEntry(None, source, ConfigType.SCALAR, sensitive=True, read_only=is_read_only(name))


def _get_config_type(key: ConfigKey) -> ConfigType:
    return {ValueType.LIST: ConfigType.LIST, ValueType.PASSWORD: ConfigType.PASSWORD}.get(
        key.type, ConfigType.SCALAR
    )


def _to_milliseconds(synonym: str, text: str) -> str:
    amount = int(text)
    return str(amount * MILLISECONDS_PER_UNIT[synonym]) if amount >= 0 else text


def _validate_ops(ops: tuple[ConfigOp, ...]) -> None:
    if len({op.key for op in ops}) < len(ops):
        raise Fault("INVALID_REQUEST", "Error due to duplicate config keys")
    null_keys = [op.key for op in ops if op.value is None and op.op is not FieldOp.DELETE]
    if null_keys:
        raise Fault("INVALID_REQUEST", f"Null value not supported for : {','.join(null_keys)}")


def _apply_op(
    overrides: dict[str, str], op: ConfigOp, keys: Mapping[str, ConfigKey], *, by_controller: bool
) -> dict[str, str]:
    if op.op is FieldOp.DELETE:
        return {name: text for name, text in overrides.items() if name != op.key}
    assert op.value is not None
    if op.op is FieldOp.SET:
        return {**overrides, op.key: op.value}
    key = keys.get(op.key)
    if key is None or key.type is not ValueType.LIST:
        raise Fault("INVALID_CONFIG", _explain_not_list(op, key, by_controller=by_controller))
    elements = _split_stored_elements(overrides.get(op.key, key.default))
    for element in _split_like_java(op.value):
        if op.op is FieldOp.APPEND:
            if element not in elements:
                elements.append(element)
        elif element in elements:
            elements.remove(element)
    return {**overrides, op.key: ",".join(elements)}


def _explain_not_list(op: ConfigOp, key: ConfigKey | None, *, by_controller: bool) -> str:
    # the controller reports errors about topics; each broker reports errors about its own configs
    if by_controller:
        return f"Can't {op.op.value} to key {op.key} because its type is not LIST."
    if key is None:
        return f"Unknown config name: {op.key}"
    return f"Config value {op.op.value.lower()} is not allowed for config key: {op.key}"


def _split_stored_elements(text: str | None) -> list[str]:
    # without trimming, as in Kafka
    return [part for part in (text or "").split(",") if part]


def _split_like_java(text: str) -> list[str]:
    """Split like Java's String.split(","): drop empty parts at the end, unless the text has no comma."""
    if "," not in text:
        return [text]
    parts = text.split(",")
    while parts and not parts[-1]:
        parts.pop()
    return parts
