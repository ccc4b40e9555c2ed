"""Topics and their partitions as they are. Nothing is changed, and no state is read."""

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
from kdeclare.providers.kafka.collector import read_topics_and_moves
from kdeclare.providers.kafka.commands.topic_selection import chosen, is_pattern, not_there
from kdeclare.providers.kafka.commands.views import (
    PartitionView,
    Sizes,
    TopicDetail,
    TopicListView,
    TopicsView,
    TopicView,
)
from kdeclare.providers.kafka.connection import CONNECTION, KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import Move, PartitionCondition, Topic, list_conditions
from kdeclare.providers.kafka.port import Cluster, ConfigQuery, Configs, LogDir

MIN_ISR = "min.insync.replicas"
_ABOUT_MIN_ISR = frozenset({PartitionCondition.UNDER_MIN_ISR, PartitionCondition.AT_MIN_ISR})
_NO_MOVES = ("CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION")
"""With these, Kafka's own tool does without moves as well."""

Moves = Mapping[TopicPartition, Move]


@dataclass(frozen=True, slots=True)
class WhichTopics:
    """The topics to look at.

    names: exact names and regular expressions (see `topic_selection`); none is all topics.
    if_exists: a name that stands for none is no error.
    """

    names: tuple[str, ...] = ()
    exclude_internal: bool = False
    if_exists: bool = False


