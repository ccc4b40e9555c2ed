"""Connector classes for `MemoryConnectCluster`: models of the FileStream connectors, and classes for tests.

The models define the keys that tests need, not all keys of a real worker.
"""

import re
from collections.abc import Mapping
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.secret_refs import is_sensitive_key
from kdeclare.providers.connect.client.connectors_port import ConfigDefinition, ConnectorConfig, PluginClass

_OVERRIDE = re.compile(r"(consumer|producer|admin)\.override\.")
CLASS, TASKS_MAX = "connector.class", "tasks.max"
_FILES = "org.apache.kafka.connect.file"


@dataclass(frozen=True, slots=True)
class KeyRule:
    """A config key of a class.

    type: Kafka's name for the type. minimum: the smallest valid INT.
    """

    type: str = "STRING"
    required: bool = False
    minimum: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryPlugin:
    """A connector class.

    keys: the keys of the class itself; the keys of every connector are added.
    max_tasks: the largest number of tasks that the connector creates, whatever ``tasks.max`` is; None for no
        limit.
    topic_key: the key whose value names the topics.
    """

    name: str
    type: str
    keys: Mapping[str, KeyRule] = field(default_factory=dict)
    max_tasks: int | None = None
    topic_key: str = "topics"
    version: str = "4.3.1"

    @property
    def as_class(self) -> PluginClass:
        """The class as `ConnectCluster.list_plugins` returns it."""
        return PluginClass(self.name, self.type, self.version)

    @property
    def all_keys(self) -> Mapping[str, KeyRule]:
        """The keys of the class, of its type, and of every connector."""
        return {**_COMMON_KEYS, **(_SINK_KEYS if self.type == "sink" else _SOURCE_KEYS), **self.keys}

    def list_definitions(self, config: ConnectorConfig) -> Mapping[str, ConfigDefinition]:
        """Return the keys that a validation reports.

        Client overrides are reported only if the config sets them.
        """
        overrides = {
            key: KeyRule("PASSWORD" if is_sensitive_key(key) else "STRING")
            for key in config
            if _OVERRIDE.match(key)
        }
        return {
            key: ConfigDefinition(key, rule.type, rule.required)
            for key, rule in {**self.all_keys, **overrides}.items()
        }

    def count_tasks(self, config: ConnectorConfig) -> int:
        """Return the number of tasks of a valid config."""
        tasks = int(config.get(TASKS_MAX, "1"))
        return tasks if self.max_tasks is None else min(tasks, self.max_tasks)

    def list_topics(self, config: ConnectorConfig) -> tuple[str, ...]:
        """Return the topics that the config names."""
        return tuple(name.strip() for name in config.get(self.topic_key, "").split(",") if name.strip())

    def find_errors(self, config: ConnectorConfig) -> Mapping[str, tuple[str, ...]]:
        """Return the error messages of a validation by key. The config contains resolved values."""
        errors = {
            key: message
            for key, rule in self.all_keys.items()
            if (message := _find_error(key, rule, config.get(key)))
        }
        if self.type == "sink" and bool(config.get("topics")) == bool(config.get("topics.regex")):
            message = (
                "topics and topics.regex are mutually exclusive options, but both are set."
                if config.get("topics")
                else "Must configure one of topics or topics.regex"
            )
            errors |= {"topics": message, "topics.regex": message}
        return {key: (message,) for key, message in errors.items()}


def _find_error(key: str, rule: KeyRule, value: str | None) -> str:
    if value is None:
        return f'Missing required configuration "{key}" which has no default value.' if rule.required else ""
    if rule.type == "INT":
        if not value.strip().lstrip("+-").isdecimal():
            return f"Invalid value {value} for configuration {key}: Not a number of type INT"
        if rule.minimum is not None and int(value) < rule.minimum:
            limit = f"Value must be at least {rule.minimum}"
            return f"Invalid value {value} for configuration {key}: {limit}"
    if rule.required and not value:
        return f"Invalid value {value} for configuration {key}: String must be non-empty"
    return ""


_COMMON_KEYS = {
    "name": KeyRule(required=True),
    CLASS: KeyRule(required=True),
    TASKS_MAX: KeyRule("INT", minimum=1),
    "key.converter": KeyRule("CLASS"),
    "value.converter": KeyRule("CLASS"),
    "transforms": KeyRule("LIST"),
    "errors.tolerance": KeyRule(),
}
_SINK_KEYS = {
    "topics": KeyRule("LIST"),
    "topics.regex": KeyRule(),
    "errors.deadletterqueue.topic.name": KeyRule(),
}
_SOURCE_KEYS = {"topic.creation.groups": KeyRule("LIST")}

FILE_SOURCE = MemoryPlugin(
    f"{_FILES}.FileStreamSourceConnector",
    "source",
    {"file": KeyRule(), "topic": KeyRule(required=True), "batch.size": KeyRule("INT")},
    max_tasks=1,
    topic_key="topic",
)
FILE_SINK = MemoryPlugin(f"{_FILES}.FileStreamSinkConnector", "sink", {"file": KeyRule()})
PASSWORD_SINK = MemoryPlugin(
    "org.example.PasswordSinkConnector",
    "sink",
    {"url": KeyRule(required=True), "user": KeyRule(), "pin": KeyRule("PASSWORD")},
)
"""A class with a PASSWORD key whose name does not indicate a secret. Real workers do not have the class.
"""
