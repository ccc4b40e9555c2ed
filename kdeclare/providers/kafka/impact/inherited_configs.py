"""Observe the impact of changes to broker configs on the topics that inherit them."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.resources.changes import Change, FieldChange
from kdeclare.core.units import format_count
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, parse_broker_id
from kdeclare.providers.kafka.impact import wording
from kdeclare.providers.kafka.impact.impact_reader import ImpactReader
from kdeclare.providers.kafka.impact.inherited_loss import (
    InheritedChange,
    format_topic_count,
    format_topics,
    observe_inherited_losses,
)
from kdeclare.providers.kafka.impact.topic_settings import (
    LOSS_KEYS,
    TopicChange,
    find_topic_key,
    list_needed_keys,
    read_defaults,
    to_config_text,
)
from kdeclare.providers.kafka.live import ConfigSource, Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery, Configs

_BROKER_CONFIG = "BrokerConfig"
_CONFIGS = "configs."
_TOPICS_PER_STEP = 1_000
"""The number of topics whose configs are read between two checks of the time limit."""


@dataclass(frozen=True, slots=True)
class BrokerDefault:
    """A changed broker config that contains the default of a topic config.

    before, after: the value that is set on the broker or as the cluster-wide default; None if it is not set.
    """

    path: str
    topic_key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class _Topics:
    """The topics that the principal can see, and their configs. Internal topics come last.

    planned: the changes that the same plan makes to topics, by name.
    """

    topics: Mapping[str, Topic]
    configs: Mapping[str, Configs | Fault]
    planned: Mapping[str, TopicChange]


def observe_broker_defaults(
    reader: ImpactReader, changes: Sequence[Change], topic_changes: Mapping[str, TopicChange]
) -> Iterator[Observation]:
    """Yield the impact of changes to broker configs on topics without an override.

    Nothing is read unless a changed broker config contains the default of a topic config.
    topic_changes: the changes to topics in the same plan, by name. Topics that are deleted, or that get an
        override, do not inherit the new value.
    """
    changed: dict[str, list[BrokerDefault]] = {}
    for change in changes:
        if change.id.kind == _BROKER_CONFIG:
            found = [item for field in change.fields if (item := _find_default(field)) is not None]
            if found:
                changed[change.id.name] = found
    keys = {default.topic_key for defaults in changed.values() for default in defaults}
    if not keys:
        return
    found_topics = _read_topics(reader, keys, topic_changes)
    for name, defaults in changed.items():
        resource = f"{_BROKER_CONFIG}/{name}"
        if isinstance(found_topics, Fault):
            for default in defaults:
                what = f"which topics inherit {default.topic_key}"
                yield wording.build_unknown(resource, default.path, what, found_topics)
        else:
            yield from _observe_resource(reader, resource, defaults, found_topics)


def _find_default(field: FieldChange) -> BrokerDefault | None:
    topic_key = find_topic_key(field.path.removeprefix(_CONFIGS))
    if topic_key is None:
        return None
    return BrokerDefault(field.path, topic_key, to_config_text(field.before), to_config_text(field.after))


def _read_topics(
    reader: ImpactReader, keys: set[str], topic_changes: Mapping[str, TopicChange]
) -> _Topics | Fault:
    topics = reader.attempt(lambda cluster: cluster.topics())
    if isinstance(topics, Fault):
        return topics
    needed = frozenset(keys) | (frozenset() if keys.isdisjoint(LOSS_KEYS) else list_needed_keys())
    names = sorted(topics, key=lambda name: (topics[name].internal, name))
    configs: dict[str, Configs | Fault] = {}
    for first in range(0, len(names), _TOPICS_PER_STEP):
        described = reader.attempt(_make_read(names[first : first + _TOPICS_PER_STEP], needed))
        if isinstance(described, Fault):
            return described
        configs |= described
    return _Topics(topics, {name: configs[name] for name in names if name in configs}, topic_changes)


def _make_read(
    names: Sequence[str], keys: frozenset[str]
) -> Callable[[Cluster], Mapping[str, Configs | Fault]]:
    queries = [ConfigQuery(ConfigResource(ConfigScope.TOPIC, name), keys) for name in names]

    def read(cluster: Cluster) -> Mapping[str, Configs | Fault]:
        return {item.name: found for item, found in cluster.describe_configs_partially(queries).items()}

    return read


def _observe_resource(
    reader: ImpactReader, resource: str, defaults: Sequence[BrokerDefault], found: _Topics
) -> Iterator[Observation]:
    """Yield the impact of the changes to one BrokerConfig."""
    broker = parse_broker_id(resource.partition("/")[2])
    inheriting: dict[str, dict[str, str]] = {}
    for default in defaults:
        names = [name for name in found.configs if _inherits(found, name, default.topic_key, broker)]
        yield _build_inherited(resource, default, names, broker)
        yield from _report_refused(resource, default, found.configs)
        if default.topic_key not in LOSS_KEYS or not names:
            continue
        if default.after is None:
            reason = (
                "the plan removes the config, so brokers will use a value that kdeclare does not know, such "
                "as the one in their properties file"
            )
            what = "which records of these topics are deleted"
            yield wording.build_unknown(resource, default.path, what, reason)
            continue
        for name in names:
            inheriting.setdefault(name, {})[default.topic_key] = default.after
    if inheriting:
        old_values = _read_old_values(reader, defaults, broker)
        inherited = [
            InheritedChange(found.topics[name], _list_values(found.configs[name], old_values, values), values)
            for name, values in inheriting.items()
        ]
        paths = {default.topic_key: default.path for default in defaults}
        yield from observe_inherited_losses(reader, resource, inherited, paths, broker)


def _inherits(found: _Topics, name: str, key: str, broker: int | None) -> bool:
    """Return whether a topic inherits a config after the plan.

    broker: the only broker whose config changes; None for the cluster-wide default.
    """
    entries, change = found.configs[name], found.planned.get(name)
    if isinstance(entries, Fault) or (change is not None and change.is_deletion):
        return False
    if broker is not None and not any(
        broker in partition.replicas for partition in found.topics[name].partitions
    ):
        return False
    if change is not None and key in change.configs:
        return change.configs[key] is None
    entry = entries.get(key)
    return entry is not None and entry.source is not ConfigSource.TOPIC


def _read_old_values(
    reader: ImpactReader, defaults: Sequence[BrokerDefault], broker: int | None
) -> Mapping[str, str]:
    """Return the known defaults of topic configs before the change, by topic config.

    broker: the only broker whose configs change. Its values can differ from those of the broker that
        describes topics.
    """
    old_values = {default.topic_key: default.before for default in defaults if default.before is not None}
    if broker is None:
        return old_values
    keys = {default.topic_key for default in defaults}.intersection(LOSS_KEYS)
    read_values = reader.attempt(lambda cluster: read_defaults(cluster, keys, broker))
    return old_values if isinstance(read_values, Fault) else {**old_values, **read_values}


def _list_values(
    entries: Configs | Fault, old_values: Mapping[str, str], changed: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the effective configs of a topic before the change.

    If a changed config is not in ``old_values``, the value that the brokers describe for the topic is used.
    changed: the new values of the inherited configs.
    """
    described = {} if isinstance(entries, Fault) else entries
    values = {key: entry.value for key, entry in described.items() if entry.value is not None}
    own = {key for key, entry in described.items() if entry.source is ConfigSource.TOPIC}
    return values | {key: value for key, value in old_values.items() if key in changed and key not in own}