class ReplicaSizes:
    """Bytes by replica (DescribeLogDirs, KIP-113)."""

    def __init__(self, log_dirs: Mapping[int, Sequence[LogDir]]) -> None:
        """log_dirs: by broker; one that is not here did not answer."""
        self._held: dict[int, dict[TopicPartition, int]] = {}
        self._arriving: dict[int, dict[TopicPartition, int]] = {}
        self._in_part: set[int] = set()
        for broker, dirs in log_dirs.items():
            self._held[broker] = {at: size for one in dirs for at, size in one.sizes.items()}
            self._arriving[broker] = {at: size for one in dirs for at, size in one.arriving.items()}
            if any(one.error is not None for one in dirs):
                self._in_part.add(broker)

    def of(self, at: TopicPartition, brokers: Sequence[int]) -> tuple[int | None, ...]:
        """Bytes of one partition's replicas, in the order of ``brokers``; None is not known."""
        return tuple(self._one(at, broker) for broker in brokers)

    def arriving(self, at: TopicPartition, brokers: Sequence[int]) -> int:
        """Bytes of copies that are on their way into another directory of the same brokers."""
        return sum(self._arriving.get(broker, {}).get(at, 0) for broker in brokers)

    def _one(self, at: TopicPartition, broker: int) -> int | None:
        held = self._held.get(broker)
        if held is None:
            return None
        # what is nowhere may be in a directory that is offline; if all are there, it has not begun
        return held.get(at, None if broker in self._in_part else 0)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was read: topics in order, their moves, and what else was asked for."""

    topics: tuple[Topic, ...]
    moves: Moves
    configs: Mapping[str, Configs] | None
    sizes: ReplicaSizes | None
    problems: tuple[Diagnostic, ...]

    def min_isr(self, name: str) -> int | None:
        """The effective ``min.insync.replicas``; None where it was not read."""
        entry = (self.configs or {}).get(name, {}).get(MIN_ISR)
        return int(entry.value) if entry is not None and entry.value is not None else None


def list_topics(
    workspace: Workspace, which: WhichTopics, *, configs: bool = False, sizes: bool = False
) -> TopicListView:
    """The topics, each as a whole. An expression that matches none is an answer, no error.

    configs: also their overrides. sizes: also their bytes; all brokers are asked. Raises KdeclareError.
    """
    with workspace.open_connections({"kafka": CONNECTION}) as connections:
        cluster = connections.get(KafkaConnection).cluster
        seen = _look(workspace, cluster, which, configs=configs, sizes=sizes, patterns_may_miss=True)
    views = tuple(_summary(seen, topic, _partitions(seen, topic)) for topic in seen.topics)
    return TopicListView(workspace.cluster_name, views, configs, sizes, seen.problems)


def describe_topics(
    workspace: Workspace,
    which: WhichTopics,
    only: Collection[PartitionCondition] = (),
    *,
    overridden: bool = False,
    sizes: bool = False,
) -> TopicsView:
    """The topics with their partitions and configs.

    only: leaves partitions that are any of this, and the topics that have some.
    overridden: leaves topics with overrides. sizes: also their bytes. Raises KdeclareError.
    """
    wanted = tuple(sorted(only, key=list(PartitionCondition).index))
    with workspace.open_connections({"kafka": CONNECTION}) as connections:
        cluster = connections.get(KafkaConnection).cluster
        seen = _look(workspace, cluster, which, configs=True, sizes=sizes)
    blind = [p for p in seen.problems if p.code == "configs-unknown"]
    if blind and (overridden or _ABOUT_MIN_ISR & set(wanted)):
        # what was asked for cannot be told
        raise KdeclareError(*(replace(problem, severity=Severity.ERROR) for problem in blind))
    found = []
    for topic in seen.topics:
        partitions = _partitions(seen, topic)
        summary = _summary(seen, topic, partitions)
        shown = tuple(p for p in partitions if not wanted or any(c in wanted for c in p.conditions))
        if (shown or not wanted) and (summary.overrides or not overridden):
            found.append(build_document(TopicDetail, summary, partitions=shown))
    return TopicsView(
        workspace.cluster_name,
        wanted,
        len(seen.topics),
        sum(len(topic.partitions) for topic in seen.topics),
        tuple(found),
        overridden,
        sizes,
        seen.problems,
    )


def _look(
    workspace: Workspace,
    cluster: Cluster,
    which: WhichTopics,
    *,
    configs: bool,
    sizes: bool,
    patterns_may_miss: bool = False,
) -> _Seen:
    topics, moves, problems = _topics(workspace, cluster, which, patterns_may_miss)
    names = [topic.name for topic in topics]
    read, unread = _configs(cluster, names) if configs else (None, [])
    log_dirs = cluster.log_dirs(names if which.names else None) if sizes and names else {}
    return _Seen(topics, moves, read, ReplicaSizes(log_dirs) if sizes else None, (*problems, *unread))


def _topics(
    workspace: Workspace, cluster: Cluster, which: WhichTopics, patterns_may_miss: bool
) -> tuple[tuple[Topic, ...], Moves, list[Diagnostic]]:
    """The topics that are meant, in order, with the moves there are."""
    exact = bool(which.names) and not any(map(is_pattern, which.names))
    names = list(dict.fromkeys(which.names)) if exact else None
    problems = []
    try:
        topics, moves = read_topics_and_moves(cluster, names, names)
    except Fault as fault:
        if fault.error not in _NO_MOVES:
            raise
        problems.append(_moves_unknown(workspace, fault))
        topics, moves = cluster.topics(names), {}
    meant = chosen(which.names, topics.keys())
    missing = [name for name in meant.missing if not (patterns_may_miss and is_pattern(name))]
    if missing and not which.if_exists:
        there = cluster.topics() if exact else topics  # for a guess at what was meant
        raise KdeclareError(*(not_there(name, sorted(there)) for name in missing))
    found = (topics[name] for name in meant.found)
    return tuple(t for t in found if not (t.internal and which.exclude_internal)), moves, problems


def _configs(cluster: Cluster, names: Sequence[str]) -> tuple[dict[str, Configs], list[Diagnostic]]:
    """Overrides and `MIN_ISR` by topic, and what is wrong with the rest."""
    queries = [
        ConfigQuery(ConfigResource(ConfigScope.TOPIC, name), frozenset({MIN_ISR}), overrides=True)
        for name in names
    ]
    found: dict[str, Configs] = {}
    problems = []
    for resource, answer in (cluster.describe_configs_partially(queries) if queries else {}).items():
        if isinstance(answer, Fault):
            problems.append(_configs_unknown(resource.name, answer))
        else:
            found[resource.name] = answer
    return found, problems


def _partitions(seen: _Seen, topic: Topic) -> list[PartitionView]:
    min_isr = seen.min_isr(topic.name)
    views = []
    for index, partition in enumerate(topic.partitions):
        at = TopicPartition(topic.name, index)
        move = seen.moves.get(at)
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
                None if seen.sizes is None else seen.sizes.of(at, replicas),
            )
        )
    return views


def _summary(seen: _Seen, topic: Topic, partitions: Sequence[PartitionView]) -> TopicView:
    return TopicView(
        topic.name,
        _kafka_id(topic.topic_id),
        topic.internal,
        len(partitions),
        tuple(sorted({len(partition.target) for partition in partitions})),
        Counter(condition for partition in partitions for condition in partition.conditions),
        None if seen.sizes is None else _sizes(seen.sizes, topic.name, partitions),
        None if seen.configs is None else seen.configs.get(topic.name),
    )


def _sizes(sizes: ReplicaSizes, topic: str, partitions: Sequence[PartitionView]) -> Sizes:
    data = [partition.data for partition in partitions]
    held = [size for partition in partitions for size in partition.sizes or ()]
    arriving = sum(sizes.arriving(TopicPartition(topic, p.index), p.replicas) for p in partitions)
    on_disk = _sum(held)
    return Sizes(_sum(data), None if on_disk is None else on_disk + arriving)


def _sum(sizes: Sequence[int | None]) -> int | None:
    """Of all of them; None where one is not known."""
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _kafka_id(topic_id: str) -> str | None:
    """A topic's id as Kafka's tools write it (org.apache.kafka.common.Uuid.toString)."""
    if not topic_id:
        return None
    return urlsafe_b64encode(UUID(topic_id).bytes).rstrip(b"=").decode()


def _moves_unknown(workspace: Workspace, fault: Fault) -> Diagnostic:
    return warning(
        "moves-unknown",
        "Moves of replicas cannot be read",
        f"{workspace.cluster_name}: {fault.message or fault.error} ({fault.error}). Replicas are shown as "
        "metadata lists them, which during a move are the old and the new ones.",
        "Ask for Describe on the cluster.",
    )


def _configs_unknown(name: str, fault: Fault) -> Diagnostic:
    return warning(
        "configs-unknown",
        "Configs cannot be read",
        f"Topic '{name}': {fault.message or fault.error} ({fault.error}).",
        "Ask for DescribeConfigs on the topic.",
        subject=name,
    )
