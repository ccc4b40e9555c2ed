"""Read live topics and their partitions, for `kdeclare topic list` and `kdeclare topic describe`."""

from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, warning
from kdeclare.core.documents import build_document
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.collector import explain_refusal, read_topics_and_moves
from kdeclare.providers.kafka.commands.topic_selection import (
    is_topic_pattern,
    report_unknown_topic,
    select_named_topics,
)
from kdeclare.providers.kafka.commands.views import (
    PartitionView,
    Sizes,
    TopicDetail,
    TopicListView,
    TopicsView,
    TopicView,
)
from kdeclare.providers.kafka.connection import CONNECTION, KafkaConnection
from kdeclare.providers.kafka.error_names import UNAVAILABLE, UNSUPPORTED_VERSION
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import Move, PartitionCondition, Topic, list_conditions
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery, Configs, LogDir

MIN_ISR_KEY = "min.insync.replicas"
_MIN_ISR_CONDITIONS = frozenset({PartitionCondition.UNDER_MIN_ISR, PartitionCondition.AT_MIN_ISR})

Moves = Mapping[TopicPartition, Move]


@dataclass(frozen=True, slots=True)
class TopicQuery:
    """The topics to show.

    names: exact names and regular expressions (see `topic_selection`). If empty, all topics are shown.
    if_exists: whether to ignore a name that matches no topic. Otherwise, such a name is an error.
    """

    names: tuple[str, ...] = ()
    exclude_internal: bool = False
    if_exists: bool = False


class ReplicaSizes:
    """The sizes of replicas in bytes (DescribeLogDirs, KIP-113)."""

    def __init__(self, log_dirs: Mapping[int, Sequence[LogDir]]) -> None:
        """Index the sizes by replica. log_dirs: the log directories of each broker that responded."""
        self._sizes_by_broker: dict[int, dict[TopicPartition, int]] = {}
        self._arriving_by_broker: dict[int, dict[TopicPartition, int]] = {}
        self._partial_brokers: set[int] = set()
        for broker, dirs in log_dirs.items():
            self._sizes_by_broker[broker] = {at: size for one in dirs for at, size in one.sizes.items()}
            self._arriving_by_broker[broker] = {at: size for one in dirs for at, size in one.arriving.items()}
            if any(one.error is not None for one in dirs):
                self._partial_brokers.add(broker)

    def of(self, at: TopicPartition, brokers: Sequence[int]) -> tuple[int | None, ...]:
        """Return the size in bytes of a partition's replica on each broker. An unknown size is None."""
        return tuple(self._find_size(at, broker) for broker in brokers)

    def arriving(self, at: TopicPartition, brokers: Sequence[int]) -> int:
        """Return how many bytes of a partition have been copied to other log directories so far."""
        return sum(self._arriving_by_broker.get(broker, {}).get(at, 0) for broker in brokers)

    def _find_size(self, partition: TopicPartition, broker: int) -> int | None:
        held_sizes = self._sizes_by_broker.get(broker)
        if held_sizes is None:
            return None
        # A replica that the broker does not report can be in an offline log directory. If all log
        # directories are online, the broker has not started to copy the replica.
        return held_sizes.get(partition, None if broker in self._partial_brokers else 0)


@dataclass(frozen=True, slots=True)
class _TopicSnapshot:
    """The selected topics in output order, with in-flight moves and the requested configs and sizes."""

    topics: tuple[Topic, ...]
    moves: Moves
    configs: Mapping[str, Configs] | None
    sizes: ReplicaSizes | None
    problems: tuple[Diagnostic, ...]

    def find_min_isr(self, name: str) -> int | None:
        """Return the effective ``min.insync.replicas``, or None if it was not read."""
        entry = (self.configs or {}).get(name, {}).get(MIN_ISR_KEY)
        return int(entry.value) if entry is not None and entry.value is not None else None


def list_topics(
    workspace: Workspace, query: TopicQuery, *, configs: bool = False, sizes: bool = False
) -> TopicListView:
    """Return the selected topics without their partitions. Raises KdeclareError.

    A regular expression that matches no topics is not an error.
    configs: whether to include overrides.
    sizes: whether to include sizes, which requires a request to every broker.
    """
    with workspace.open_connections({"kafka": CONNECTION}) as connections:
        cluster = connections.get(KafkaConnection).cluster
        snapshot = _read_snapshot(
            workspace, cluster, query, configs=configs, sizes=sizes, patterns_may_miss=True
        )
    views = tuple(
        _build_topic_view(snapshot, topic, _build_partition_views(snapshot, topic))
        for topic in snapshot.topics
    )
    return TopicListView(workspace.cluster_name, views, configs, sizes, snapshot.problems)


