"""Read the selected topics, configs, reassignments and log directories of a cluster."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field

from kdeclare.core.diagnostics import Diagnostic, denied, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Collector, CollectResult, ExpectedObjects, Selection, WaitPolicy
from kdeclare.core.live.faults import Fault, FaultKind, Outcome
from kdeclare.core.parts import Connections
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.error_names import POLICY_VIOLATION, UNAVAILABLE, UNSUPPORTED_VERSION
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition, is_topic
from kdeclare.providers.kafka.live import KafkaState, Move, Partition, ReplicaDirs, Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import (
    ConfigQuery,
    Configs,
    LogDir,
    NewTopic,
    merge_config_queries,
    require_all_configs,
)


@dataclass(frozen=True, slots=True)
class KafkaSelection:
    """The topics, reassignments and config keys that a plan needs from the cluster.

    every_topic: whether to read all topics with their reassignments, for example to match a pattern.
    log_dirs: the topics for which to read the log directories of the replicas.
    """

    topics: frozenset[str] = frozenset()
    configs: Mapping[ConfigResource, ConfigQuery] = field(default_factory=dict)
    every_topic: bool = False
    log_dirs: frozenset[str] = frozenset()

    def merge(self, others: Sequence["KafkaSelection"]) -> "KafkaSelection":
        """See `Selection`."""
        topics: set[str] = set()
        queries: list[ConfigQuery] = []
        log_dirs: set[str] = set()
        for selection in (self, *others):
            topics |= selection.topics
            log_dirs |= selection.log_dirs
            queries += selection.configs.values()
        every_topic = self.every_topic or any(other.every_topic for other in others)
        configs = merge_config_queries(queries)
        return KafkaSelection(frozenset(topics), configs, every_topic, frozenset(log_dirs))


_EXISTS_ERROR = "TOPIC_ALREADY_EXISTS"
_ABSENT_ERRORS = frozenset({"INVALID_REPLICATION_FACTOR", POLICY_VIOLATION})
"""The errors of a validate-only CreateTopics request that prove that the topic does not exist."""


@dataclass(frozen=True, slots=True)
class TopicExistence:
    """Which topics exist according to the controller.

    unsettled: the topics whose existence is unknown, because kdeclare is not permitted to create topics or
        because the request failed.
    """

    exists: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    unsettled: frozenset[str] = frozenset()


def check_existence(cluster: Cluster, names: Iterable[str]) -> TopicExistence:
    """Determine with a validate-only CreateTopics request whether topics exist. Never raises."""
    topic_names = sorted(set(names))
    if not topic_names:
        return TopicExistence()
    try:
        answers = cluster.create_topics(
            [NewTopic(name, 1, 1, None, {}) for name in topic_names], validate_only=True
        )
    except Fault:
        return TopicExistence(unsettled=frozenset(topic_names))
    exists = frozenset(name for name in topic_names if _is_fault(answers[name], _EXISTS_ERROR))
    absent = frozenset(
        name for name in topic_names if answers[name] is None or _is_fault(answers[name], *_ABSENT_ERRORS)
    )
    return TopicExistence(exists, absent, frozenset(topic_names) - exists - absent)


def _is_fault(answer: Outcome, *errors: str) -> bool:
    return isinstance(answer, Fault) and answer.error in errors


def read_topics_and_moves(
    cluster: Cluster,
    names: Sequence[str] | None,
    move_topics: Sequence[str] | None,
    wait_policy: WaitPolicy | None = None,
) -> tuple[Mapping[str, Topic], Mapping[TopicPartition, Move]]:
    """Return topics and their in-flight reassignments. Raises Fault if the cluster does not respond.

    names: the topics to read, or None for all topics.
    move_topics: the topics whose reassignments to read (a subset of ``names``), or None for all topics. If
        empty, reassignments are not requested.
    wait_policy: how long to wait until brokers have caught up with the controller. Topics are read after this
        wait.

    During a reassignment, the metadata contains the union of old and new replicas. After the reassignment,
    the controller no longer lists it, but brokers can still show the union, which could be mistaken for the
    final replicas of the partition. Topics with such a partition are therefore read again.
    """
    if wait_policy is not None:
        cluster.await_committed(wait_policy)
    topics = dict(cluster.topics(names))
    move_names = topics.keys() if move_topics is None else topics.keys() & move_topics
    moves = dict(cluster.moves(move_topics)) if move_topics is None or move_topics else {}
    confirmed: set[tuple[TopicPartition, Partition]] = set()
    for _ in range(_MAX_REREADS):
        possible_unions = find_possible_unions(topics, move_names, moves)
        if possible_unions <= confirmed:
            break
        confirmed |= possible_unions
        reread = sorted({partition.topic for partition, _ in possible_unions})
        cluster.await_pending_commits()
        topics = {name: topic for name, topic in topics.items() if name not in reread}
        topics |= cluster.topics(reread)
        moves = {
            partition: move for partition, move in moves.items() if partition.topic in topics.keys() - reread
        }
        moves |= cluster.moves(reread)
    return topics, moves


_MAX_REREADS = 5
"""The maximum number of times that topics are read again while other clients start and end reassignments."""


def find_possible_unions(
    topics: Mapping[str, Topic], names: Collection[str], moves: Mapping[TopicPartition, Move]
) -> set[tuple[TopicPartition, Partition]]:
    """Return the partitions that may still show both old and new replicas after a reassignment has ended.

    A reassignment ends with the metadata record that says that the last added replica is in sync
    (org.apache.kafka.controller.PartitionReassignmentReplicas). Therefore, a partition whose replicas are all
    in sync is not being reassigned. The only exception is a reassignment whose target was changed to one that
    Kafka never reaches (see docs/kafka-observed.md).
    """
    return {
        (TopicPartition(name, index), partition)
        for name in names
        if name in topics
        for index, partition in enumerate(topics[name].partitions)
        if len(partition.isr) < len(partition.replicas) and TopicPartition(name, index) not in moves
    }


_MAX_NAMED_TOPICS = 100


def observe(
    cluster: Cluster,
    query: KafkaSelection,
    *,
    all_topics: bool = False,
    wait_policy: WaitPolicy | None = None,
    permits_unreadable: bool = False,
) -> KafkaState:
    """Read the live state that ``query`` selects. Raises Fault if the cluster does not respond.

    all_topics: whether to read every topic.
    permits_unreadable: whether to omit configs that the cluster refuses to describe. If False, the refusal is
        raised as a Fault.
    wait_policy: how long to wait until brokers have caught up with the controller. Topics are read after this
        wait.
    """
    info = cluster.describe()
    names = None if all_topics or query.every_topic else sorted(query.topics)
    topics: Mapping[str, Topic] = {}
    moves: Mapping[TopicPartition, Move] = {}
    moves_fault: Fault | None = None
    if names != []:
        try:
            topics, moves = read_topics_and_moves(cluster, names, _list_move_topics(query), wait_policy)
        except Fault as fault:
            # Alter on the cluster implies Describe, so a principal without Describe cannot start
            # reassignments.
            if fault.error not in UNAVAILABLE:
                raise
            topics, _ = read_topics_and_moves(cluster, names, (), wait_policy)
            moves_fault = fault
    elif wait_policy is not None:
        cluster.await_committed(wait_policy)
    # A list of all topics omits topics that the principal cannot describe, so an unlisted topic can exist.
    missing = sorted(query.topics - topics.keys()) if names is None else []
    hidden = cluster.find_hidden_topics(missing) if missing else frozenset()
    brokers = {str(broker.id) for broker in info.brokers}
    serving = {str(broker.id) for broker in info.brokers if not broker.fenced}
    config_queries = [
        q
        for q in query.configs.values()
        if _is_existing(q.resource, topics, serving if q.optional else brokers)
    ]
    answers = cluster.describe_configs_partially(config_queries) if config_queries else {}
    unreadable = {r: a for r, a in answers.items() if isinstance(a, Fault) and a.kind is FaultKind.REFUSED}
    if not permits_unreadable or len(unreadable) < sum(isinstance(a, Fault) for a in answers.values()):
        require_all_configs(answers)
    configs = {r: answer for r, answer in answers.items() if not isinstance(answer, Fault)}
    dirs = collect_replica_dirs(cluster.log_dirs(sorted(query.log_dirs))) if query.log_dirs else {}
    omitted = _find_omitted_keys(config_queries, configs)
    return KafkaState(info, topics, configs, moves, dirs, hidden, moves_fault, unreadable, omitted)


def _find_omitted_keys(
    queries: Iterable[ConfigQuery], configs: Mapping[ConfigResource, Configs]
) -> dict[str, frozenset[str]]:
    """Return, by topic, the keys that were requested and are in the catalog, but were not returned."""
    known_keys = load_catalog(ConfigScope.TOPIC).keys.keys()
    omitted: dict[str, frozenset[str]] = {}
    for query in queries:
        if query.resource.scope is ConfigScope.TOPIC and query.resource in configs:
            keys = (query.keys - configs[query.resource].keys()) & known_keys
            if keys:
                omitted[query.resource.name] = keys
    return omitted


def explain_refusal(fault: Fault) -> str:
    """Return the reason that the brokers gave for a refusal, followed by the name of the error."""
    return f"{fault.message.strip().rstrip('.') or 'no reason given'} ({fault.error})"


def warn_moves_not_visible(fault: Fault) -> Diagnostic:
    """Return the warning that the cluster does not list reassignments. fault: the reason."""
    if fault.error == UNSUPPORTED_VERSION:
        return warning(
            "not-supported",
            "Reassignments not visible",
            "The brokers do not support ListPartitionReassignments, so kdeclare cannot see in-flight "
            "reassignments. For a topic that is being reassigned, the plan also shows the replicas that the "
            "reassignment will remove.",
            hint="Do not change replicas while another client, such as a managed Kafka service, reassigns "
            "partitions.",
        )
    return warning(
        "not-authorized",
        "Reassignments not visible",
        "Without the Describe permission on the cluster, kdeclare cannot see in-flight reassignments. For a "
        "topic that is being reassigned, the plan also shows the replicas that the reassignment will remove.",
        hint="Grant kdeclare the Describe permission on the cluster, or do not change replicas while another "
        "client reassigns partitions.",
    )


def report_unsupported(resource: ResourceId, desired: DesiredResource | None, what: str) -> Diagnostic:
    """Report that a resource is left unchanged, because the brokers do not support the requests for it.

    what: the objects that cannot be managed with these brokers, as a plural noun.
    """
    make_diagnostic = denied if desired else warning
    return make_diagnostic(
        "not-supported",
        "Not supported by the brokers",
        f"{resource} is left unchanged{'' if desired else ' and stays owned'}: the brokers do not support "
        f"managing {what}.",
        hint="Remove the manifest, and manage these objects with the tools of your Kafka service."
        if desired
        else "Pass --forget to give up ownership.",
        place=desired.source if desired else None,
        resource=str(resource),
    )


def collect_replica_dirs(
    log_dirs: Mapping[int, Sequence[LogDir]],
) -> dict[tuple[TopicPartition, int], ReplicaDirs]:
    """Return the log directory of each replica, and the directory that the replica is being moved to."""
    current_paths: dict[tuple[TopicPartition, int], str] = {}
    future_paths: dict[tuple[TopicPartition, int], str] = {}
    for broker, dirs in log_dirs.items():
        for log_dir in dirs:
            current_paths |= {(partition, broker): log_dir.path for partition in log_dir.sizes}
            future_paths |= {(partition, broker): log_dir.path for partition in log_dir.arriving}
    return {
        key: ReplicaDirs(current_paths.get(key), future_paths.get(key))
        for key in current_paths.keys() | future_paths.keys()
    }


def _list_move_topics(query: KafkaSelection) -> Sequence[str] | None:
    """Return the topics whose reassignments must be read, or None for all topics."""
    reads_all = query.every_topic or len(query.topics) > _MAX_NAMED_TOPICS
    return None if reads_all else sorted(query.topics)


def _is_existing(resource: ConfigResource, topics: Mapping[str, Topic], brokers: set[str]) -> bool:
    if resource.scope is ConfigScope.TOPIC:
        return resource.name in topics
    return not resource.name or resource.name in brokers


WAITING_FOR_TOPICS = "Waiting for brokers to show topics"

_FIRST_DELAY_S = 0.1
_MAX_DELAY_S = 2.0


def observe_expected(
    cluster: Cluster,
    query: KafkaSelection,
    expected: Collection[str],
    wait_policy: WaitPolicy,
    *,
    all_topics: bool = False,
    await_unsettled: bool = False,
) -> CollectResult:
    """Read the live state until brokers show every expected topic that exists, or the time limit is reached.

    await_unsettled: whether to also wait for topics whose existence is unknown.

    Raises Fault.
    """
    started_at, delay_s = wait_policy.monotonic(), _FIRST_DELAY_S
    live = observe(cluster, query, all_topics=all_topics, wait_policy=wait_policy, permits_unreadable=True)
    while True:
        # Brokers never show this topic: the principal cannot describe it.
        missing = [n for n in expected if n not in live.hidden and not _is_visible(n, query, live)]
        existence = check_existence(cluster, missing)
        awaited_topics = existence.exists | existence.unsettled if await_unsettled else existence.exists
        if not awaited_topics or wait_policy.monotonic() - started_at >= wait_policy.limit_s:
            return CollectResult(
                live, _to_resource_ids(existence.exists), _to_resource_ids(existence.unsettled)
            )
        wait_policy.progress(WAITING_FOR_TOPICS, len(expected) - len(awaited_topics), len(expected))
        wait_policy.sleep(delay_s)
        delay_s = min(2 * delay_s, _MAX_DELAY_S)
        live = observe(cluster, query, all_topics=all_topics, permits_unreadable=True)


def _to_resource_ids(names: Iterable[str]) -> frozenset[ResourceId]:
    return frozenset(ResourceId("Topic", name) for name in names)


def _is_visible(name: str, query: KafkaSelection, live: KafkaState) -> bool:
    """Return whether brokers show the topic and its configs.

    The topic and its configs can come from different brokers, one of which can have older metadata.
    """
    resource = ConfigResource(ConfigScope.TOPIC, name)
    has_configs = resource in live.configs or resource in live.unreadable
    return name in live.topics and (resource not in query.configs or has_configs)


def collect_cluster(connections: Connections, selection: KafkaSelection) -> KafkaState:
    """Read the selected live state of the cluster. Raises Fault if the cluster does not respond."""
    return observe(connections.get(KafkaConnection).cluster, selection)


def collect_expected(
    connections: Connections, selection: KafkaSelection, expected: ExpectedObjects
) -> CollectResult:
    """Read the selected live state until brokers show all expected topics. Raises Fault."""
    owned_topics = {id_.name for id_ in expected.owned if is_topic(id_) and id_.name in selection.topics}
    named_topics = {id_.name for id_ in expected.objects if is_topic(id_)}
    return observe_expected(
        connections.get(KafkaConnection).cluster,
        selection,
        sorted(owned_topics | named_topics),
        expected.patience,
        all_topics=expected.reads_all_names,
        await_unsettled=expected.await_unverifiable,
    )


def find_principal(connections: Connections) -> str | None:
    """Return the principal that brokers authenticate kdeclare as; None if it is unknown. Raises Fault."""
    return connections.get(KafkaConnection).cluster.describe().principal


CLUSTER = Collector(
    KafkaSelection,
    collect_cluster,
    base_selection=KafkaSelection(),
    read_expected=collect_expected,
    find_id=lambda live: state.cluster.id if (state := live.find(KafkaState)) else None,
)


def select_topics(selections: tuple[Selection, ...]) -> frozenset[str]:
    """Return the names of the topics in the selections."""
    merged = CLUSTER.merge(selections)
    return merged.topics if merged is not None else frozenset()
