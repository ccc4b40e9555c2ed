"""Convert the topics and dynamic configs of a cluster to canonical JSON, and back to live state.

If configs cannot be read, the object has an error instead of a body. The JSON does not contain leaders and
in-sync replicas, which change all the time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from itertools import chain, islice
from typing import NoReturn, NotRequired, TypedDict, cast

from kdeclare.core.jsontypes import JsonObject, JsonValue, parse_json
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import LiveKey, LiveListing, LiveObject
from kdeclare.core.live.unused_objects import UnusedListing
from kdeclare.core.parts import Connections, LiveState
from kdeclare.providers.kafka.collector import explain_refusal, find_possible_unions, read_topics_and_moves
from kdeclare.providers.kafka.config.catalog import Catalog, load_catalog, split_list
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.error_names import UNAVAILABLE
from kdeclare.providers.kafka.fleet.facts import (
    BROKER_CONFIG,
    TOPIC,
    compute_override_facts,
    compute_topic_facts,
    to_config_resource,
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
    get_own_source,
)
from kdeclare.providers.kafka.operations.alter_configs import CLUSTER_DEFAULT
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.placement_request import (
    PlacementContext,
    PlacementRequest,
    Replicas,
)
from kdeclare.providers.kafka.request_values import ConfigQuery, Configs

_READ_ONLY_MODE = "read-only"
_AT_ONCE = 5_000
"""The maximum number of resources in one request for configs. The limit saves memory."""
_INTERNAL_MARKER = '"internal":true'
"""A string that only the bodies of internal topics contain, because JSON escapes quotes in values."""
_LOST_ERRORS = ("NETWORK_EXCEPTION", "REQUEST_TIMED_OUT")
"""The error codes of requests that no broker answered."""


def _refuse_to_place(
    brokers: Sequence[Broker], current: Mapping[str, Sequence[Replicas]], request: PlacementRequest
) -> NoReturn:
    raise AssertionError("a resource with a placement strategy cannot be compared on its own")


# The types of the JSON bodies that this module writes. An audit reads millions of bodies, so the bodies are
# not validated.


class _EntryBody(TypedDict):
    """One config entry. Fields with default values are omitted."""

    value: str | None
    source: NotRequired[str]
    type: NotRequired[str]
    sensitive: NotRequired[bool]
    read_only: NotRequired[bool]
    beneath: NotRequired[str]


class _MoveBody(TypedDict):
    """One in-flight reassignment, with broker ids."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]


class _BrokerBody(TypedDict):
    """The dynamic configs of a broker, or of the cluster-wide default."""

    configs: dict[str, _EntryBody]


class _TopicBody(_BrokerBody):
    """A topic: its replicas in partition order, and its in-flight reassignments by partition."""

    id: str
    partitions: list[list[int]]
    moves: NotRequired[dict[str, _MoveBody]]
    internal: NotRequired[bool]


class _MemberBody(TypedDict):
    """A broker of the cluster."""

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
    omitted_topic_configs: NotRequired[list[str]]