def describe_topics(
    workspace: Workspace,
    query: TopicQuery,
    conditions: Collection[PartitionCondition] = (),
    *,
    overridden: bool = False,
    sizes: bool = False,
) -> TopicsView:
    """Return the selected topics with their partitions and configs. Raises KdeclareError.

    conditions: if not empty, omit all partitions that meet none of these conditions, and topics without
        remaining partitions.
    overridden: whether to omit topics without overrides.
    sizes: whether to include sizes.
    """
    ordered_conditions = tuple(sorted(conditions, key=list(PartitionCondition).index))
    with workspace.open_connections({"kafka": CONNECTION}) as connections:
        cluster = connections.get(KafkaConnection).cluster
        snapshot = _read_snapshot(workspace, cluster, query, configs=True, sizes=sizes)
    config_problems = [p for p in snapshot.problems if p.code == "configs-unknown"]
    if config_problems and (overridden or _MIN_ISR_CONDITIONS & set(ordered_conditions)):
        # Without the configs, kdeclare cannot select the requested topics or partitions.
        raise KdeclareError(*(replace(problem, severity=Severity.ERROR) for problem in config_problems))
    details = []
    for topic in snapshot.topics:
        partitions = _build_partition_views(snapshot, topic)
        summary = _build_topic_view(snapshot, topic, partitions)
        selected_partitions = tuple(
            p
            for p in partitions
            if not ordered_conditions or any(c in ordered_conditions for c in p.conditions)
        )
        if (selected_partitions or not ordered_conditions) and (summary.overrides or not overridden):
            details.append(build_document(TopicDetail, summary, partitions=selected_partitions))
    return TopicsView(
        workspace.cluster_name,
        ordered_conditions,
        len(snapshot.topics),
        sum(len(topic.partitions) for topic in snapshot.topics),
        tuple(details),
        overridden,
        sizes,
        snapshot.problems,
    )


def _read_snapshot(
    workspace: Workspace,
    cluster: Cluster,
    query: TopicQuery,
    *,
    configs: bool,
    sizes: bool,
    patterns_may_miss: bool = False,
) -> _TopicSnapshot:
    topics, moves, problems = _select_topics(workspace, cluster, query, patterns_may_miss)
    names = [topic.name for topic in topics]
    configs_by_topic, config_problems = _read_configs(cluster, names) if configs else (None, [])
    log_dirs: Mapping[int, Sequence[LogDir]] = {}
    try:
        log_dirs = cluster.log_dirs(names if query.names else None) if sizes and names else {}
    except Fault as fault:
        if fault.error not in UNAVAILABLE:
            raise
        problems.append(_warn_sizes_unknown(fault))
    return _TopicSnapshot(
        topics,
        moves,
        configs_by_topic,
        ReplicaSizes(log_dirs) if sizes else None,
        (*problems, *config_problems),
    )


def _select_topics(
    workspace: Workspace, cluster: Cluster, query: TopicQuery, patterns_may_miss: bool
) -> tuple[tuple[Topic, ...], Moves, list[Diagnostic]]:
    has_exact_names = bool(query.names) and not any(map(is_topic_pattern, query.names))
    names = list(dict.fromkeys(query.names)) if has_exact_names else None
    problems = []
    try:
        topics, moves = read_topics_and_moves(cluster, names, names)
    except Fault as fault:
        if fault.error not in UNAVAILABLE:  # as in Kafka's own tool
            raise
        problems.append(_warn_moves_unknown(workspace, fault))
        topics, moves = cluster.topics(names), {}
    selection = select_named_topics(query.names, topics.keys())
    missing = [name for name in selection.missing if not (patterns_may_miss and is_topic_pattern(name))]
    if missing and not query.if_exists:
        existing_names = (
            cluster.topics() if has_exact_names else topics
        )  # The names of all topics are needed to suggest similar names.
        raise KdeclareError(*(report_unknown_topic(name, sorted(existing_names)) for name in missing))
    selected_topics = (topics[name] for name in selection.found)
    return tuple(t for t in selected_topics if not (t.internal and query.exclude_internal)), moves, problems


