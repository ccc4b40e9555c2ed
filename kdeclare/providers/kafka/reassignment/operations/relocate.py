"""Moving replicas from one log directory of their broker to another (AlterReplicaLogDirs, KIP-113)."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.arguments import Inverse
from kdeclare.core.changes import FieldChange, FieldOp
from kdeclare.core.collector import Selections
from kdeclare.core.faults import Fault, Result
from kdeclare.core.operation_arguments import get_arguments
from kdeclare.core.operation_type import View
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.secrets import SecretSource
from kdeclare.core.undoing import Undo
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.kafka_operation_type import KafkaOperationType
from kdeclare.providers.kafka.reassignment.operations.arguments import RelocateArgs
from kdeclare.providers.kafka.selection import KafkaSelection

Replica = tuple[TopicPartition, int]
"""A partition, and the broker with the copy."""


class RelocateReplicas(KafkaOperationType):
    """Has replicas moved to another log directory of their broker.

    It begins in the broker and goes on there by itself. Of a replica that the broker does not have yet it
    takes a note, in its memory only: so this comes right before the reassignment.
    """

    name = "replicas.relocate"
    done_label = ("change of log directories", "changes of log directories")
    arguments = RelocateArgs
    is_shown_late = False  # brokers are asked about their own folders

    def is_confined(self, op: Operation) -> bool:
        """To a reassignment, which shows each replica."""
        return op.resource.kind == "Reassignment"

    def select(self, op: Operation) -> Selections:
        """Where the replicas of its topics are."""
        return (
            KafkaSelection(log_dirs=frozenset(partition.topic for partition, _ in map(parse, _paths(op)))),
        )

    def view(self, op: Operation, live: LiveState) -> View:
        """Where its replicas are heading; None for those that are not there."""
        state = live.get(KafkaState)
        found = {name: state.dirs.get(parse(name)) for name in _paths(op)}
        return {name: dirs.heading if dirs else None for name, dirs in found.items()}

    def expected_state(self, op: Operation) -> View:
        """The directories named."""
        return {**op.expect, **_paths(op)}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """One a replica."""
        return tuple(
            FieldChange(f"log_dir.{name}", FieldOp.CHANGE, op.expect.get(name), path)
            for name, path in _paths(op).items()
            if op.expect.get(name) != path
        )

    def less(self, op: Operation, topics: Set[str]) -> Operation | None:
        """The replicas of other topics."""
        rest = {r: path for r, path in _paths(op).items() if parse(r)[0].topic not in topics}
        if not rest:
            return None
        undo = op.inverse.args if op.inverse else None
        before = undo.replicas if isinstance(undo, RelocateArgs) else {}
        back = Inverse(self.name, RelocateArgs({r: path for r, path in before.items() if r in rest}))
        expect = {element: value for element, value in op.expect.items() if element in rest}
        return replace(op, args=RelocateArgs(rest), expect=expect, inverse=back)

    def claims(self, op: Operation) -> Mapping[str, str]:
        """One a replica."""
        return {name: f"log-dir/{name}" for name in _paths(op)}

    def item(self, op: Operation) -> str:
        """Its replicas are its own, see `claims`."""
        return op.id

    def produces(self, op: Operation) -> frozenset[str]:
        """The directories of its replicas."""
        return frozenset(self.claims(op).values())

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """AlterReplicaLogDirs; that a replica is not available yet is no failure."""
        cluster = connections.get(KafkaConnection).cluster
        targets = {parse(name): path for op in ops for name, path in _paths(op).items()}
        answers = cluster.move_log_dirs(targets)
        to_come = "REPLICA_NOT_AVAILABLE"
        return {op.id: next((f for f in _faults(op, answers) if f.error != to_come), None) for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Back to where they were; those that were not there go with the reassignment."""
        back, conflicts = {}, []
        for name, path in _paths(op).items():
            before, current = op.expect.get(name), now.get(name)
            if before is None or current in (before, None):
                continue
            if current != path:
                conflicts.append(name)
            else:
                back[name] = before
        return Undo(self.name, RelocateArgs(back) if back else None, tuple(conflicts))


def _paths(op: Operation) -> Mapping[str, str]:
    return get_arguments(op, RelocateArgs).replicas


def parse(text: str) -> Replica:
    """Read ``topic-partition@broker``."""
    partition, _, broker = text.rpartition("@")
    return TopicPartition.parse(partition), int(broker)


def named(replica: Replica) -> str:
    """The opposite of `parse`."""
    return f"{replica[0]}@{replica[1]}"


def _faults(op: Operation, answers: Mapping[Replica, Result]) -> Iterable[Fault]:
    for name in _paths(op):
        fault = answers[parse(name)]
        if fault is not None:
            yield Fault(fault.error, f"{name}: {fault.message}".rstrip(": "), fault.kind)
