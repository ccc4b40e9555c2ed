"""Topics and dynamic configs of a whole cluster as canonical JSON, and back to what a diff is given.

In part: an object whose configs cannot be read has its error in place of its body, and the rest is there.
Leaders and in-sync replicas come and go, and are left out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import NoReturn, NotRequired, TypedDict

from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import LiveKey, LiveListing, LiveObject
from kdeclare.core.parts import Connections, LiveState
from kdeclare.providers.kafka.collector import topics_and_moves
from kdeclare.providers.kafka.config.catalog import Catalog, catalog, split_list
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.fleet.facts import (
    BROKER_CONFIG,
    TOPIC,
    find_entity,
    override_facts,
    topic_facts,
)
from kdeclare.providers.kafka.fleet.history import flatten_body, name_topic_field
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import (
    Broker,
    ClusterInfo,
    ConfigEntry,
    ConfigSource,
    ConfigType,
    KafkaState,
    Move,
    Partition,
    Topic,
)
from kdeclare.providers.kafka.operations.alter_configs import CLUSTER_DEFAULT, own_source
from kdeclare.providers.kafka.port import Cluster, ConfigQuery, Configs
from kdeclare.providers.kafka.reassignment.placement_request import Placement, Replicas, Wish

_FIXED = "read-only"
_AT_ONCE = 5_000
"""Resources whose configs are asked for together: bounds what is held, not the size of a request."""
_INTERNAL = '"internal":true'
"""In a topic's body; inside of a value its quotes would be escaped."""
_LOST = ("NETWORK_EXCEPTION", "REQUEST_TIMED_OUT")
"""What is no answer of any broker."""


def _refuse_to_place(
    brokers: Sequence[Broker], current: Mapping[str, Sequence[Replicas]], wish: Wish
) -> NoReturn:
    raise AssertionError("a resource whose replicas kdeclare places is not compared alone")


# Bodies as they come out of their texts, which only this module writes. There are millions of them in an
# audit, so that their types are stated, and not looked for in every value.


class _EntryBody(TypedDict):
    """One config: what is not stated is as by default."""

    value: str | None
    source: NotRequired[str]
    type: NotRequired[str]
    sensitive: NotRequired[bool]
    read_only: NotRequired[bool]
    beneath: NotRequired[str]


class _MoveBody(TypedDict):
    """One move, by the ids of brokers."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]


class _BrokerBody(TypedDict):
    """The dynamic configs of a broker, or of all."""

    configs: dict[str, _EntryBody]


class _TopicBody(_BrokerBody):
    """A topic; the replicas of its partitions in order, and moves by the number of the partition."""

    id: str
    partitions: list[list[int]]
    moves: NotRequired[dict[str, _MoveBody]]
    internal: NotRequired[bool]


class _MemberBody(TypedDict):
    """A broker as a member of the cluster."""

    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


class _SystemBody(TypedDict):
    """The cluster itself."""

    id: str
    rf_guard: bool
    brokers: list[_MemberBody]


class KafkaCodec:
    """See `LiveCodec`."""

    name = "kafka"
    sorts = frozenset({TOPIC, BROKER_CONFIG})
    identifies_system = True
    groups = False
    nouns: Mapping[str, tuple[str, str]] = {TOPIC: ("topic", "topics")}
    internal_marker: str | None = _INTERNAL
    context: tuple[object, ...] = (Placement(_refuse_to_place),)

    def list_objects(self, connections: Connections) -> LiveListing:
        """Read topics with their moves and configs, then the dynamic configs of brokers."""
        cluster = connections.get(KafkaConnection).cluster
        info = cluster.describe()
        topics, moves = topics_and_moves(cluster, None, None)
        return LiveListing(system_json(info), _list_objects(cluster, info, topics, moves), info.id)

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> KafkaState:
        """Return a cluster from its text and those of its objects."""
        topics: dict[str, Topic] = {}
        configs: dict[ConfigResource, Mapping[str, ConfigEntry]] = {}
        moves: dict[TopicPartition, Move] = {}
        for (sort, key), text in objects:
            entity = find_entity(sort, key)
            if sort == TOPIC:
                topic: _TopicBody = json.loads(text)
                topics[key] = _topic(key, topic)
                for n, move in topic.get("moves", {}).items():
                    moves[TopicPartition(key, int(n))] = _move(move)
                configs[entity] = _entries(entity, topic["configs"])
            else:
                broker: _BrokerBody = json.loads(text)
                configs[entity] = _entries(entity, broker["configs"])
        return KafkaState(_cluster(system), topics, configs, moves)

    def contains(self, key: LiveKey, live: LiveState) -> bool:
        """Whether the topic exists, or the broker is registered."""
        state = live.get(KafkaState)
        if key.sort == TOPIC:
            return key.key in state.topics
        return key.key == CLUSTER_DEFAULT or key.key in {str(broker.id) for broker in state.cluster.brokers}

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return the id of a topic."""
        topic = live.get(KafkaState).topics.get(key.key) if key.sort == TOPIC else None
        return (topic.topic_id or None) if topic is not None else None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Whether it is a topic of people: brokers exist anyway, and internal topics are Kafka's own."""
        return key.sort == TOPIC and _INTERNAL not in body

    def flatten_body(self, sort: str, body: JsonObject) -> Mapping[str, JsonValue]:
        """See `DescribesFields`."""
        return flatten_body(body)

    def name_field(self, sort: str, path: str) -> str | None:
        """See `DescribesFields`."""
        return name_topic_field(path) if sort == TOPIC else None