class KafkaCodec:
    """See `LiveCodec`."""

    name = "kafka"
    sorts = frozenset({TOPIC, BROKER_CONFIG})
    identifies_system = True
    groups = False
    nouns: Mapping[str, tuple[str, str]] = {TOPIC: ("topic", "topics")}
    internal_marker: str | None = _INTERNAL_MARKER
    unused_sorts = frozenset({TOPIC})
    context: tuple[object, ...] = (PlacementContext(_refuse_to_place),)

    def list_objects(self, connections: Connections) -> LiveListing:
        """Read topics with their reassignments and configs, then the dynamic configs of brokers."""
        cluster = connections.get(KafkaConnection).cluster
        info = cluster.describe()
        moves: Mapping[TopicPartition, Move] = {}
        uncertain: Mapping[str, str] = {}
        try:
            topics, moves = read_topics_and_moves(cluster, None, None)
        except Fault as fault:
            if fault.error not in UNAVAILABLE:
                raise
            topics, _ = read_topics_and_moves(cluster, None, ())
            uncertain = _explain_uncertain_topics(topics, fault)
        topic_configs, omitted = _describe_topics(cluster, sorted(topics))
        system = dump_system(info)
        if omitted:
            system = {**system, "omitted_topic_configs": sorted(omitted)}
        objects = _list_objects(cluster, info, topics, topic_configs, moves, uncertain)
        return LiveListing(system, objects, info.id)

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> KafkaState:
        """Return the live state of a cluster from the JSON of the cluster and of its objects."""
        topics: dict[str, Topic] = {}
        configs: dict[ConfigResource, Mapping[str, ConfigEntry]] = {}
        moves: dict[TopicPartition, Move] = {}
        for (object_sort, key), text in objects:
            resource = to_config_resource(object_sort, key)
            if object_sort == TOPIC:
                topic = cast("_TopicBody", parse_json(text))
                topics[key] = _bind_topic(key, topic)
                for n, move in topic.get("moves", {}).items():
                    moves[TopicPartition(key, int(n))] = _bind_move(move)
                configs[resource] = bind_config_entries(resource, topic["configs"])
            else:
                broker = cast("_BrokerBody", parse_json(text))
                configs[resource] = bind_config_entries(resource, broker["configs"])
        omitted = _bind_omitted_keys(system)
        return KafkaState(
            _bind_cluster(system),
            topics,
            configs,
            moves,
            omitted=dict.fromkeys(topics, omitted) if omitted else {},
        )

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """Return whether the topic exists or the broker is registered."""
        state = live.get(KafkaState)
        if key.sort == TOPIC:
            return key.key in state.topics
        return key.key == CLUSTER_DEFAULT or key.key in {str(broker.id) for broker in state.cluster.brokers}

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return the topic id; None for broker configs and for topics without an id."""
        topic = live.get(KafkaState).topics.get(key.key) if key.sort == TOPIC else None
        return (topic.topic_id or None) if topic is not None else None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Return whether reports contain the object, which is true only for topics that are not internal."""
        return key.sort == TOPIC and _INTERNAL_MARKER not in body

    def list_unused(self, connections: Connections, unused_for_s: float, read_at: datetime) -> UnusedListing:
        """See `ListsUnusedObjects`."""
        from kdeclare.providers.kafka.fleet.unused_topics import list_unused_topics  # only audits need it

        return list_unused_topics(connections.get(KafkaConnection).cluster, unused_for_s, read_at)

    def flatten_body(self, sort: str, body: JsonObject) -> Mapping[str, JsonValue]:
        """See `DescribesFields`."""
        return flatten_body(body)

    def format_field_name(self, sort: str, path: str) -> str | None:
        """See `DescribesFields`."""
        return name_topic_field(path) if sort == TOPIC else None


def _list_objects(
    cluster: Cluster,
    info: ClusterInfo,
    topics: Mapping[str, Topic],
    topic_configs: Iterable[tuple[ConfigResource, Configs | Fault]],
    moves: Mapping[TopicPartition, Move],
    uncertain: Mapping[str, str],
) -> Iterator[LiveObject]:
    """Yield all topics and broker configs. uncertain: for each topic with unknown replicas, the reason."""
    for topic, configs in topic_configs:
        if isinstance(configs, Fault):
            yield LiveObject(LiveKey(TOPIC, topic.name), error=explain_unreadable(configs))
        elif topic.name in uncertain:
            yield LiveObject(LiveKey(TOPIC, topic.name), error=uncertain[topic.name])
        else:
            yield build_topic_object(topics[topic.name], configs, moves)
    names = ["", *(str(broker.id) for broker in info.brokers)]
    for broker, configs in _describe_configs(
        cluster, (ConfigResource(ConfigScope.BROKER, name) for name in names)
    ):
        name = broker.name or CLUSTER_DEFAULT
        if isinstance(configs, Fault):
            yield LiveObject(LiveKey(BROKER_CONFIG, name), error=explain_unreadable(configs))
        else:
            yield build_broker_object(name, configs)


def _explain_uncertain_topics(topics: Mapping[str, Topic], fault: Fault) -> dict[str, str]:
    """Explain, for each topic that may be in a reassignment, why its replicas are unknown.

    The cluster does not list reassignments, and the metadata of such a topic can contain both old and new
    replicas.
    """
    names = {partition.topic for partition, _ in find_possible_unions(topics, topics.keys(), {})}
    text = (
        "Not all replicas are in sync, and the cluster does not list reassignments, so kdeclare cannot "
        f"determine whether a reassignment is changing the replicas: {explain_refusal(fault)}."
    )
    return dict.fromkeys(names, text)


