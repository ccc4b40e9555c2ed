"""Create topics and add partitions to topics (CreateTopics, CreatePartitions)."""

from collections.abc import Mapping, Sequence, Set
from typing import ClassVar

from kdeclare.core.jsontypes import as_int
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Outcome, Result
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Operation, UndoResult
from kdeclare.core.operations.operation_type import Placement, View, has_other_object
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.config_diff import LiveConfigs, find_override
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource, KafkaState
from kdeclare.providers.kafka.operations.arguments import (
    DeleteTopicArgs,
    show_config_argument,
)
from kdeclare.providers.kafka.operations.kafka_operation_type import (
    TOPIC,
    KafkaOperationType,
    TopicEffect,
    build_identity_claims,
    build_identity_view,
)
from kdeclare.providers.kafka.request_values import ConfigQuery, NewPartitions, NewTopic, TopicArgs

ASSIGNED_FIELDS = frozenset({"partitions", "replicationFactor", "assignments"})
"""The fields of a new topic that are determined by its assignments."""


def get_topic_name(op: Operation) -> str:
    """Return the name of the topic of an operation."""
    return get_arguments(op, TopicArgs).topic


def list_overrides(topic: str, state: KafkaState) -> dict[str, str | list[str]]:
    """Return the config overrides that a topic has in ``state``."""
    entries = state.configs.get(ConfigResource(ConfigScope.TOPIC, topic), {})
    live_configs = LiveConfigs(
        str(ResourceId(TOPIC, topic)), entries, ConfigSource.TOPIC, load_catalog(ConfigScope.TOPIC)
    )
    overrides = {key: find_override(live_configs, key) for key in entries}
    return {key: value for key, value in overrides.items() if value is not None}


class TopicOperationType(KafkaOperationType):
    """The base class of operation types for a whole topic.

    element: the name of the main element of views.
    right: the ACL operation and resource that messages about missing permissions name; can be empty.
    """

    element = "topic"
    has_timeout = True
    right = ""

    def find_right(self, op: Operation) -> str:
        """Return the required ACL operation on the topic."""
        return self.right.format(topic=get_topic_name(op))

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return a footprint that lists the topic as created, updated or deleted."""
        access = (
            Access.CREATE
            if self.find_created_resource(op)
            else Access.DELETE
            if self.deletes
            else Access.UPDATE
        )
        return (FootprintEntry(TOPIC, get_topic_name(op), access),)

    def find_object(self, op: Operation) -> ResourceId | None:
        """Return the topic."""
        return ResourceId("Topic", get_topic_name(op))

    def is_confined(self, op: Operation) -> bool:
        """Return whether the operation belongs to the topic in its arguments."""
        return op.resource == ResourceId("Topic", get_topic_name(op))

    def select(self, op: Operation) -> Selections:
        """Select the topic."""
        return (KafkaSelection(frozenset({get_topic_name(op)})),)

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return the change of the partition count, or no fields if the operation does not add partitions."""
        if not isinstance(op.args, NewPartitions):
            return ()
        return (FieldChange(self.element, FieldOp.CHANGE, op.expect.get(self.element), op.args.total),)

    def without_topics(self, op: Operation, topics: Set[str]) -> Operation | None:
        """Return the operation, or None if its topic is in ``topics``. The operation cannot be split."""
        return None if get_topic_name(op) in topics else op

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim with the name of the topic."""
        return {self.element: f"{self.element}/{get_topic_name(op)}"}

    def get_batch_key(self, op: Operation) -> str:
        """Return the topic."""
        return get_topic_name(op)

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the only claim of the operation."""
        return frozenset(self.claims(op).values())