def _list_objects(
    cluster: Cluster,
    info: ClusterInfo,
    topics: Mapping[str, Topic],
    moves: Mapping[TopicPartition, Move],
) -> Iterator[LiveObject]:
    for topic, found in _configs(cluster, (ConfigResource(ConfigScope.TOPIC, n) for n in sorted(topics))):
        if isinstance(found, Fault):
            yield LiveObject(LiveKey(TOPIC, topic.name), error=_unread(found))
        else:
            yield topic_object(topics[topic.name], found, moves)
    names = ["", *(str(broker.id) for broker in info.brokers)]
    for broker, found in _configs(cluster, (ConfigResource(ConfigScope.BROKER, name) for name in names)):
        name = broker.name or CLUSTER_DEFAULT
        if isinstance(found, Fault):
            yield LiveObject(LiveKey(BROKER_CONFIG, name), error=_unread(found))
        else:
            yield broker_object(name, found)


def topic_object(
    topic: Topic, entries: Mapping[str, ConfigEntry], moves: Mapping[TopicPartition, Move]
) -> LiveObject:
    """Return one topic as a snapshot keeps it. ``moves`` may be those of the whole cluster."""
    body = topic_json(topic, entries, moves)
    return LiveObject(LiveKey(TOPIC, topic.name), body, facts=topic_facts(topic, entries, moves))


def broker_object(name: str, entries: Mapping[str, ConfigEntry]) -> LiveObject:
    """Return the dynamic configs of one broker, or of the cluster-wide default; ``name`` as in manifests."""
    entity = find_entity(BROKER_CONFIG, name)
    body = {"configs": _entries_json(entity, entries)}
    return LiveObject(LiveKey(BROKER_CONFIG, name), body, facts=override_facts(entity, entries))


def _configs(
    cluster: Cluster, resources: Iterable[ConfigResource]
) -> Iterator[tuple[ConfigResource, Configs | Fault]]:
    """What each has, or why that is not known, in order. What is gone meanwhile is left out.

    A cluster that answers no more is not asked on and on.
    """
    lost: Fault | None = None
    resources = iter(resources)
    while part := list(islice(resources, _AT_ONCE)):
        found = lost or _asked(cluster, part)
        if isinstance(found, Fault):
            lost = found if found.error in _LOST else None
            yield from ((resource, found) for resource in part)
        else:
            yield from ((resource, found[resource]) for resource in part if resource in found)


def _asked(
    cluster: Cluster, resources: Sequence[ConfigResource]
) -> Mapping[ConfigResource, Configs | Fault] | Fault:
    queries = [ConfigQuery(item, asked_keys(item.scope), overrides=True) for item in resources]
    try:
        return cluster.configs_in_part(queries)
    except Fault as fault:
        return fault


def _unread(fault: Fault) -> str:
    said = fault.message.strip().rstrip(".") or "no reason given"
    return f"Its configs cannot be read: {said} ({fault.error})."


@cache
def asked_keys(scope: ConfigScope) -> frozenset[str]:
    """Keys whose effective values are needed beside the overrides: to be asked for by name."""
    return frozenset(k for k, info in catalog(scope).keys.items() if info.is_list and info.mode != _FIXED)