def _describe_topics(
    cluster: Cluster, names: Sequence[str]
) -> tuple[Iterator[tuple[ConfigResource, Configs | Fault]], frozenset[str]]:
    """Return the configs of topics, and the keys of the catalog that the cluster does not return.

    All topics have the same keys, so kdeclare requests all keys of the catalog only for the first topic.
    """
    resources = [ConfigResource(ConfigScope.TOPIC, name) for name in names]
    described = _describe_configs(cluster, resources, probed=resources[0] if resources else None)
    first = next(described, None)
    if first is None:
        return described, frozenset()
    resource, entries = first
    if isinstance(entries, Fault) or resource != resources[0]:
        return chain((first,), described), frozenset()
    keys = list_requested_keys(ConfigScope.TOPIC)
    kept = {k: e for k, e in entries.items() if k in keys or e.source is ConfigSource.TOPIC}
    omitted = load_catalog(ConfigScope.TOPIC).keys.keys() - entries.keys()
    return chain(((resource, kept),), described), frozenset(omitted)


def build_topic_object(
    topic: Topic, entries: Mapping[str, ConfigEntry], moves: Mapping[TopicPartition, Move]
) -> LiveObject:
    """Return one topic as an object of a snapshot.

    moves: in-flight reassignments. Reassignments of other topics are ignored.
    """
    body = dump_live_topic(topic, entries, moves)
    return LiveObject(LiveKey(TOPIC, topic.name), body, facts=compute_topic_facts(topic, entries, moves))


def build_broker_object(name: str, entries: Mapping[str, ConfigEntry]) -> LiveObject:
    """Return the dynamic configs of a broker or of the cluster-wide default as an object of a snapshot."""
    resource = to_config_resource(BROKER_CONFIG, name)
    body = {"configs": dump_config_entries(resource, entries)}
    return LiveObject(LiveKey(BROKER_CONFIG, name), body, facts=compute_override_facts(resource, entries))


def _describe_configs(
    cluster: Cluster, resources: Iterable[ConfigResource], *, probed: ConfigResource | None = None
) -> Iterator[tuple[ConfigResource, Configs | Fault]]:
    """Yield the configs of each resource, or a Fault, in order. Deleted resources are omitted.

    probed: the resource for which all keys of the catalog are requested.

    If the cluster stops responding, all remaining resources get the same Fault.
    """
    lost_fault: Fault | None = None
    resources = iter(resources)
    while batch := list(islice(resources, _AT_ONCE)):
        results = lost_fault or _describe_batch(cluster, batch, probed)
        if isinstance(results, Fault):
            lost_fault = results if results.error in _LOST_ERRORS else None
            yield from ((resource, results) for resource in batch)
        else:
            yield from ((resource, results[resource]) for resource in batch if resource in results)


def _describe_batch(
    cluster: Cluster, resources: Sequence[ConfigResource], probed: ConfigResource | None
) -> Mapping[ConfigResource, Configs | Fault] | Fault:
    queries = [
        ConfigQuery(
            item,
            frozenset(load_catalog(item.scope).keys) if item == probed else list_requested_keys(item.scope),
            overrides=True,
        )
        for item in resources
    ]
    try:
        return cluster.describe_configs_partially(queries)
    except Fault as fault:
        return fault


def explain_unreadable(fault: Fault) -> str:
    """Return the error text of an object whose configs the cluster refuses to describe."""
    return f"The configs cannot be read: {explain_refusal(fault)}."


@cache
def list_requested_keys(scope: ConfigScope) -> frozenset[str]:
    """Return the keys whose inherited values the diff needs. Requests must name these keys."""
    return frozenset(
        k for k, info in load_catalog(scope).keys.items() if info.is_list and info.mode != _READ_ONLY_MODE
    )


def dump_live_topic(
    topic: Topic, entries: Mapping[str, ConfigEntry], moves: Mapping[TopicPartition, Move]
) -> JsonObject:
    """Return one topic as plain data.

    moves: in-flight reassignments. Reassignments of other topics are ignored.
    """
    body: dict[str, JsonValue] = {
        "id": topic.topic_id,
        "partitions": [list(partition.replicas) for partition in topic.partitions],
        "configs": dump_config_entries(ConfigResource(ConfigScope.TOPIC, topic.name), entries),
    }
    ongoing_moves = {
        str(n): {
            "replicas": list(move.replicas),
            "adding": list(move.adding),
            "removing": list(move.removing),
        }
        for n in (range(len(topic.partitions)) if moves else ())
        if (move := moves.get(TopicPartition(topic.name, n))) is not None
    }
    if ongoing_moves:
        body["moves"] = ongoing_moves
    if topic.internal:
        body["internal"] = True
    return body


