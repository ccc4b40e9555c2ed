"""Compute the configs of brokers and topics that throttle the moves of replicas (KIP-73).

A replica is throttled if its broker has a rate and one of its topic's lists contains the replica. Kafka
itself never removes rates or lists, and both can contain values that other clients set. The functions here
send no requests.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.whole_number import parse_whole_number
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.config.catalog import split_list
from kdeclare.providers.kafka.config.config_diff import ConfigOverride
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import ConfigSource, KafkaState, Move
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import (
    ThrottledReplicas,
    ThrottleEntries,
    ThrottleValue,
)
from kdeclare.providers.kafka.request_values import ConfigQuery

RATE_KEYS = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LOG_DIRS_RATE_KEY = "replica.alter.log.dirs.io.max.bytes.per.second"
"""The config key of a broker's rate for replicas that move between its log directories.

This rate applies without a list of throttled replicas.
"""
ALL_RATE_KEYS = (*RATE_KEYS, LOG_DIRS_RATE_KEY)
LEADER_REPLICAS_KEY = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS_KEY = "follower.replication.throttled.replicas"
REPLICAS_KEYS = (LEADER_REPLICAS_KEY, FOLLOWER_REPLICAS_KEY)
ALL_REPLICAS = "*"
"""The list element for all replicas of the topic. A list with this element must not have other elements."""

_MAX_LIST_LENGTH = 30_000
"""The maximum length of a list of replicas, in characters. Longer lists become `ALL_REPLICAS`.

Kafka stores up to 32,767 characters (KAFKA-19112).
"""


@dataclass(frozen=True, slots=True)
class ReplicaTransfer:
    """The brokers that send and receive a partition's data in a move (ReassignPartitionsCommand.MoveMap)."""

    partition: TopicPartition
    sources: tuple[int, ...]
    destinations: tuple[int, ...]


def build_transfer(
    partition: TopicPartition, replicas: tuple[int, ...], move: Move | None, target: tuple[int, ...]
) -> ReplicaTransfer:
    """Return which brokers send and which receive data if a partition moves to ``target``.

    move: the in-flight move of the partition, if any.

    Replicas that the in-flight move is still adding are not sources.
    """
    sources = replicas if move is None else tuple(r for r in move.replicas if r not in move.adding)
    return ReplicaTransfer(partition, sources, tuple(r for r in target if r not in sources))


def build_entries(
    transfers: Iterable[ReplicaTransfer], rate: int, serving_brokers: Collection[int]
) -> ThrottleEntries:
    """Build all throttle entries that the transfers require.

    Brokers that are not in ``serving_brokers`` get no rate.
    """
    rates_by_broker: dict[str, Mapping[str, ThrottleValue]] = {}
    elements_by_topic: dict[str, dict[str, list[str]]] = {}
    for transfer in transfers:
        if not transfer.destinations:
            continue
        for broker in (*transfer.sources, *transfer.destinations):
            if broker in serving_brokers:
                rates_by_broker[f"{ConfigScope.BROKER}/{broker}"] = dict.fromkeys(RATE_KEYS, str(rate))
        elements_by_key = elements_by_topic.setdefault(
            f"{ConfigScope.TOPIC}/{transfer.partition.topic}",
            {LEADER_REPLICAS_KEY: [], FOLLOWER_REPLICAS_KEY: []},
        )
        for key, ids in (
            (LEADER_REPLICAS_KEY, transfer.sources),
            (FOLLOWER_REPLICAS_KEY, transfer.destinations),
        ):
            elements_by_key[key] += [f"{transfer.partition.partition}:{broker}" for broker in ids]
    replicas = {
        entity: {key: ThrottledReplicas(tuple(elements), False) for key, elements in lists.items()}
        for entity, lists in elements_by_topic.items()
    }
    return dict(sorted({**rates_by_broker, **replicas}.items()))


@dataclass(frozen=True, slots=True)
class MissingThrottles:
    """The throttle entries that must still be set, and the existing rates that the throttle relies on.

    entries: the entries to set.
    relies_on: existing rates that are kept, by entity and key.
    foreign_rates: the rates in ``relies_on`` that kdeclare did not set, by entity.
    """

    entries: ThrottleEntries
    relies_on: Mapping[str, Mapping[str, str]]
    foreign_rates: Mapping[str, str]


