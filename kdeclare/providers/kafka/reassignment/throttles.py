"""Throttles of moves: who has to be slowed down, and what says so in the cluster (KIP-73). Pure.

Two things together throttle a replica: a rate on its broker, and its name in a list of its topic. Kafka
never takes either away by itself, and both may hold what other people have put there.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from kdeclare.core.frozen import dataclass
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.config.catalog import split_list
from kdeclare.providers.kafka.config.config_diff import Override
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import ConfigSource, KafkaState, Move
from kdeclare.providers.kafka.port import ConfigQuery
from kdeclare.providers.kafka.reassignment.leftovers import Entries, Throttle, ThrottledReplicas

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
"""A broker's rate for replicas that go from one of its log directories to another; it needs no list."""
ALL_RATES = (*RATES, DIRS_RATE)
LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"
LISTS = (LEADERS, FOLLOWERS)
EVERY = "*"
"""The element that stands for all replicas of the topic; Kafka takes it alone only."""

_LONGEST = 30_000
"""A list that would be longer becomes `EVERY`; Kafka stores up to 32,767 characters (KAFKA-19112)."""


@dataclass(frozen=True, slots=True)
class Shift:
    """Who sends one partition's records to whom, once it is moved (ReassignPartitionsCommand.MoveMap)."""

    partition: TopicPartition
    sources: tuple[int, ...]
    destinations: tuple[int, ...]


def shift(
    partition: TopicPartition, replicas: tuple[int, ...], move: Move | None, target: tuple[int, ...]
) -> Shift:
    """What moving a partition to ``target`` means. ``move``: it is being moved already.

    Sources are the listed replicas less those that are still being added, never the described union.
    """
    sources = replicas if move is None else tuple(r for r in move.replicas if r not in move.adding)
    return Shift(partition, sources, tuple(r for r in target if r not in sources))


def entries(shifts: Iterable[Shift], rate: int, brokers: Collection[int]) -> Entries:
    """All that throttles these shifts; a broker that is not among ``brokers`` (serving ones) has no rate."""
    rates_: dict[str, Mapping[str, Throttle]] = {}
    named: dict[str, dict[str, list[str]]] = {}
    for item in shifts:
        if not item.destinations:
            continue
        for broker in (*item.sources, *item.destinations):
            if broker in brokers:
                rates_[f"{ConfigScope.BROKER}/{broker}"] = dict.fromkeys(RATES, str(rate))
        lists = named.setdefault(f"{ConfigScope.TOPIC}/{item.partition.topic}", {LEADERS: [], FOLLOWERS: []})
        for key, ids in ((LEADERS, item.sources), (FOLLOWERS, item.destinations)):
            lists[key] += [f"{item.partition.partition}:{broker}" for broker in ids]
    replicas = {
        entity: {key: ThrottledReplicas(tuple(elements), False) for key, elements in lists.items()}
        for entity, lists in named.items()
    }
    return dict(sorted({**rates_, **replicas}.items()))


@dataclass(frozen=True, slots=True)
class Missing:
    """What of a throttle has yet to be put there, and what it relies on because it is there already.

    entries: to be put there. relies_on: rates by entity and key that hold as they are. foreign: those of
    them that kdeclare did not set, by entity.
    """

    entries: Entries
    relies_on: Mapping[str, Mapping[str, str]]
    foreign: Mapping[str, str]


def missing(wanted: Entries, own: Entries, live: KafkaState, declared: Collection[str] = ()) -> Missing:
    """What of ``wanted`` has yet to be put there.

    own: what kdeclare has put there earlier; only such a rate may be changed. declared: configs
    (``configs/TOPIC/orders/<key>``) that the same plan sets because a manifest says so; they are left to it.
    """
    todo: dict[str, dict[str, Throttle]] = {}
    relies_on: dict[str, dict[str, str]] = {}
    foreign: dict[str, str] = {}
    for entity, keys in wanted.items():
        there, rates_there = present(live, entity), in_force(live, entity)
        for key, value in keys.items():
            now = there.get(key)
            if f"configs/{entity}/{key}" in declared:
                continue
            if not isinstance(value, ThrottledReplicas):
                rate = rates_there.get(key)
                mine = now is not None and now in rates(own.get(entity, {}).get(key))
                if rate is None or (mine and rate != value):
                    todo.setdefault(entity, {})[key] = value
                    continue
                relies_on.setdefault(entity, {})[key] = rate
                if not mine:
                    foreign[entity] = rate
            elif now is None or EVERY not in now:
                lacking = _lacking(value.elements, now)
                if lacking:
                    mine_there = own.get(entity, {}).get(key)
                    fresh = now is None or (isinstance(mine_there, ThrottledReplicas) and mine_there.fresh)
                    todo.setdefault(entity, {})[key] = ThrottledReplicas(lacking, fresh)
    return Missing(todo, relies_on, foreign)


def in_force(live: KafkaState, entity: str) -> dict[str, str]:
    """The rates that hold on a broker: its own, or the cluster-wide ones (BrokerConfigHandler)."""
    found = live.configs.get(resource_of(entity), {})
    return {
        key: entry.value
        for key, entry in found.items()
        if key in ALL_RATES and entry.value and entry.source in (ConfigSource.BROKER, ConfigSource.CLUSTER)
    }


def rates(value: Throttle | None) -> tuple[str, ...]:
    """The rates that an entry may stand for."""
    if value is None or isinstance(value, ThrottledReplicas):
        return ()
    return (value,) if isinstance(value, str) else value


