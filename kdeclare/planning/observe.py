"""Reading the live state in one batch."""

from collections.abc import Mapping, Sequence

from kdeclare.cluster.port import Cluster
from kdeclare.kinds.query import Query
from kdeclare.model.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.model.live import Move, Snapshot, Topic

_LIST_ALL_ABOVE = 100


def observe(cluster: Cluster, query: Query, *, all_topics: bool = False) -> Snapshot:
    """The live state that ``query`` names, and with ``all_topics`` every topic there is.

    Raises Fault when the cluster does not answer.
    """
    info = cluster.describe()
    names = None if all_topics else sorted(query.topics)
    topics, moves = _topics_and_moves(cluster, names, query)
    brokers = {str(broker.id) for broker in info.brokers}
    asked = [q for q in query.configs.values() if _exists(q.resource, topics, brokers)]
    configs = cluster.configs(asked) if asked else {}
    return Snapshot(info, topics, configs, moves)


def _topics_and_moves(
    cluster: Cluster, names: Sequence[str] | None, query: Query
) -> tuple[Mapping[str, Topic], Mapping[TopicPartition, Move]]:
    """Moves before and after: what ended in between left a union in the topics, so those are read again.

    KIP-860 shows that no order of the two reads is free of races; the guard of the request is what holds.
    """
    if names == []:
        return {}, {}
    among = sorted(query.topics) if len(query.topics) <= _LIST_ALL_ABOVE else None
    before = cluster.moves(among) if query.topics else {}
    topics = cluster.topics(names)
    moves = cluster.moves(among) if query.topics else {}
    ended = sorted({partition.topic for partition in before if partition not in moves})
    if ended:
        topics = {**topics, **cluster.topics(ended)}
    return topics, moves


def _exists(resource: ConfigResource, topics: Mapping[str, Topic], brokers: set[str]) -> bool:
    if resource.scope is ConfigScope.TOPIC:
        return resource.name in topics
    return not resource.name or resource.name in brokers
