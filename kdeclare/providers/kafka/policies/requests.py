"""The requests for topics that policies evaluate together: planned changes and existing topics."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import cast

from kdeclare.core import parts
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.policy_gate import Labels
from kdeclare.core.policies.policy_request import PolicyAction, PolicyEffect, find_policy_action
from kdeclare.core.policies.policy_subjects import ReviewInputs
from kdeclare.providers.kafka.collector import CLUSTER, KafkaSelection
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.impact.impact_reader import ImpactReader, get_impact_reader
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.kafka_operation_type import TopicEffect
from kdeclare.providers.kafka.policies.cluster_reader import (
    ClusterReader,
    LiveTopicState,
    ResultingTopicState,
)
from kdeclare.providers.kafka.policies.declared_topics import NewTopicImpact
from kdeclare.providers.kafka.policies.impact_facts import (
    ImpactSource,
    TopicImpactFacts,
    build_effect_change,
)
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery

TopicEffects = tuple[TopicEffect, ...]


@dataclass(frozen=True)
class ReviewContext:
    """The cluster, and the requests of a plan that were evaluated and not denied.

    labels: the labels of each topic that has labels.
    impacts: the source of the data about the impact of requests.
    applied: the labels that were last applied to each topic.
    doing: the names of the evaluated topics, by action.
    """

    facts: ClusterReader
    labels: Labels
    impacts: ImpactSource
    applied: Labels = field(default_factory=dict)
    doing: Mapping[PolicyAction, Sequence[str]] = field(default_factory=dict)
    _accepted: dict[str, TopicEffects] = field(default_factory=dict)
    _partition_counts: dict[frozenset[tuple[str, str]], int] = field(default_factory=dict)

    def accept(self, topic: str, effects: Sequence[TopicEffect]) -> None:
        """Record the effects of a request that was not denied. Later requests build on these effects."""
        for label_set in self._partition_counts:
            if self._has_labels(topic, label_set):
                self._partition_counts[label_set] += self._count_topic_partitions(
                    topic, effects
                ) - self._count_topic_partitions(topic, ())
        self._accepted[topic] = (*self.get_accepted(topic), *effects)

    def get_accepted(self, topic: str) -> TopicEffects:
        """Return the effects on a topic of all requests that were not denied, in order."""
        return self._accepted.get(topic, ())

    def partitions_of(
        self, labels: Mapping[str, str], topic: str, effects: Sequence[TopicEffect] = ()
    ) -> int:
        """Return the number of partitions of all topics with these labels.

        The number takes into account the ``effects`` on ``topic``, and the effects of all accepted requests.
        """
        wanted = frozenset(labels.items())
        if wanted not in self._partition_counts:
            chosen = [name for name in self.labels if self._has_labels(name, wanted)]
            self._partition_counts[wanted] = sum(self._count_topic_partitions(name, ()) for name in chosen)
        if not effects or not self._has_labels(topic, wanted):
            return self._partition_counts[wanted]
        return (
            self._partition_counts[wanted]
            + self._count_topic_partitions(topic, effects)
            - self._count_topic_partitions(topic, ())
        )

    def records(self, topic: str, action: PolicyAction) -> int:
        """Return the number of records of a topic.

        The numbers for all topics with the same ``action`` are read together.
        """
        return self.facts.records(topic, self.doing.get(action, ()))

    def _has_labels(self, topic: str, label_set: frozenset[tuple[str, str]]) -> bool:
        return label_set <= self.labels.get(topic, {}).items()

    def _count_topic_partitions(self, name: str, further_effects: Iterable[TopicEffect]) -> int:
        effects = (*self.get_accepted(name), *further_effects)
        deletions = [number for number, effect in enumerate(effects) if effect.deleted]
        if deletions:
            effects = effects[deletions[-1] + 1 :]
            if not effects:
                return 0
        counts = [effect.partitions for effect in effects if effect.partitions is not None]
        if counts:
            return counts[-1]
        if any(effect.created for effect in effects):
            return self.facts.defaults[0]
        topic = self.facts.all_topics.get(name)
        return len(topic.partitions) if topic else 0


@dataclass(frozen=True)
class TopicRequest:
    """The changes to one topic by one resource of a plan (see `policy.interface.RequestMetadata`).

    earlier_effects: the earlier changes to the topic by other resources of the plan.
    """

    topic: str
    find_topic_effects: TopicEffects
    earlier_effects: TopicEffects
    context: ReviewContext

    @property
    def name(self) -> str:
        """The name of the topic."""
        return self.topic

    @cached_property
    def action(self) -> PolicyAction:
        """The action that results from all effects together."""
        return find_policy_action(self.find_topic_effects)

    @property
    def principal(self) -> str | None:
        """The principal that kdeclare authenticates as."""
        return self.context.facts.principal

    @cached_property
    def pre_request_state(self) -> LiveTopicState | ResultingTopicState | None:
        """The topic before the request; None on CREATE."""
        if self.action is PolicyAction.CREATE:
            return None
        live = LiveTopicState(self.topic, self.context.facts)
        return (
            ResultingTopicState(live, self.earlier_effects, self.context.facts)
            if self.earlier_effects
            else live
        )

    @cached_property
    def post_request_state(self) -> ResultingTopicState | None:
        """The topic after the request, or None on DELETE."""
        if self.action is PolicyAction.DELETE:
            return None
        return ResultingTopicState(self.pre_request_state, self.find_topic_effects, self.context.facts)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the topic."""
        return dict(self.context.labels.get(self.topic, {}))

    @property
    def labels_before(self) -> Mapping[str, str]:
        """The labels that were last applied to the topic."""
        return dict(self.context.applied.get(self.topic, {}))

    @cached_property
    def changed(self) -> frozenset[str]:
        """All fields that the request changes."""
        return frozenset().union(*(effect.fields for effect in self.find_topic_effects))

    @property
    def racks(self) -> Mapping[int, str | None]:
        """The rack of every broker."""
        return dict(self.context.facts.racks)

    @property
    def record_count(self) -> int:
        """The number of records of the topic; 0 on CREATE."""
        if self.action is PolicyAction.CREATE:
            return 0
        return self.context.records(self.topic, self.action)

    @cached_property
    def impact(self) -> NewTopicImpact | TopicImpactFacts:
        """The impact of the request.

        If the request can delete records, the impact includes the records that earlier requests delete,
        except for denied requests.
        """
        effects = (*self.earlier_effects, *self.find_topic_effects)
        if any(effect.created for effect in effects):
            return NewTopicImpact()
        change = build_effect_change(self.topic, self.find_topic_effects)
        if change.can_lose_records:
            change = build_effect_change(self.topic, effects)
        return TopicImpactFacts(self.topic, change, self.context.impacts)

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """Return the number of partitions of the topics with these labels.

        The number takes into account the effects of this request, and of earlier requests that were not
        denied.
        """
        return self.context.partitions_of(labels, self.topic, self.find_topic_effects)


