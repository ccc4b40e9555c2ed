"""Check the moves of a plan: disk capacity, replication factor guard, and conflicts with other moves."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, denied, warning
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.registry import KINDS, get_operation_type
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.collector import select_topics
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState, Move
from kdeclare.providers.kafka.operations.kafka_operation_type import build_identity_view
from kdeclare.providers.kafka.operations.partitions import (
    collect_topics,
    get_replicas_before,
    get_targets,
    list_replicas,
    select_partitions,
)
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.completion import is_reassignment
from kdeclare.providers.kafka.reassignment.operations.arguments import ReassignArgs, get_pace
from kdeclare.providers.kafka.reassignment.operations.reassign import build_await_operation
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.request_values import LogDir

NO_ROOM = "no-room"
_GIB = 2**30


def check_disk_capacity(operations: Sequence[Operation], cluster: Cluster, pace: Pace) -> list[Diagnostic]:
    """Return a denial for each resource whose moves exceed the free disk space of a broker (KIP-827).

    A broker deletes outgoing replicas only after the incoming replicas are complete, so the deletion frees
    space only for later batches. If a broker does not report its free space, the space is assumed to be
    sufficient.

    pace: the pace of moves whose manifest sets no pace.
    """
    moves = [op for op in operations if is_reassignment(op)]
    topics = {
        TopicPartition.parse(p).topic for op in moves for p in get_targets(op) if _list_new_brokers(op, p)
    }
    if not topics:
        return []
    try:
        log_dirs = cluster.log_dirs(sorted(topics))
    except Fault:  # for example, the principal does not have permission to describe log directories
        return []
    sizes = _collect_sizes(log_dirs)
    batch_size = min((get_pace(op).over(pace).batch_size or len(sizes) for op in moves), default=0)
    free_bytes = _collect_free_bytes(log_dirs)
    needed_by_full_broker = {
        b: need
        for b, need in _compute_needed_bytes(moves, sizes, batch_size).items()
        if need > free_bytes.get(b, need)
    }
    diagnostics: dict[str, Diagnostic] = {}
    for op in moves:
        broker = next(
            (b for p in get_targets(op) for b in _list_new_brokers(op, p) if b in needed_by_full_broker), None
        )
        if broker is not None:
            resource = str(op.resource)
            diagnostics.setdefault(
                resource, _report_no_room(resource, broker, needed_by_full_broker[broker], free_bytes[broker])
            )
    return list(diagnostics.values())


def _list_new_brokers(op: Operation, partition: str) -> list[int]:
    replicas_before = get_replicas_before(op, partition)
    return [broker for broker in get_targets(op)[partition] if broker not in replicas_before]


def _collect_sizes(log_dirs: Mapping[int, Sequence[LogDir]]) -> dict[TopicPartition, int]:
    """Return the size of the largest replica of each partition, in bytes."""
    sizes: dict[TopicPartition, int] = {}
    for broker_log_dirs in log_dirs.values():
        for log_dir in broker_log_dirs:
            for partition, size in log_dir.sizes.items():
                sizes[partition] = max(size, sizes.get(partition, 0))
    return sizes


def _compute_needed_bytes(
    moves: Iterable[Operation], sizes: Mapping[TopicPartition, int], batch_size: int
) -> dict[int, int]:
    """Return the maximum number of additional bytes that each broker needs during the moves.

    The result is the larger of two numbers: the growth of the broker after all moves, and the size of the
    largest batch that can arrive on the broker.
    """
    arriving_sizes: dict[int, list[int]] = {}
    leaving_bytes: Counter[int] = Counter()
    for op in moves:
        for name, target in get_targets(op).items():
            size = sizes.get(TopicPartition.parse(name), 0)
            replicas_before = get_replicas_before(op, name)
            for broker in _list_new_brokers(op, name):
                arriving_sizes.setdefault(broker, []).append(size)
            leaving_bytes.update({broker: size for broker in replicas_before if broker not in target})
    return {
        broker: max(sum(coming) - leaving_bytes[broker], sum(sorted(coming, reverse=True)[:batch_size]))
        for broker, coming in arriving_sizes.items()
    }


def _collect_free_bytes(log_dirs: Mapping[int, Sequence[LogDir]]) -> dict[int, int]:
    """Return the free bytes of each broker that reports its free space."""
    usable_bytes = {b: [f.usable for f in found if f.usable is not None] for b, found in log_dirs.items()}
    return {broker: sum(usable) for broker, usable in usable_bytes.items() if usable}


def _report_no_room(resource: str, broker: int, needed_bytes: int, free_bytes: int) -> Diagnostic:
    return denied(
        NO_ROOM,
        "Not enough disk space",
        f"The moves of this plan need up to {needed_bytes / _GIB:.1f} GiB of additional disk space on broker "
        f"{broker}, but the broker has only {free_bytes / _GIB:.1f} GiB of free space.",
        hint="Choose other brokers, use smaller batches, or free up disk space. Pass --no-preflight to skip "
        "this check.",
        resource=resource,
    )


def with_client_guard(op: Operation) -> Operation:
    """Make kdeclare itself check the replication factor of a move, because the brokers cannot.

    Operations of other types are returned unchanged.
    """
    if not is_reassignment(op):
        return op
    return replace(op, args=replace(get_arguments(op, ReassignArgs), client_guard=True))


def is_unguarded(op: Operation, live: KafkaState) -> bool:
    """Whether a move needs the replication factor guard, but no guard is active."""
    args = op.args
    wants_guard = isinstance(args, ReassignArgs) and not args.allow_replication_factor_change
    return wants_guard and not live.cluster.rf_guard and not get_arguments(op, ReassignArgs).client_guard


def report_unguarded(op: Operation) -> Diagnostic:
    """Report, with the error message of KIP-860, that brokers do not support the replication factor guard."""
    return denied(
        "replication-factor-guard",
        "Replication factor guard not supported",
        "The broker does not support the AllowReplicationFactorChange option for the "
        "AlterPartitionReassignments API. Consider re-sending the request without the option or updating the "
        f"server version. The replicas of {op.resource} are not moved.",
        hint="Upgrade the brokers to Kafka 4.1 or later, or pass --rf-guard=client. With this option, "
        "kdeclare compares the replication factors itself before it sends the request, but cannot detect a "
        "change between the comparison and the request.",
        resource=str(op.resource),
    )


def add_await_steps(
    operations: Sequence[Operation], blocked_resources: Collection[ResourceId], live: KafkaState
) -> tuple[Operation, ...]:
    """For each of the ``blocked_resources``, add a step that waits until the blocking moves have finished."""
    operations_by_resource: dict[ResourceId, list[Operation]] = defaultdict(list)
    for op in operations:
        if op.resource in blocked_resources:
            operations_by_resource[op.resource].append(op)
    moves: dict[str, dict[TopicPartition, Move]] = defaultdict(dict)
    for partition, move in sorted(live.moves.items()):
        moves[partition.topic][partition] = move
    result: list[Operation] = []
    for resource, own_operations in sorted(operations_by_resource.items()):
        targets = _find_blocking_targets(own_operations, moves)
        if not targets:
            continue
        await_operation = build_await_operation(str(resource), resource, targets, None)
        await_operation = replace(
            await_operation,
            expect={**list_replicas(targets), **build_identity_view(collect_topics(targets), live)},
        )
        await_needs = {await_operation.id: "waits for a move in progress"}
        result += [
            await_operation,
            *(replace(op, needs={**op.needs, **await_needs}) for op in own_operations),
        ]
    delayed_ids = {op.id for op in result}
    other_operations = [op for op in operations if op.id not in delayed_ids]
    return (*other_operations, *result)


def _find_blocking_targets(
    operations: Sequence[Operation], moves: Mapping[str, Mapping[TopicPartition, Move]]
) -> Mapping[str, tuple[int, ...]]:
    """Return, by partition, the targets of the in-flight moves that affect partitions of the operations.

    moves: all in-flight moves, by topic.
    """
    named_partitions = {p for op in operations if is_reassignment(op) for p in get_targets(op)}
    whole_topics = {
        t
        for op in operations
        if not is_reassignment(op)
        for t in select_topics(get_operation_type(op).select(op))
    }
    return {
        str(partition): move.target
        for topic in sorted(whole_topics | {TopicPartition.parse(p).topic for p in named_partitions})
        for partition, move in moves.get(topic, {}).items()
        if topic in whole_topics or str(partition) in named_partitions
    }


def drop_duplicate_moves(operations: Sequence[Operation]) -> tuple[tuple[Operation, ...], list[Diagnostic]]:
    """Drop duplicate moves of a partition.

    Return the operations that remain, and warnings about dropped moves. If resources of several kinds move
    the same partition, only the move of the kind that is registered first remains.
    """
    ranks = {name: rank for rank, name in enumerate(KINDS)}
    movers: dict[str, Operation] = {}
    remaining: dict[str, Operation | None] = {op.id: op for op in operations}
    diagnostics: list[Diagnostic] = []
    moves = [op for op in operations if is_reassignment(op)]
    for op in sorted(moves, key=lambda op: (ranks.get(op.resource.kind, 0), op.resource, op.id)):
        partitions = get_targets(op)
        duplicates = sorted(p for p in partitions if movers.setdefault(p, op).resource != op.resource)
        if duplicates:
            remaining_partitions = [p for p in partitions if p not in duplicates]
            remaining[op.id] = (
                select_partitions(get_operation_type(op), op, remaining_partitions)
                if remaining_partitions
                else None
            )
            diagnostics.append(_warn_moved_by_other(op, duplicates, movers[duplicates[0]]))
    return tuple(_prune_needs(op, remaining) for op in remaining.values() if op is not None), diagnostics


def _prune_needs(op: Operation, remaining: Mapping[str, Operation | None]) -> Operation:
    """Remove dependencies on operations that were dropped."""
    needs = {id_: why for id_, why in op.needs.items() if remaining[id_] is not None}
    return op if len(needs) == len(op.needs) else replace(op, needs=needs)


def _warn_moved_by_other(op: Operation, duplicates: Sequence[str], mover: Operation) -> Diagnostic:
    other_count = len(duplicates) - 1
    others_text = f" and {other_count} more partition{'s' if other_count > 1 else ''}" if other_count else ""
    return warning(
        "moved-by-another",
        "Partitions moved by another resource",
        f"In this plan, {mover.resource} moves {duplicates[0]}{others_text}. {op.resource} therefore does "
        f"not move {'these partitions' if other_count else 'this partition'}.",
        hint="Plan again after this plan has been applied.",
        resource=str(op.resource),
    )
