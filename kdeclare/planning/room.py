"""Whether the brokers have room for the copies that moves make: a full disk stops a broker."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kdeclare.cluster.port import Cluster, Fault, LogDir
from kdeclare.kinds.verbs.registry import VERBS
from kdeclare.model.diagnostics import Diagnostic, denied
from kdeclare.model.ids import TopicPartition
from kdeclare.model.operations import Operation

NO_ROOM = "no-room"
_GIB = 2**30


def lack_of_room(operations: Sequence[Operation], cluster: Cluster) -> list[Diagnostic]:
    """A denial for each resource that would put more on a broker than its disks can take (KIP-827).

    What leaves a broker counts for it; what the brokers do not say is taken for enough.
    """
    moves = [op for op in operations if VERBS[op.verb].moves]
    topics = {TopicPartition.parse(p).topic for op in moves for p in op.args["partitions"] if _copies(op, p)}
    if not topics:
        return []
    try:
        folders = cluster.log_dirs(sorted(topics))
    except Fault:  # not everybody may ask
        return []
    growth = _growth(moves, folders)
    full = {b: growth[b] for b, free in _free(folders).items() if growth[b] > free}
    found: dict[str, Diagnostic] = {}
    for op in moves:
        broker = next((b for p in op.args["partitions"] for b in _copies(op, p) if b in full), None)
        if broker is not None:
            resource = str(op.resource)
            found.setdefault(resource, _no_room(resource, broker, full[broker], _free(folders)[broker]))
    return list(found.values())


def _copies(op: Operation, partition: str) -> list[int]:
    before = op.expect.get(partition) or ()
    return [broker for broker in op.args["partitions"][partition] if broker not in before]


def _growth(moves: Iterable[Operation], folders: Mapping[int, Sequence[LogDir]]) -> Counter[int]:
    """Bytes that each broker gains, less those that it loses."""
    sizes: dict[TopicPartition, int] = {}
    for found in folders.values():
        for folder in found:
            for partition, size in folder.sizes.items():
                sizes[partition] = max(size, sizes.get(partition, 0))
    growth: Counter[int] = Counter()
    for op in moves:
        for name, after in op.args["partitions"].items():
            size = sizes.get(TopicPartition.parse(name), 0)
            before = op.expect.get(name) or ()
            growth.update({broker: size for broker in after if broker not in before})
            growth.subtract({broker: size for broker in before if broker not in after})
    return growth


def _free(folders: Mapping[int, Sequence[LogDir]]) -> dict[int, int]:
    """Usable bytes of the brokers that say."""
    known = {b: [f.usable for f in found if f.usable is not None] for b, found in folders.items()}
    return {broker: sum(usable) for broker, usable in known.items() if usable}


def _no_room(resource: str, broker: int, growth: int, free: int) -> Diagnostic:
    return denied(
        NO_ROOM,
        "No room on a broker",
        f"The moves of this plan would put {growth / _GIB:.1f} GiB more on broker {broker}, which has "
        f"{free / _GIB:.1f} GiB left.",
        hint="Choose other brokers, or make room; --no-preflight leaves it to you.",
        resource=resource,
    )
