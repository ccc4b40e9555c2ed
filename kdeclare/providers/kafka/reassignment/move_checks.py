"""What a plan's moves must not do: fill disks, change replication factors unguarded, meet other moves."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, denied, warning
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.binding import get_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.registry import KINDS, type_of
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.collector import select_topics
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState, Move
from kdeclare.providers.kafka.operations.kafka_operation_type import identities
from kdeclare.providers.kafka.operations.partitions import (
    get_replicas_before,
    get_targets,
    list_replicas,
    part,
    topics_of,
)
from kdeclare.providers.kafka.port import Cluster, LogDir
from kdeclare.providers.kafka.reassignment.completion import moves_replicas
from kdeclare.providers.kafka.reassignment.operations.arguments import ReassignArgs, find_pace
from kdeclare.providers.kafka.reassignment.operations.reassign import waiting
from kdeclare.providers.kafka.reassignment.pace import Pace

NO_ROOM = "no-room"
_GIB = 2**30


def lack_of_room(operations: Sequence[Operation], cluster: Cluster, pace: Pace) -> list[Diagnostic]:
    """A denial for each resource that would put more on a broker than its disks can take (KIP-827).

    What leaves a broker goes after what comes has come, so it makes room for later batches only. What the
    brokers do not say is taken for enough. pace: of moves that have none of their own.
    """
    moves = [op for op in operations if moves_replicas(op)]
    topics = {TopicPartition.parse(p).topic for op in moves for p in get_targets(op) if _copies(op, p)}
    if not topics:
        return []
    try:
        folders = cluster.log_dirs(sorted(topics))
    except Fault:  # not everybody may ask
        return []
    sizes = _sizes(folders)
    batch = min((find_pace(op).over(pace).batch_size or len(sizes) for op in moves), default=0)
    free = _free(folders)
    full = {b: need for b, need in _needed(moves, sizes, batch).items() if need > free.get(b, need)}
    found: dict[str, Diagnostic] = {}
    for op in moves:
        broker = next((b for p in get_targets(op) for b in _copies(op, p) if b in full), None)
        if broker is not None:
            resource = str(op.resource)
            found.setdefault(resource, _no_room(resource, broker, full[broker], free[broker]))
    return list(found.values())


def _copies(op: Operation, partition: str) -> list[int]:
    before = get_replicas_before(op, partition)
    return [broker for broker in get_targets(op)[partition] if broker not in before]


def _sizes(folders: Mapping[int, Sequence[LogDir]]) -> dict[TopicPartition, int]:
    """Bytes of the largest replica of each partition."""
    sizes: dict[TopicPartition, int] = {}
    for found in folders.values():
        for folder in found:
            for partition, size in folder.sizes.items():
                sizes[partition] = max(size, sizes.get(partition, 0))
    return sizes


def _needed(moves: Iterable[Operation], sizes: Mapping[TopicPartition, int], batch: int) -> dict[int, int]:
    """Bytes that each broker needs at the most: what it gains in all, or its largest batch."""
    arriving: dict[int, list[int]] = {}
    leaving: Counter[int] = Counter()
    for op in moves:
        for name, after in get_targets(op).items():
            size = sizes.get(TopicPartition.parse(name), 0)
            before = get_replicas_before(op, name)
            for broker in _copies(op, name):
                arriving.setdefault(broker, []).append(size)
            leaving.update({broker: size for broker in before if broker not in after})
    return {
        broker: max(sum(coming) - leaving[broker], sum(sorted(coming, reverse=True)[:batch]))
        for broker, coming in arriving.items()
    }


def _free(folders: Mapping[int, Sequence[LogDir]]) -> dict[int, int]:
    """Usable bytes of the brokers that say."""
    known = {b: [f.usable for f in found if f.usable is not None] for b, found in folders.items()}
    return {broker: sum(usable) for broker, usable in known.items() if usable}


def _no_room(resource: str, broker: int, growth: int, free: int) -> Diagnostic:
    return denied(
        NO_ROOM,
        "No room on a broker",
        f"The moves of this plan would put {growth / _GIB:.1f} GiB more at a time on broker {broker}, "
        f"which has {free / _GIB:.1f} GiB left.",
        hint="Choose other brokers, smaller batches, or make room; --no-preflight leaves it to you.",
        resource=resource,
    )


def with_client_guard(op: Operation) -> Operation:
    """``op`` with kdeclare as its guard, if it moves replicas: for brokers that have none."""
    if not moves_replicas(op):
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
    theirs: dict[ResourceId, list[Operation]] = defaultdict(list)
    for op in operations:
        if op.resource in stopped:
            theirs[op.resource].append(op)
    moves: dict[str, dict[TopicPartition, Move]] = defaultdict(dict)
    for partition, move in sorted(live.moves.items()):
        moves[partition.topic][partition] = move
    result: list[Operation] = []
    for resource, mine in sorted(theirs.items()):
        targets = _in_the_way(mine, moves)
        if not targets:
            continue
        wait = waiting(str(resource), resource, targets, None)
        wait = replace(wait, expect={**list_replicas(targets), **identities(topics_of(targets), live)})
        because = {wait.id: "waits for a move that is under way"}
        result += [wait, *(replace(op, needs={**op.needs, **because}) for op in mine)]
    delayed = {op.id for op in result}
    others = [op for op in operations if op.id not in delayed]
    return (*others, *result)


def _in_the_way(
    operations: Sequence[Operation], moves: Mapping[str, Mapping[TopicPartition, Move]]
) -> Mapping[str, tuple[int, ...]]:
    """Where the partitions are heading that these operations are about. moves: by topic, in order."""
    named = {p for op in operations if moves_replicas(op) for p in get_targets(op)}
    whole = {t for op in operations if not moves_replicas(op) for t in select_topics(type_of(op).select(op))}
    return {
        str(partition): move.target
        for topic in sorted(whole | {TopicPartition.parse(p).topic for p in named})
        for partition, move in moves.get(topic, {}).items()
        if topic in whole or str(partition) in named
    }


def leave_to_one_mover(operations: Sequence[Operation]) -> tuple[tuple[Operation, ...], list[Diagnostic]]:
    """Return the operations with each partition moved once, and what is left to others.

    What a resource of an earlier kind moves, one of a later kind leaves to it.
    """
    ranks = {name: rank for rank, name in enumerate(KINDS)}
    movers: dict[str, Operation] = {}
    left: dict[str, Operation | None] = {op.id: op for op in operations}
    said: list[Diagnostic] = []
    moves = [op for op in operations if moves_replicas(op)]
    for op in sorted(moves, key=lambda op: (ranks.get(op.resource.kind, 0), op.resource, op.id)):
        partitions = get_targets(op)
        taken = sorted(p for p in partitions if movers.setdefault(p, op).resource != op.resource)
        if taken:
            rest = [p for p in partitions if p not in taken]
            left[op.id] = part(type_of(op), op, rest) if rest else None
            said.append(_moved_by(op, taken, movers[taken[0]]))
    return tuple(_unlinked(op, left) for op in left.values() if op is not None), said


def _unlinked(op: Operation, left: Mapping[str, Operation | None]) -> Operation:
    """Without edges to what is left to others."""
    needs = {id_: why for id_, why in op.needs.items() if left[id_] is not None}
    return op if len(needs) == len(op.needs) else replace(op, needs=needs)


def _moved_by(op: Operation, taken: Sequence[str], other: Operation) -> Diagnostic:
    more = f" and {len(taken) - 1} more" if len(taken) > 1 else ""
    return warning(
        "moved-by-another",
        "Another resource moves the same partitions",
        f"{taken[0]}{more}: {other.resource} moves them in this plan, so {op.resource} leaves them for now.",
        hint="Plan again once that has been applied.",
        resource=str(op.resource),
    )
