"""What must hold before replicas are moved: the replication factor is guarded, and no other move is on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, denied
from kdeclare.core.ids import ResourceId
from kdeclare.core.operation_arguments import get_arguments
from kdeclare.core.operations import Operation
from kdeclare.core.registry import type_of
from kdeclare.providers.kafka.collector import select_topics
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import get_targets, list_replicas, topics_of
from kdeclare.providers.kafka.reassignment.completion import moves_replicas
from kdeclare.providers.kafka.reassignment.operations.arguments import ReassignArgs
from kdeclare.providers.kafka.reassignment.operations.moves import waiting
from kdeclare.providers.kafka.topic_identity import identities


def with_guard(op: Operation, live: KafkaState, *, client: bool) -> Operation:
    """``op`` with kdeclare as its guard where the brokers have none and people chose that."""
    if not moves_replicas(op) or live.cluster.rf_guard or not client:
        return op
    return replace(op, args=replace(get_arguments(op, ReassignArgs), client_guard=True))


def lacks_guard(op: Operation, live: KafkaState) -> bool:
    """Whether nobody would guard a move that is to be guarded."""
    args = op.args
    guarded = isinstance(args, ReassignArgs) and not args.allow_replication_factor_change
    return guarded and not live.cluster.rf_guard and not get_arguments(op, ReassignArgs).client_guard


def unguarded(op: Operation) -> Diagnostic:
    """The brokers know version 0 of the request only; in the words of KIP-860."""
    return denied(
        "replication-factor-guard",
        "The brokers cannot guard the replication factor",
        "The broker does not support the AllowReplicationFactorChange option for the "
        "AlterPartitionReassignments API. Consider re-sending the request without the option or updating the "
        f"server version. So {op.resource} is not reassigned.",
        hint="Upgrade to Kafka 4.1, or take --rf-guard=client: kdeclare then compares the sizes itself right "
        "before the request, and a change in between goes unseen.",
        resource=str(op.resource),
    )


def awaited(
    operations: Sequence[Operation], stopped: Collection[ResourceId], live: KafkaState
) -> tuple[Operation, ...]:
    """With a step for each of the ``stopped`` resources that waits for the moves in its way."""
    result: list[Operation] = []
    for resource in sorted(stopped):
        mine = [op for op in operations if op.resource == resource]
        targets = _in_the_way(mine, live)
        if not mine or not targets:
            continue
        wait = waiting(str(resource), resource, targets, None)
        wait = replace(wait, expect={**list_replicas(targets), **identities(topics_of(targets), live)})
        because = {wait.id: "waits for a move that is under way"}
        result += [wait, *(replace(op, needs={**op.needs, **because}) for op in mine)]
    others = [op for op in operations if op.resource not in stopped or op.id not in {o.id for o in result}]
    return (*others, *result)


def _in_the_way(operations: Sequence[Operation], live: KafkaState) -> Mapping[str, tuple[int, ...]]:
    """Where the partitions are heading that these operations are about."""
    named = {p for op in operations if moves_replicas(op) for p in get_targets(op)}
    whole = {t for op in operations if not moves_replicas(op) for t in select_topics(type_of(op).select(op))}
    return {
        str(partition): move.target
        for partition, move in sorted(live.moves.items())
        if str(partition) in named or partition.topic in whole
    }