def _warn_sizes_unknown(fault: Fault) -> Diagnostic:
    is_permission_missing = fault.error != UNSUPPORTED_VERSION
    return warning(
        "sizes-unknown",
        "Cannot read sizes",
        "Sizes are unknown, because the brokers did not describe their log directories: "
        f"{explain_refusal(fault)}.",
        hint="Grant kdeclare the Describe permission on the cluster." if is_permission_missing else "",
    )


def _read_configs(cluster: Cluster, names: Sequence[str]) -> tuple[dict[str, Configs], list[Diagnostic]]:
    """Return the overrides and ``min.insync.replicas`` by topic, and warnings for unreadable configs."""
    queries = [
        ConfigQuery(ConfigResource(ConfigScope.TOPIC, name), frozenset({MIN_ISR_KEY}), overrides=True)
        for name in names
    ]
    configs_by_topic: dict[str, Configs] = {}
    problems = []
    for resource, response in (cluster.describe_configs_partially(queries) if queries else {}).items():
        if isinstance(response, Fault):
            problems.append(_warn_configs_unknown(resource.name, response))
        else:
            configs_by_topic[resource.name] = response
    return configs_by_topic, problems


def _build_partition_views(snapshot: _TopicSnapshot, topic: Topic) -> list[PartitionView]:
    min_isr = snapshot.find_min_isr(topic.name)
    views = []
    for index, partition in enumerate(topic.partitions):
        topic_partition = TopicPartition(topic.name, index)
        move = snapshot.moves.get(topic_partition)
        replicas = partition.replicas if move is None else move.replicas
        views.append(
            PartitionView(
                index,
                partition.leader,
                replicas,
                partition.isr,
                () if move is None else move.adding,
                () if move is None else move.removing,
                replicas if move is None else move.target,
                list_conditions(partition, move, min_isr),
                None if snapshot.sizes is None else snapshot.sizes.of(topic_partition, replicas),
            )
        )
    return views


def _build_topic_view(
    snapshot: _TopicSnapshot, topic: Topic, partitions: Sequence[PartitionView]
) -> TopicView:
    return TopicView(
        topic.name,
        _format_topic_id(topic.topic_id),
        topic.internal,
        len(partitions),
        tuple(sorted({len(partition.target) for partition in partitions})),
        Counter(condition for partition in partitions for condition in partition.conditions),
        None if snapshot.sizes is None else _build_sizes(snapshot.sizes, topic.name, partitions),
        None if snapshot.configs is None else snapshot.configs.get(topic.name),
    )


def _build_sizes(sizes: ReplicaSizes, topic: str, partitions: Sequence[PartitionView]) -> Sizes:
    leader_sizes = [partition.data for partition in partitions]
    replica_sizes = [size for partition in partitions for size in partition.sizes or ()]
    arriving_bytes = sum(sizes.arriving(TopicPartition(topic, p.index), p.replicas) for p in partitions)
    on_disk = _sum_known(replica_sizes)
    return Sizes(_sum_known(leader_sizes), None if on_disk is None else on_disk + arriving_bytes)


def _sum_known(sizes: Sequence[int | None]) -> int | None:
    """Return the sum of the sizes, or None if a size is unknown."""
    known_sizes = [size for size in sizes if size is not None]
    return sum(known_sizes) if len(known_sizes) == len(sizes) else None


def _format_topic_id(topic_id: str) -> str | None:
    """Format a topic id in the same way as Kafka's tools (org.apache.kafka.common.Uuid.toString)."""
    if not topic_id:
        return None
    return urlsafe_b64encode(UUID(topic_id).bytes).rstrip(b"=").decode()


def _warn_moves_unknown(workspace: Workspace, fault: Fault) -> Diagnostic:
    return warning(
        "moves-unknown",
        "Cannot read replica moves",
        f"Cluster {workspace.cluster_name} did not list the moves in progress: "
        f"{fault.message or fault.error} ({fault.error}). The output shows the replicas in the metadata, "
        "which contains both old and new replicas during a move.",
        "Grant kdeclare the Describe permission on the cluster, or upgrade brokers that do not support "
        "ListPartitionReassignments.",
    )


def _warn_configs_unknown(name: str, fault: Fault) -> Diagnostic:
    return warning(
        "configs-unknown",
        "Cannot read configs",
        f"The brokers refuse to describe the configs of topic '{name}': {fault.message or fault.error} "
        f"({fault.error}).",
        f"Grant kdeclare the DescribeConfigs permission on topic '{name}'.",
        subject=name,
    )
