"""Creating topics and adding partitions to them (CreateTopics, CreatePartitions)."""

from collections.abc import Mapping, Sequence, Set
from typing import ClassVar

from kdeclare.core.changes import FieldChange, FieldOp
from kdeclare.core.collector import Selections
from kdeclare.core.faults import Outcome, Result
from kdeclare.core.footprint import Access, Footprint, Touch
from kdeclare.core.ids import ResourceId
from kdeclare.core.operation_arguments import get_arguments
from kdeclare.core.operation_type import Placement, View, is_other_object
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.secrets import SecretSource
from kdeclare.core.undoing import Undo
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.config_diff import ConfigSide, override
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource, KafkaState
from kdeclare.providers.kafka.operations.arguments import (
    CreateTopicArgs,
    DeleteTopicArgs,
    IncreasePartitionsArgs,
    TopicArgs,
    show_config_argument,
)
from kdeclare.providers.kafka.operations.kafka_operation_type import TOPIC, KafkaOperationType
from kdeclare.providers.kafka.port import ConfigQuery, NewPartitions, NewTopic
from kdeclare.providers.kafka.selection import KafkaSelection
from kdeclare.providers.kafka.topic_effects import Effect
from kdeclare.providers.kafka.topic_identity import identities, identity_claims

ASSIGNED = frozenset({"partitions", "replicationFactor", "assignments"})
"""What a creation with assignments is about, whoever chose the replicas: the counts follow from them."""


def name_topic(op: Operation) -> str:
    """Return the topic that an operation is about."""
    return get_arguments(op, TopicArgs).topic


class TopicOperationType(KafkaOperationType):
    """What the operation types on a topic as a whole have in common.

    element: what they look at. right: the right of Kafka's ACLs that they need; empty where nothing asks.
    """

    element = "topic"
    has_timeout = True
    right = ""

    def find_right(self, op: Operation) -> str:
        """Of the topic."""
        return self.right.format(topic=name_topic(op))

    def footprint(self, op: Operation) -> Footprint:
        """The topic."""
        access = Access.CREATE if self.find_created(op) else Access.DELETE if self.deletes else Access.UPDATE
        return (Touch(TOPIC, name_topic(op), access),)

    def find_object(self, op: Operation) -> ResourceId | None:
        """The topic."""
        return ResourceId("Topic", name_topic(op))

    def is_confined(self, op: Operation) -> bool:
        """To the topic that it names."""
        return op.resource == ResourceId("Topic", name_topic(op))

    def select(self, op: Operation) -> Selections:
        """The topic itself."""
        return (KafkaSelection(frozenset({name_topic(op)})),)

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """The count; a topic that comes or goes says it by its action."""
        if not isinstance(op.args, IncreasePartitionsArgs):
            return ()
        return (FieldChange(self.element, FieldOp.CHANGE, op.expect.get(self.element), op.args.total),)

    def less(self, op: Operation, topics: Set[str]) -> Operation | None:
        """All or nothing."""
        return None if name_topic(op) in topics else op

    def claims(self, op: Operation) -> Mapping[str, str]:
        """One element, named by its topic."""
        return {self.element: f"{self.element}/{name_topic(op)}"}

    def item(self, op: Operation) -> str:
        """The topic."""
        return name_topic(op)

    def produces(self, op: Operation) -> frozenset[str]:
        """The one element."""
        return frozenset(self.claims(op).values())