def _build_inherited(
    resource: str, default: BrokerDefault, names: Sequence[str], broker: int | None
) -> Observation:
    """Return the observation about the topics that inherit a config, with the names of the first ones."""
    where = "" if broker is None else f" with replicas on broker {broker}"
    figures: dict[str, JsonValue] = {"config": default.topic_key, "topics": len(names)}
    if not names:
        text = f"No topic{where} inherits {default.topic_key}: all of them have overrides."
        level = ObservationLevel.INFO
    else:
        verb = "inherits" if len(names) == 1 else "inherit"
        topics = f"{format_count(len(names), 'topic')}{where}"
        text = f"{topics} {verb} {default.topic_key}: {format_topics(names)}."
        level = ObservationLevel.EFFECT
    return Observation(resource, "inherited-config", level, text, default.path, figures)


def _report_refused(
    resource: str, default: BrokerDefault, configs: Mapping[str, Configs | Fault]
) -> Iterator[Observation]:
    refused = {name: entries for name, entries in configs.items() if isinstance(entries, Fault)}
    if refused:
        verb = "inherits" if len(refused) == 1 else "inherit"
        what = f"whether {format_topic_count(list(refused))} {verb} {default.topic_key}"
        reason = next(iter(refused.values()))
        yield wording.build_unknown(resource, default.path, what, reason, right="DescribeConfigs")
