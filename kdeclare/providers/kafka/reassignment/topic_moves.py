"""Build the reassignments that a change to a topic needs."""

from collections.abc import Mapping, Sequence

from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import with_inverse
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.kafka_operation_type import build_identity_view
from kdeclare.providers.kafka.reassignment.operations.arguments import ReassignArgs
from kdeclare.providers.kafka.reassignment.operations.reassign import ReassignPartitions

_REASSIGN = ReassignPartitions()

_ReplicaLists = Sequence[tuple[int, ...]]


def build_topic_moves(
    resource: ResourceId,
    topic: str,
    start: _ReplicaLists,
    target: _ReplicaLists,
    increase: Operation | None,
    live: KafkaState,
) -> tuple[tuple[Operation, ...], tuple[Operation, ...]]:
    """Build at most two reassignments.

    The first tuple contains the operation that moves the partitions that keep their number of replicas. The
    second tuple contains the operation that changes the number of replicas of the other partitions, with the
    replication factor guard off. A tuple is empty if there are no such partitions.

    start, target: the replicas of each partition before and after. increase: the operation that adds
    partitions, if any.
    """

    def build(targets: Mapping[int, tuple[int, ...]], suffix: str, *, resizes: bool) -> tuple[Operation, ...]:
        if not targets:
            return ()
        op = Operation(
            id=f"{_REASSIGN.name}:{resource}{suffix}",
            verb=_REASSIGN.name,
            resource=resource,
            args=ReassignArgs({f"{topic}-{n}": tuple(t) for n, t in targets.items()}, resizes),
            expect={f"{topic}-{n}": list(start[n]) for n in targets} | build_identity_view([topic], live),
            needs={increase.id: "add partitions before reassigning them"} if increase else {},
        )
        return (with_inverse(_REASSIGN, op),)

    differing = {n: target[n] for n in range(len(start)) if tuple(start[n]) != tuple(target[n])}
    moves = build({n: t for n, t in differing.items() if len(t) == len(start[n])}, "", resizes=False)
    resized = {n: t for n, t in differing.items() if len(t) != len(start[n])}
    return moves, build(resized, "#2" if moves else "", resizes=True)
