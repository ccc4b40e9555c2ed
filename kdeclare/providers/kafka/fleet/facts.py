"""What a topic or a BrokerConfig must have to be in order, as hashes that Spark compares by itself.

A fact is about the number of partitions, the replication factor, the topic id, or one config key: that it has
a value, that it is a list of certain elements, or that one element is in it. Facts prove that a row is in
order, or leave it to the diff; they never say what is wrong.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from kdeclare.core.jsontypes import JsonValue, as_texts
from kdeclare.core.live.live_codec import DeclaredFacts, LiveFacts, LiveKey, hash_fact
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.audit_rules import AuditRules, UnmanagedField
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.config_diff import ConfigSide, override, shown_value
from kdeclare.providers.kafka.config.config_record import Applied, get_applied, own_elements
from kdeclare.providers.kafka.config.wishes import (
    Parts,
    Unset,
    Whole,
    Wish,
    get_declared_configs,
    may_be_secret,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import ConfigEntry, ConfigType, KafkaState, Move, Topic
from kdeclare.providers.kafka.operations.alter_configs import CLUSTER_DEFAULT, own_source


def topic_facts(
    topic: Topic, entries: Mapping[str, ConfigEntry], moves: Mapping[TopicPartition, Move]
) -> LiveFacts:
    """Return the facts of one topic. ``moves`` may be those of the whole cluster."""
    facts = override_facts(ConfigResource(ConfigScope.TOPIC, topic.name), entries)
    sizes = {_true_size(topic, n, moves) for n in range(len(topic.partitions))}
    has = [*facts.has, _count("partitions", len(topic.partitions))]
    if len(sizes) == 1:
        has.append(_count("factor", sizes.pop()))
    if topic.topic_id:
        has.append(hash_fact("id", topic.topic_id))
    return LiveFacts(has, facts.keys)


def override_facts(entity: ConfigResource, entries: Mapping[str, ConfigEntry]) -> LiveFacts:
    """Return the facts of what is set on the resource itself."""
    own = own_source(entity)
    mine = {key: entry for key, entry in entries.items() if entry.source is own}
    has = [fact for key, entry in mine.items() for fact in _facts_of(entity.scope, key, entry)]
    return LiveFacts(has, [_key(key) for key in mine])


def declared_topic_facts(
    partitions: int | None,
    factor: int | None,
    topic_id: str | None,
    configs: DeclaredFacts | None,
) -> DeclaredFacts | None:
    """Return the facts of a declared topic; None where only the diff can tell.

    None is what is not stated; of ``configs``, that only the diff can tell.
    """
    if configs is None:
        return None
    need = list(configs.need)
    if partitions is not None:
        need.append(_count("partitions", partitions))
    if factor is not None:
        need.append(_count("factor", factor))
    if topic_id is not None:
        need.append(hash_fact("id", topic_id))
    return DeclaredFacts(need, configs.forbid, configs.keys, configs.gone)


def declared_override_facts(
    scope: ConfigScope, wishes: Mapping[str, Wish], owned: Mapping[str, Applied], *, remove_unmanaged: bool
) -> DeclaredFacts | None:
    """Return the facts of declared configs; None where there are secrets, or parts of lists that are unset.

    owned: what was last applied, by key.
    """
    need: list[int] = []
    forbid: list[int] = []
    for key, wish in wishes.items():
        if _is_untold(scope, key, wish):
            return None  # a quick hash of what may be secret would give it away
        if isinstance(wish, Whole):
            need.append(_whole(scope, key, wish.value))
        elif isinstance(wish, Parts):
            need += [_element(key, element) for element in wish.append]
            forbid += [_element(key, element) for element in wish.subtract]
            if not set(own_elements(owned.get(key))) <= set(wish.append):
                return None  # of elements that kdeclare put into a list, the diff takes those out again
    keys = {key for key, wish in wishes.items() if not isinstance(wish, Unset)}
    gone = None if remove_unmanaged else list(map(_key, sorted({*wishes, *owned} - keys)))
    return DeclaredFacts(need, forbid, list(map(_key, sorted(keys))), gone)


def _true_size(topic: Topic, number: int, moves: Mapping[TopicPartition, Move]) -> int:
    """How many replicas a partition has, or is to have once its move is over (KIP-860)."""
    move = moves.get(TopicPartition(topic.name, number)) if moves else None
    return len(topic.partitions[number].replicas if move is None else move.target)


@lru_cache(maxsize=4096)
def _count(what: str, number: int) -> int:
    return hash_fact(what, str(number))


def _is_untold(scope: ConfigScope, key: str, wish: Wish) -> bool:
    """Secrets are known by their hash only; what is taken out of an unset list is not in any override."""
    if isinstance(wish, Secret):
        return True
    if isinstance(wish, Parts):
        return not wish.append
    return may_be_secret(key, wish, catalog(scope))


def _facts_of(scope: ConfigScope, key: str, entry: ConfigEntry) -> tuple[int, ...]:
    if entry.sensitive or entry.value is None:
        return ()
    return _facts(scope, key, entry.value, entry.type)


@lru_cache(maxsize=65536)
def _facts(scope: ConfigScope, key: str, value: str, kind: ConfigType) -> tuple[int, ...]:
    entry = ConfigEntry(value, own_source(ConfigResource(scope, "")), kind)
    return tuple(_facts_shown(key, shown_value(key, entry, catalog(scope))))


def _facts_shown(key: str, shown: JsonValue) -> Iterator[int]:
    if isinstance(shown, str):
        yield _scalar(key, shown)
        return
    elements = frozenset(element.strip() for element in as_texts(shown))
    yield _list(key, elements)
    for element in sorted(elements):
        yield _element(key, element)


@lru_cache(maxsize=65536)
def _whole(scope: ConfigScope, key: str, value: str | tuple[str, ...]) -> int:
    if isinstance(value, tuple):
        return _list(key, frozenset(value))
    return _scalar(key, catalog(scope).canonical(key, value))


def _scalar(key: str, canonical: str) -> int:
    return hash_fact("value", key, canonical)


def _list(key: str, elements: frozenset[str]) -> int:
    return hash_fact("list", key, *sorted(elements))


@lru_cache(maxsize=65536)
def _element(key: str, element: str) -> int:
    return hash_fact("element", key, element)


@lru_cache(maxsize=4096)
def _key(key: str) -> int:
    return hash_fact("key", key)


TOPIC = "Topic"
BROKER_CONFIG = "BrokerConfig"
"""The sorts of live objects, which are kinds at the same time."""

_CONFIGS = "configs."
_UNHEARD_OF = "Neither kdeclare nor this audit knows the key: see kdeclare plan."


def find_entity(sort: str, key: str) -> ConfigResource:
    """Return what has the configs of a live object."""
    if sort == TOPIC:
        return ConfigResource(ConfigScope.TOPIC, key)
    return ConfigResource(ConfigScope.BROKER, "" if key == CLUSTER_DEFAULT else key)


def pick_topics(keys: Collection[LiveKey], names: Collection[str]) -> list[LiveKey]:
    """Return those of the live objects that are topics of these names."""
    return [key for key in keys if key.sort == TOPIC and key.key in names]


def list_topics(keys: Iterable[LiveKey]) -> Iterator[str]:
    """Return the names of those of the live objects that are topics."""
    return (key.key for key in keys if key.sort == TOPIC)


class ConfigRules(AuditRules):
    """Of resources with configs."""

    def list_unmanaged(
        self, resource: ResourceId, names: Sequence[str], live: LiveState
    ) -> Iterator[UnmanagedField]:
        """Return the config keys with their overrides."""
        if not names:
            return
        entity = find_entity(resource.kind, resource.name)
        entries = live.get(KafkaState).configs[entity]
        side = ConfigSide(str(resource), entries, own_source(entity), catalog(entity.scope))
        for key in names:
            yield UnmanagedField(f"{_CONFIGS}{key}", override(side, key))

    def was_set_by_others(self, path: str, desired: Desired, owned: OwnedRecord | None) -> bool:
        """Whether it is a key that was set since, where all that is not declared is to be reset."""
        key = path.removeprefix(_CONFIGS)
        return key not in {path, *get_declared_configs(desired), *get_applied(owned)}

    def describe_pending(self, resource: ResourceId, unset: Sequence[str]) -> str | None:
        """Say that a key may not even exist: neither the catalogue has it nor the resource a value of it."""
        keys = catalog(find_entity(resource.kind, resource.name).scope)
        known = (keys.get(path.removeprefix(_CONFIGS)) for path in unset if path.startswith(_CONFIGS))
        return None if all(known) else _UNHEARD_OF