class CreateTopic(TopicOperationType):
    """The operation type that creates a topic."""

    ABSENT: ClassVar[View] = {"topic": "absent", "partitions": None, "configs": None}
    UNDO_NAME: ClassVar = "topic.delete"

    name = "topic.create"
    done_label = ("topic created", "topics created")
    arguments = NewTopic
    validates = True
    creates = True
    right = "Create on topic {topic} or on the cluster"

    def select(self, op: Operation) -> Selections:
        """Select the topic and its overrides."""
        topic = get_topic_name(op)
        resource = ConfigResource(ConfigScope.TOPIC, topic)
        return (KafkaSelection(frozenset({topic}), {resource: ConfigQuery(resource, overrides=True)}),)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return whether the topic exists, its overrides and, if requested, its partition count."""
        state = live.get(KafkaState)
        topic = state.topics.get(get_topic_name(op))
        if topic is None:
            return self.ABSENT
        requested_count = get_arguments(op, NewTopic).count
        count = len(topic.partitions) if requested_count is not None else None
        return {"topic": "present", "partitions": count, "configs": list_overrides(topic.name, state)}

    def expected_state(self, op: Operation) -> View:
        """Return the view of the topic after the creation."""
        catalog = load_catalog(ConfigScope.TOPIC)
        args = get_arguments(op, NewTopic)
        configs = {
            key: catalog.normalize(key, value) if isinstance(value, str) else list(value)
            for key, value in args.configs.items()
        }
        return {"topic": "present", "partitions": args.count, "configs": configs}

    def find_topic_effects(self, op: Operation) -> Mapping[str, TopicEffect]:
        """Return the effect of the creation: the counts, replicas and configs in the arguments."""
        args = get_arguments(op, NewTopic)
        replicas = args.assignments or {}
        sizes = [len(r) for r in replicas.values()]
        requested = {"partitions": args.count, "replicationFactor": args.replication_factor}
        fields = (
            ASSIGNED_FIELDS if replicas else {name for name, value in requested.items() if value is not None}
        )
        effect = TopicEffect(
            created=True,
            partitions=args.count,
            factor=min(sizes) if sizes else args.replication_factor,
            replicas=replicas,
            configs=args.config_texts,
            fields=frozenset({*fields, *(f"configs.{key}" for key in args.configs)}),
        )
        return {get_topic_name(op): effect}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return the fields of the new topic that the arguments contain."""
        args = get_arguments(op, NewTopic)
        replicas = args.assignments or {}
        sizes = {len(r) for r in replicas.values()}
        factor = sizes.pop() if len(sizes) == 1 else args.replication_factor
        configs = {key: show_config_argument(value) for key, value in sorted(args.configs.items())}
        fields = [
            FieldChange("partitions", FieldOp.CHANGE, None, args.count),
            FieldChange("replicationFactor", FieldOp.CHANGE, None, factor),
            *(FieldChange(f"assignments.{n}", FieldOp.CHANGE, None, list(r)) for n, r in replicas.items()),
            *(FieldChange(f"configs.{k}", FieldOp.SET, None, v) for k, v in configs.items()),
        ]
        return tuple(field for field in fields if field.after is not None)

    def list_placements(self, op: Operation) -> Sequence[Placement]:
        """Return the requested replicas."""
        replicas = get_arguments(op, NewTopic).assignments or {}
        return [Placement(get_topic_name(op), number, (), after) for number, after in replicas.items()]

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return claims for the topic, its partition count and all of its configs."""
        topic = get_topic_name(op)
        return {element: f"{element}/{topic}" for element in self.ABSENT}

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Outcome]:
        """Send CreateTopics."""
        cluster = connections.get(KafkaConnection).cluster
        topics = [get_arguments(op, NewTopic) for op in ops]
        results = cluster.create_topics(topics, validate_only=validate_only)
        return {op.id: results[get_topic_name(op)] for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the deletion of the topic. Unless data loss is allowed, the topic must be empty."""
        if now["topic"] == "absent":
            return UndoResult()
        if now != self.expected_state(op):
            return UndoResult(conflicts=("the topic's partitions or configs",))
        args = self.build_undo(get_arguments(op, NewTopic), allow_data_loss=allow_data_loss)
        return UndoResult(self.UNDO_NAME, args)

    def build_undo(self, args: NewTopic, *, allow_data_loss: bool) -> DeleteTopicArgs:
        """Return the arguments of the deletion that undoes a creation.

        The rollback adds the topic id that the run received.
        """
        return DeleteTopicArgs(args.topic, None, not allow_data_loss, None if allow_data_loss else args)


class IncreasePartitions(TopicOperationType):
    """The operation type that adds partitions to a topic."""

    name = "partitions.increase"
    done_label = ("topic given more partitions", "topics given more partitions")
    arguments = NewPartitions
    validates = True
    creates = True
    element = "partitions"
    right = "Alter on topic {topic}"

    def find_object(self, op: Operation) -> None:
        """Return None, because the operation does not create an object."""

    def _count_before(self, op: Operation) -> int:
        return as_int(op.expect.get(self.element) or 0)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the partition count and the id of the topic."""
        state = live.get(KafkaState)
        topic = state.topics.get(get_topic_name(op))
        count = len(topic.partitions) if topic else None
        return {self.element: count} | build_identity_view([get_topic_name(op)], state)

    def expected_state(self, op: Operation) -> View:
        """Return the new partition count."""
        return {**op.expect, self.element: get_arguments(op, NewPartitions).total}

    def find_topic_effects(self, op: Operation) -> Mapping[str, TopicEffect]:
        """Return the new partition count, and the replicas of the added partitions."""
        args = get_arguments(op, NewPartitions)
        replicas = dict(enumerate(args.assignments or (), start=self._count_before(op)))
        return {
            args.topic: TopicEffect(
                partitions=args.total, replicas=replicas, fields=frozenset({self.element})
            )
        }

    def list_placements(self, op: Operation) -> Sequence[Placement] | None:
        """Return the requested replicas of the added partitions; None if Kafka chooses the replicas."""
        args = get_arguments(op, NewPartitions)
        added = enumerate(args.assignments or (), start=self._count_before(op))
        return [Placement(args.topic, number, (), after) for number, after in added] or None

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return the partition count, and the requested replicas of the added partitions."""
        first_added = self._count_before(op)
        added = enumerate(get_arguments(op, NewPartitions).assignments or (), start=first_added)
        replicas = (
            FieldChange(f"replicas.{get_topic_name(op)}-{number}", FieldOp.CHANGE, None, list(brokers))
            for number, brokers in added
        )
        return (*super().fields(op), *replicas)

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return claims for the partition count and the id of the topic."""
        return {**super().claims(op), **build_identity_claims([get_topic_name(op)])}

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return claims for the partition count and for the replicas of the added partitions."""
        added = range(self._count_before(op), get_arguments(op, NewPartitions).total)
        return frozenset(super().claims(op).values()) | {f"replicas/{get_topic_name(op)}-{n}" for n in added}

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Send CreatePartitions."""
        cluster = connections.get(KafkaConnection).cluster
        increases = [get_arguments(op, NewPartitions) for op in ops]
        results = cluster.create_partitions(increases, validate_only=validate_only)
        return {op.id: results[get_topic_name(op)] for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Report the earlier partition count as lost, because Kafka cannot remove partitions."""
        if has_other_object(op, now):
            return UndoResult(conflicts=("the topic itself",))
        is_untouched = now[self.element] == op.expect.get(self.element)
        return UndoResult() if is_untouched else UndoResult(lost=("the earlier number of partitions",))
