"""Moving replicas (AlterPartitionReassignments, guarded as KIP-860 has it)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.faults import Fault, Result
from kdeclare.core.operation_arguments import get_arguments
from kdeclare.core.operation_type import Placement, View, is_other_object
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.run import Status
from kdeclare.core.secrets import SecretSource
from kdeclare.core.state import PendingCleanup
from kdeclare.core.undoing import Undo
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move
from kdeclare.providers.kafka.operations.partitions import (
    PartitionsOperationType,
    get_targets,
    joined_result,
    moved,
)
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.completion import MOVES
from kdeclare.providers.kafka.reassignment.leftovers import read_leftovers
from kdeclare.providers.kafka.reassignment.operations.arguments import ReassignArgs
from kdeclare.providers.kafka.topic_effects import Effect

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

    def ongoing_work(self, op: Operation) -> Mapping[str, int]:
        """The partitions that are moved, by topic."""
        return Counter(TopicPartition.parse(name).topic for name in get_targets(op))

    def list_placements(self, op: Operation) -> Sequence[Placement]:
        """The replicas of its partitions."""
        return [
            Placement(*TopicPartition.parse(name), tuple(op.expect.get(name) or ()), after)
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
                back[name] = tuple(before)
        resized = any(len(back[name]) != len(own.partitions[name]) for name in back)
        args = replace(own, partitions=back, allow_replication_factor_change=resized, pause_s=None)
        return Undo(self.name, args if back else None, tuple(conflicts), tuple(lost))

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """What may still be on its way: of a refused operation, other partitions move (KIP-455)."""
        mine = tuple(get_targets(op))
        left = read_leftovers(before)
        if status in (Status.STARTED, Status.UNKNOWN, Status.FAILED, Status.DENIED):
            return replace(left, moves=tuple(dict.fromkeys([*left.moves, *mine]))).write_to(before)
        if status is Status.DONE:
            return replace(left, moves=tuple(p for p in left.moves if p not in mine)).write_to(before)
        return before


def _partitions(op: Operation) -> Iterable[TopicPartition]:
    return map(TopicPartition.parse, get_targets(op))


def _guard(op: Operation) -> tuple[bool, bool]:
    return _args(op).allow_replication_factor_change, bool(_args(op).client_guard)


def _args(op: Operation) -> ReassignArgs:
    return get_arguments(op, ReassignArgs)


def _send(cluster: Cluster, ops: Sequence[Operation], allow: bool, unguarded: bool) -> dict[str, Result]:
    targets = {TopicPartition.parse(p): replicas for op in ops for p, replicas in get_targets(op).items()}
    expected = {p: tuple(op.expect.get(str(p)) or ()) for op in ops for p in _partitions(op)}
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
