"""The operation type that deletes topics, by id if possible. It can refuse to delete records."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, info, warning
from kdeclare.core.live.faults import Fault, Result
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import (
    DATA_LOSS,
    HAS_RECORDS,
    Inverse,
    Operation,
    Recreation,
    UndoResult,
    UnprovenDeletion,
)
from kdeclare.core.operations.operation_type import View, with_inverse
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.providers.kafka.collector import check_existence
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.arguments import DeleteTopicArgs
from kdeclare.providers.kafka.operations.kafka_operation_type import TOPIC, TopicEffect
from kdeclare.providers.kafka.operations.topics import CreateTopic, TopicOperationType, get_topic_name
from kdeclare.providers.kafka.plan_options import get_kafka_options

_MAX_NAMED = 5
_HAS_RECORDS = "HAS_RECORDS"
_NOT_VISIBLE = "NOT_VISIBLE"
"""The error code for a topic that no broker shows and that is not deleted, because it might hold records."""

_RECREATED_EMPTY = "The rollback re-creates the topic, empty, with its earlier"
_LOST = "The records and the committed offsets of the topic cannot be restored. ACLs are not changed."
_NOT_RECORDED = (
    "The journal of the run does not contain the replicas and configs of the topic. Either an earlier "
    "version of kdeclare executed the run, or the configs could not be read."
)
"""Sentences about a deleted topic that a rollback re-creates, or cannot re-create."""

_RECREATED, _NO_ID_KNOWN, _NO_IDS = "recreated", "unproven", "no-topic-ids"
_NOT_PROVEN = {
    _RECREATED: (
        "the topic that the run created no longer exists, and a different topic now has the same name",
        "To delete the new topic, run kdeclare topic delete {name}.",
    ),
    _NO_ID_KNOWN: (
        "the journal does not contain the id of the topic that the run created (the creation was not "
        "acknowledged, or the run used kdeclare 0.1), so another client may have created this topic",
        "To delete the topic anyway, run kdeclare topic delete {name}.",
    ),
    _NO_IDS: (
        "the cluster has no topic ids (KIP-516, Kafka 2.8), so another client may have created this topic",
        "To delete the topic anyway, roll back with --delete-by-name.",
    ),
}
"""Explanations and hints for topics that are not deleted because the run may not have created them."""


class DeleteTopic(TopicOperationType):
    """The operation type that deletes a topic."""

    name = "topic.delete"
    done_label = ("topic deleted", "topics deleted")
    arguments = DeleteTopicArgs
    deletes = True
    contents = "records"

    def find_expected_objects(self, op: Operation) -> frozenset[ResourceId]:
        """Return the topic if the arguments contain its id; otherwise an empty set."""
        return frozenset({ResourceId(TOPIC, get_topic_name(op))}) if _get_args(op).topic_id else frozenset()

    def is_confined(self, op: Operation) -> bool:
        """Return whether the operation belongs to the topic that it deletes.

        If the arguments contain a topic id, it must also be the expected id.
        """
        args = _get_args(op)
        is_own_topic = args.before is None or args.before.topic == args.topic
        return (
            super().is_confined(op) and is_own_topic and args.topic_id in (None, op.expect.get(self.element))
        )

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the id of the topic. A re-created topic with the same name has a different id."""
        state = live.get(KafkaState)
        topic = state.topics.get(get_topic_name(op))
        return {self.element: topic.topic_id if topic else "absent"}

    def expected_state(self, op: Operation) -> View:
        """Return a view in which the topic is absent."""
        return {self.element: "absent"}

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return claims for the topic, its partition count and its configs, which the deletion removes."""
        return frozenset(f"{element}/{get_topic_name(op)}" for element in CreateTopic.ABSENT)

    def find_topic_effects(self, op: Operation) -> Mapping[str, TopicEffect]:
        """Return the effect of the deletion on the topic."""
        return {get_topic_name(op): TopicEffect(deleted=True)}

    def is_repeatable(self, op: Operation) -> bool:
        """Return whether the operation deletes the topic by id, so that a retry cannot delete a new topic."""
        return _get_args(op).topic_id is not None

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Send DeleteTopics, except for topics that must be empty but hold records.

        The deletion of a topic that does not exist succeeds.
        """
        cluster = connections.get(KafkaConnection).cluster
        empty_required = [get_topic_name(op) for op in ops if _get_args(op).require_empty]
        counts = cluster.record_counts(empty_required) if empty_required else {}
        absent = check_existence(cluster, set(empty_required) - counts.keys()).absent
        results: dict[str, Result] = {}
        for op in ops:
            name = get_topic_name(op)
            if counts.get(name):
                results[op.id] = Fault(_HAS_RECORDS, f"Topic '{name}' holds {counts[name]} records.")
            elif name in absent:
                results[op.id] = None
            elif _get_args(op).require_empty and name not in counts:
                results[op.id] = Fault(_NOT_VISIBLE, _explain_not_countable(name))
        pending = {get_topic_name(op): op for op in ops if op.id not in results}
        targets = {name: _get_args(op).topic_id for name, op in pending.items()}
        deletion_results = cluster.delete_topics(targets) if targets else {}
        return results | {op.id: _accept_missing(deletion_results[name]) for name, op in pending.items()}

    def bind_to_created(
        self, op: Operation, created_id: str | None, live: LiveState, options: PlanOptions
    ) -> Operation | UnprovenDeletion:
        """Return the deletion with the id of the created topic, or the reason why the deletion is unsafe."""
        topic = live.get(KafkaState).topics[get_topic_name(op)]
        if created_id is not None and created_id == topic.topic_id:
            bound = replace(
                op, args=replace(_get_args(op), topic_id=created_id), inverse=None, irreversible=None
            )
            return with_inverse(self, bound)
        if not topic.topic_id:
            return op if get_kafka_options(options).delete_by_name else _build_unproven(_NO_IDS, topic.name)
        return _build_unproven(_NO_ID_KNOWN if created_id is None else _RECREATED, topic.name)

    def announce_losses(self, connections: Connections, ops: Sequence[Operation]) -> tuple[Diagnostic, ...]:
        """Report how many of the topics hold records."""
        return _report_record_counts(connections, ops)

    def find_losses(self, connections: Connections, ops: Sequence[Operation]) -> Mapping[str, Diagnostic]:
        """Return a warning for each operation whose topic must be empty but holds records."""
        empty_required = [get_topic_name(op) for op in ops if _get_args(op).require_empty]
        counts = (
            connections.get(KafkaConnection).cluster.record_counts(empty_required) if empty_required else {}
        )
        return {
            op.id: _warn_records(op, counts[name]) for op in ops if counts.get(name := get_topic_name(op))
        }

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the creation that this deletion undid.

        If the deletion undid no creation, report the records of the topic as lost.
        """
        recreate = _get_args(op).recreate
        if recreate and now[self.element] == "absent":
            return UndoResult("topic.create", recreate)
        is_untouched = now[self.element] == op.expect.get(self.element)
        return (
            UndoResult()
            if is_untouched and now[self.element] != "absent"
            else UndoResult(lost=("the topic's records",))
        )

    def plan_recreation(self, op: Operation, now: View, live: LiveState) -> Recreation:
        """Return the creation of an empty topic with the replicas and configs of the deleted topic.

        If a broker with replicas is no longer in the cluster, Kafka places the replicas.
        """
        if now[self.element] != "absent":
            return Recreation(None, "A topic with the same name exists again.")
        before = _get_args(op).before
        if before is None:
            return Recreation(None, _NOT_RECORDED)
        replicas = before.assignments or {}
        brokers = {broker.id for broker in live.get(KafkaState).cluster.brokers}
        missing = sorted({broker for ids in replicas.values() for broker in ids} - brokers)
        if not missing:
            return Recreation(
                Inverse("topic.create", before), f"{_RECREATED_EMPTY} replicas and configs. {_LOST}"
            )
        factor = max(map(len, replicas.values()))
        counted = replace(before, partitions=len(replicas), replication_factor=factor, assignments=None)
        missing_text = ", ".join(map(str, missing))
        noun, verb = ("Broker", "is") if len(missing) == 1 else ("Brokers", "are")
        return Recreation(
            Inverse("topic.create", counted),
            f"{_RECREATED_EMPTY} number of partitions, replication factor and configs. {noun} {missing_text} "
            f"{verb} not in the cluster anymore, so Kafka places the replicas. {_LOST}",
        )


def needs_empty_topic(op: Operation) -> bool:
    """Return whether the operation deletes the topic only if it holds no records."""
    return isinstance(op.args, DeleteTopicArgs) and op.args.require_empty


def _get_args(op: Operation) -> DeleteTopicArgs:
    return get_arguments(op, DeleteTopicArgs)


def _accept_missing(result: Result) -> Result:
    return None if result is not None and result.error == "UNKNOWN_TOPIC_ID" else result


def _explain_not_countable(name: str) -> str:
    return (
        f"No broker shows topic '{name}' yet, so the records of the topic cannot be counted. The topic was "
        "not deleted."
    )


def _build_unproven(code: str, topic: str) -> UnprovenDeletion:
    reason, hint = _NOT_PROVEN[code]
    title = "Topic may not have been created by the run"
    return UnprovenDeletion(code, title, reason, hint.format(name=topic))


def _warn_records(op: Operation, count: int) -> Diagnostic:
    return warning(
        HAS_RECORDS,
        "Topic holds records",
        f"The run created {op.resource}. The topic now holds {count} records, so kdeclare does not delete "
        "the topic.",
        hint="To delete the topic and its records, roll back with --allow-data-loss.",
        resource=str(op.resource),
    )


def _report_record_counts(connections: Connections, ops: Sequence[Operation]) -> tuple[Diagnostic, ...]:
    """Report how many of the topics to be deleted hold records.

    Deletions that undo a creation are not counted, because they never delete records. If the records cannot
    be counted, the diagnostic says so and the run continues.
    """
    topics = sorted({get_topic_name(op) for op in ops if not needs_empty_topic(op)})
    if not topics:
        return ()
    topics_text = f"{len(topics):,} topics" if len(topics) > 1 else "topic"
    try:
        counts = connections.get(KafkaConnection).cluster.record_counts(topics)
    except Fault as fault:
        detail = f"Could not count the records of the {topics_text} to be deleted: {fault}."
        return (warning(DATA_LOSS, "Topics will be deleted", detail),)
    nonempty = {topic: count for topic in topics if (count := counts.get(topic, 0))}
    if not nonempty:
        detail = f"The {topics_text} to be deleted hold{'s' if len(topics) == 1 else ''} no records."
        return (info(DATA_LOSS, "Topics will be deleted", detail),)
    largest = sorted(nonempty.items(), key=lambda item: (-item[1], item[0]))[:_MAX_NAMED]
    largest_text = ", ".join(f"{topic} ({count:,})" for topic, count in largest)
    others_text = f" and {len(nonempty) - _MAX_NAMED:,} more" if len(nonempty) > _MAX_NAMED else ""
    hold_or_holds = "holds" if len(nonempty) == 1 else "hold"
    share_text = f"{len(nonempty):,} of the {topics_text}" if len(topics) > 1 else "The topic"
    detail = (
        f"{share_text} to be deleted {hold_or_holds} records: {largest_text}{others_text}. "
        f"Deleting the topic{'s' if len(nonempty) > 1 else ''} deletes the records."
    )
    return (warning(DATA_LOSS, "Records will be deleted", detail),)