@dataclass(frozen=True, slots=True)
class ExistingTopicRequest:
    """An existing topic that is evaluated as a creation (CREATE) or as an update without changes (MODIFY).

    among: all topics that are evaluated together with this topic.
    """

    topic: str
    action: PolicyAction
    context: ReviewContext
    among: Collection[str]

    @property
    def name(self) -> str:
        """The name of the topic."""
        return self.topic

    @property
    def principal(self) -> str | None:
        """The principal that kdeclare authenticates as."""
        return self.context.facts.principal

    @property
    def pre_request_state(self) -> LiveTopicState | None:
        """The topic before the request; None on CREATE."""
        return None if self.action is PolicyAction.CREATE else self.post_request_state

    @property
    def post_request_state(self) -> LiveTopicState:
        """The existing topic."""
        return LiveTopicState(self.topic, self.context.facts)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the topic."""
        return dict(self.context.labels.get(self.topic, {}))

    @property
    def labels_before(self) -> Mapping[str, str]:
        """The labels of the topic, which the request does not change.

        On CREATE, there are no earlier labels.
        """
        return {} if self.action is PolicyAction.CREATE else self.labels

    @property
    def changed(self) -> frozenset[str]:
        """On CREATE, all fields of the topic except ``assignments``; on MODIFY, no fields."""
        if self.action is not PolicyAction.CREATE:
            return frozenset()
        keys = self.post_request_state.configs
        return frozenset({"partitions", "replicationFactor", *(f"configs.{key}" for key in keys)})

    @property
    def racks(self) -> Mapping[int, str | None]:
        """The rack of every broker."""
        return dict(self.context.facts.racks)

    @property
    def record_count(self) -> int:
        """The number of records of the topic; 0 on CREATE."""
        if self.action is PolicyAction.CREATE:
            return 0
        return self.context.facts.records(self.topic, self.among)

    @property
    def impact(self) -> NewTopicImpact | TopicImpactFacts:
        """The impact of a request that changes nothing. On CREATE, the topic counts as new."""
        if self.action is PolicyAction.CREATE:
            return NewTopicImpact()
        change = build_effect_change(self.topic, ())
        return TopicImpactFacts(self.topic, change, self.context.impacts, self.among)

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """Return the number of partitions of the topics with these labels."""
        return self.context.partitions_of(labels, self.topic)


@dataclass(frozen=True)
class TopicReview:
    """See `Review`."""

    context: ReviewContext

    @property
    def fault(self) -> Fault | None:
        """The Fault of a failed read, or None."""
        return self.context.facts.fault

    @property
    def is_busy(self) -> bool:
        """Whether the cluster is currently being read."""
        return self.context.facts.is_busy

    def make_request(self, name: str, effects: Sequence[PolicyEffect]) -> TopicRequest:
        """Return a request that takes effect after all earlier requests that were not denied."""
        return TopicRequest(
            name, _filter_topic_effects(effects), self.context.get_accepted(name), self.context
        )

    def accept(self, name: str, effects: Sequence[PolicyEffect]) -> None:
        """Record the effects of a request that was not denied."""
        self.context.accept(name, _filter_topic_effects(effects))

    def make_existing_request(
        self, name: str, action: PolicyAction, among: Collection[str]
    ) -> ExistingTopicRequest:
        """Return a request for an existing topic."""
        return ExistingTopicRequest(name, action, self.context, among)


def start_review(inputs: ReviewInputs) -> TopicReview:
    """Start a review of planned changes. Policies use the data of the plan, and read more data on demand."""
    cluster = inputs.connections.get(KafkaConnection).cluster
    topic_names = {name for names in inputs.subjects.values() for name in names}
    live = inputs.live.find(KafkaState) if inputs.live is not None else None
    impact_reader = get_impact_reader(inputs.shared_reads, cluster)
    reader = ClusterReader(cluster, topic_names, live, CLUSTER.merge(inputs.selections), impact_reader)
    planned = {
        name: build_effect_change(name, _filter_topic_effects(effects))
        for name, effects in inputs.effects.items()
        if not any(effect.created for effect in effects)
    }
    impacts = ImpactSource(reader, planned)
    return TopicReview(ReviewContext(reader, inputs.labels, impacts, inputs.applied, inputs.subjects))


def start_snapshot_review(live: parts.LiveState, names: Sequence[str], labels: Labels) -> TopicReview:
    """Start a review of topics in a snapshot. The snapshot contains all topics with their overrides."""
    state = live.get(KafkaState)
    resources = {ConfigResource(ConfigScope.TOPIC, name) for name in state.topics}
    selection = KafkaSelection(
        frozenset(state.topics), {r: ConfigQuery(r, overrides=True) for r in resources}, every_topic=True
    )
    reader = _SnapshotReader(cast(Cluster, _SnapshotOnlyCluster()), names, state, selection)
    return TopicReview(ReviewContext(reader, labels, ImpactSource(reader)))


class _SnapshotReader(ClusterReader):
    """A reader for a snapshot, without access to a cluster."""

    @property
    def principal(self) -> str | None:
        """Raises Fault: a snapshot has no principal, and a principal of None means "not authenticated"."""
        return self._read(self._cluster.describe).principal

    @property
    def impact_reader(self) -> ImpactReader:
        """Raises Fault: a snapshot has no groups, and the logs may have changed since the snapshot."""
        self._read(self._cluster.describe)
        return super().impact_reader


class _SnapshotOnlyCluster:
    """A cluster in which every method raises Fault."""

    def __getattr__(self, name: str) -> Callable[..., Mapping[str, object]]:
        def refuse(*_: object, **__: object) -> Mapping[str, object]:
            raise Fault("NOT_IN_SNAPSHOT", f"a snapshot contains no data for {name}")

        return refuse


def _filter_topic_effects(effects: Sequence[PolicyEffect]) -> TopicEffects:
    return tuple([effect for effect in effects if isinstance(effect, TopicEffect)])