def topic_json(
    topic: Topic, entries: Mapping[str, ConfigEntry], moves: Mapping[TopicPartition, Move]
) -> JsonObject:
    """Return one topic as plain data. ``moves`` may be those of the whole cluster."""
    body: dict[str, JsonValue] = {
        "id": topic.topic_id,
        "partitions": [list(partition.replicas) for partition in topic.partitions],
        "configs": _entries_json(ConfigResource(ConfigScope.TOPIC, topic.name), entries),
    }
    under_way = {
        str(n): {
            "replicas": list(move.replicas),
            "adding": list(move.adding),
            "removing": list(move.removing),
        }
        for n in (range(len(topic.partitions)) if moves else ())
        if (move := moves.get(TopicPartition(topic.name, n))) is not None
    }
    if under_way:
        body["moves"] = under_way
    if topic.internal:
        body["internal"] = True
    return body


def system_json(info: ClusterInfo) -> JsonObject:
    """Return who the cluster is as plain data."""
    return {
        "id": info.id,
        "version": info.version,
        "rf_guard": info.rf_guard,
        "brokers": [
            {"id": b.id, "host": b.host, "port": b.port, "rack": b.rack, "fenced": b.fenced}
            for b in sorted(info.brokers, key=lambda broker: broker.id)
        ],
    }


@lru_cache(maxsize=4096)
def _cluster(text: str) -> ClusterInfo:
    body: _SystemBody = json.loads(text)
    brokers = tuple(Broker(b["id"], b["host"], b["port"], b["rack"], b["fenced"]) for b in body["brokers"])
    return ClusterInfo(body["id"], brokers, body["rf_guard"])


def _topic(name: str, body: _TopicBody) -> Topic:
    partitions = tuple(_partition(tuple(replicas)) for replicas in body["partitions"])
    return Topic(name, body["id"], partitions, body.get("internal", False))


@lru_cache(maxsize=4096)
def _partition(replicas: tuple[int, ...]) -> Partition:
    return Partition(replicas)


def _move(move: _MoveBody) -> Move:
    return Move(tuple(move["replicas"]), tuple(move["adding"]), tuple(move["removing"]))


def _entries_json(entity: ConfigResource, entries: Mapping[str, ConfigEntry]) -> JsonObject:
    own, keys = own_source(entity), catalog(entity.scope)
    return {
        key: dict(_entry_json(entry, own))
        for key, entry in entries.items()
        if entry.source is own or _matters(key, entry, keys)
    }


def _matters(key: str, entry: ConfigEntry, keys: Catalog) -> bool:
    """Whether a diff can see a value that is not set on the resource itself.

    A list by part takes away what is inherited; what the cluster holds secret must be known to be so; and
    of what type a key is, the cluster's own word says first.
    """
    info = keys.get(key)
    if entry.sensitive:
        return info is None or not info.is_secret
    if entry.type is not ConfigType.LIST:
        return False
    return info is None or not info.is_list or split_list(entry.value or "") != keys.default_list(key)


def _entry_json(entry: ConfigEntry, own: ConfigSource) -> Iterator[tuple[str, JsonValue]]:
    yield "value", None if entry.sensitive else entry.value
    if entry.source is not own:
        yield "source", str(entry.source)
    if entry.type is not ConfigType.SCALAR:
        yield "type", str(entry.type)
    if entry.sensitive:
        yield "sensitive", True
    if entry.read_only:
        yield "read_only", True
    if entry.beneath is not None and not entry.sensitive:
        yield "beneath", entry.beneath


def _entries(entity: ConfigResource, stated: Mapping[str, _EntryBody]) -> Mapping[str, ConfigEntry]:
    own = own_source(entity)
    return {**_inherited(own), **{key: _entry(entry, own) for key, entry in stated.items()}}


@cache
def _inherited(own: ConfigSource) -> Mapping[str, ConfigEntry]:
    """Lists that are as by default: left out of bodies, and yet what parts of lists are taken from.

    The cluster-wide default has none: Kafka describes only what is set on it.
    """
    if own is ConfigSource.CLUSTER:
        return {}
    keys = catalog(ConfigScope.TOPIC if own is ConfigSource.TOPIC else ConfigScope.BROKER)
    return {
        key: ConfigEntry(keys.keys[key].default, ConfigSource.DEFAULT, ConfigType.LIST)
        for key in asked_keys(keys.scope)
    }


def _entry(stated: _EntryBody, own: ConfigSource) -> ConfigEntry:
    value = stated["value"]
    if len(stated) == 1:
        return _plain(value, own)
    return ConfigEntry(
        value,
        ConfigSource(stated["source"]) if "source" in stated else own,
        ConfigType(stated.get("type", ConfigType.SCALAR)),
        stated.get("sensitive", False),
        stated.get("read_only", False),
        stated.get("beneath"),
    )


@lru_cache(maxsize=4096)
def _plain(value: str | None, own: ConfigSource) -> ConfigEntry:
    return ConfigEntry(value, own)