def dump_system(info: ClusterInfo) -> JsonObject:
    """Return the id and the brokers of the cluster as plain data."""
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
def _bind_cluster(text: str) -> ClusterInfo:
    body = cast("_SystemBody", parse_json(text))
    brokers = tuple(Broker(b["id"], b["host"], b["port"], b["rack"], b["fenced"]) for b in body["brokers"])
    return ClusterInfo(body["id"], brokers, body["rf_guard"])


@lru_cache(maxsize=4096)
def _bind_omitted_keys(text: str) -> frozenset[str]:
    body = cast("_SystemBody", parse_json(text))
    return frozenset(body.get("omitted_topic_configs", ()))


def _bind_topic(name: str, body: _TopicBody) -> Topic:
    partitions = tuple(_make_partition(tuple(replicas)) for replicas in body["partitions"])
    return Topic(name, body["id"], partitions, body.get("internal", False))


@lru_cache(maxsize=4096)
def _make_partition(replicas: tuple[int, ...]) -> Partition:
    return Partition(replicas)


def _bind_move(move: _MoveBody) -> Move:
    return Move(tuple(move["replicas"]), tuple(move["adding"]), tuple(move["removing"]))


def dump_config_entries(entity: ConfigResource, entries: Mapping[str, ConfigEntry]) -> JsonObject:
    """Return the overrides of a resource, and the inherited values for the diff, as plain data."""
    own_source_, keys = get_own_source(entity), load_catalog(entity.scope)
    return {
        key: dict(_dump_entry(entry, own_source_))
        for key, entry in entries.items()
        if entry.source is own_source_ or _is_relevant(key, entry, keys)
    }


def _is_relevant(key: str, entry: ConfigEntry, keys: Catalog) -> bool:
    """Return whether the diff needs an inherited value.

    The diff needs inherited lists (a list patch can subtract inherited elements), values that the cluster
    hides, and keys whose type in the cluster differs from the catalog.
    """
    info = keys.get(key)
    if entry.sensitive:
        return info is None or not info.is_secret
    if entry.type is not ConfigType.LIST:
        return False
    return info is None or not info.is_list or split_list(entry.value or "") != keys.get_default_elements(key)


def _dump_entry(entry: ConfigEntry, resource_source: ConfigSource) -> Iterator[tuple[str, JsonValue]]:
    yield "value", None if entry.sensitive else entry.value
    if entry.source is not resource_source:
        yield "source", str(entry.source)
    if entry.type is not ConfigType.SCALAR:
        yield "type", str(entry.type)
    if entry.sensitive:
        yield "sensitive", True
    if entry.read_only:
        yield "read_only", True
    if entry.beneath is not None and not entry.sensitive:
        yield "beneath", entry.beneath


def bind_config_entries(
    entity: ConfigResource, bodies: Mapping[str, _EntryBody]
) -> Mapping[str, ConfigEntry]:
    """Convert the result of `dump_config_entries` back to config entries."""
    resource_source = get_own_source(entity)
    return {
        **_build_default_lists(resource_source),
        **{key: _bind_entry(entry, resource_source) for key, entry in bodies.items()},
    }


_SCOPES_WITH_LISTS = {ConfigSource.TOPIC: ConfigScope.TOPIC, ConfigSource.BROKER: ConfigScope.BROKER}


@cache
def _build_default_lists(resource_source: ConfigSource) -> Mapping[str, ConfigEntry]:
    """Return the default values of list keys. Bodies omit these values, but list patches need them.

    The mapping is empty for types of resources whose lists cannot be patched. It is also empty for the
    cluster-wide default, for which Kafka returns only overrides.
    """
    scope = _SCOPES_WITH_LISTS.get(resource_source)
    if scope is None:
        return {}
    keys = load_catalog(scope)
    return {
        key: ConfigEntry(keys.keys[key].default, ConfigSource.DEFAULT, ConfigType.LIST)
        for key in list_requested_keys(keys.scope)
    }


def _bind_entry(body: _EntryBody, resource_source: ConfigSource) -> ConfigEntry:
    value = body["value"]
    if len(body) == 1:
        return _make_own_entry(value, resource_source)
    return ConfigEntry(
        value,
        ConfigSource(body["source"]) if "source" in body else resource_source,
        ConfigType(body.get("type", ConfigType.SCALAR)),
        body.get("sensitive", False),
        body.get("read_only", False),
        body.get("beneath"),
    )


@lru_cache(maxsize=4096)
def _make_own_entry(value: str | None, resource_source: ConfigSource) -> ConfigEntry:
    return ConfigEntry(value, resource_source)
