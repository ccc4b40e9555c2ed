"""Live state as canonical JSON, and back to what the diff of a resource is given.

Leaders and in-sync replicas come and go, and are left out.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache

from kdeclare.core.jsontypes import Json
from kdeclare.core.registry import KINDS
from kdeclare.providers.kafka.collector import CLUSTER
from kdeclare.providers.kafka.config.catalog import Catalog, catalog, split_list
from kdeclare.providers.kafka.config.scope import find_config_scope
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
from kdeclare.providers.kafka.operations.alter_configs import own_source
from kdeclare.providers.kafka.selection import KafkaSelection

_FIXED = "read-only"


def fingerprint(text: str) -> str:
    """The first 128 bits of SHA-256, in hex, of a canonical text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]  # all of it would be half of a snapshot's bytes


def entity_of(kind: str, name: str) -> ConfigResource:
    """The config resource that a resource is. Raises ValueError for a kind without configs."""
    if find_config_scope(kind) is ConfigScope.TOPIC:
        return ConfigResource(ConfigScope.TOPIC, name)
    selected = CLUSTER.merge(KINDS[kind].select(name, None, None)) or KafkaSelection()
    (entity,) = selected.configs
    return entity


@cache
def asked_keys(scope: ConfigScope) -> frozenset[str]:
    """Keys whose effective values are needed beside the overrides: to be asked for by name."""
    return frozenset(k for k, info in catalog(scope).keys.items() if info.is_list and info.mode != _FIXED)


def topic_body(
    topic: Topic, entries: Mapping[str, ConfigEntry], moves: Mapping[TopicPartition, Move]
) -> Json:
    """One topic. ``moves`` may be those of the whole cluster."""
    body: dict[str, Json] = {
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


def broker_body(name: str, entries: Mapping[str, ConfigEntry]) -> Json:
    """The dynamic configs of one broker, or of the cluster-wide default; ``name`` is the BrokerConfig's."""
    return {"configs": _entries_json(entity_of("BrokerConfig", name), entries)}


def cluster_body(info: ClusterInfo, version: str | None) -> Json:
    """Who the cluster is; ``version`` is Kafka's, as far as it tells."""
    return {
        "id": info.id,
        "version": version,
        "rf_guard": info.rf_guard,
        "brokers": [
            {"id": b.id, "host": b.host, "port": b.port, "rack": b.rack, "fenced": b.fenced}
            for b in sorted(info.brokers, key=lambda broker: broker.id)
        ],
    }


def snapshot_of(kind: str, name: str, body: str | None, cluster: str) -> KafkaState:
    """What the diff of one resource is given; ``body`` is None where it is not there."""
    return snapshot_of_all(cluster, ((kind, name, body),) if body is not None else ())


def snapshot_of_all(cluster: str, resources: Iterable[tuple[str, str, str]]) -> KafkaState:
    """A cluster from its body and the (kind, name, body) of its resources."""
    topics: dict[str, Topic] = {}
    configs: dict[ConfigResource, Mapping[str, ConfigEntry]] = {}
    moves: dict[TopicPartition, Move] = {}
    for kind, name, text in resources:
        body = json.loads(text)
        entity = entity_of(kind, name)
        configs[entity] = _entries(entity, body["configs"])
        if entity.scope is ConfigScope.TOPIC:
            topics[name] = _topic(name, body)
            for n, move in body.get("moves", {}).items():
                moves[TopicPartition(name, int(n))] = _move(move)
    return KafkaState(_cluster(cluster), topics, configs, moves)


@lru_cache(maxsize=4096)
def _cluster(text: str) -> ClusterInfo:
    body = json.loads(text)
    brokers = tuple(Broker(b["id"], b["host"], b["port"], b["rack"], b["fenced"]) for b in body["brokers"])
    return ClusterInfo(body["id"], brokers, body["rf_guard"])


def _topic(name: str, body: Json) -> Topic:
    partitions = tuple(_partition(tuple(replicas)) for replicas in body["partitions"])
    return Topic(name, body["id"], partitions, body.get("internal", False))


@lru_cache(maxsize=4096)
def _partition(replicas: tuple[int, ...]) -> Partition:
    return Partition(replicas)


def _move(move: Json) -> Move:
    return Move(tuple(move["replicas"]), tuple(move["adding"]), tuple(move["removing"]))


def _entries_json(entity: ConfigResource, entries: Mapping[str, ConfigEntry]) -> Json:
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


def _entry_json(entry: ConfigEntry, own: ConfigSource) -> Iterator[tuple[str, Json]]:
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


def _entries(entity: ConfigResource, stated: Mapping[str, Json]) -> Mapping[str, ConfigEntry]:
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


def _entry(stated: Mapping[str, Json], own: ConfigSource) -> ConfigEntry:
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