def find_missing(
    required: ThrottleEntries,
    own_entries: ThrottleEntries,
    live: KafkaState,
    declared_configs: Collection[str] = (),
) -> MissingThrottles:
    """Return the entries of ``required`` that are not set yet.

    own_entries: entries that kdeclare set earlier. Existing rates are changed only if kdeclare set them.
    declared_configs: configs (``configs/TOPIC/orders/<key>``) that the same plan sets because a manifest
        declares them. No entry is set for these configs.
    """
    missing_entries: dict[str, dict[str, ThrottleValue]] = {}
    relies_on: dict[str, dict[str, str]] = {}
    foreign_rates: dict[str, str] = {}
    for entity, keys in required.items():
        current_values, rates_in_force = get_current_values(live, entity), get_rates_in_force(live, entity)
        for key, value in keys.items():
            current_value = current_values.get(key)
            if f"configs/{entity}/{key}" in declared_configs:
                continue
            if not isinstance(value, ThrottledReplicas):
                rate = rates_in_force.get(key)
                is_own = current_value is not None and current_value in list_rates(
                    own_entries.get(entity, {}).get(key)
                )
                if rate is None or (is_own and rate != value):
                    missing_entries.setdefault(entity, {})[key] = value
                    continue
                relies_on.setdefault(entity, {})[key] = rate
                if not is_own:
                    foreign_rates[entity] = rate
            elif current_value is None or ALL_REPLICAS not in current_value:
                missing_elements = _find_missing_elements(value.elements, current_value)
                if missing_elements:
                    own_value = own_entries.get(entity, {}).get(key)
                    is_fresh = current_value is None or (
                        isinstance(own_value, ThrottledReplicas) and own_value.fresh
                    )
                    missing_entries.setdefault(entity, {})[key] = ThrottledReplicas(
                        missing_elements, is_fresh
                    )
    return MissingThrottles(missing_entries, relies_on, foreign_rates)


def get_rates_in_force(live: KafkaState, entity: str) -> dict[str, str]:
    """Return the rates in effect on a broker, which are its own or cluster-wide (BrokerConfigHandler)."""
    configs = live.configs.get(parse_entity(entity), {})
    return {
        key: entry.value
        for key, entry in configs.items()
        if key in ALL_RATE_KEYS
        and entry.value
        and entry.source in (ConfigSource.BROKER, ConfigSource.CLUSTER)
    }


def list_rates(value: ThrottleValue | None) -> tuple[str, ...]:
    """Return the rates that a throttle entry can have.

    There is more than one rate if it is unknown which rate took effect, and none if the entry is a list of
    replicas.
    """
    if value is None or isinstance(value, ThrottledReplicas):
        return ()
    return (value,) if isinstance(value, str) else value


def format_throttle(value: ThrottleValue) -> str:
    """Return a rate, or the elements of a list of replicas, as text for display."""
    return (
        ",".join(value.elements) if isinstance(value, ThrottledReplicas) else " or ".join(list_rates(value))
    )


def _find_missing_elements(elements: tuple[str, ...], current_elements: ConfigOverride) -> tuple[str, ...]:
    if current_elements is None and sum(len(element) + 1 for element in elements) > _MAX_LIST_LENGTH:
        return (ALL_REPLICAS,)
    return tuple(element for element in elements if element not in (current_elements or ()))


def get_current_values(live: KafkaState, entity: str) -> dict[str, ConfigOverride]:
    """Return the throttle values that are set on an entity: rates as strings, and lists of replicas."""
    resource = parse_entity(entity)
    source = ConfigSource.TOPIC if resource.scope is ConfigScope.TOPIC else ConfigSource.BROKER
    configs = live.configs.get(resource, {})
    return {
        key: [e.strip() for e in split_list(entry.value or "")] if key in REPLICAS_KEYS else entry.value
        for key, entry in configs.items()
        if entry.source is source and key in (*ALL_RATE_KEYS, *REPLICAS_KEYS)
    }


def build_selection(entities: Iterable[str], topics: Iterable[str] = ()) -> KafkaSelection:
    """Return a selection of the throttle configs of brokers and topics. Brokers that are down are skipped."""
    configs = {}
    for entity in entities:
        resource = parse_entity(entity)
        keys = frozenset(REPLICAS_KEYS if resource.scope is ConfigScope.TOPIC else ALL_RATE_KEYS)
        configs[resource] = ConfigQuery(resource, keys, optional=True)
    topic_names = {r.name for r in configs if r.scope is ConfigScope.TOPIC}
    return KafkaSelection(frozenset(topic_names.union(topics)), configs)


def parse_entity(entity: str) -> ConfigResource:
    """Parse ``TOPIC/orders`` into a config resource."""
    scope, _, name = entity.partition("/")
    return ConfigResource(ConfigScope(scope), name)


