"""Waiting for moves that are under way, and cancelling them (KIP-455)."""

from collections.abc import Mapping, Sequence

from kdeclare.core.arguments import Inverse
from kdeclare.core.changes import FieldChange
from kdeclare.core.faults import Result
from kdeclare.core.ids import ResourceId
from kdeclare.core.operation_type import Placement, View, is_other_object
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.secrets import SecretSource
from kdeclare.core.undoing import Undo
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.operations.partitions import (
    PartitionsOperationType,
    get_targets,
    joined_result,
    list_replicas,
    moved,
)
from kdeclare.providers.kafka.reassignment.completion import MOVES
from kdeclare.providers.kafka.reassignment.operations.arguments import MovesArgs, ReassignArgs
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.topic_effects import Effect


class AwaitMoves(PartitionsOperationType):
    """Begins once the moves of its partitions are over, and has then nothing to do.

    partitions: where they are heading. What comes after it sees for itself whether they got there.
    """

    name = "moves.await"
    done_label = ("", "")
    arguments = MovesArgs
    awaits = MOVES
    is_auxiliary = True

    def expected_state(self, op: Operation) -> View:
        """Where they were heading."""
        return op.expect

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """None: it only waits."""
        return ()

    def produces(self, op: Operation) -> frozenset[str]:
        """Nothing that was not to be expected."""
        return frozenset()

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Nothing."""
        return {op.id: None for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Nothing."""
        return Undo()


class CancelMoves(PartitionsOperationType):
    """Cancels moves in flight.

    partitions: what is left of each: the listed replicas less those that were being added, in that
    order. That need not be the order from before the move, and after a move that was re-targeted it is
    the union of its stages.
    """

    name = "moves.cancel"
    done_label = ("cancellation of moves", "cancellations of moves")
    arguments = MovesArgs
    has_timeout = True
    manner = frozenset({"pace"})

    def is_confined(self, op: Operation) -> bool:
        """To a reassignment: a topic says where its replicas are to be."""
        return op.resource.kind == "Reassignment"

    def list_placements(self, op: Operation) -> Sequence[Placement]:
        """The replicas that are left; until then, those that were to come hold it as well."""
        found: list[Placement] = []
        for name, after in get_targets(op).items():
            arriving = [broker for broker in op.expect.get(name) or () if broker not in after]
            found.append(Placement(*TopicPartition.parse(name), (*after, *arriving), after))
        return found

    def effects(self, op: Operation) -> Mapping[str, Effect]:
        """The replicas that are left of its partitions."""
        return moved(op)

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """AlterPartitionReassignments with no replicas; one that is over by now is no failure."""
        cluster = connections.get(KafkaConnection).cluster
        targets: dict[TopicPartition, tuple[int, ...] | None] = {
            TopicPartition.parse(p): None for op in ops for p in get_targets(op)
        }
        answers = cluster.reassign(targets, allow_replication_factor_change=True)
        over = "NO_REASSIGNMENT_IN_PROGRESS"
        results = {p: None if f is not None and f.error == over else f for p, f in answers.items()}
        return {op.id: joined_result(get_targets(op), results) for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Go on to where they were heading."""
        if is_other_object(op, now):
            return Undo(conflicts=("the topic itself",))
        targets = list_replicas(get_targets(op))
        conflicts = tuple(p for p in targets if now.get(p) not in (targets[p], op.expect.get(p)))
        back = {p: tuple(op.expect[p]) for p in targets if now.get(p) == targets[p] != op.expect.get(p)}
        if not back:
            return Undo(conflicts=conflicts)
        resized = any(len(back[p]) != len(targets[p]) for p in back)
        return Undo("partitions.reassign", ReassignArgs(back, resized), conflicts)


def waiting(
    name: str, resource: ResourceId, targets: Mapping[str, tuple[int, ...]], pace: Pace | None
) -> Operation:
    """The operation that waits for moves; undoing it is waiting, too. ``name`` tells it from others."""
    own = MovesArgs(dict(targets), pace)
    inverse = Inverse(AwaitMoves.name, own)
    return Operation(f"{AwaitMoves.name}:{name}", AwaitMoves.name, resource, own, {}, inverse=inverse)
