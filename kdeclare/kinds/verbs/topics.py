"""Creating and deleting topics, and adding partitions (CreateTopics, DeleteTopics, CreatePartitions)."""

from collections.abc import Mapping, Sequence

from kdeclare.cluster.port import Cluster, Fault, NewPartitions, NewTopic, Result
from kdeclare.kinds.query import Query
from kdeclare.kinds.secrets import SecretSource
from kdeclare.kinds.verbs.base import Undo, View
from kdeclare.model.changes import FieldChange, FieldOp
from kdeclare.model.jsontypes import Json
from kdeclare.model.live import Snapshot
from kdeclare.model.operations import Operation

HAS_RECORDS = "HAS_RECORDS"


def _topic(op: Operation) -> str:
    return str(op.args["topic"])


class TopicVerb:
    """What the verbs on a topic as a whole have in common; ``element`` names what they look at."""

    validates = False
    moves = False
    element = "topic"

    def query(self, op: Operation) -> Query:
        """The topic itself."""
        return Query(frozenset({_topic(op)}))

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """The count; a topic that comes or goes says it by its action."""
        total = op.args.get("total")
        if total is None:
            return ()
        return (FieldChange(self.element, FieldOp.CHANGE, op.expect.get(self.element), total),)

    def claims(self, op: Operation) -> Mapping[str, str]:
        """One element, named by its topic."""
        return {self.element: f"{self.element}/{_topic(op)}"}

    def item(self, op: Operation) -> str:
        """The topic."""
        return _topic(op)

    def produces(self, op: Operation) -> frozenset[str]:
        """The one element."""
        return frozenset(self.claims(op).values())


class CreateTopic(TopicVerb):
    """args: {topic, partitions, replication_factor, assignments, configs}; counts None is Kafka's default."""

    name = "topic.create"
    validates = True

    def view(self, op: Operation, live: Snapshot) -> View:
        """Whether it is there."""
        return {self.element: "present" if _topic(op) in live.topics else "absent"}

    def after(self, op: Operation) -> View:
        """It is."""
        return {self.element: "present"}

    def execute(
        self, cluster: Cluster, ops: Sequence[Operation], secrets: SecretSource, *, validate_only: bool
    ) -> Mapping[str, Result]:
        """CreateTopics."""
        topics = [_new_topic(op.args) for op in ops]
        results = cluster.create_topics(topics, validate_only=validate_only)
        return {op.id: results[_topic(op)] for op in ops}

    def undo(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Delete it, if it is there; only if it is empty, unless data may be lost."""
        if now[self.element] == "absent":
            return Undo()
        args = {"topic": _topic(op), "require_empty": not allow_data_loss}
        return Undo("topic.delete", args)


class DeleteTopic(TopicVerb):
    """args: {topic, require_empty}."""

    name = "topic.delete"

    def view(self, op: Operation, live: Snapshot) -> View:
        """Its id: a topic of the same name that was created since is another topic."""
        topic = live.topics.get(_topic(op))
        return {self.element: topic.topic_id if topic else "absent"}

    def after(self, op: Operation) -> View:
        """It is gone."""
        return {self.element: "absent"}

    def execute(
        self, cluster: Cluster, ops: Sequence[Operation], secrets: SecretSource, *, validate_only: bool
    ) -> Mapping[str, Result]:
        """DeleteTopics, after a look for records in those that must be empty."""
        careful = [_topic(op) for op in ops if op.args.get("require_empty")]
        counts = cluster.record_counts(careful) if careful else {}
        results: dict[str, Result] = {
            op.id: Fault(HAS_RECORDS, f"Topic '{_topic(op)}' holds {counts[_topic(op)]} records.")
            for op in ops
            if counts.get(_topic(op))
        }
        rest = [op for op in ops if op.id not in results]
        deleted = cluster.delete_topics([_topic(op) for op in rest]) if rest else {}
        return results | {op.id: deleted[_topic(op)] for op in rest}

    def undo(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Nothing brings the records back."""
        untouched = now[self.element] == op.expect.get(self.element)
        return Undo() if untouched and now[self.element] != "absent" else Undo(lost=("the topic's records",))


class IncreasePartitions(TopicVerb):
    """args: {topic, total, assignments}; assignments of the added partitions in order, or None."""

    name = "partitions.increase"
    validates = True
    element = "partitions"

    def view(self, op: Operation, live: Snapshot) -> View:
        """How many there are."""
        topic = live.topics.get(_topic(op))
        return {self.element: len(topic.partitions) if topic else None}

    def after(self, op: Operation) -> View:
        """The new total."""
        return {self.element: op.args["total"]}

    def produces(self, op: Operation) -> frozenset[str]:
        """The count, and the replicas of the added partitions."""
        added = range(op.expect.get(self.element) or 0, op.args["total"])
        return super().produces(op) | {f"replicas/{_topic(op)}-{n}" for n in added}

    def execute(
        self, cluster: Cluster, ops: Sequence[Operation], secrets: SecretSource, *, validate_only: bool
    ) -> Mapping[str, Result]:
        """CreatePartitions."""
        items = [NewPartitions(_topic(op), op.args["total"], _lists(op.args["assignments"])) for op in ops]
        results = cluster.create_partitions(items, validate_only=validate_only)
        return {op.id: results[_topic(op)] for op in ops}

    def undo(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Kafka takes no partition away."""
        untouched = now[self.element] == op.expect.get(self.element)
        return Undo() if untouched else Undo(lost=("the former number of partitions",))


def _new_topic(args: Mapping[str, Json]) -> NewTopic:
    assignments = args["assignments"]
    configs = {k: ",".join(v) if isinstance(v, list) else v for k, v in args["configs"].items()}
    return NewTopic(
        args["topic"],
        args["partitions"],
        args["replication_factor"],
        None if assignments is None else {int(n): tuple(r) for n, r in assignments.items()},
        configs,
    )


def _lists(value: Json) -> tuple[tuple[int, ...], ...] | None:
    return None if value is None else tuple(tuple(replicas) for replicas in value)
