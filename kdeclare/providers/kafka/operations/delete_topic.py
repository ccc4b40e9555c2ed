"""Deleting topics: by id, and never with records where they must be empty."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, info, warning
from kdeclare.core.live.faults import Fault, Result
from kdeclare.core.operations.binding import get_arguments
from kdeclare.core.operations.operation import HAS_RECORDS, LOSES_DATA, Operation, Undo, Unproven
from kdeclare.core.operations.operation_type import View, with_inverse
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.providers.kafka.collector import find_existing
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.arguments import DeleteTopicArgs
from kdeclare.providers.kafka.operations.kafka_operation_type import TOPIC, Effect
from kdeclare.providers.kafka.operations.topics import TopicOperationType, name_topic
from kdeclare.providers.kafka.plan_options import find_kafka_options

_NAMED = 5
_HAS_RECORDS = "HAS_RECORDS"
_NOT_VISIBLE = "NOT_VISIBLE"
"""The error of a deletion that was not sent, because no broker shows the topic that must be empty."""

_RECREATED, _NO_ID_KNOWN, _NO_IDS = "recreated", "unproven", "no-topic-ids"
_NOT_PROVEN = {
    _RECREATED: (
        "the topic that the run created is gone, and another one has its name now",
        "To delete that one: kdeclare topic delete {name}",
    ),
    _NO_ID_KNOWN: (
        "the journal has no id of the topic that the run created (its outcome was not acknowledged, or "
        "kdeclare 0.1 ran it), so another client may have created this one",
        "To delete it anyway: kdeclare topic delete {name}",
    ),
    _NO_IDS: (
        "the cluster has no topic ids (KIP-516, Kafka 2.8), so another client may have created this one",
        "To delete it anyway, roll back with --delete-by-name.",
    ),
}
"""Why a topic is not deleted that may be another one than the run created, and what to do."""


class DeleteTopic(TopicOperationType):
    """Deletes a topic."""

    name = "topic.delete"
    done_label = ("topic deleted", "topics deleted")
    arguments = DeleteTopicArgs
    deletes = True
    contents = "records"

    def find_expected(self, op: Operation) -> frozenset[ResourceId]:
        """The topic, where its id is known."""
        return frozenset({ResourceId(TOPIC, name_topic(op))}) if _args(op).topic_id else frozenset()

    def is_confined(self, op: Operation) -> bool:
        """To the topic that it names, and was planned on."""
        return super().is_confined(op) and _args(op).topic_id in (None, op.expect.get(self.element))

    def view(self, op: Operation, live: LiveState) -> View:
        """Its id: a topic of the same name that was created since is another topic."""
        state = live.get(KafkaState)
        topic = state.topics.get(name_topic(op))
        return {self.element: topic.topic_id if topic else "absent"}

    def expected_state(self, op: Operation) -> View:
        """It is gone."""
        return {self.element: "absent"}

    def effects(self, op: Operation) -> Mapping[str, Effect]:
        """It is gone."""
        return {name_topic(op): Effect(deleted=True)}

    def is_repeatable(self, op: Operation) -> bool:
        """By id: the answer is that it is deleted, or that there is no such topic any more."""
        return _args(op).topic_id is not None

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """DeleteTopics, after a look for records in those that must be empty.

        A topic that is gone already is a success: what was to be deleted is deleted.
        """
        cluster = connections.get(KafkaConnection).cluster
        careful = [name_topic(op) for op in ops if _args(op).require_empty]
        counts = cluster.record_counts(careful) if careful else {}
        absent = find_existing(cluster, set(careful) - counts.keys()).absent
        results: dict[str, Result] = {}
        for op in ops:
            name = name_topic(op)
            if counts.get(name):
                results[op.id] = Fault(_HAS_RECORDS, f"Topic '{name}' holds {counts[name]} records.")
            elif name in absent:
                results[op.id] = None
            elif _args(op).require_empty and name not in counts:
                results[op.id] = Fault(_NOT_VISIBLE, _not_countable(name))
        rest = {name_topic(op): op for op in ops if op.id not in results}
        targets = {name: _args(op).topic_id for name, op in rest.items()}
        deleted = cluster.delete_topics(targets) if targets else {}
        return results | {op.id: _deleted(deleted[name]) for name, op in rest.items()}

    def bind_to_created(
        self, op: Operation, created_id: str | None, live: LiveState, options: PlanOptions
    ) -> Operation | Unproven:
        """By the id that the run was told."""
        topic = live.get(KafkaState).topics[name_topic(op)]
        if created_id is not None and created_id == topic.topic_id:
            bare = replace(op, args=replace(_args(op), topic_id=created_id), inverse=None, irreversible=None)
            return with_inverse(self, bare)
        if not topic.topic_id:
            return op if find_kafka_options(options).delete_by_name else _unproven(_NO_IDS, topic.name)
        return _unproven(_NO_ID_KNOWN if created_id is None else _RECREATED, topic.name)

    def announce_losses(self, connections: Connections, ops: Sequence[Operation]) -> tuple[Diagnostic, ...]:
        """How many of the topics hold records."""
        return _count_records(connections, ops)

    def find_losses(self, connections: Connections, ops: Sequence[Operation]) -> Mapping[str, Diagnostic]:
        """Those of topics that must be empty, and hold records by now."""
        careful = [name_topic(op) for op in ops if _args(op).require_empty]
        counts = connections.get(KafkaConnection).cluster.record_counts(careful) if careful else {}
        return {op.id: _holds_records(op, counts[name]) for op in ops if counts.get(name := name_topic(op))}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Nothing brings the records back; a topic that was empty can be made again."""
        recreate = _args(op).recreate
        if recreate and now[self.element] == "absent":
            return Undo("topic.create", recreate)
        untouched = now[self.element] == op.expect.get(self.element)
        return Undo() if untouched and now[self.element] != "absent" else Undo(lost=("the topic's records",))


