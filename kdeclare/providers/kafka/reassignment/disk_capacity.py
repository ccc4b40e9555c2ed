"""Whether the brokers have room for the copies that moves make: a full disk stops a broker."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kdeclare.core.diagnostics import Diagnostic, denied
from kdeclare.core.faults import Fault
from kdeclare.core.operations import Operation
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.operations.partitions import get_targets
from kdeclare.providers.kafka.port import Cluster, LogDir
from kdeclare.providers.kafka.reassignment.completion import moves_replicas
from kdeclare.providers.kafka.reassignment.operations.arguments import find_pace
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
    before = op.expect.get(partition) or ()
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
            before = op.expect.get(name) or ()
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
