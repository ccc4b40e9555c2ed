"""The effective configs of topics before and after a change, for configs that determine the impact."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import field
from functools import lru_cache

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, as_list
from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.impact.deletable_records import LogLimits
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery

CLEANUP_POLICY, RETENTION_MS, RETENTION_BYTES = "cleanup.policy", "retention.ms", "retention.bytes"
SEGMENT_MS, SEGMENT_BYTES, MIN_ISR = "segment.ms", "segment.bytes", "min.insync.replicas"
MAX_MESSAGE_BYTES = "max.message.bytes"
REMOTE_STORAGE = "remote.storage.enable"
LOSS_KEYS = (CLEANUP_POLICY, RETENTION_MS, RETENTION_BYTES, REMOTE_STORAGE)
"""The topic configs whose changes can cause records to be deleted."""

_CONFIGS = "configs."
_CACHED_TEXTS = 1024
"""The maximum number of parsed values in the cache. Most topics of a cluster have the same values."""
_BROKER_KEYS: Mapping[str, Sequence[tuple[str, int]]] = {
    CLEANUP_POLICY: (("log.cleanup.policy", 1),),
    RETENTION_MS: (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ),
    RETENTION_BYTES: (("log.retention.bytes", 1),),
    SEGMENT_MS: (("log.roll.ms", 1), ("log.roll.hours", 3_600_000)),
    SEGMENT_BYTES: (("log.segment.bytes", 1),),
    MIN_ISR: ((MIN_ISR, 1),),
    MAX_MESSAGE_BYTES: (("message.max.bytes", 1),),
}
"""For each topic config, the broker configs that contain its default, in order of precedence.

Each number is the factor that converts the value of the broker config to the unit of the topic config. See
`org.apache.kafka.server.config.ServerTopicConfigSynonyms`.
"""

_OTHER_BROKER_KEYS: Mapping[str, str] = {
    "log.cleaner.delete.retention.ms": "delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms": "max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio": "min.cleanable.dirty.ratio",
    "log.cleaner.min.compaction.lag.ms": "min.compaction.lag.ms",
    "log.flush.interval.messages": "flush.messages",
    "log.flush.interval.ms": "flush.ms",
    "log.index.interval.bytes": "index.interval.bytes",
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.local.retention.bytes": "local.retention.bytes",
    "log.local.retention.ms": "local.retention.ms",
    "log.message.timestamp.after.max.ms": "message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms": "message.timestamp.before.max.ms",
    "log.message.timestamp.type": "message.timestamp.type",
    "log.preallocate": "preallocate",
    "log.roll.jitter.ms": "segment.jitter.ms",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    **{
        key: key
        for key in (
            "compression.gzip.level",
            "compression.lz4.level",
            "compression.type",
            "compression.zstd.level",
            "unclean.leader.election.enable",
        )
    },
}
"""For each dynamic broker config that is not in `_BROKER_KEYS`, the topic config that inherits its value."""
_TOPIC_KEYS = {**_OTHER_BROKER_KEYS, **{names[0][0]: key for key, names in _BROKER_KEYS.items()}}


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The effective configs of a topic before and after a change; a key without a value is omitted.

    unknown: the keys whose new value is a default that the brokers do not show.
    """

    before: Mapping[str, str]
    after: Mapping[str, str]
    unknown: frozenset[str] = frozenset()

    @property
    def is_compacted_before(self) -> bool:
        """Whether Kafka compacts the topic before the change."""
        return "compact" in _split_policies(self.before)

    @property
    def is_compacted_after(self) -> bool:
        """Whether Kafka compacts the topic after the change."""
        return "compact" in _split_policies(self.after)

    @property
    def is_tiered(self) -> bool:
        """Whether the topic uses remote storage (KIP-405) before or after the change."""
        return "true" in (self.before.get(REMOTE_STORAGE), self.after.get(REMOTE_STORAGE))

    @property
    def ends_tiering(self) -> bool:
        """Whether the change disables tiered storage. Kafka then requires that remote records are deleted."""
        return self.before.get(REMOTE_STORAGE) == "true" and self.after.get(REMOTE_STORAGE) != "true"

    @property
    def limits_before(self) -> LogLimits:
        """The limits on the log before the change."""
        return _build_limits(self.before, (self.before, self.after))

    @property
    def limits_after(self) -> LogLimits:
        """The limits on the log after the change."""
        return _build_limits(self.after, (self.before, self.after))


