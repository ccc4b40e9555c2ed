"""What Kafka refuses: single values, names, and combinations of keys.

After LogConfig.validate, ControllerConfigurationValidator, DynamicBrokerConfig and DynamicThreadPool.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kdeclare.core.faults import Fault
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.testing.definitions import (
    BROKER_KEYS,
    DYNAMIC_KEYS,
    PER_BROKER_KEYS,
    SECURITY_KEYS,
    THREAD_POOLS,
    TOPIC_KEYS,
)
from kdeclare.providers.kafka.testing.read_only import READ_ONLY_KEYS
from kdeclare.providers.kafka.testing.values import Invalid, Value

if TYPE_CHECKING:
    from kdeclare.providers.kafka.testing.configs import Configs

_CLUSTER_LEVEL_LISTENER_KEYS = {"max.connections", "max.connection.creation.rate", "num.network.threads"}
_LISTENER_KEY = re.compile(r"listener\.name\.[^.]*\.(.*)")
_MECHANISM_KEYS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


def inner_name(name: str) -> str:
    """The key behind a ``listener.name.X.`` prefix (DynamicBrokerConfig.brokerConfigSynonyms)."""
    match = _LISTENER_KEY.fullmatch(name)
    if match is None:
        return name
    return next((key for key in _MECHANISM_KEYS if match[1].endswith(key)), match[1])


def is_read_only(name: str) -> bool:
    """Whether a describe marks a broker key as read-only: all that is not dynamic, all with a prefix."""
    return name not in DYNAMIC_KEYS


def check_topic(configs: Configs, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """All overrides of a topic, each and together. Raises Fault INVALID_CONFIG."""
    for name in after:
        if name not in TOPIC_KEYS:
            raise Fault("INVALID_CONFIG", f"Unknown topic config name: {name}")
    try:
        held = {name: TOPIC_KEYS[name].parse(text) for name, text in after.items()}
    except Invalid as wrong:
        raise Fault("INVALID_CONFIG", str(wrong)) from None
    values = _Effective(configs, held)
    shortest, longest = values.number("min.compaction.lag.ms"), values.number("max.compaction.lag.ms")
    if shortest > longest:
        raise Fault(
            "INVALID_CONFIG",
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > "
            f"max.compaction.lag.ms ({longest})",
        )
    if values["remote.storage.enable"]:
        _check_tiered(configs, values)
    elif (
        before.get("remote.storage.enable", "").lower() == "true"
        and not values["remote.log.delete.on.disable"]
    ):
        raise Fault(
            "INVALID_CONFIG",
            "It is invalid to disable remote storage without deleting remote data. If you want to keep the "
            "remote data and turn to read only, please set `remote.storage.enable=true,"
            "remote.log.copy.disable=true`. If you want to disable remote storage and delete all remote "
            "data, please set `remote.storage.enable=false,remote.log.delete.on.disable=true`.",
        )


class _Effective:
    """Typed topic values: the topic's own over what it inherits."""

    def __init__(self, configs: Configs, held: Mapping[str, Value]) -> None:
        self._configs = configs
        self._held = held

    def __getitem__(self, name: str) -> Value:
        if name in self._held:
            return self._held[name]
        text = self._configs.topic_entry("", name).value
        assert text is not None
        return TOPIC_KEYS[name].parse(text)

    def number(self, name: str) -> int:
        value = self[name]
        assert isinstance(value, int)
        return value


def _check_tiered(configs: Configs, values: _Effective) -> None:
    if not configs.tiered:
        raise Fault(
            "INVALID_CONFIG",
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )
    policy = values["cleanup.policy"]
    if isinstance(policy, tuple) and "compact" in policy:
        raise Fault(
            "INVALID_CONFIG",
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an "
            "empty list.",
        )
    for unit in ("bytes", "ms"):
        whole, local = values.number(f"retention.{unit}"), values.number(f"local.retention.{unit}")
        if local == -2 or whole == -1:
            continue
        name = f"Invalid value {local} for configuration local.retention.{unit}: "
        if local == -1:
            raise Fault(
                "INVALID_CONFIG", f"{name}Value must not be -1 as retention.{unit} value is set as {whole}."
            )
        if local > whole:
            raise Fault(
                "INVALID_CONFIG",
                f"{name}Value must not be more than retention.{unit} property value: {whole}",
            )