def shown(value: Throttle) -> str:
    """A rate, or the elements of a list, for people."""
    return ",".join(value.elements) if isinstance(value, ThrottledReplicas) else " or ".join(rates(value))


def _lacking(elements: tuple[str, ...], now: Override) -> tuple[str, ...]:
    if now is None and sum(len(element) + 1 for element in elements) > _LONGEST:
        return (EVERY,)
    return tuple(element for element in elements if element not in (now or ()))


def present(live: KafkaState, entity: str) -> dict[str, Override]:
    """What is set on an entity: rates as texts, lists as lists; keys that are not set are left out."""
    resource = resource_of(entity)
    source = ConfigSource.TOPIC if resource.scope is ConfigScope.TOPIC else ConfigSource.BROKER
    found = live.configs.get(resource, {})
    return {
        key: [e.strip() for e in split_list(entry.value or "")] if key in LISTS else entry.value
        for key, entry in found.items()
        if entry.source is source and key in (*ALL_RATES, *LISTS)
    }


def query(given: Iterable[str], topics: Iterable[str] = ()) -> KafkaSelection:
    """What must be observed to see the throttles on these entities; a broker that is down is left out."""
    configs = {}
    for entity in given:
        resource = resource_of(entity)
        keys = frozenset(LISTS if resource.scope is ConfigScope.TOPIC else ALL_RATES)
        configs[resource] = ConfigQuery(resource, keys, optional=True)
    named = {r.name for r in configs if r.scope is ConfigScope.TOPIC}
    return KafkaSelection(frozenset(named.union(topics)), configs)


def resource_of(entity: str) -> ConfigResource:
    """``TOPIC/orders`` as a config resource."""
    scope, _, name = entity.partition("/")
    return ConfigResource(ConfigScope(scope), name)


def joined(a: Entries, b: Entries, *, certain: bool = True) -> Entries:
    """What is in either; a rate as in ``b``, or either of the two where that is not certain."""
    result: dict[str, dict[str, Throttle]] = {entity: dict(keys) for entity, keys in a.items()}
    for entity, keys in b.items():
        mine = result.setdefault(entity, {})
        for key, value in keys.items():
            before = mine.get(key)
            if isinstance(value, ThrottledReplicas) and isinstance(before, ThrottledReplicas):
                both = tuple(dict.fromkeys([*before.elements, *value.elements]))
                mine[key] = ThrottledReplicas(both, before.fresh or value.fresh)
            elif isinstance(value, ThrottledReplicas) or certain:
                mine[key] = value
            else:
                every = tuple(dict.fromkeys([*rates(before), *rates(value)]))
                mine[key] = every[0] if len(every) == 1 else every
    return result


def less(a: Entries, b: Entries) -> Entries:
    """What is in ``a`` and not in ``b``."""
    result: dict[str, dict[str, Throttle]] = {}
    for entity, keys in a.items():
        for key, value in keys.items():
            other = b.get(entity, {}).get(key)
            if other is None:
                result.setdefault(entity, {})[key] = value
            elif isinstance(value, ThrottledReplicas) and isinstance(other, ThrottledReplicas):
                rest = tuple(e for e in value.elements if e not in other.elements)
                if rest:
                    result.setdefault(entity, {})[key] = replace(value, elements=rest)
    return result


def needless(own: Entries, moves: Collection[TopicPartition], involved: Collection[int] = ()) -> Entries:
    """What of ``own`` no move in flight needs any more.

    A rate is needed as long as a list that stays names a replica on that broker, or the broker is
    ``involved`` in a move: the list that names it may be someone else's.
    """
    kept: dict[str, dict[str, Throttle]] = {}
    brokers = {str(broker) for broker in involved}
    moving = {partition.topic for partition in moves}
    for entity, keys in own.items():
        resource = resource_of(entity)
        if resource.scope is not ConfigScope.TOPIC:
            continue
        for key, value in keys.items():
            if not isinstance(value, ThrottledReplicas):
                continue
            needed = tuple(e for e in value.elements if _is_needed(e, resource.name, moves, moving))
            if needed:
                kept.setdefault(entity, {})[key] = replace(value, elements=needed)
                brokers.update(e.rpartition(":")[2] for e in needed)
    for entity, keys in own.items():
        resource = resource_of(entity)
        if resource.scope is ConfigScope.BROKER and (resource.name in brokers or EVERY in brokers):
            kept[entity] = dict(keys)
    return less(own, kept)


def _is_needed(element: str, topic: str, moves: Collection[TopicPartition], moving: Collection[str]) -> bool:
    if element == EVERY:
        return topic in moving
    number = element.partition(":")[0]
    return number.isdecimal() and TopicPartition(topic, int(number)) in moves


def without_brokers(given: Entries, down: Collection[int]) -> tuple[Entries, tuple[int, ...]]:
    """The entries on what is there; and which of ``down`` hold the others."""
    held = {entity for entity in given if _broker(entity) in down}
    return {e: k for e, k in given.items() if e not in held}, tuple(
        sorted(b for entity in held if (b := _broker(entity)) is not None)
    )


def _broker(entity: str) -> int | None:
    resource = resource_of(entity)
    return int(resource.name) if resource.scope is ConfigScope.BROKER else None


def brokers_of(given: Entries) -> tuple[int, ...]:
    """The brokers with a rate."""
    return tuple(sorted(b for entity in given if (b := _broker(entity)) is not None))
