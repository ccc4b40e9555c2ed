"""The base class of all operation types for Kafka, and the effects of operations on topics.

Policies for topics (KIP-201) check these effects.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import field
from functools import cache, lru_cache
from typing import Any, Protocol, runtime_checkable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Explanation, Fault, FaultCause
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import IDENTITY, OperationType, find_expected_names
from kdeclare.core.parts import Connections
from kdeclare.core.provider.registry import KINDS, get_operation_type
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.kafka.collector import select_topics
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.error_names import POLICY_VIOLATION, QUOTA_EXCEEDED, QUOTA_HINT, TOPIC_EXISTS
from kdeclare.providers.kafka.ids import is_topic
from kdeclare.providers.kafka.live import KafkaState

REPLICAS_FIELD_PREFIX = "replicas."
"""The prefix of field paths for the replicas of partitions. The rest of the path is ``<topic>-<n>``."""


def find_field_topic(path: str) -> str | None:
    """Return the topic if the field contains the replicas of a partition; otherwise None."""
    partition = path.removeprefix(REPLICAS_FIELD_PREFIX)
    return None if partition == path else partition.rpartition("-")[0]


@dataclass(frozen=True, slots=True)
class TopicEffect:
    """The effect of an operation on one topic. Properties that are not set stay unchanged.

    created: whether the operation creates the topic.
    deleted: whether the operation deletes the topic.
    partitions, factor: the new partition count and replication factor. For a new topic, None means Kafka's
        default.
    replicas: the new replicas by partition. Partitions that are not listed keep their replicas.
    configs: the overrides after the operation. None means no override.
    fields: the affected fields, as in a plan: ``partitions``, ``replicationFactor``, ``assignments``,
        ``configs.<key>``.
    """

    created: bool = False
    deleted: bool = False
    partitions: int | None = None
    factor: int | None = None
    replicas: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)
    fields: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StaticTopicState:
    """The state that a manifest declares for a topic, assuming that the topic does not exist yet.

    open: the config keys whose values depend on the live topic.
    placed: whether kdeclare chooses the replicas of a new topic. To choose replicas, kdeclare must read the
        cluster.
    """

    effect: TopicEffect
    open: frozenset[str] = frozenset()
    placed: bool = False


@runtime_checkable
class SupportsStaticTopicState(Protocol):
    """The capability of kinds whose resources declare topics."""

    def find_static_topic_state(self, name: str, body: Any) -> Mapping[str, StaticTopicState]:
        """Return the declared states by topic, without reading any cluster."""


@runtime_checkable
class SupportsTopicEffects(Protocol):
    """The capability of operation types that change topics."""

    def find_topic_effects(self, op: Operation) -> Mapping[str, TopicEffect]:
        """Return the effects of ``op``, by topic."""


# The results are cached, because isinstance() with a protocol is slow, and a plan needs thousands of
# results.


@lru_cache(maxsize=1024)  # The cache is bounded, because each unknown operation type is a new object.
def _find_effects_support(operation_type: object) -> SupportsTopicEffects | None:
    return operation_type if isinstance(operation_type, SupportsTopicEffects) else None


@cache
def _find_static_state_support(kind: object) -> SupportsStaticTopicState | None:
    return kind if isinstance(kind, SupportsStaticTopicState) else None


def find_static_topic_state(desired: DesiredResource) -> Mapping[str, StaticTopicState]:
    """Return the declared states by topic, without reading any cluster."""
    kind = _find_static_state_support(KINDS[desired.id.kind])
    return kind.find_static_topic_state(desired.id.name, desired.body) if kind is not None else {}


def find_effects(op: Operation) -> Mapping[str, TopicEffect]:
    """Return the effects of an operation, by topic. Auxiliary operations have no effects."""
    operation_type = _find_effects_support(get_operation_type(op))
    return operation_type.find_topic_effects(op) if operation_type is not None else {}


def build_identity_view(topics: Iterable[str], live: KafkaState) -> dict[str, JsonValue]:
    """Return the ids of topics as elements of a view. A re-created topic has a different id."""
    live_topics = {name: live.topics.get(name) for name in sorted(set(topics))}
    return {f"{IDENTITY}{name})": topic.topic_id if topic else None for name, topic in live_topics.items()}


def build_identity_claims(topics: Iterable[str]) -> dict[str, str]:
    """Return the claims for the ids of topics. No operation changes these ids."""
    return {f"{IDENTITY}{name})": f"topic-id/{name}" for name in set(topics)}


_CAUSES = {
    POLICY_VIOLATION: FaultCause.DENIED_BY_POLICY,
    TOPIC_EXISTS: FaultCause.EXISTS,
    # Kafka also returns this error if the requested count is lower. The view distinguishes the two cases.
    "INVALID_PARTITIONS": FaultCause.DONE_ALREADY,
    "UNKNOWN_TOPIC_OR_PARTITION": FaultCause.GONE_ALREADY,
}


TOPIC = "Topic"
"""The object type of topics in footprints. The key of an object is the topic name."""


class KafkaOperationType(OperationType):
    """The base class of operation types for Kafka clusters.

    has_timeout: whether the request contains a timeout for brokers.
    """

    is_shown_late = True
    is_forwarded = True  # NodeToControllerChannelManager sends the request again to a new controller
    has_timeout: bool = False

    def find_right(self, op: Operation) -> str:
        """Return the required ACL operation and resource, such as "Alter on topic t", or an empty string."""
        return ""

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return a footprint that lists the topics of the operation as updated."""
        return [FootprintEntry(TOPIC, topic, Access.UPDATE) for topic in sorted(self.find_topics(op))]

    def find_deadline_s(self, connections: Connections) -> float | None:
        """See `core.operations.operation_type`."""
        return connections.get(KafkaConnection).cluster.deadline_s() if self.has_timeout else None

    def find_topics(self, op: Operation) -> frozenset[str]:
        """Return the topics that the operation reads."""
        return select_topics(self.select(op))

    def find_subjects(self, op: Operation) -> frozenset[ResourceId]:
        """Return the topics that the operation affects."""
        return frozenset(ResourceId(TOPIC, name) for name in self.find_topics(op))

    def find_expected_objects(self, op: Operation) -> frozenset[ResourceId]:
        """Return the topics whose ids the operation expects."""
        return frozenset(ResourceId(TOPIC, name) for name in find_expected_names(op))

    def less(self, op: Operation, subjects: Set[ResourceId]) -> Operation | None:
        """See `core.operations.operation_type`. Subclasses implement `without_topics` instead."""
        topics = frozenset(subject.name for subject in subjects if is_topic(subject))
        return self.without_topics(op, topics)

    def without_topics(self, op: Operation, topics: Set[str]) -> Operation | None:
        """Return ``op`` without the changes to these topics, or None if no changes remain."""
        is_involved = any(changed.name in topics for changed in self.find_changed_resources(op))
        return None if is_involved and not self.is_auxiliary else op

    def find_changed_resources(self, op: Operation) -> frozenset[ResourceId]:
        """Return the topics that the operation changes."""
        return frozenset(ResourceId("Topic", topic) for topic in find_effects(op))

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Explain the Kafka error of a fault (`org.apache.kafka.common.protocol.Errors`)."""
        if fault.error.endswith("AUTHORIZATION_FAILED"):
            return Explanation(FaultCause.NOT_AUTHORIZED, self.find_right(op))
        if fault.error == QUOTA_EXCEEDED:
            return Explanation(FaultCause.OVER_QUOTA, hint=QUOTA_HINT)
        return Explanation(_CAUSES.get(fault.error, FaultCause.OTHER))