def check_broker(
    configs: Configs, resource: ConfigResource, before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    """All overrides of a broker or of the cluster-wide default. Raises Fault INVALID_REQUEST."""
    _none_of(after.keys() & READ_ONLY_KEYS, "Cannot update these configs dynamically")
    _none_of(
        after.keys() & SECURITY_KEYS,
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    for name, text in after.items():
        key = BROKER_KEYS.get(inner_name(name))
        try:
            if key is not None:
                key.parse(text)
        except Invalid as wrong:
            raise Fault("INVALID_REQUEST", str(wrong)) from None
    if not resource.name:
        _none_of(
            {name for name in after if _needs_broker(name)},
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    broker = int(resource.name) if resource.name else configs.asked
    _check_connection_limits(configs, broker, resource, after)
    for name in sorted(THREAD_POOLS & (before.keys() | after.keys())):
        _check_pool(configs, broker, resource, name, after)


def _check_connection_limits(
    configs: Configs, broker: int, resource: ConfigResource, after: Mapping[str, str]
) -> None:
    """KafkaConfig.validateValues and ConnectionQuotas, of what the broker would come to have."""

    def effective(name: str) -> str:
        found = configs.broker_value(broker, (name,), {resource: after})
        return found[1].strip() if found else BROKER_KEYS[name].default or ""

    if int(effective("max.connections.per.ip")) == 0 and not effective("max.connections.per.ip.overrides"):
        raise Fault(
            "INVALID_REQUEST",
            "requirement failed: max.connections.per.ip can be set to zero only if "
            "max.connections.per.ip.overrides property is set.",
        )
    for name in ("max.connections", "max.connection.creation.rate"):
        if int(effective(name)) == 0:
            raise Fault("INVALID_REQUEST", _wrapped(f"Invalid {name} 0"))


def _needs_broker(name: str) -> bool:
    inner = inner_name(name)
    return inner in PER_BROKER_KEYS or (inner != name and inner not in _CLUSTER_LEVEL_LISTENER_KEYS)


def _none_of(names: Iterable[str], message: str) -> None:
    found = sorted(names)
    if found:
        raise Fault("INVALID_REQUEST", f"{message}: [{', '.join(found)}]")


def _check_pool(
    configs: Configs, broker: int, resource: ConfigResource, name: str, after: Mapping[str, str]
) -> None:
    default = BROKER_KEYS[name].default
    assert default is not None
    now = configs.broker_value(broker, (name,))
    then = configs.broker_value(broker, (name,), {resource: after})
    current = int(now[1]) if now else int(default)
    wanted = int(then[1]) if then else int(default)
    what = _cleaner_step if name == "log.cleaner.threads" else _pool_step
    problem = what(name, current, wanted)
    if problem:
        raise Fault("INVALID_REQUEST", problem)


def _pool_step(name: str, current: int, wanted: int) -> str:
    """DynamicThreadPool.validateReconfiguration."""
    if wanted < current // 2:
        reason = f"value should be at least half the current value {current}"
    elif wanted > current * 2:
        reason = f"value should not be greater than double the current value {current}"
    else:
        return ""
    return _wrapped(f"Dynamic thread count update validation failed for {name}={wanted}, {reason}")


def _cleaner_step(name: str, current: int, wanted: int) -> str:
    """LogCleaner.validateReconfiguration; a buffer is divided by the number of threads before that."""
    if wanted == 0:
        return "/ by zero"
    if wanted < current // 2:
        return _wrapped(
            f"Log cleaner threads cannot be reduced to less than half the current value {current}"
        )
    if wanted > current * 2:
        return _wrapped(
            f"Log cleaner threads cannot be increased to more than double the current value {current}"
        )
    return ""


def _wrapped(text: str) -> str:
    # as the broker passes it on, with the exception's name inside
    exception = "org.apache.kafka.common.config.ConfigException"
    return f"Invalid value {exception}: {text} for configuration Invalid dynamic configuration"
