"""Config overrides: who holds them, what they come to, and how KIP-339 ops change them.

After ConfigAdminManager (broker side), ConfigurationControlManager and ConfigHelper of Apache Kafka.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, ConfigType
from kdeclare.providers.kafka.port import ConfigOp
from kdeclare.providers.kafka.testing.definitions import (
    BROKER_KEYS,
    MILLISECONDS,
    QUOTA_KEYS,
    SYNONYMS,
    TOPIC_KEYS,
)
from kdeclare.providers.kafka.testing.validation import check_broker, check_topic, inner_name, is_read_only
from kdeclare.providers.kafka.testing.values import Key, Type

MAX_VALUE = 32767
"""Longest value in characters (Short.MAX_VALUE; refused since 4.1.0)."""

CLUSTER_WIDE = ConfigResource(ConfigScope.BROKER, "")
MIN_ISR = "min.insync.replicas"


@dataclass
class Configs:
    """Every override and static value. ``asked`` is the broker that answers for topics.

    tiered: the brokers run with remote.log.storage.system.enable.
    elr: eligible leader replicas are on, as a freshly formatted 4.3 cluster has it.
    """

    asked: int
    tiered: bool = False
    elr: bool = True
    overrides: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    static: dict[int, dict[str, str]] = field(default_factory=dict)

    def of(self, resource: ConfigResource) -> Mapping[str, str]:
        """The overrides of one resource, as stored."""
        return self.overrides.get(resource, {})

    def store(self, resource: ConfigResource, values: Mapping[str, str]) -> None:
        """Replace the overrides of one resource."""
        if values:
            self.overrides[resource] = dict(values)
        else:
            self.overrides.pop(resource, None)

    # what a key comes to

    def broker_value(
        self,
        broker: int,
        names: Iterable[str],
        extra: Mapping[ConfigResource, Mapping[str, str]] | None = None,
    ) -> tuple[str, str, ConfigSource] | None:
        """The strongest (name, stored text, source) among synonyms; None where none is set anywhere.

        ``extra`` stands in for what some resources hold, to look at a change before it is made.
        """
        own = ConfigResource(ConfigScope.BROKER, str(broker))
        look = {**self.overrides, **(extra or {})}
        layers = (
            (look.get(own, {}), ConfigSource.BROKER),
            (look.get(CLUSTER_WIDE, {}), ConfigSource.CLUSTER),
            (self.static.get(broker, {}), ConfigSource.STATIC),
        )
        for values, source in layers:
            for name in names:
                if name in values:
                    return name, values[name], source
        return None

    def topic_entry(self, topic: str, name: str) -> ConfigEntry:
        """What describing one known key of a topic shows."""
        key = TOPIC_KEYS[name]
        held = self.of(ConfigResource(ConfigScope.TOPIC, topic))
        kind = _kind(key)
        if name in held:
            return ConfigEntry(key.normal(held[name]), ConfigSource.TOPIC, kind)
        inherited = self.broker_value(self.asked, SYNONYMS[name]) if SYNONYMS[name] else None
        if inherited is None:
            return ConfigEntry(key.default, ConfigSource.DEFAULT, kind)
        synonym, text, source = inherited
        if synonym in MILLISECONDS:
            return ConfigEntry(_milliseconds(synonym, text), source, kind)
        return ConfigEntry(key.normal(text), source, kind)

    def broker_entry(self, broker: int, name: str) -> ConfigEntry | None:
        """What describing one key of a broker shows; None where it is not described at all."""
        found = self.broker_value(broker, (name,))
        key = BROKER_KEYS.get(inner_name(name))
        if key is None:
            return None if found is None else _unknown(name, found[2])
        if found is None:
            if name in QUOTA_KEYS or name != key.name:
                return None
            value = None if key.sensitive else key.default
            return ConfigEntry(value, ConfigSource.DEFAULT, _kind(key), key.sensitive, is_read_only(name))
        value = None if key.sensitive else key.normal(found[1])
        beneath = None
        if found[2] is ConfigSource.BROKER and not key.sensitive:
            own = ConfigResource(ConfigScope.BROKER, str(broker))
            below = self.broker_value(broker, (name,), {own: {}})
            beneath = key.default if below is None else key.normal(below[1])
        return ConfigEntry(value, found[2], _kind(key), key.sensitive, is_read_only(name), beneath)

    def cluster_entry(self, name: str) -> ConfigEntry | None:
        """What describing one key of the cluster-wide default shows: only what is set there."""
        text = self.of(CLUSTER_WIDE).get(name)
        if text is None:
            return None
        key = BROKER_KEYS.get(inner_name(name))
        if key is None:
            return _unknown(name, ConfigSource.CLUSTER)
        value = None if key.sensitive else text
        return ConfigEntry(value, ConfigSource.CLUSTER, _kind(key), key.sensitive, is_read_only(name))

    def topic_flag(self, topic: str, name: str) -> bool:
        """The effective value of a boolean topic key."""
        return self.topic_entry(topic, name).value == "true"

    # changing them

    def altered(self, resource: ConfigResource, ops: Iterable[ConfigOp]) -> dict[str, str]:
        """The overrides after ``ops``, validated as a whole. Raises Fault; stores nothing."""
        wanted = tuple(ops)
        _check_shape(wanted)
        before = self.of(resource)
        is_topic = resource.scope is ConfigScope.TOPIC
        after = dict(before)
        for op in wanted:
            after = _apply(after, op, TOPIC_KEYS if is_topic else BROKER_KEYS)
        if not is_topic:
            check_broker(self, resource, before, after)
            self._check_elr(resource, wanted, after)
        changed = {op.key for op in wanted if not is_topic or before.get(op.key) != after.get(op.key)}
        if any(len(after.get(key, "")) > MAX_VALUE for key in changed):
            raise Fault(
                "INVALID_CONFIG",
                "The configuration value cannot be added because it exceeds the maximum value size of "
                "32767 bytes.",
            )
        if is_topic and changed:
            check_topic(self, before, after)
        return after

    def for_new_topic(self, values: Mapping[str, str | None]) -> dict[str, str]:
        """The overrides of a topic that is about to be created. Raises Fault."""
        null = [key for key, value in values.items() if value is None]
        if null:
            names = ",".join(null)
            raise Fault("INVALID_CONFIG", f"Null value not supported for topic configs: {names}")
        given = {key: value for key, value in values.items() if value is not None}
        if any(len(value) > MAX_VALUE for value in given.values()):
            raise Fault(
                "INVALID_CONFIG",
                "The configuration value cannot be added because it exceeds the maximum value size of "
                "32767 bytes.",
            )
        check_topic(self, {}, given)
        return given

    def _check_elr(
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


def _unknown(name: str, source: ConfigSource) -> ConfigEntry:
    return ConfigEntry(None, source, ConfigType.SCALAR, sensitive=True, read_only=is_read_only(name))


def _kind(key: Key) -> ConfigType:
    return {Type.LIST: ConfigType.LIST, Type.PASSWORD: ConfigType.PASSWORD}.get(key.type, ConfigType.SCALAR)


def _milliseconds(synonym: str, text: str) -> str:
    amount = int(text)
    return str(amount * MILLISECONDS[synonym]) if amount >= 0 else text


def _check_shape(ops: tuple[ConfigOp, ...]) -> None:
    if len({op.key for op in ops}) < len(ops):
        raise Fault("INVALID_REQUEST", "Error due to duplicate config keys")
    null = [op.key for op in ops if op.value is None and op.op is not FieldOp.DELETE]
    if null:
        raise Fault("INVALID_REQUEST", f"Null value not supported for : {','.join(null)}")


def _apply(held: dict[str, str], op: ConfigOp, keys: Mapping[str, Key]) -> dict[str, str]:
    if op.op is FieldOp.DELETE:
        return {name: text for name, text in held.items() if name != op.key}
    assert op.value is not None
    if op.op is FieldOp.SET:
        return {**held, op.key: op.value}
    key = keys.get(op.key)
    if key is None or key.type is not Type.LIST:
        raise Fault("INVALID_CONFIG", _no_list(op, key, keys is TOPIC_KEYS))
    elements = _stored_elements(held.get(op.key, key.default))
    for element in _java_split(op.value):
        if op.op is FieldOp.APPEND:
            if element not in elements:
                elements.append(element)
        elif element in elements:
            elements.remove(element)
    return {**held, op.key: ",".join(elements)}


def _no_list(op: ConfigOp, key: Key | None, is_topic: bool) -> str:
    # for topics it is the controller that answers, for brokers the broker itself
    if is_topic:
        return f"Can't {op.op.value} to key {op.key} because its type is not LIST."
    if key is None:
        return f"Unknown config name: {op.key}"
    return f"Config value {op.op.value.lower()} is not allowed for config key: {op.key}"


def _stored_elements(text: str | None) -> list[str]:
    # matched as they stand: Kafka splits without trimming here
    return [part for part in (text or "").split(",") if part]


def _java_split(text: str) -> list[str]:
    """String.split(","): empty parts at the end are dropped, but a text without a comma stays whole."""
    if "," not in text:
        return [text]
    parts = text.split(",")
    while parts and not parts[-1]:
        parts.pop()
    return parts