def merge_entries(
    earlier: ThrottleEntries, later: ThrottleEntries, *, is_certain: bool = True
) -> ThrottleEntries:
    """Merge earlier and later throttle entries. A rate in ``later`` replaces the earlier rate.

    If ``is_certain`` is False, both rates are kept, because it is unknown which rate took effect.
    """
    result: dict[str, dict[str, ThrottleValue]] = {entity: dict(keys) for entity, keys in earlier.items()}
    for entity, keys in later.items():
        merged_keys = result.setdefault(entity, {})
        for key, value in keys.items():
            previous = merged_keys.get(key)
            if isinstance(value, ThrottledReplicas) and isinstance(previous, ThrottledReplicas):
                elements = tuple(dict.fromkeys([*previous.elements, *value.elements]))
                merged_keys[key] = ThrottledReplicas(elements, previous.fresh or value.fresh)
            elif isinstance(value, ThrottledReplicas) or is_certain:
                merged_keys[key] = value
            else:
                possible_rates = tuple(dict.fromkeys([*list_rates(previous), *list_rates(value)]))
                merged_keys[key] = possible_rates[0] if len(possible_rates) == 1 else possible_rates
    return result


def subtract_entries(minuend: ThrottleEntries, subtrahend: ThrottleEntries) -> ThrottleEntries:
    """Return ``minuend`` without the entries and list elements that ``subtrahend`` contains."""
    result: dict[str, dict[str, ThrottleValue]] = {}
    for entity, keys in minuend.items():
        for key, value in keys.items():
            subtracted_value = subtrahend.get(entity, {}).get(key)
            if subtracted_value is None:
                result.setdefault(entity, {})[key] = value
            elif isinstance(value, ThrottledReplicas) and isinstance(subtracted_value, ThrottledReplicas):
                remaining_elements = tuple(e for e in value.elements if e not in subtracted_value.elements)
                if remaining_elements:
                    result.setdefault(entity, {})[key] = replace(value, elements=remaining_elements)
    return result


def find_unneeded_entries(
    own_entries: ThrottleEntries, moves: Collection[TopicPartition], involved_brokers: Collection[int] = ()
) -> ThrottleEntries:
    """Return the entries of ``own_entries`` that no in-flight move needs anymore.

    A broker needs its rate as long as an in-flight move needs a list element for a replica on the broker. The
    ``involved_brokers`` also need their rates: they take part in a move for which another client may have set
    the list.
    """
    needed_entries: dict[str, dict[str, ThrottleValue]] = {}
    needed_brokers = {str(broker) for broker in involved_brokers}
    moving_topics = {partition.topic for partition in moves}
    for entity, keys in own_entries.items():
        resource = parse_entity(entity)
        if resource.scope is not ConfigScope.TOPIC:
            continue
        for key, value in keys.items():
            if not isinstance(value, ThrottledReplicas):
                continue
            needed_elements = tuple(
                e for e in value.elements if _is_element_needed(e, resource.name, moves, moving_topics)
            )
            if needed_elements:
                needed_entries.setdefault(entity, {})[key] = replace(value, elements=needed_elements)
                needed_brokers.update(e.rpartition(":")[2] for e in needed_elements)
    for entity, keys in own_entries.items():
        resource = parse_entity(entity)
        if resource.scope is ConfigScope.BROKER and (
            resource.name in needed_brokers or ALL_REPLICAS in needed_brokers
        ):
            needed_entries[entity] = dict(keys)
    return subtract_entries(own_entries, needed_entries)


def _is_element_needed(
    element: str, topic: str, moves: Collection[TopicPartition], moving_topics: Collection[str]
) -> bool:
    if element == ALL_REPLICAS:
        return topic in moving_topics
    number = parse_whole_number(element.partition(":")[0])
    return number is not None and TopicPartition(topic, number) in moves


def split_unreachable(
    entries: ThrottleEntries, down_brokers: Collection[int]
) -> tuple[ThrottleEntries, tuple[int, ...]]:
    """Separate the entries that can be changed now from the entries on brokers that are down.

    Return the entries that can be changed, and the ids of the ``down_brokers`` that have entries.
    """
    held_entities = {entity for entity in entries if _find_broker_id(entity) in down_brokers}
    return {e: k for e, k in entries.items() if e not in held_entities}, tuple(
        sorted(b for entity in held_entities if (b := _find_broker_id(entity)) is not None)
    )


def _find_broker_id(entity: str) -> int | None:
    resource = parse_entity(entity)
    return int(resource.name) if resource.scope is ConfigScope.BROKER else None


def list_brokers(entries: ThrottleEntries) -> tuple[int, ...]:
    """Return the ids of the brokers that have a rate."""
    return tuple(sorted(b for entity in entries if (b := _find_broker_id(entity)) is not None))
