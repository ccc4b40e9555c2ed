"""The order of execution: what runs together, and why something waits."""

from collections.abc import Mapping, Sequence

from kdeclare.core.operations import Operation
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, plural

_FEW = 3


def levels(operations: Sequence[Operation]) -> list[list[Operation]]:
    """The operations in topological levels: each one stands right after the last that it comes after.

    Within a level, in the order of the plan. What waits in a circle comes last, in one level.
    """
    by_id = {operation.id: operation for operation in operations}
    waits = {o.id: sum(id_ in by_id for id_ in o.after) for o in operations}
    followers: dict[str, list[str]] = {}
    for operation in operations:
        for need in operation.after:
            followers.setdefault(need, []).append(operation.id)
    depth = {id_: 0 for id_, count in waits.items() if not count}
    ready = list(depth)
    for id_ in ready:
        for follower in followers.get(id_, ()):
            depth[follower] = max(depth.get(follower, 0), depth[id_] + 1)
            waits[follower] -= 1
            if not waits[follower]:
                ready.append(follower)
    found: list[list[Operation]] = [[] for _ in range(max((depth[id_] for id_ in ready), default=-1) + 1)]
    stuck = [operation for operation in operations if waits[operation.id]]
    for operation in operations:
        if not waits[operation.id]:
            found[depth[operation.id]].append(operation)
    return [*found, stuck] if stuck else found


def graph_text(operations: Sequence[Operation], style: Style = PLAIN) -> str:
    """The levels as numbered steps, with the reason of every edge; empty without operations."""
    steps = levels(operations)
    if not steps:
        return ""
    title = f"Order of execution ({plural(len(operations), 'operation')}, {plural(len(steps), 'step')}):"
    lines = [style.bold(title)]
    width = max(len(operation.verb) for operation in operations)
    names = {operation.id: _name(operation) for operation in operations}
    for number, step in enumerate(steps, 1):
        for position, operation in enumerate(step):
            label = f"{number}." if position == 0 else ""
            verb = style.cyan(f"{clean(operation.verb):<{width}}")
            lines.append(f"  {label:<4}{verb}  {clean(str(operation.resource))}")
            lines += [
                style.dim(f"      {'':<{width}}  └ after {text}") for text in _reasons(operation, names)
            ]
    return "".join(f"{line}\n" for line in lines)


def _reasons(operation: Operation, names: Mapping[str, str]) -> list[str]:
    """What it comes after, and why; many with one reason in one line."""
    by_reason: dict[str, list[str]] = {}
    for before in sorted(operation.after):
        by_reason.setdefault(clean(operation.after[before]), []).append(names.get(before, clean(before)))
    lines = []
    for reason, found in by_reason.items():
        shown = found if len(found) <= _FEW else [f"{found[0]} and {len(found) - 1:,} more"]
        lines += [f"{name}: {reason}" if reason else name for name in shown]
    return lines


def _name(operation: Operation) -> str:
    return clean(f"{operation.verb} {operation.resource}")
