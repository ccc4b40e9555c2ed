"""The rows of the two tables that a fleet is compared by, see `fleet.rows`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kdeclare.core.capabilities import encode_body, is_self_contained
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json, canonical_json
from kdeclare.core.kind import Desired
from kdeclare.fleet.bodies import broker_body, cluster_body, entity_of, fingerprint, topic_body
from kdeclare.fleet.facts import DeclaredFacts, declared_facts, live_facts
from kdeclare.fleet.rows import CLUSTER
from kdeclare.providers.kafka.config.scope import find_config_scope
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import ClusterInfo, ConfigEntry, Move, Topic
from kdeclare.providers.kafka.topic.diff import TOPIC_ID

Row = dict[str, Json]

UNEVEN = -1
"""The ``factor`` of a topic whose partitions differ in it."""

_NO_FACTS = DeclaredFacts([], [], [], None, [], always=True)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and when live rows were read. cluster_id: None where the cluster was not reached."""

    taken_at: datetime
    cluster: str
    cluster_id: str | None
    labels: Mapping[str, str]


def cluster_row(origin: Origin, info: ClusterInfo, version: str | None) -> Row:
    """LIVE: the cluster itself; ``version`` is Kafka's, as far as it tells."""
    return _live(origin, CLUSTER, origin.cluster, cluster_body(info, version))


def topic_row(
    origin: Origin, topic: Topic, entries: Mapping[str, ConfigEntry], moves: Mapping[TopicPartition, Move]
) -> Row:
    """LIVE: one topic. ``moves`` may be those of the whole cluster."""
    body = topic_body(topic, entries, moves)
    sizes = {_true_size(topic, n, moves) for n in range(len(topic.partitions))}
    facts = live_facts(ConfigResource(ConfigScope.TOPIC, topic.name), entries)
    return _live(origin, "Topic", topic.name, body) | {
        "partitions": len(topic.partitions),
        "factor": sizes.pop() if len(sizes) == 1 else UNEVEN,
        "topic_id": topic.topic_id or None,
        **facts._asdict(),
    }


def broker_row(origin: Origin, name: str, entries: Mapping[str, ConfigEntry]) -> Row:
    """LIVE: the dynamic configs of one broker, or of the cluster-wide default; ``name`` as in manifests."""
    facts = live_facts(entity_of("BrokerConfig", name), entries)
    return _live(origin, "BrokerConfig", name, broker_body(name, entries)) | facts._asdict()


def unread_row(origin: Origin, kind: str, name: str, reason: str) -> Row:
    """LIVE: what could not be read, the cluster itself (kind `CLUSTER`) or one resource of it."""
    return _live(origin, kind, name, None) | {"error": reason}


def declared_row(cluster: str, desired: Desired | None, id_: ResourceId, owned: Json) -> Row:
    """DECLARED: one resource that is declared, owned or both. Of secrets there are hashes only."""
    row = _of_resource(cluster, desired, id_, owned) | {
        "owned": None if owned is None else canonical_json(owned)
    }
    if desired is None:
        return row
    return row | {
        "desired": _body(desired),
        "source": None if desired.source is None else str(desired.source),
        "alone": is_self_contained(desired),
        **_facts(desired, owned)._asdict(),
        "partitions": getattr(desired.body, "partitions", None),
        "factor": getattr(desired.body, "replication_factor", None),
        "topic_id": (owned or {}).get(TOPIC_ID),
    }


def left_out_row(cluster: str, desired: Desired | None, id_: ResourceId, owned: Json) -> Row:
    """DECLARED: one that a selector leaves out: nothing is found about it, but it counts for the others."""
    left_out = None if desired is None else _body(desired)
    return _of_resource(cluster, desired, id_, owned) | {"alone": False, "left_out": left_out}


def declared_cluster_row(
    cluster: str,
    labels: Mapping[str, str],
    error: str | None = None,
    *,
    cluster_id: str | None = None,
    moves: Sequence[str] = (),
    policies: bool = False,
) -> Row:
    """DECLARED: the cluster itself.

    error: why its project, or its state, could not be read. cluster_id: that which the state is about.
    moves: what kdeclare has begun to move and left to the cluster. policies: whether its project has some,
    which have to be asked about all of it.
    """
    row = _declared(cluster, CLUSTER, cluster) | {**_NO_FACTS._asdict(), "always": policies}
    owned = canonical_json(list(moves)) if moves else None
    return row | {"owned": owned, "labels": dict(labels), "cluster_id": cluster_id, "error": error}


def _of_resource(cluster: str, desired: Desired | None, id_: ResourceId, owned: Json) -> Row:
    labels = desired.labels if desired is not None else (owned or {}).get("labels", {})
    return _declared(cluster, id_.kind, id_.name) | {"labels": dict(labels), **_NO_FACTS._asdict()}


def _body(desired: Desired) -> str:
    return canonical_json(encode_body(desired))


def _facts(desired: Desired, owned: Json) -> DeclaredFacts:
    scope = find_config_scope(desired.id.kind)
    if scope is None:
        return _NO_FACTS
    facts = declared_facts(scope, desired.body.configs, (owned or {}).get("configs", {}))
    assigned = getattr(desired.body, "assignments", None) is not None
    removed = getattr(desired.body, "remove_unmanaged", False)
    gone = None if removed else facts.gone
    return facts._replace(always=facts.always or assigned, gone=gone)


def _true_size(topic: Topic, number: int, moves: Mapping[TopicPartition, Move]) -> int:
    """How many replicas a partition has, or is to have once its move is over (KIP-860)."""
    move = moves.get(TopicPartition(topic.name, number)) if moves else None
    return len(topic.partitions[number].replicas if move is None else move.target)


def _live(origin: Origin, kind: str, name: str, body: Json) -> Row:
    text = None if body is None else canonical_json(body)
    return {
        "taken_at": origin.taken_at,
        "cluster": origin.cluster,
        "cluster_id": origin.cluster_id,
        "kind": kind,
        "name": name,
        "body": text,
        "fingerprint": None if text is None else fingerprint(text),
        "error": None,
        "labels": dict(origin.labels),
        "partitions": None,
        "factor": None,
        "topic_id": None,
        "has": None,
        "keys": None,
    }


def _declared(cluster: str, kind: str, name: str) -> Row:
    return {
        "cluster": cluster,
        "kind": kind,
        "name": name,
        "desired": None,
        "left_out": None,
        "owned": None,
        "labels": {},
        "source": None,
        "alone": True,
        "always": True,
        "partitions": None,
        "factor": None,
        "topic_id": None,
        "need": None,
        "forbid": None,
        "keys": None,
        "gone": None,
        "mine": None,
        "cluster_id": None,
        "error": None,
    }
