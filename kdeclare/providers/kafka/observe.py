"""Reading the live state in one batch."""

from collections.abc import Mapping, Sequence

from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.core.faults import Fault
from kdeclare.providers.kafka.consistent import topics_and_moves
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import KafkaState, Move, ReplicaDirs, Topic
from kdeclare.providers.kafka.port import CLUSTER_AUTHORIZATION_FAILED, Cluster, LogDir
from kdeclare.providers.kafka.selection import KafkaSelection

_LIST_ALL_ABOVE = 100


def observe(cluster: Cluster, query: KafkaSelection, *, all_topics: bool = False) -> KafkaState:
    """The live state that ``query`` names, and with ``all_topics`` every topic there is.

    Raises Fault when the cluster does not answer.
    """
    info = cluster.describe()
    names = None if all_topics or query.every_topic else sorted(query.topics)
    topics: Mapping[str, Topic] = {}
    moves: Mapping[TopicPartition, Move] = {}
    sees_moves = True
    if names != []:
        try:
            topics, moves = topics_and_moves(cluster, names, _movers(query))
        except Fault as fault:
            # a principal without Describe on the cluster may not alter it either, so it moves nothing
            if fault.error != CLUSTER_AUTHORIZATION_FAILED:
                raise
            topics, sees_moves = cluster.topics(names), False
    # a list of all topics leaves out what one may not see: that is not proof that it is not there
    missing = sorted(query.topics - topics.keys()) if names is None else []
    hidden = cluster.hidden_topics(missing) if missing else frozenset()
    brokers = {str(broker.id) for broker in info.brokers}
    serving = {str(broker.id) for broker in info.brokers if not broker.fenced}
    asked = [
        q for q in query.configs.values() if _exists(q.resource, topics, serving if q.optional else brokers)
    ]
    configs = cluster.configs(asked) if asked else {}
    dirs = replica_dirs(cluster.log_dirs(sorted(query.log_dirs))) if query.log_dirs else {}
    return KafkaState(info, topics, configs, moves, dirs, hidden, sees_moves)


def moves_not_seen() -> Diagnostic:
    """The warning where `KafkaState.sees_moves` is false."""
    return warning(
        "not-authorized",
        "Replica moves cannot be seen",
        "Without the right Describe on the cluster, ongoing moves are not known: a topic that is being moved "
        "is shown with the replicas that it is about to lose, too.",
        hint="Ask for Describe on the cluster, or do not change replicas while others move them.",
    )


def replica_dirs(
    log_dirs: Mapping[int, Sequence[LogDir]],
) -> dict[tuple[TopicPartition, int], ReplicaDirs]:
    """Of log directories by broker, where each replica is and where it is heading."""
    held: dict[tuple[TopicPartition, int], str] = {}
    arriving: dict[tuple[TopicPartition, int], str] = {}
    for broker, found in log_dirs.items():
        for log_dir in found:
            held |= {(partition, broker): log_dir.path for partition in log_dir.sizes}
            arriving |= {(partition, broker): log_dir.path for partition in log_dir.arriving}
    return {key: ReplicaDirs(held.get(key), arriving.get(key)) for key in held.keys() | arriving.keys()}


def _movers(query: KafkaSelection) -> Sequence[str] | None:
    """The topics whose moves are asked for, None for all."""
    every = query.every_topic or len(query.topics) > _LIST_ALL_ABOVE
    return None if every else sorted(query.topics)


def _exists(resource: ConfigResource, topics: Mapping[str, Topic], brokers: set[str]) -> bool:
    if resource.scope is ConfigScope.TOPIC:
        return resource.name in topics
    return not resource.name or resource.name in brokers