def require_known(settings: TopicSettings | Fault | None, key: str) -> TopicSettings | Fault | str:
    """Return the settings if the new value of a config is known; otherwise the reason why it is unknown."""
    if not isinstance(settings, TopicSettings):
        return settings or "the topic is gone"
    if key in settings.unknown:
        return f"the brokers do not show their default of {key} without the DescribeConfigs permission"
    return settings


@dataclass(frozen=True, slots=True)
class TopicChange:
    """The parts of a change to an existing topic that determine which records are lost.

    resource: the id of the changed resource.
    configs: the new overrides by key; None means the default of the brokers.
    raised_limits: the configs that limit the log and whose override the change raises.
    """

    resource: str
    is_deletion: bool = False
    configs: Mapping[str, str | None] = field(default_factory=dict)
    raised_limits: frozenset[str] = frozenset()

    @property
    def can_lose_records(self) -> bool:
        """Whether the changed fields can cause the deletion of records."""
        return self.is_deletion or any(
            key in self.configs and key not in self.raised_limits for key in LOSS_KEYS
        )

    @property
    def reset_keys(self) -> Set[str]:
        """The configs that determine the impact and that the change resets to the default of the brokers."""
        return {key for key, value in self.configs.items() if value is None} & _BROKER_KEYS.keys()


def build_topic_change(change: Change) -> TopicChange:
    """Return the parts of a planned change to a topic that determine which records are lost."""
    is_deletion = change.action in (Action.DELETE, Action.REPLACE)
    # If a config has several changes, the last counts.
    fields = {f.path.removeprefix(_CONFIGS): f for f in change.fields if f.path.startswith(_CONFIGS)}
    return TopicChange(
        str(change.id),
        is_deletion,
        {key: to_config_text(changed.after) for key, changed in fields.items()},
        frozenset(
            key for key in (RETENTION_MS, RETENTION_BYTES) if key in fields and _is_raised(fields[key])
        ),
    )


def find_topic_key(broker_key: str) -> str | None:
    """Return the topic config that takes its default from ``broker_key`` in the same unit, or None."""
    return _TOPIC_KEYS.get(broker_key)


def list_needed_keys() -> frozenset[str]:
    """Return the configs of a topic that determine which records are lost."""
    return frozenset({*_BROKER_KEYS, REMOTE_STORAGE})


def read_configs(cluster: Cluster, topics: Iterable[str]) -> Mapping[str, Mapping[str, str] | Fault]:
    """Read the effective configs of topics; a key without a value is omitted. Raises Fault.

    The result has a Fault for each topic whose configs cannot be described.
    """
    keys = list_needed_keys()
    queries = [ConfigQuery(ConfigResource(ConfigScope.TOPIC, name), keys) for name in sorted(topics)]
    return {
        resource.name: entries
        if isinstance(entries, Fault)
        else {key: entry.value for key, entry in entries.items() if entry.value is not None}
        for resource, entries in cluster.describe_configs_partially(queries).items()
    }


def build_settings(
    before: Mapping[str, str], change: TopicChange, defaults: Mapping[str, str | None]
) -> TopicSettings:
    """Apply a change to the effective configs of a topic.

    defaults: the values of topics without overrides, for all `TopicChange.reset_keys`.
    """
    after, unknown = dict(before), set()
    for key, value in change.configs.items():
        new_value = defaults.get(key) if value is None else value
        if new_value is not None:
            after[key] = new_value
        elif key in _BROKER_KEYS:
            unknown.add(key)
        elif key == REMOTE_STORAGE:
            after[key] = "false"  # brokers have no default for it
    return TopicSettings(before, after, frozenset(unknown))