def is_careful(op: Operation) -> bool:
    """Whether it leaves a topic alone that holds records."""
    return isinstance(op.args, DeleteTopicArgs) and op.args.require_empty


def _args(op: Operation) -> DeleteTopicArgs:
    return get_arguments(op, DeleteTopicArgs)


def _deleted(result: Result) -> Result:
    return None if result is not None and result.error == "UNKNOWN_TOPIC_ID" else result


def _not_countable(name: str) -> str:
    return f"No broker shows topic '{name}' yet, so its records cannot be counted. It was not deleted."


def _unproven(code: str, topic: str) -> Unproven:
    reason, hint = _NOT_PROVEN[code]
    title = "Not proven to be the topic that the run created"
    return Unproven(code, title, reason, hint.format(name=topic))


def _holds_records(op: Operation, count: int) -> Diagnostic:
    return warning(
        HAS_RECORDS,
        "The topic holds records",
        f"{op.resource} was created by the run and holds {count} records by now, so it is not deleted.",
        hint="Roll back with --allow-data-loss to delete it all the same.",
        resource=str(op.resource),
    )


def _count_records(connections: Connections, ops: Sequence[Operation]) -> tuple[Diagnostic, ...]:
    """How many of the topics to be deleted hold records.

    Deletions that refuse topics with records (undoing a creation) do not count. The counts are for people,
    so a cluster that does not answer is no reason to stop: the diagnostic then says so.
    """
    topics = sorted({name_topic(op) for op in ops if not is_careful(op)})
    if not topics:
        return ()
    many = f"{len(topics):,} topics" if len(topics) > 1 else "topic"
    try:
        counts = connections.get(KafkaConnection).cluster.record_counts(topics)
    except Fault as fault:
        detail = f"Whether the {many} to be deleted hold records could not be read: {fault}."
        return (warning(LOSES_DATA, "Topics will be deleted", detail),)
    holding = {topic: count for topic in topics if (count := counts.get(topic, 0))}
    if not holding:
        detail = f"The {many} to be deleted hold{'s' if len(topics) == 1 else ''} no records."
        return (info(LOSES_DATA, "Topics will be deleted", detail),)
    largest = sorted(holding.items(), key=lambda item: (-item[1], item[0]))[:_NAMED]
    named = ", ".join(f"{topic} ({count:,})" for topic, count in largest)
    more = f" and {len(holding) - _NAMED:,} more" if len(holding) > _NAMED else ""
    verb = "holds" if len(holding) == 1 else "hold"
    share = f"{len(holding):,} of the {many}" if len(topics) > 1 else "The topic"
    detail = f"{share} to be deleted {verb} records: {named}{more}. They are lost with the topic."
    return (warning(LOSES_DATA, "Records will be deleted", detail),)
