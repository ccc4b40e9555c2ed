"""Move replicas to different brokers or log directories.

The requests are AlterPartitionReassignments, with the replication factor guard of KIP-860, and
AlterReplicaLogDirs (KIP-113).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.jsontypes import as_text
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Fault, Result
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Inverse, Operation, UndoResult
from kdeclare.core.operations.operation_type import Placement, View, has_other_object
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
from kdeclare.providers.kafka.operations.kafka_operation_type import TOPIC, KafkaOperationType, TopicEffect
from kdeclare.providers.kafka.operations.partitions import (
    PartitionsOperationType,
    build_move_effects,
    get_replicas_before,
    get_targets,
    list_replicas,
    merge_results,
)
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.completion import MOVE_COMPLETION
from kdeclare.providers.kafka.reassignment.operations.arguments import MovesArgs, ReassignArgs, RelocateArgs
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import bind_moves, with_moves


class AwaitMoves(PartitionsOperationType):
    """Waits until the moves of some partitions have finished, and changes nothing.

    partitions: the targets of the moves. Later operations check whether the targets were reached.
    """

    name = "moves.await"
    done_label = ("", "")
    arguments = MovesArgs
    awaits = MOVE_COMPLETION
    is_auxiliary = True

    def expected_state(self, op: Operation) -> View:
        """Return the targets of the moves."""
        return op.expect

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return no fields: the operation only waits."""
        return ()

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return an empty set: the operation changes nothing."""
        return frozenset()

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Do nothing."""
        return {op.id: None for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Do nothing."""
        return UndoResult()


class CancelMoves(PartitionsOperationType):
    """Cancels moves in flight.

    partitions: the replicas of each partition after the cancellation. These are the replicas in the metadata
        without the replicas that are being added. The order is the order in the metadata, which can differ
        from the order before the move. If the target was changed during the move, the partition can have
        replicas of several targets.
    """

    name = "moves.cancel"
    done_label = ("reassignment cancelled", "reassignments cancelled")
    arguments = MovesArgs
    has_timeout = True
    manner = frozenset({"pace"})

    def is_confined(self, op: Operation) -> bool:
        """Whether the operation belongs to a Reassignment; a Topic never cancels moves."""
        return op.resource.kind == "Reassignment"

    def list_placements(self, op: Operation) -> Sequence[Placement]:
        """Return the replicas before the cancellation (including replicas being added) and after it."""
        placements: list[Placement] = []
        for name, target in get_targets(op).items():
            leaving = [broker for broker in get_replicas_before(op, name) if broker not in target]
            placements.append(Placement(*TopicPartition.parse(name), (*target, *leaving), target))
        return placements

    def find_topic_effects(self, op: Operation) -> Mapping[str, TopicEffect]:
        """Return the replicas that the partitions have after the cancellation."""
        return build_move_effects(op)

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Send AlterPartitionReassignments with null as the replicas, which cancels moves.

        It is not a failure if a move has already finished.
        """
        cluster = connections.get(KafkaConnection).cluster
        targets: dict[TopicPartition, tuple[int, ...] | None] = {
            TopicPartition.parse(p): None for op in ops for p in get_targets(op)
        }
        responses = cluster.reassign(targets, allow_replication_factor_change=True)
        finished_error = "NO_REASSIGNMENT_IN_PROGRESS"
        results = {
            p: None if f is not None and f.error == finished_error else f for p, f in responses.items()
        }
        return {op.id: merge_results(get_targets(op), results) for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Move the partitions to the targets of the cancelled moves."""
        if has_other_object(op, now):
            return UndoResult(conflicts=("the topic itself",))
        targets = list_replicas(get_targets(op))
        conflicts = tuple(p for p in targets if now.get(p) not in (targets[p], op.expect.get(p)))
        changed = [p for p in targets if now.get(p) == targets[p] != op.expect.get(p)]
        replicas_to_restore = {p: get_replicas_before(op, p) for p in changed}
        if not replicas_to_restore:
            return UndoResult(conflicts=conflicts)
        changes_factor = any(len(replicas_to_restore[p]) != len(targets[p]) for p in replicas_to_restore)
        return UndoResult("partitions.reassign", ReassignArgs(replicas_to_restore, changes_factor), conflicts)


def build_await_operation(
    name: str, resource: ResourceId, targets: Mapping[str, tuple[int, ...]], pace: Pace | None
) -> Operation:
    """Build the operation that waits for moves. Its inverse also waits for the moves.

    name: the last part of the operation's id.
    """
    args = MovesArgs(dict(targets), pace)
    inverse = Inverse(AwaitMoves.name, args)
    return Operation(f"{AwaitMoves.name}:{name}", AwaitMoves.name, resource, args, {}, inverse=inverse)


Replicas = tuple[int, ...]


class ReassignPartitions(PartitionsOperationType):
    """Moves partitions. The replication factor guard is on unless the factor is allowed to change."""

    name = "partitions.reassign"
    done_label = ("reassignment done", "reassignments done")
    arguments = ReassignArgs
    has_timeout = True
    completion = MOVE_COMPLETION
    manner = frozenset({"pace", "pause_s", "group", "client_guard"})

    def find_pause_s(self, op: Operation) -> float:
        """Return the pause between the previous batch and this operation, in seconds."""
        return float(_get_args(op).pause_s or 0)

    def count_ongoing_parts(self, op: Operation) -> Mapping[ResourceId, int]:
        """Return, by topic, the number of partitions that the operation moves."""
        counts = Counter(TopicPartition.parse(name).topic for name in get_targets(op))
        return {ResourceId(TOPIC, topic): count for topic, count in counts.items()}

    def list_placements(self, op: Operation) -> Sequence[Placement]:
        """Return the replicas of the moved partitions, before and after the move."""
        return [
            Placement(*TopicPartition.parse(name), get_replicas_before(op, name), after)
            for name, after in get_targets(op).items()
        ]

    def find_topic_effects(self, op: Operation) -> Mapping[str, TopicEffect]:
        """Return the effects of the moves on each topic."""
        return build_move_effects(op)

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Send separate requests for operations with and without the guard.

        An operation that disables the guard must not disable the guard for other operations.
        """
        cluster = connections.get(KafkaConnection).cluster
        results: dict[str, Result] = {}
        for allow_factor_change in (False, True):
            for unguarded in (False, True):
                group_ops = [op for op in ops if _get_guard(op) == (allow_factor_change, unguarded)]
                if group_ops:
                    results |= _send_requests(cluster, group_ops, allow_factor_change, unguarded)
        return results

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Move partitions back to the recorded replicas, in the recorded order.

        A cancellation would not restore the order.
        """
        if has_other_object(op, now):
            return UndoResult(conflicts=("the topic itself",))
        replicas_to_restore: dict[str, Replicas] = {}
        conflicts, lost_partitions = [], []
        own_args = _get_args(op)
        for name, target in own_args.partitions.items():
            replicas_before, current_replicas = op.expect.get(name), now.get(name)
            if current_replicas == replicas_before:
                continue
            if current_replicas != list(target):
                conflicts.append(name)
            elif not replicas_before:
                lost_partitions.append(name)
            else:
                replicas_to_restore[name] = get_replicas_before(op, name)
        changes_factor = any(
            len(replicas_to_restore[name]) != len(own_args.partitions[name]) for name in replicas_to_restore
        )
        undo_args = replace(
            own_args,
            partitions=replicas_to_restore,
            allow_replication_factor_change=changes_factor,
            pause_s=None,
        )
        return UndoResult(
            self.name, undo_args if replicas_to_restore else None, tuple(conflicts), tuple(lost_partitions)
        )

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """Keep a move in the pending cleanup while the move may still be in flight.

        Brokers accept or refuse each partition separately (KIP-455), so an operation that failed for one
        partition can still be moving its other partitions.
        """
        own_partitions = tuple(get_targets(op))
        pending_moves = bind_moves(before)
        if status in (Status.STARTED, Status.UNKNOWN, Status.FAILED, Status.DENIED):
            return with_moves(before, dict.fromkeys([*pending_moves, *own_partitions]))
        if status is Status.DONE:
            return with_moves(before, (p for p in pending_moves if p not in own_partitions))
        return before


def _list_partitions(op: Operation) -> Iterable[TopicPartition]:
    return map(TopicPartition.parse, get_targets(op))


def _get_guard(op: Operation) -> tuple[bool, bool]:
    return _get_args(op).allow_replication_factor_change, bool(_get_args(op).client_guard)


def _get_args(op: Operation) -> ReassignArgs:
    return get_arguments(op, ReassignArgs)


def _send_requests(
    cluster: Cluster, ops: Sequence[Operation], allow_factor_change: bool, unguarded: bool
) -> dict[str, Result]:
    targets = {TopicPartition.parse(p): replicas for op in ops for p, replicas in get_targets(op).items()}
    expected = {p: get_replicas_before(op, str(p)) for op in ops for p in _list_partitions(op)}
    results, guard_exempt = _cancel_blocking_moves(cluster, targets, expected)
    for lift_guard in (False, True):
        remaining = {
            p: t for p, t in targets.items() if p not in results and (p in guard_exempt) == lift_guard
        }
        if remaining:
            results |= cluster.reassign(
                remaining,
                allow_replication_factor_change=allow_factor_change or lift_guard,
                unguarded=unguarded,
            )
    return {op.id: merge_results(get_targets(op), results) for op in ops}


def _cancel_blocking_moves(
    cluster: Cluster,
    targets: Mapping[TopicPartition, Replicas],
    expected: Mapping[TopicPartition, Replicas],
) -> tuple[dict[TopicPartition, Result], set[TopicPartition]]:
    """Cancel in-flight moves that Kafka cannot redirect to the new targets.

    Return the partitions that cannot be moved, with their faults, and the partitions for which the guard must
    be off. A move that is not in the plan belongs to another client and is not changed.

    After a cancellation, a partition can have more replicas than before the move. The guard would compare the
    target with this larger number, and refuse a target that restores the original replication factor.
    """
    moves = cluster.moves(sorted({partition.topic for partition in targets}))
    moves_in_flight = {
        p: moves[p] for p, target in targets.items() if p in moves and moves[p].target != target
    }
    results: dict[TopicPartition, Result] = {
        p: Fault("MOVE_IN_FLIGHT", f"Another client is moving the partition to {list(move.target)}.")
        for p, move in moves_in_flight.items()
        if move.target != expected[p]
    }
    irreversible_moves = {
        p: m for p, m in moves_in_flight.items() if p not in results and not can_redirect(m, targets[p])
    }
    if not irreversible_moves:
        return results, set()
    cancelled = cluster.reassign(dict.fromkeys(irreversible_moves), allow_replication_factor_change=True)
    faults = {p: fault for p, fault in cancelled.items() if fault is not None}
    results |= {p: f for p, f in faults.items() if f.error != "NO_REASSIGNMENT_IN_PROGRESS"}
    sizes_left = {
        p: len(m.replicas) - len(m.adding) for p, m in irreversible_moves.items() if p not in faults
    }
    same_size = {p for p, target in targets.items() if len(target) == len(expected[p])}
    return results, {p for p, size in sizes_left.items() if p in same_size and size != len(targets[p])}


def can_redirect(move: Move, target: Replicas) -> bool:
    """Whether Kafka can correctly change the target of an in-flight move to ``target``.

    If the new target adds no replicas, Kafka keeps the old list of replicas to add. If the new target removes
    no replicas, Kafka keeps the old list of replicas to remove. The move can then continue to the old target,
    or stop (ReplicationControlManager.changePartitionReassignment).
    """
    adding = set(target).difference(move.replicas) or set(move.adding)
    removing = set(move.replicas).difference(target) or set(move.removing)
    return adding <= set(target) and removing.isdisjoint(target)


Replica = tuple[TopicPartition, int]
"""A replica: its partition and its broker."""


class RelocateReplicas(KafkaOperationType):
    """Moves replicas to a different log directory of the same broker.

    The broker responds before the move is complete. If the broker does not have the replica yet, the broker
    keeps the target directory only in memory. Therefore, this operation runs right before the reassignment
    that creates the replica.
    """

    name = "replicas.relocate"
    done_label = ("log directory change", "log directory changes")
    arguments = RelocateArgs
    is_shown_late = False  # each broker itself reports its directories, without delay

    def is_confined(self, op: Operation) -> bool:
        """Return whether the operation belongs to a Reassignment."""
        return op.resource.kind == "Reassignment"

    def select(self, op: Operation) -> Selections:
        """Select the log directories of all replicas of the operation's topics."""
        return (
            KafkaSelection(
                log_dirs=frozenset(partition.topic for partition, _ in map(parse_replica, _get_paths(op)))
            ),
        )

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the directory of each replica, or the target directory while the replica is moving.

        None means that the replica does not exist.
        """
        state = live.get(KafkaState)
        dirs_by_replica = {name: state.dirs.get(parse_replica(name)) for name in _get_paths(op)}
        return {name: dirs.final_path if dirs else None for name, dirs in dirs_by_replica.items()}

    def expected_state(self, op: Operation) -> View:
        """Return the target directories."""
        return {**op.expect, **_get_paths(op)}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return one field per replica."""
        return tuple(
            FieldChange(f"log_dir.{name}", FieldOp.CHANGE, op.expect.get(name), path)
            for name, path in _get_paths(op).items()
            if op.expect.get(name) != path
        )

    def without_topics(self, op: Operation, topics: Set[str]) -> Operation | None:
        """Return the operation without the replicas of ``topics``; None if no replica remains."""
        remaining = {r: path for r, path in _get_paths(op).items() if parse_replica(r)[0].topic not in topics}
        if not remaining:
            return None
        undo_args = op.inverse.args if op.inverse else None
        undo_paths = undo_args.replicas if isinstance(undo_args, RelocateArgs) else {}
        inverse = Inverse(
            self.name, RelocateArgs({r: path for r, path in undo_paths.items() if r in remaining})
        )
        expect = {element: value for element, value in op.expect.items() if element in remaining}
        return replace(op, args=RelocateArgs(remaining), expect=expect, inverse=inverse)

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim per replica."""
        return {name: f"log-dir/{name}" for name in _get_paths(op)}

    def get_batch_key(self, op: Operation) -> str:
        """Return the id of the operation as the batch key, so that a request can contain several operations.

        This is safe because no two operations claim the same replica; see `claims`.
        """
        return op.id

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the claims of all replicas of the operation."""
        return frozenset(self.claims(op).values())

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Send AlterReplicaLogDirs. It is not a failure if a replica is not available yet."""
        cluster = connections.get(KafkaConnection).cluster
        targets = {parse_replica(name): path for op in ops for name, path in _get_paths(op).items()}
        responses = cluster.move_log_dirs(targets)
        unavailable_error = "REPLICA_NOT_AVAILABLE"
        return {
            op.id: next((f for f in _collect_faults(op, responses) if f.error != unavailable_error), None)
            for op in ops
        }

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Move the replicas back to their previous log directories.

        Replicas that did not exist before are skipped, because undoing the reassignment removes them.
        """
        paths_to_restore: dict[str, str] = {}
        conflicts = []
        for name, path in _get_paths(op).items():
            previous_path, current_path = op.expect.get(name), now.get(name)
            if previous_path is None or current_path in (previous_path, None):
                continue
            if current_path != path:
                conflicts.append(name)
            else:
                paths_to_restore[name] = as_text(previous_path)
        return UndoResult(
            self.name, RelocateArgs(paths_to_restore) if paths_to_restore else None, tuple(conflicts)
        )


def _get_paths(op: Operation) -> Mapping[str, str]:
    return get_arguments(op, RelocateArgs).replicas


def parse_replica(text: str) -> Replica:
    """Parse ``topic-partition@broker``."""
    partition, _, broker = text.rpartition("@")
    return TopicPartition.parse(partition), int(broker)


def format_replica(replica: Replica) -> str:
    """Format a replica as ``topic-partition@broker``."""
    return f"{replica[0]}@{replica[1]}"


def _collect_faults(op: Operation, responses: Mapping[Replica, Result]) -> Iterable[Fault]:
    for name in _get_paths(op):
        fault = responses[parse_replica(name)]
        if fault is not None:
            yield Fault(fault.error, f"{name}: {fault.message}".rstrip(": "), fault.kind)