def find_config_field(change: Change, key: str) -> FieldChange | None:
    """Return the last change to a config of the topic; None if it is unchanged.

    A config with a list as its value can have several changes.
    """
    return next((f for f in reversed(change.fields) if f.path == f"{_CONFIGS}{key}"), None)


def is_lower_limit(before: int | None, after: int | None) -> bool:
    """Return whether a limit on the log becomes lower; None means no limit."""
    return after is not None and (before is None or after < before)


def _is_raised(limit: FieldChange) -> bool:
    """Return whether a change raises the override of a limit, keeps its value, or sets it to no limit."""
    if limit.before is None or limit.after is None:
        return False  # the default of the brokers is in effect before or after the change
    before, after = (_parse_limit(to_config_text(value)) for value in (limit.before, limit.after))
    return not is_lower_limit(before, after)


def to_config_text(value: JsonValue) -> str | None:
    """Return the value of a config as Kafka writes it; None if there is none."""
    if value is None:
        return None
    return ",".join(map(str, as_list(value))) if isinstance(value, list | tuple) else str(value)


def read_defaults(cluster: Cluster, keys: Collection[str], broker_id: int | None) -> Mapping[str, str]:
    """Return the values of ``keys`` that topics without overrides inherit.

    The result is empty if the broker does not show its configs, or if ``broker_id`` is None. Raises Fault.
    broker_id: the broker whose configs are read.
    """
    if not keys or broker_id is None:
        return {}
    broker = ConfigResource(ConfigScope.BROKER, str(broker_id))
    names = frozenset(name for key in keys for name, _ in _BROKER_KEYS[key])
    described = cluster.describe_configs_partially([ConfigQuery(broker, names)]).get(broker)
    if described is None or isinstance(described, Fault):
        return {}
    values = {name: entry.value for name, entry in described.items()}
    return {key: value for key in keys if (value := _find_default(key, values)) is not None}


def _find_default(key: str, values: Mapping[str, str | None]) -> str | None:
    for name, unit in _BROKER_KEYS[key]:
        value = values.get(name)
        if value:
            return str(int(value) * unit) if unit > 1 and int(value) > 0 else value
    info = load_catalog(ConfigScope.TOPIC).get(key)  # no broker config is set
    return None if info is None else info.default


@lru_cache(maxsize=_CACHED_TEXTS)
def _parse_policies(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(","))


def _split_policies(configs: Mapping[str, str]) -> frozenset[str]:
    return _parse_policies(configs.get(CLEANUP_POLICY, "delete"))


def _build_limits(configs: Mapping[str, str], all_configs: Sequence[Mapping[str, str]]) -> LogLimits:
    """Return the limits that ``configs`` set on a log.

    all_configs: the configs before and after the change, both of which determine how large existing segments
        can be and which time spans they can cover.
    """
    return LogLimits(
        deletes="delete" in _split_policies(configs),
        retention_ms=_parse_limit(configs.get(RETENTION_MS)),
        retention_bytes=_parse_limit(configs.get(RETENTION_BYTES)),
        segment_ms=max((_parse_limit(each.get(SEGMENT_MS)) or 0) for each in all_configs),
        is_compacted=any("compact" in _split_policies(each) for each in all_configs),
        segment_bytes=max((_parse_limit(each.get(SEGMENT_BYTES)) or 0) for each in all_configs),
    )


@lru_cache(maxsize=_CACHED_TEXTS)
def _parse_limit(text: str | None) -> int | None:
    """Parse a limit. Return None, which means no limit, if the number is negative or missing."""
    number = int(text) if text else -1
    return number if number >= 0 else None
