"""Reading a cluster: what is selected, and the topics, configs, moves and directories that are found."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field

from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.core.frozen import dataclass
from kdeclare.core.live.collector import Collector, Expected, Patience, Selection, Sighting
from kdeclare.core.live.faults import Fault, Outcome
from kdeclare.core.parts import Connections
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition, is_topic
from kdeclare.providers.kafka.live import KafkaState, Move, ReplicaDirs, Topic
from kdeclare.providers.kafka.port import (
    CLUSTER_AUTHORIZATION_FAILED,
    POLICY_VIOLATION,
    Cluster,
    ConfigQuery,
    LogDir,
    NewTopic,
)


@dataclass(frozen=True, slots=True)
class KafkaSelection:
    """The topics (with their moves) and config keys that something touches.

    every_topic: all of them with their moves, as patterns are about topics that only the cluster knows.
    log_dirs: topics of which also the log directories of the replicas are needed.
    """

    topics: frozenset[str] = frozenset()
    configs: Mapping[ConfigResource, ConfigQuery] = field(default_factory=dict)
    every_topic: bool = False
    log_dirs: frozenset[str] = frozenset()

    def merge(self, others: Sequence["KafkaSelection"]) -> "KafkaSelection":
        """See `Selection`."""
        topics: set[str] = set()
        configs: dict[ConfigResource, ConfigQuery] = {}
        log_dirs: set[str] = set()
        for selection in (self, *others):
            topics |= selection.topics
            log_dirs |= selection.log_dirs
            for resource, query in selection.configs.items():
                earlier = configs.get(resource)
                configs[resource] = query if earlier is None else _merge_queries(earlier, query)
        every_topic = self.every_topic or any(other.every_topic for other in others)
        return KafkaSelection(frozenset(topics), configs, every_topic, frozenset(log_dirs))


def _merge_queries(a: ConfigQuery, b: ConfigQuery) -> ConfigQuery:
    return ConfigQuery(a.resource, a.keys | b.keys, a.overrides or b.overrides, a.optional and b.optional)


_EXISTS = "TOPIC_ALREADY_EXISTS"
_ABSENT = frozenset({"INVALID_REPLICATION_FACTOR", POLICY_VIOLATION})
"""What the controller answers only once it has seen that there is no such topic."""


@dataclass(frozen=True, slots=True)
class Existence:
    """Topics by what the controller says of them.

    unsettled: it did not say, because the client may not create topics, or the request failed.
    """

    exists: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    unsettled: frozenset[str] = frozenset()


def find_existing(cluster: Cluster, names: Iterable[str]) -> Existence:
    """Ask the controller for topics that no broker shows. Creates nothing, raises nothing."""
    asked = sorted(set(names))
    if not asked:
        return Existence()
    try:
        answers = cluster.create_topics(
            [NewTopic(name, 1, 1, None, {}) for name in asked], validate_only=True
        )
    except Fault:
        return Existence(unsettled=frozenset(asked))
    exists = frozenset(name for name in asked if _is_fault(answers[name], _EXISTS))
    absent = frozenset(name for name in asked if answers[name] is None or _is_fault(answers[name], *_ABSENT))
    return Existence(exists, absent, frozenset(asked) - exists - absent)


def _is_fault(answer: Outcome, *errors: str) -> bool:
    return isinstance(answer, Fault) and answer.error in errors


def topics_and_moves(
    cluster: Cluster,
    names: Sequence[str] | None,
    among: Sequence[str] | None,
    patience: Patience | None = None,
) -> tuple[Mapping[str, Topic], Mapping[TopicPartition, Move]]:
    """Topics, and the moves under way; None is all of them, and of no topics nothing is asked.

    names: the topics to read. among: those whose moves to read, which `names` should have as well.
    patience: before the topics are read, wait for brokers to know what the controller has committed.
    Moves before and after: what ended in between left a union in the topics, so those are read again. Where
    none of the topics exists, none is moved.
    KIP-860 shows that no order of the two reads is free of races; the guard of a request is what holds.
    Raises Fault when the cluster does not answer.
    """
    asks = among is None or len(among) > 0
    before = cluster.earlier_moves() if asks else frozenset[TopicPartition]()
    if patience is not None:
        cluster.await_committed(patience)
    topics = cluster.topics(names)
    exist = bool(topics) if among is None else any(name in topics for name in among)
    moves = cluster.moves(among) if asks and exist else {}
    asked = None if among is None else frozenset(among)
    gone = (partition.topic for partition in before if partition not in moves)
    ended = sorted({topic for topic in gone if asked is None or topic in asked})
    if ended:
        topics = {**topics, **cluster.topics(ended)}
    return topics, moves


_LIST_ALL_ABOVE = 100


def observe(
    cluster: Cluster, query: KafkaSelection, *, all_topics: bool = False, patience: Patience | None = None
) -> KafkaState:
    """The live state that ``query`` names, and with ``all_topics`` every topic there is.

    patience: before the topics are read, wait for brokers to know what the controller has committed.
    Raises Fault when the cluster does not answer.
    """
    info = cluster.describe()
    names = None if all_topics or query.every_topic else sorted(query.topics)
    topics: Mapping[str, Topic] = {}
    moves: Mapping[TopicPartition, Move] = {}
    sees_moves = True
    if names != []:
        try:
            topics, moves = topics_and_moves(cluster, names, _movers(query), patience)
        except Fault as fault:
            # a principal without Describe on the cluster may not alter it either, so it moves nothing
            if fault.error != CLUSTER_AUTHORIZATION_FAILED:
                raise
            topics, _ = topics_and_moves(cluster, names, (), patience)
            sees_moves = False
    elif patience is not None:
        cluster.await_committed(patience)
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


WAITING = "Waiting for brokers to show topics"

_FIRST_STEP_S = 0.1
_LONGEST_STEP_S = 2.0


def observe_expected(
    cluster: Cluster,
    query: KafkaSelection,
    expected: Collection[str],
    patience: Patience,
    *,
    all_topics: bool = False,
    await_unsettled: bool = False,
) -> Sighting:
    """Observe until brokers show every expected topic that exists, or patience ends.

    await_unsettled: wait also where nobody can tell whether a topic exists. Raises Fault.
    """
    begun, step = patience.monotonic(), _FIRST_STEP_S
    live = observe(cluster, query, all_topics=all_topics, patience=patience)
    while True:
        # of a hidden topic, no broker will ever show more
        missing = [n for n in expected if n not in live.hidden and not _is_shown(n, query, live)]
        said = find_existing(cluster, missing)
        awaited = said.exists | said.unsettled if await_unsettled else said.exists
        if not awaited or patience.monotonic() - begun >= patience.limit_s:
            return Sighting(live, _name_topics(said.exists), _name_topics(said.unsettled))
        patience.progress(WAITING, len(expected) - len(awaited), len(expected))
        patience.sleep(step)
        step = min(2 * step, _LONGEST_STEP_S)
        live = observe(cluster, query, all_topics=all_topics)


def _name_topics(names: Iterable[str]) -> frozenset[ResourceId]:
    return frozenset(ResourceId("Topic", name) for name in names)


def _is_shown(name: str, query: KafkaSelection, live: KafkaState) -> bool:
    """Whether brokers show it whole: another broker answers for its configs, and can trail further."""
    resource = ConfigResource(ConfigScope.TOPIC, name)
    return name in live.topics and (resource not in query.configs or resource in live.configs)


def collect_cluster(connections: Connections, selection: KafkaSelection) -> KafkaState:
    """Read what is selected of the cluster. Raises Fault when it does not answer."""
    return observe(connections.get(KafkaConnection).cluster, selection)


def collect_expected(connections: Connections, selection: KafkaSelection, expected: Expected) -> Sighting:
    """Read what is selected, until brokers show every expected topic that exists. Raises Fault."""
    owned = {id_.name for id_ in expected.owned if is_topic(id_) and id_.name in selection.topics}
    named = {id_.name for id_ in expected.objects if is_topic(id_)}
    return observe_expected(
        connections.get(KafkaConnection).cluster,
        selection,
        sorted(owned | named),
        expected.patience,
        all_topics=expected.reads_all_names,
        await_unsettled=expected.await_unsettled,
    )


def find_principal(connections: Connections) -> str | None:
    """Return the principal that kdeclare is authenticated as. Raises Fault."""
    return connections.get(KafkaConnection).cluster.describe().principal


CLUSTER = Collector(
    KafkaSelection,
    collect_cluster,
    always=KafkaSelection(),
    read_expected=collect_expected,
    find_id=lambda live: state.cluster.id if (state := live.find(KafkaState)) else None,
)


def select_topics(selections: tuple[Selection, ...]) -> frozenset[str]:
    """Return the topics that are selected by name."""
    merged = CLUSTER.merge(selections)
    return merged.topics if merged is not None else frozenset()
