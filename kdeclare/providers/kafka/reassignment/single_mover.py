"""Each partition is moved once in a plan, whichever resources want it moved."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.core.operations import Operation
from kdeclare.core.registry import KINDS, type_of
from kdeclare.providers.kafka.operations.partitions import get_targets, part
from kdeclare.providers.kafka.reassignment.completion import moves_replicas


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
