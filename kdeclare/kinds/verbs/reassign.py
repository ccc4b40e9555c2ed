"""Moving replicas (AlterPartitionReassignments, guarded as KIP-860 has it)."""

from collections.abc import Iterable, Mapping, Sequence

from kdeclare.cluster.port import Cluster, Fault, FaultKind, Result
from kdeclare.kinds.query import Query
from kdeclare.kinds.secrets import SecretSource
from kdeclare.kinds.verbs.base import Undo, View, identities, identity_claims, other_topic
from kdeclare.model.changes import FieldChange, FieldOp
from kdeclare.model.ids import TopicPartition
from kdeclare.model.live import Snapshot
from kdeclare.model.operations import Operation


class ReassignPartitions:
    """args: {partitions: {<topic>-<n>: replicas}, allow_replication_factor_change, client_guard}.

    client_guard: the broker cannot guard, and the user chose to trust kdeclare's own check.
    """

    name = "partitions.reassign"
    validates = False
    moves = True
    makes = False
    destroys = False

    def query(self, op: Operation) -> Query:
        """The topics of its partitions."""
        return Query(topics_of(op.args["partitions"]))

    def view(self, op: Operation, live: Snapshot) -> View:
        """The true replicas of its partitions: where an ongoing move is heading."""
        replicas = {p: _list(live.replicas(TopicPartition.parse(p))) for p in op.args["partitions"]}
        return replicas | identities(topics_of(op.args["partitions"]), live)

    def after(self, op: Operation) -> View:
        """The replicas asked for."""
        return {**op.expect, **op.args["partitions"]}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """One a partition."""
        return tuple(
            FieldChange(f"replicas.{name}", FieldOp.CHANGE, op.expect.get(name), replicas)
            for name, replicas in op.args["partitions"].items()
        )

    def claims(self, op: Operation) -> Mapping[str, str]:
        """One a partition, and the identity of their topics."""
        partitions = op.args["partitions"]
        return {p: f"replicas/{p}" for p in partitions} | identity_claims(topics_of(partitions))

    def item(self, op: Operation) -> str:
        """Its partitions are its own, see `claims`."""
        return op.id

    def produces(self, op: Operation) -> frozenset[str]:
        """The replicas of its partitions."""
        return frozenset(f"replicas/{p}" for p in op.args["partitions"])

    def execute(
        self, cluster: Cluster, ops: Sequence[Operation], secrets: SecretSource, *, validate_only: bool
    ) -> Mapping[str, Result]:
        """One request a kind of guard: lifting it for one operation must not lift it for another."""
        results: dict[str, Result] = {}
        for allow in (False, True):
            for unguarded in (False, True):
                group = [op for op in ops if _guard(op) == (allow, unguarded)]
                if group:
                    results |= _send(cluster, group, allow, unguarded)
        return results

    def undo(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Reassign to the recorded ordered lists; a cancel alone does not restore the order."""
        if other_topic(op, now):
            return Undo(conflicts=("the topic itself",))
        back, conflicts, lost = {}, [], []
        for name, target in op.args["partitions"].items():
            before, current = op.expect.get(name), now.get(name)
            if current == before:
                continue
            if current != target:
                conflicts.append(name)
            elif not before:
                lost.append(name)
            else:
                back[name] = before
        resized = any(len(back[name]) != len(op.args["partitions"][name]) for name in back)
        args = {**op.args, "partitions": back, "allow_replication_factor_change": resized} if back else None
        return Undo(self.name, args, tuple(conflicts), tuple(lost))


def topics_of(partitions: Iterable[str]) -> frozenset[str]:
    """The topics of partitions, which are given as ``topic-n``."""
    return frozenset(TopicPartition.parse(p).topic for p in partitions)


def pending(op: Operation, live: Snapshot) -> tuple[str, ...]:
    """The partitions of ``op`` that are still being moved."""
    return tuple(p for p in op.args["partitions"] if TopicPartition.parse(p) in live.moves)


def _partitions(op: Operation) -> Iterable[TopicPartition]:
    return map(TopicPartition.parse, op.args["partitions"])


def _guard(op: Operation) -> tuple[bool, bool]:
    return bool(op.args["allow_replication_factor_change"]), bool(op.args.get("client_guard"))


def _send(cluster: Cluster, ops: Sequence[Operation], allow: bool, unguarded: bool) -> dict[str, Result]:
    targets: dict[TopicPartition, tuple[int, ...] | None] = {
        TopicPartition.parse(p): tuple(replicas)
        for op in ops
        for p, replicas in op.args["partitions"].items()
    }
    expected = {p: tuple(op.expect.get(str(p)) or ()) for op in ops for p in _partitions(op)}
    results = _cancel_moves(cluster, targets, expected)
    rest = {partition: t for partition, t in targets.items() if partition not in results}
    if rest:
        results |= cluster.reassign(rest, allow_replication_factor_change=allow, unguarded=unguarded)
    return {op.id: _joined(op, results) for op in ops}


def _cancel_moves(
    cluster: Cluster,
    targets: Mapping[TopicPartition, tuple[int, ...] | None],
    expected: Mapping[TopicPartition, tuple[int, ...]],
) -> dict[TopicPartition, Result]:
    """Cancel the moves in flight that are to be sent elsewhere; what could not be, by partition.

    Only those that the operation was planned on, which are kdeclare's own, being undone; someone else's
    is left to them. Sent straight back to where it came from, a move never completes
    (docs/kafka-observed.md).
    """
    moves = cluster.moves(sorted({partition.topic for partition in targets}))
    flying: dict[TopicPartition, tuple[int, ...] | None] = {
        p: None for p, target in targets.items() if p in moves and moves[p].target != target
    }
    foreign: dict[TopicPartition, Result] = {
        p: Fault("MOVE_IN_FLIGHT", f"Someone has begun to move it to {list(moves[p].target)}.")
        for p in flying
        if moves[p].target != expected[p]
    }
    flying = {p: None for p in flying if p not in foreign}
    if not flying:
        return foreign
    cancelled = cluster.reassign(flying, allow_replication_factor_change=True)
    faults = {p: fault for p, fault in cancelled.items() if fault is not None}
    return foreign | {p: f for p, f in faults.items() if f.error != "NO_REASSIGNMENT_IN_PROGRESS"}


def _joined(op: Operation, results: Mapping[TopicPartition, Result]) -> Result:
    """One result for one operation; the first refusal speaks, the others are named."""
    faults = {p: results[TopicPartition.parse(p)] for p in op.args["partitions"]}
    bad = {p: fault for p, fault in faults.items() if fault is not None}
    if not bad:
        return None
    name, first = next(iter(bad.items()))
    others = f" ({len(bad) - 1} more partitions were refused)" if len(bad) > 1 else ""
    kind = FaultKind.UNKNOWN if any(f.kind is FaultKind.UNKNOWN for f in bad.values()) else first.kind
    return Fault(first.error, f"{name}: {first.message}{others}", kind)


def _list(replicas: tuple[int, ...] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)
