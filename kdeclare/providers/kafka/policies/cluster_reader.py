"""The cluster data for policies. The data is read only when a policy uses it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from kdeclare.core.live.faults import Fault
from kdeclare.core.policies.policy_request import PolicyViolation
from kdeclare.providers.kafka.collector import KafkaSelection, read_topics_and_moves
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.impact.impact_reader import ImpactReader
from kdeclare.providers.kafka.live import ClusterInfo, ConfigSource, KafkaState, Move, Topic
from kdeclare.providers.kafka.operations.kafka_operation_type import TopicEffect
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery

_T = TypeVar("_T")
_PARTITIONS, _FACTOR = "num.partitions", "default.replication.factor"


class ClusterReader:
    """A reader for the live cluster. It reads each type of data for all evaluated topics together.

    fault: the Fault of a failed read, or None.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic_names: Iterable[str],
        live: KafkaState | None = None,
        selection: KafkaSelection | None = None,
        impact_reader: ImpactReader | None = None,
    ) -> None:
        """Create the reader. live: the data that was already read for ``selection``, including all topics.

        impact_reader: the reader that observations of the same plan use.
        """
        self._cluster = cluster
        self._impact_reader = impact_reader or ImpactReader(cluster)
        self._topic_names = sorted(set(topic_names))
        self._live = live
        self._selection = selection or KafkaSelection()
        self._record_counts: dict[str, int] = {}
        self._reads: set[object] = set()
        self.fault: Fault | None = None

    @property
    def is_busy(self) -> bool:
        """Whether the reader is currently reading from the cluster. Thread-safe."""
        return bool(self._reads) or self._impact_reader.is_busy

    @property
    def impact_reader(self) -> ImpactReader:
        """The reader for the data about the impact of changes."""
        return self._impact_reader

    @cached_property
    def info(self) -> ClusterInfo:
        """The brokers with their racks, and the principal of kdeclare."""
        return self._live.cluster if self._live else self._read(self._cluster.describe)

    @property
    def principal(self) -> str | None:
        """The principal that kdeclare authenticates as."""
        return self.info.principal

    @cached_property
    def racks(self) -> Mapping[int, str | None]:
        """The rack of each broker."""
        return {broker.id: broker.rack for broker in self.info.brokers}

    def topic(self, name: str) -> Topic | None:
        """Return a topic that policies evaluate, or None if the topic does not exist in the cluster."""
        return self._topics.get(name)

    def replicas(self, name: str) -> Mapping[int, tuple[int, ...]] | None:
        """Return the replicas of the partitions of a topic, or None if the topic does not exist.

        For a moving partition, return the target replicas.
        """
        moves = self._moves  # Read the reassignments first: reading them can also update the topics.
        topic = self.topic(name)
        if topic is None:
            return None
        found = {}
        for number, partition in enumerate(topic.partitions):
            move = moves.get(TopicPartition(name, number))
            found[number] = move.target if move else partition.replicas
        return found

    def configs(self, name: str) -> Mapping[str, str]:
        """Return the overrides of a topic."""
        return self._overrides.get(name, {})

    def records(self, name: str, among: Collection[str]) -> int:
        """Return the number of records of a topic: the difference between its end and start offsets.

        among: topics whose record counts may be needed later. These counts are read in the same request.
        """
        if name not in self._record_counts:
            unknown = sorted({name, *among} - self._record_counts.keys())
            there = [other for other in unknown if other in self._topics]
            counts = self._read(lambda: self._cluster.record_counts(there)) if there else {}
            self._record_counts |= {other: counts.get(other, 0) for other in unknown}
        return self._record_counts[name]

    @cached_property
    def defaults(self) -> tuple[int, int]:
        """The default partition count and replication factor of new topics."""
        serving = sorted(self.info.serving_broker_ids) or [broker.id for broker in self.info.brokers]
        broker = ConfigResource(ConfigScope.BROKER, str(serving[0]))
        query = ConfigQuery(broker, frozenset({_PARTITIONS, _FACTOR}))
        entries = self._read(lambda: self._cluster.configs([query]))[broker]
        partitions, factor = (
            entries[key].value if key in entries else None for key in (_PARTITIONS, _FACTOR)
        )
        return int(partitions or 1), int(factor or 1)

    @cached_property
    def all_topics(self) -> Mapping[str, Topic]:
        """Every topic of the cluster."""
        return self._live.topics if self._live else self._read(self._cluster.topics)

    @cached_property
    def _topics(self) -> Mapping[str, Topic]:
        return (
            self._live.topics if self._live else self._read(lambda: self._cluster.topics(self._topic_names))
        )

    @cached_property
    def _existing_names(self) -> list[str]:
        return [name for name in self._topic_names if name in self._topics]

    @cached_property
    def _moves(self) -> Mapping[TopicPartition, Move]:
        """The in-flight reassignments. Reading them from the cluster also reads their topics again."""
        known_moves, unread_topics = self._find_known_moves()
        if not unread_topics:
            return known_moves
        topics, moves = self._read(lambda: read_topics_and_moves(self._cluster, unread_topics, unread_topics))
        live_topics = self._live.topics if self._live else {}
        self._topics = {**{n: live_topics[n] for n in live_topics.keys() - set(unread_topics)}, **topics}
        return {**known_moves, **moves}

    def _find_known_moves(self) -> tuple[Mapping[TopicPartition, Move], list[str]]:
        """Return the reassignments that were already read, and the topics that still have to be read."""
        if self._live is None:
            return {}, self._topic_names
        if self._selection.every_topic:
            return self._live.moves, []
        return self._live.moves, [n for n in self._existing_names if n not in self._selection.topics]

    @cached_property
    def _overrides(self) -> Mapping[str, Mapping[str, str]]:
        resources = {name: ConfigResource(ConfigScope.TOPIC, name) for name in self._existing_names}
        read_resources = {resource for resource, query in self._selection.configs.items() if query.overrides}
        queries = [ConfigQuery(r, overrides=True) for r in resources.values() if r not in read_resources]
        entries = dict(self._live.configs) if self._live else {}
        if queries:
            entries |= self._read(lambda: self._cluster.configs(queries))
        return {
            name: {
                key: entry.value or ""
                for key, entry in entries.get(resource, {}).items()
                if entry.source is ConfigSource.TOPIC
            }
            for name, resource in resources.items()
        }

    def _read(self, read: Callable[[], _T]) -> _T:
        token = object()
        self._reads.add(token)
        try:
            return read()
        except Fault as fault:
            self.fault = fault
            raise
        finally:
            self._reads.discard(token)


