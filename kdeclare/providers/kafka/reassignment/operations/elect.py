"""Elect preferred leaders (KIP-460). A move changes the leader only if it removes the leader's replica."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Result
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Inverse, Operation, UndoResult
from kdeclare.core.operations.operation_type import View, with_args
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.resources.changes import FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.kafka_operation_type import KafkaOperationType
from kdeclare.providers.kafka.operations.partitions import collect_topics, merge_results
from kdeclare.providers.kafka.reassignment.completion import MOVE_COMPLETION
from kdeclare.providers.kafka.reassignment.operations.arguments import ElectArgs
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import bind_elections, with_elections


class ElectLeaders(KafkaOperationType):
    """Elects the preferred leaders of partitions as soon as none of the partitions is moving."""

    name = "leaders.elect"
    cleanup_label = "elected preferred leaders"
    done_label = ("preferred leader election", "preferred leader elections")
    arguments = ElectArgs
    has_timeout = True
    awaits = MOVE_COMPLETION
    is_auxiliary = True
    is_cleanup = True

    def select(self, op: Operation) -> Selections:
        """Select the topics of the operation's partitions."""
        return (KafkaSelection(collect_topics(_get_leaders(op))),)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the current leaders."""
        state = live.get(KafkaState)
        view: dict[str, JsonValue] = {}
        for name in _get_leaders(op):
            topic, number = TopicPartition.parse(name)
            topic_state = state.topics.get(topic)
            is_known = topic_state is not None and number < len(topic_state.partitions)
            view[f"leader of {name}"] = (
                topic_state.partitions[number].leader if topic_state and is_known else None
            )
        return view

    def expected_state(self, op: Operation) -> View:
        """Return the preferred leaders."""
        return {f"leader of {name}": leader for name, leader in _get_leaders(op).items()}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return no fields, because manifests do not declare leaders."""
        return ()

    def without_topics(self, op: Operation, topics: Set[str]) -> Operation | None:
        """Return the operation without the partitions of ``topics``; None if no partition remains."""
        remaining = {p: b for p, b in _get_leaders(op).items() if TopicPartition.parse(p).topic not in topics}
        bare_op = replace(
            op, expect={f"leader of {p}": op.expect[f"leader of {p}"] for p in remaining if op.expect}
        )
        return (
            with_args(bare_op, replace(get_arguments(op, ElectArgs), partitions=remaining))
            if remaining
            else None
        )

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim per partition."""
        return {f"leader of {name}": f"leader/{name}" for name in _get_leaders(op)}

    def get_batch_key(self, op: Operation) -> str:
        """Return the id of the operation as the batch key, so that a request can contain several operations.

        This is safe because no two operations elect leaders of the same partition.
        """
        return op.id

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the claims of the elected leaders."""
        return frozenset(self.claims(op).values())

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Send ElectLeaders for partitions whose leader is not the requested leader.

        Skip a partition whose preferred leader differs from the requested leader, for example because a move
        failed.
        """
        cluster = connections.get(KafkaConnection).cluster
        topics = cluster.topics(sorted({t for op in ops for t in collect_topics(_get_leaders(op))}))
        unpreferred = [
            TopicPartition(topic.name, number)
            for topic in topics.values()
            for number, partition in enumerate(topic.partitions)
            if partition.replicas and partition.leader != partition.replicas[0]
        ]
        leaders_by_partition = {p: leader for op in ops for p, leader in _get_leaders(op).items()}
        due_partitions = [
            p
            for p in unpreferred
            if leaders_by_partition.get(str(p)) == topics[p.topic].partitions[p.partition].replicas[0]
        ]
        results: dict[TopicPartition, Result] = {TopicPartition.parse(p): None for p in leaders_by_partition}
        if due_partitions:
            results |= cluster.elect_leaders(due_partitions)
        return {op.id: merge_results(_get_leaders(op), results) for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Do nothing: a rollback elects leaders after its own moves."""
        return UndoResult()

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """Keep the election in the pending cleanup until it is done.

        An election waits until moves have finished and the preferred leader is available.
        """
        own_leaders = _get_leaders(op)
        pending_elections = bind_elections(before)
        if status in (Status.STARTED, Status.UNKNOWN, Status.FAILED, Status.DENIED):
            return with_elections(before, {**pending_elections, **own_leaders})
        if status is Status.DONE:
            return with_elections(
                before, {p: b for p, b in pending_elections.items() if p not in own_leaders}
            )
        return before


def _get_leaders(op: Operation) -> Mapping[str, int]:
    return get_arguments(op, ElectArgs).partitions


def build_elect_operation(
    name: str, resource: ResourceId, preferred: Mapping[str, int], pace: Pace | None
) -> Operation:
    """Build the operation that elects leaders. Its inverse also elects leaders.

    name: the last part of the operation's id.
    """
    args = ElectArgs(dict(preferred), pace)
    inverse = Inverse(ElectLeaders.name, args)
    return Operation(f"{ElectLeaders.name}:{name}", ElectLeaders.name, resource, args, {}, inverse=inverse)
