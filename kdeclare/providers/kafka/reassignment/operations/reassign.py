"""Moving replicas to other brokers, guarded as KIP-860 has it, and to other log directories (KIP-113).

AlterPartitionReassignments and AlterReplicaLogDirs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.jsontypes import as_text
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Fault, Result
from kdeclare.core.operations.binding import get_arguments
from kdeclare.core.operations.operation import Inverse, Operation, Undo
from kdeclare.core.operations.operation_type import Placement, View, is_other_object
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState, Move
from kdeclare.providers.kafka.operations.kafka_operation_type import TOPIC, Effect, KafkaOperationType
from kdeclare.providers.kafka.operations.partitions import (
    PartitionsOperationType,
    get_replicas_before,
    get_targets,
    joined_result,
    list_replicas,
    moved,
)
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.completion import MOVES
from kdeclare.providers.kafka.reassignment.leftovers import read_moves, with_moves
from kdeclare.providers.kafka.reassignment.operations.arguments import MovesArgs, ReassignArgs, RelocateArgs
from kdeclare.providers.kafka.reassignment.pace import Pace


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
            arriving = [broker for broker in get_replicas_before(op, name) if broker not in after]
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
        changed = [p for p in targets if now.get(p) == targets[p] != op.expect.get(p)]
        back = {p: get_replicas_before(op, p) for p in changed}
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


Replicas = tuple[int, ...]


class ReassignPartitions(PartitionsOperationType):
    """Has partitions moved; guarded, where the number of their replicas is not to change."""

    name = "partitions.reassign"
    done_label = ("reassignment done", "reassignments done")
    arguments = ReassignArgs
    has_timeout = True
    completion = MOVES
    manner = frozenset({"pace", "pause_s", "group", "client_guard"})

    def find_pause_s(self, op: Operation) -> float:
        """The pause between batches."""
        return float(_args(op).pause_s or 0)

    def ongoing_work(self, op: Operation) -> Mapping[ResourceId, int]:
        """The partitions that are moved, by topic."""
        counts = Counter(TopicPartition.parse(name).topic for name in get_targets(op))
        return {ResourceId(TOPIC, topic): count for topic, count in counts.items()}

    def list_placements(self, op: Operation) -> Sequence[Placement]:
        """The replicas of its partitions."""
        return [
            Placement(*TopicPartition.parse(name), get_replicas_before(op, name), after)
            for name, after in get_targets(op).items()
        ]

    def effects(self, op: Operation) -> Mapping[str, Effect]:
        """The replicas of its partitions."""
        return moved(op)

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """One request a kind of guard: lifting it for one operation must not lift it for another."""
        cluster = connections.get(KafkaConnection).cluster
        results: dict[str, Result] = {}
        for allow in (False, True):
            for unguarded in (False, True):
                group = [op for op in ops if _guard(op) == (allow, unguarded)]
                if group:
                    results |= _send(cluster, group, allow, unguarded)
        return results

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Reassign to the recorded ordered lists; a cancel alone does not restore the order."""
        if is_other_object(op, now):
            return Undo(conflicts=("the topic itself",))
        back: dict[str, Replicas] = {}
        conflicts, lost = [], []
        own = _args(op)
        for name, target in own.partitions.items():
            before, current = op.expect.get(name), now.get(name)
            if current == before:
                continue
            if current != list(target):
                conflicts.append(name)
            elif not before:
                lost.append(name)
            else:
                back[name] = get_replicas_before(op, name)
        resized = any(len(back[name]) != len(own.partitions[name]) for name in back)
        args = replace(own, partitions=back, allow_replication_factor_change=resized, pause_s=None)
        return Undo(self.name, args if back else None, tuple(conflicts), tuple(lost))

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """What may still be on its way: of a refused operation, other partitions move (KIP-455)."""
        mine = tuple(get_targets(op))
        left = read_moves(before)
        if status in (Status.STARTED, Status.UNKNOWN, Status.FAILED, Status.DENIED):
            return with_moves(before, dict.fromkeys([*left, *mine]))
        if status is Status.DONE:
            return with_moves(before, (p for p in left if p not in mine))
        return before


def _partitions(op: Operation) -> Iterable[TopicPartition]:
    return map(TopicPartition.parse, get_targets(op))


