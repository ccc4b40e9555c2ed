"""Facts about topics and broker configs: hashes with which Spark can skip resources that have no differences.

There are facts about the partition count, the replication factor, the topic id, and each config key. A fact
about a key is a hash of its value, of its whole list, or of one list element. If the facts do not prove that
a resource and its live object are equal, the audit computes the diff.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from kdeclare.core.jsontypes import JsonValue, as_texts
from kdeclare.core.live.live_codec import DeclaredFacts, LiveFacts, LiveKey, hash_fact
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.audit_rules import AuditRules, UnmanagedField
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.config_diff import LiveConfigs, find_override, to_plan_value
from kdeclare.providers.kafka.config.config_record import Applied, get_applied, get_own_elements
from kdeclare.providers.kafka.config.config_value import (
    ConfigValue,
    ListPatch,
    Unset,
    Value,
    get_declared_configs,
    is_secrecy_unknown,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import ConfigEntry, ConfigType, KafkaState, Move, Topic, get_own_source
from kdeclare.providers.kafka.operations.alter_configs import CLUSTER_DEFAULT


def compute_topic_facts(
    topic: Topic, entries: Mapping[str, ConfigEntry], moves: Mapping[TopicPartition, Move]
) -> LiveFacts:
    """Return the facts about one live topic.

    moves: in-flight reassignments. Reassignments of other topics are ignored.
    """
    facts = compute_override_facts(ConfigResource(ConfigScope.TOPIC, topic.name), entries)
    sizes = {_count_target_replicas(topic, n, moves) for n in range(len(topic.partitions))}
    present_facts = [*facts.has, _hash_count("partitions", len(topic.partitions))]
    if len(sizes) == 1:
        present_facts.append(_hash_count("factor", sizes.pop()))
    if topic.topic_id:
        present_facts.append(hash_fact("id", topic.topic_id))
    return LiveFacts(present_facts, facts.keys)


def compute_override_facts(entity: ConfigResource, entries: Mapping[str, ConfigEntry]) -> LiveFacts:
    """Return the facts about the overrides of a resource."""
    resource_source = get_own_source(entity)
    own_entries = {key: entry for key, entry in entries.items() if entry.source is resource_source}
    present_facts = [
        fact for key, entry in own_entries.items() for fact in _hash_entry(entity.scope, key, entry)
    ]
    return LiveFacts(present_facts, [_hash_key(key) for key in own_entries])


def compute_declared_topic_facts(
    partitions: int | None,
    factor: int | None,
    topic_id: str | None,
    configs: DeclaredFacts | None,
) -> DeclaredFacts | None:
    """Return the facts about a declared topic, or None if the audit must compute the diff.

    partitions, factor, topic_id: None if not declared.
    configs: the facts about the declared configs, or None if the audit must compute the diff.
    """
    if configs is None:
        return None
    required_facts = list(configs.need)
    if partitions is not None:
        required_facts.append(_hash_count("partitions", partitions))
    if factor is not None:
        required_facts.append(_hash_count("factor", factor))
    if topic_id is not None:
        required_facts.append(hash_fact("id", topic_id))
    return DeclaredFacts(required_facts, configs.forbid, configs.keys, configs.gone)


def compute_declared_override_facts(
    scope: ConfigScope,
    config_values: Mapping[str, ConfigValue],
    owned: Mapping[str, Applied],
    *,
    remove_unmanaged: bool,
) -> DeclaredFacts | None:
    """Return the facts about declared configs.

    Return None if the audit must compute the diff, for example for secrets.
    owned: the last applied values, by key.
    """
    required_facts: list[int] = []
    forbidden_facts: list[int] = []
    for key, config_value in config_values.items():
        if _is_left_to_diff(scope, key, config_value):
            return None  # An unsalted hash could reveal a possible secret.
        if isinstance(config_value, Value):
            required_facts.append(_hash_whole_value(scope, key, config_value.value))
        elif isinstance(config_value, ListPatch):
            required_facts += [_hash_element(key, element) for element in config_value.append]
            forbidden_facts += [_hash_element(key, element) for element in config_value.subtract]
            if not set(get_own_elements(owned.get(key))) <= set(config_value.append):
                return None  # Elements that kdeclare added are no longer declared. The diff removes them.
    keys = {key for key, config_value in config_values.items() if not isinstance(config_value, Unset)}
    absent_keys = None if remove_unmanaged else list(map(_hash_key, sorted({*config_values, *owned} - keys)))
    return DeclaredFacts(required_facts, forbidden_facts, list(map(_hash_key, sorted(keys))), absent_keys)


def _count_target_replicas(topic: Topic, number: int, moves: Mapping[TopicPartition, Move]) -> int:
    """Return the number of replicas of a partition after any in-flight reassignment (KIP-860)."""
    move = moves.get(TopicPartition(topic.name, number)) if moves else None
    return len(topic.partitions[number].replicas if move is None else move.target)


@lru_cache(maxsize=4096)
def _hash_count(name: str, number: int) -> int:
    return hash_fact(name, str(number))


def _is_left_to_diff(scope: ConfigScope, key: str, config_value: ConfigValue) -> bool:
    """Return whether the audit must compute the diff for a declared value.

    Possible secrets require the diff. List patches that only subtract elements require it as well: without an
    override, no fact shows whether the inherited list contains an element.
    """
    if isinstance(config_value, Secret):
        return True
    if isinstance(config_value, ListPatch):
        return not config_value.append
    return is_secrecy_unknown(key, config_value, load_catalog(scope))


def _hash_entry(scope: ConfigScope, key: str, entry: ConfigEntry) -> tuple[int, ...]:
    if entry.sensitive or entry.value is None:
        return ()
    return _hash_value(scope, key, entry.value, entry.type)


@lru_cache(maxsize=65536)
def _hash_value(scope: ConfigScope, key: str, value: str, config_type: ConfigType) -> tuple[int, ...]:
    entry = ConfigEntry(value, get_own_source(ConfigResource(scope, "")), config_type)
    return tuple(_hash_plan_value(key, to_plan_value(key, entry, load_catalog(scope))))


def _hash_plan_value(key: str, plan_value: JsonValue) -> Iterator[int]:
    if isinstance(plan_value, str):
        yield _hash_scalar(key, plan_value)
        return
    elements = frozenset(element.strip() for element in as_texts(plan_value))
    yield _hash_list(key, elements)
    for element in sorted(elements):
        yield _hash_element(key, element)


@lru_cache(maxsize=65536)
def _hash_whole_value(scope: ConfigScope, key: str, value: str | tuple[str, ...]) -> int:
    if isinstance(value, tuple):
        return _hash_list(key, frozenset(value))
    return _hash_scalar(key, load_catalog(scope).normalize(key, value))


def _hash_scalar(key: str, canonical: str) -> int:
    return hash_fact("value", key, canonical)


def _hash_list(key: str, elements: frozenset[str]) -> int:
    return hash_fact("list", key, *sorted(elements))


@lru_cache(maxsize=65536)
def _hash_element(key: str, element: str) -> int:
    return hash_fact("element", key, element)


@lru_cache(maxsize=4096)
def _hash_key(key: str) -> int:
    return hash_fact("key", key)


TOPIC = "Topic"
BROKER_CONFIG = "BrokerConfig"
"""The name of the kind, and the type that live broker configs have in snapshots."""

_CONFIGS = "configs."
_UNKNOWN_KEY_MESSAGE = (
    "kdeclare does not know this config key, so the audit cannot tell whether the key exists. Run kdeclare "
    "plan to check the key."
)


def to_config_resource(sort: str, key: str) -> ConfigResource:
    """Return the Kafka config resource of a live object."""
    if sort == TOPIC:
        return ConfigResource(ConfigScope.TOPIC, key)
    return ConfigResource(ConfigScope.BROKER, "" if key == CLUSTER_DEFAULT else key)


def select_topic_keys(keys: Collection[LiveKey], names: Collection[str]) -> list[LiveKey]:
    """Return the keys of the topics in ``names``, selected from ``keys``."""
    return [key for key in keys if key.sort == TOPIC and key.key in names]


def list_topic_names(keys: Iterable[LiveKey]) -> Iterator[str]:
    """Yield the names of the topics in ``keys``. Keys of other live objects are skipped."""
    return (key.key for key in keys if key.sort == TOPIC)


class ConfigAuditRules(AuditRules):
    """The audit rules for resources with configs."""

    def find_entries(
        self, resource: ResourceId, live: LiveState
    ) -> tuple[ConfigResource, Mapping[str, ConfigEntry]]:
        """Return the Kafka config resource of a declared resource, and its live configs."""
        config_resource = to_config_resource(resource.kind, resource.name)
        return config_resource, live.get(KafkaState).configs[config_resource]

    def get_scope(self, resource: ResourceId) -> ConfigScope:
        """Return the type of the Kafka config resource."""
        return to_config_resource(resource.kind, resource.name).scope

    def list_unmanaged(
        self, resource: ResourceId, names: Sequence[str], live: LiveState
    ) -> Iterator[UnmanagedField]:
        """Yield the config keys in ``names`` with their live overrides."""
        if not names:
            return
        config_resource, entries = self.find_entries(resource, live)
        live_configs = LiveConfigs(
            str(resource), entries, get_own_source(config_resource), load_catalog(config_resource.scope)
        )
        for key in names:
            yield UnmanagedField(f"{_CONFIGS}{key}", find_override(live_configs, key))

    def is_set_by_others(self, path: str, desired: DesiredResource, owned: OwnedRecord | None) -> bool:
        """Return whether the config is neither declared nor owned, which means that another client set it."""
        key = path.removeprefix(_CONFIGS)
        return key not in {path, *get_declared_configs(desired), *get_applied(owned)}

    def describe_pending(self, resource: ResourceId, unset: Sequence[str]) -> str | None:
        """Return a note if a declared key is not in the catalog and might not exist; otherwise None."""
        keys = load_catalog(self.get_scope(resource))
        key_infos = (keys.get(path.removeprefix(_CONFIGS)) for path in unset if path.startswith(_CONFIGS))
        return None if all(key_infos) else _UNKNOWN_KEY_MESSAGE