class CreateTopic(TopicOperationType):
    """Creates a topic."""

    ABSENT: ClassVar[View] = {"topic": "absent", "partitions": None, "configs": None}

    name = "topic.create"
    done_label = ("topic created", "topics created")
    arguments = CreateTopicArgs
    validates = True
    creates = True
    right = "Create on topic {topic} or on the cluster"

    def select(self, op: Operation) -> Selections:
        """The topic and all that is set on it."""
        resource = ConfigResource(ConfigScope.TOPIC, name_topic(op))
        return (
            KafkaSelection(frozenset({name_topic(op)}), {resource: ConfigQuery(resource, overrides=True)}),
        )

    def view(self, op: Operation, live: LiveState) -> View:
        """Whether it is there, and in what shape; the count only where the args say it."""
        state = live.get(KafkaState)
        topic = state.topics.get(name_topic(op))
        if topic is None:
            return self.ABSENT
        asked = get_arguments(op, CreateTopicArgs).count
        count = len(topic.partitions) if asked is not None else None
        resource = ConfigResource(ConfigScope.TOPIC, topic.name)
        keys = catalog(ConfigScope.TOPIC)
        side = ConfigSide(str(op.resource), state.configs.get(resource, {}), ConfigSource.TOPIC, keys)
        overrides = {key: override(side, key) for key in side.live}
        configs = {key: value for key, value in overrides.items() if value is not None}
        return {"topic": "present", "partitions": count, "configs": configs}

    def expected_state(self, op: Operation) -> View:
        """There, as the args say."""
        keys = catalog(ConfigScope.TOPIC)
        args = get_arguments(op, CreateTopicArgs)
        configs = {
            key: keys.canonical(key, value) if isinstance(value, str) else list(value)
            for key, value in args.configs.items()
        }
        return {"topic": "present", "partitions": args.count, "configs": configs}

    def effects(self, op: Operation) -> Mapping[str, Effect]:
        """The topic as requested."""
        args = get_arguments(op, CreateTopicArgs)
        replicas = args.replicas
        sizes = [len(r) for r in replicas.values()]
        stated = {"partitions": args.count, "replicationFactor": args.replication_factor}
        fields = ASSIGNED if replicas else {name for name, value in stated.items() if value is not None}
        effect = Effect(
            created=True,
            partitions=args.count,
            factor=min(sizes) if sizes else args.replication_factor,
            replicas=replicas,
            configs=args.config_texts,
            fields=frozenset({*fields, *(f"configs.{key}" for key in args.configs)}),
        )
        return {name_topic(op): effect}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """All that is asked for."""
        args = get_arguments(op, CreateTopicArgs)
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
        """The replicas that are asked for."""
        replicas = get_arguments(op, CreateTopicArgs).replicas
        return [Placement(name_topic(op), number, (), after) for number, after in replicas.items()]

    def claims(self, op: Operation) -> Mapping[str, str]:
        """The topic, its count and what is set on it as a whole."""
        return {element: f"{element}/{name_topic(op)}" for element in self.ABSENT}

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Outcome]:
        """CreateTopics."""
        cluster = connections.get(KafkaConnection).cluster
        topics = [_new_topic(get_arguments(op, CreateTopicArgs)) for op in ops]
        results = cluster.create_topics(topics, validate_only=validate_only)
        return {op.id: results[name_topic(op)] for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Delete it, if it is there; only if it is empty, unless data may be lost."""
        if now["topic"] == "absent":
            return Undo()
        if now != self.expected_state(op):
            return Undo(conflicts=("the topic's partitions or configs",))
        recreate = None if allow_data_loss else get_arguments(op, CreateTopicArgs)
        # whoever undoes it fills in the id that the run was told
        args = DeleteTopicArgs(name_topic(op), None, not allow_data_loss, recreate)
        return Undo("topic.delete", args)


class IncreasePartitions(TopicOperationType):
    """Adds partitions to a topic."""

    name = "partitions.increase"
    done_label = ("topic given more partitions", "topics given more partitions")
    arguments = IncreasePartitionsArgs
    validates = True
    creates = True
    element = "partitions"
    right = "Alter on topic {topic}"

    def find_object(self, op: Operation) -> None:
        """The topic is there already."""

    def view(self, op: Operation, live: LiveState) -> View:
        """How many there are, and of which topic."""
        state = live.get(KafkaState)
        topic = state.topics.get(name_topic(op))
        count = len(topic.partitions) if topic else None
        return {self.element: count} | identities([name_topic(op)], state)

    def expected_state(self, op: Operation) -> View:
        """The new total."""
        return {**op.expect, self.element: get_arguments(op, IncreasePartitionsArgs).total}

    def effects(self, op: Operation) -> Mapping[str, Effect]:
        """The new total, and the replicas of the added partitions."""
        args = get_arguments(op, IncreasePartitionsArgs)
        replicas = dict(enumerate(args.assignments or (), start=op.expect.get(self.element) or 0))
        return {
            args.topic: Effect(partitions=args.total, replicas=replicas, fields=frozenset({self.element}))
        }

    def list_placements(self, op: Operation) -> Sequence[Placement] | None:
        """The replicas of the added partitions, where they are asked for."""
        args = get_arguments(op, IncreasePartitionsArgs)
        added = enumerate(args.assignments or (), start=op.expect.get(self.element) or 0)
        return [Placement(args.topic, number, (), after) for number, after in added] or None

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """The count, and the replicas of added partitions where it says them."""
        first = op.expect.get(self.element) or 0
        added = enumerate(get_arguments(op, IncreasePartitionsArgs).assignments or (), start=first)
        replicas = (
            FieldChange(f"replicas.{name_topic(op)}-{number}", FieldOp.CHANGE, None, list(brokers))
            for number, brokers in added
        )
        return (*super().fields(op), *replicas)

    def claims(self, op: Operation) -> Mapping[str, str]:
        """The count, and the topic's identity."""
        return {**super().claims(op), **identity_claims([name_topic(op)])}

    def produces(self, op: Operation) -> frozenset[str]:
        """The count, and the replicas of the added partitions."""
        added = range(op.expect.get(self.element) or 0, get_arguments(op, IncreasePartitionsArgs).total)
        return frozenset(super().claims(op).values()) | {f"replicas/{name_topic(op)}-{n}" for n in added}

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """CreatePartitions."""
        cluster = connections.get(KafkaConnection).cluster
        items = [
            NewPartitions(args.topic, args.total, args.assignments)
            for args in (get_arguments(op, IncreasePartitionsArgs) for op in ops)
        ]
        results = cluster.create_partitions(items, validate_only=validate_only)
        return {op.id: results[name_topic(op)] for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Kafka takes no partition away."""
        if is_other_object(op, now):
            return Undo(conflicts=("the topic itself",))
        untouched = now[self.element] == op.expect.get(self.element)
        return Undo() if untouched else Undo(lost=("the former number of partitions",))


def _new_topic(args: CreateTopicArgs) -> NewTopic:
    replicas = None if args.assignments is None else args.replicas
    return NewTopic(args.topic, args.partitions, args.replication_factor, replicas, args.config_texts)