@dataclass(frozen=True)
class LiveTopicState:
    """A live topic of the cluster."""

    name: str
    facts: ClusterReader

    @property
    def num_partitions(self) -> int:
        """The number of partitions."""
        topic = self.facts.topic(self.name)
        if topic is None:
            raise self._make_violation()
        return len(topic.partitions)

    @property
    def replication_factor(self) -> int:
        """The smallest number of replicas of any partition."""
        return _compute_replication_factor(self._replicas)

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """The replicas of each partition. For a moving partition, these are the target replicas."""
        return dict(self._replicas)

    @property
    def configs(self) -> Mapping[str, str]:
        """The overrides of the topic."""
        return dict(self.facts.configs(self.name))

    @cached_property
    def _replicas(self) -> Mapping[int, Sequence[int]]:
        replicas = self.facts.replicas(self.name)
        if replicas is None:
            raise self._make_violation()
        return replicas

    def _make_violation(self) -> PolicyViolation:
        return PolicyViolation(f"Topic '{self.name}' no longer exists, so the policy cannot evaluate it.")


@dataclass(frozen=True)
class ResultingTopicState:
    """The state of a topic after one or more requests.

    before: the state before the requests; None for a new topic.
    find_topic_effects: the effects of the requests, in order.
    """

    before: "LiveTopicState | ResultingTopicState | None"
    find_topic_effects: tuple[TopicEffect, ...]
    facts: ClusterReader

    @property
    def num_partitions(self) -> int:
        """The requested number of partitions or, if none is requested, the current or default number."""
        for effect in reversed(self.find_topic_effects):
            if effect.partitions is not None:
                return effect.partitions
        return self.before.num_partitions if self.before else self.facts.defaults[0]

    @cached_property
    def replication_factor(self) -> int:
        """The requested replication factor or, if none is requested, the current or default factor."""
        creation = self.find_topic_effects[0]
        if self.before is None and len(self.find_topic_effects) == 1:
            return self.facts.defaults[1] if creation.factor is None else creation.factor
        return _compute_replication_factor(self._replicas)

    @property
    def replicas_assignments(self) -> Mapping[int, Sequence[int]]:
        """The replicas after the requests. Partitions whose replicas Kafka chooses are omitted."""
        return dict(self._replicas)

    @property
    def configs(self) -> Mapping[str, str]:
        """The current overrides with the requested changes."""
        return dict(self._configs)

    @cached_property
    def _replicas(self) -> Mapping[int, Sequence[int]]:
        replicas = dict(self.before.replicas_assignments) if self.before else {}
        for effect in self.find_topic_effects:
            replicas |= effect.replicas
        return replicas

    @cached_property
    def _configs(self) -> Mapping[str, str]:
        configs: dict[str, str | None] = dict(self.before.configs) if self.before else {}
        for effect in self.find_topic_effects:
            configs |= effect.configs
        return {key: value for key, value in configs.items() if value is not None}


def _compute_replication_factor(replicas: Mapping[int, Sequence[int]]) -> int:
    return min((len(brokers) for brokers in replicas.values()), default=0)