def _guard(op: Operation) -> tuple[bool, bool]:
    return _args(op).allow_replication_factor_change, bool(_args(op).client_guard)


def _args(op: Operation) -> ReassignArgs:
    return get_arguments(op, ReassignArgs)


def _send(cluster: Cluster, ops: Sequence[Operation], allow: bool, unguarded: bool) -> dict[str, Result]:
    targets = {TopicPartition.parse(p): replicas for op in ops for p, replicas in get_targets(op).items()}
    expected = {p: get_replicas_before(op, str(p)) for op in ops for p in _partitions(op)}
    results, freed = _cleared(cluster, targets, expected)
    for lifted in (False, True):
        rest = {p: t for p, t in targets.items() if p not in results and (p in freed) == lifted}
        if rest:
            results |= cluster.reassign(
                rest, allow_replication_factor_change=allow or lifted, unguarded=unguarded
            )
    return {op.id: joined_result(get_targets(op), results) for op in ops}


def _cleared(
    cluster: Cluster,
    targets: Mapping[TopicPartition, Replicas],
    expected: Mapping[TopicPartition, Replicas],
) -> tuple[dict[TopicPartition, Result], set[TopicPartition]]:
    """Make way for the targets; what could not be, by partition, and what needs the guard lifted.

    A move that the operation was not planned on is someone else's and is left to them. One that Kafka
    would not turn round is cancelled. That can leave the union of its stages, and then the size that was
    there, which is what is wanted again, is no longer what the guard compares with.
    """
    moves = cluster.moves(sorted({partition.topic for partition in targets}))
    flying = {p: moves[p] for p, target in targets.items() if p in moves and moves[p].target != target}
    results: dict[TopicPartition, Result] = {
        p: Fault("MOVE_IN_FLIGHT", f"Someone has begun to move it to {list(move.target)}.")
        for p, move in flying.items()
        if move.target != expected[p]
    }
    stuck = {p: m for p, m in flying.items() if p not in results and not turns_round(m, targets[p])}
    if not stuck:
        return results, set()
    cancelled = cluster.reassign(dict.fromkeys(stuck), allow_replication_factor_change=True)
    faults = {p: fault for p, fault in cancelled.items() if fault is not None}
    results |= {p: f for p, f in faults.items() if f.error != "NO_REASSIGNMENT_IN_PROGRESS"}
    left = {p: len(m.replicas) - len(m.adding) for p, m in stuck.items() if p not in faults}
    kept = {p for p, target in targets.items() if len(target) == len(expected[p])}
    return results, {p for p, size in left.items() if p in kept and size != len(targets[p])}


def turns_round(move: Move, target: Replicas) -> bool:
    """Whether Kafka takes another target for a move in flight for what it is.

    Where nothing new is added (or removed), the stored list stays, and the move goes on to where it was
    heading, or nowhere (ReplicationControlManager.changePartitionReassignment).
    """
    adding = set(target).difference(move.replicas) or set(move.adding)
    removing = set(move.replicas).difference(target) or set(move.removing)
    return adding <= set(target) and removing.isdisjoint(target)


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

    def without_topics(self, op: Operation, topics: Set[str]) -> Operation | None:
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
        back: dict[str, str] = {}
        conflicts = []
        for name, path in _paths(op).items():
            before, current = op.expect.get(name), now.get(name)
            if before is None or current in (before, None):
                continue
            if current != path:
                conflicts.append(name)
            else:
                back[name] = as_text(before)
        return Undo(self.name, RelocateArgs(back) if back else None, tuple(conflicts))


def _paths(op: Operation) -> Mapping[str, str]:
    return get_arguments(op, RelocateArgs).replicas


def parse(text: str) -> Replica:
    """Read ``topic-partition@broker``."""
    partition, _, broker = text.rpartition("@")
    return TopicPartition.parse(partition), int(broker)


def name_replica(replica: Replica) -> str:
    """The opposite of `parse`."""
    return f"{replica[0]}@{replica[1]}"


def _faults(op: Operation, answers: Mapping[Replica, Result]) -> Iterable[Fault]:
    for name in _paths(op):
        fault = answers[parse(name)]
        if fault is not None:
            yield Fault(fault.error, f"{name}: {fault.message}".rstrip(": "), fault.kind)
