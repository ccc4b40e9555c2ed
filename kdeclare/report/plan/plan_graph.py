"""The order of execution: as text, and as a drawing with columns by depth and the critical path."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from kdeclare.core.frozen import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import clean, plural

ALONE = 24
"""Of so many operations each is a node of its own."""

WIDEST = 24
"""How many columns a drawing with groups has at most."""

_SWEEPS = 4

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Node:
    """One operation, or several that are alike.

    column, row: from the left and from the top of the column. operations: places in the order of the plan.
    critical: whether one of them is on the critical path.
    """

    column: int
    row: int
    kind: str
    verb: str
    operations: tuple[int, ...]
    critical: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """Operations of the node ``target`` come after some of ``source``; count: pairs of which that is so."""

    source: int
    target: int
    count: int
    critical: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """columns: the first and the last step of each, counted from 1. critical: operations by their places."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    columns: tuple[tuple[int, int], ...]
    critical: tuple[int, ...]


def critical_path(
    operations: Sequence[Operation], seconds: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """The ids of the chain that takes longest, first to last; of equal ones the first in the plan's order.

    seconds: how long operations took; without it, the chain of the most operations. Empty where nothing
    waits for anything.
    """
    length: dict[str, float] = {}
    before: dict[str, str | None] = {}
    for step in levels(operations):
        for op in step:
            needs = [id_ for id_ in op.after if id_ in length]
            last = max(sorted(needs), key=lambda id_: length[id_], default=None)
            before[op.id] = last
            own = 1.0 if seconds is None else seconds.get(op.id, 0.0)
            length[op.id] = own + (length[last] if last is not None else 0.0)
    at = max((op.id for op in operations), key=lambda id_: length[id_], default=None)
    path: list[str] = []
    while at is not None:
        path.append(at)
        at = before[at]
    return tuple(reversed(path)) if len(path) > 1 else ()


def drawing(operations: Sequence[Operation], seconds: Mapping[str, float] | None = None) -> Drawing:
    """The drawing of a plan's operations. seconds: how long they took, where they have been run."""
    steps = levels(operations)
    grouped = len(operations) > ALONE
    columns = _columns(steps) if grouped else [(n, n) for n in range(len(steps))]
    place = {op.id: number for number, op in enumerate(operations)}
    column_of = {op.id: c for c, (a, b) in enumerate(columns) for step in steps[a : b + 1] for op in step}
    members: dict[tuple[int, str, str, str], list[int]] = {}
    for number, op in enumerate(operations):
        alone = "" if grouped else op.id
        members.setdefault((column_of[op.id], op.resource.kind, op.verb, alone), []).append(number)
    path = [place[id_] for id_ in critical_path(operations, seconds)]
    critical = frozenset(path)
    nodes = [
        Node(column, 0, kind, verb, tuple(found), not critical.isdisjoint(found))
        for (column, kind, verb, _), found in sorted(members.items(), key=lambda m: (m[0][0], m[1][0]))
    ]
    edges = _edges(operations, place, nodes, path)
    rows = _rows(nodes, edges)
    return Drawing(
        tuple(replace(node, row=rows[number]) for number, node in enumerate(nodes)),
        edges,
        tuple((first + 1, last + 1) for first, last in columns),
        tuple(path),
    )


def _columns(steps: Sequence[Sequence[Operation]]) -> list[tuple[int, int]]:
    """The first and last step of each column.

    Steps in a row that are alike are one. Where that is too wide, so are those that take turns, as batches
    and the waiting for them do; and where that is still too wide, so many at a time.
    """
    looks = [frozenset((op.resource.kind, op.verb) for op in step) for step in steps]
    starts = [n for n in range(len(looks)) if not n or looks[n] != looks[n - 1]]
    if len(starts) > WIDEST:
        starts = [n for i, n in enumerate(starts) if i < 2 or looks[n] != looks[starts[i - 2]]]
    band = -(-len(starts) // WIDEST) or 1
    return [(a, b - 1) for a, b in pairwise([*starts[::band], len(steps)])]


def _edges(
    operations: Sequence[Operation], place: Mapping[str, int], nodes: Sequence[Node], path: Sequence[int]
) -> tuple[Edge, ...]:
    """Between nodes; what waits within one is not drawn, nor a far edge that follows from others."""
    node_of = {number: at for at, node in enumerate(nodes) for number in node.operations}
    counts: Counter[tuple[int, int]] = Counter()
    for number, op in enumerate(operations):
        counts.update((node_of[place[id_]], node_of[number]) for id_ in op.after if id_ in place)
    critical = {(node_of[a], node_of[b]) for a, b in pairwise(path)}
    edges = {pair: count for pair, count in sorted(counts.items()) if pair[0] != pair[1]}
    for source, target in _far(nodes, edges):
        if (source, target) not in critical and _leads(source, target, edges):
            del edges[source, target]
    return tuple(Edge(*pair, count, pair in critical) for pair, count in edges.items())


def _far(nodes: Sequence[Node], edges: Iterable[Pair]) -> list[Pair]:
    """The edges that would go behind other columns."""
    return [(a, b) for a, b in edges if nodes[b].column - nodes[a].column > 1]


def _leads(source: int, target: int, edges: Iterable[Pair]) -> bool:
    """Whether the other edges lead there too."""
    targets: dict[int, list[int]] = {}
    for a, b in edges:
        if (a, b) != (source, target):
            targets.setdefault(a, []).append(b)
    seen, ahead = {source}, [source]
    while ahead:
        new = {b for b in targets.get(ahead.pop(), ()) if b not in seen}
        seen |= new
        ahead += new
    return target in seen


def _rows(nodes: Sequence[Node], edges: Sequence[Edge]) -> list[int]:
    """The row of each node: near those that it is joined with, so that few edges cross (Sugiyama)."""
    sources: dict[int, list[int]] = {}
    targets: dict[int, list[int]] = {}
    for edge in edges:
        sources.setdefault(edge.target, []).append(edge.source)
        targets.setdefault(edge.source, []).append(edge.target)
    columns: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        columns.setdefault(node.column, []).append(number)
    heights = {column: len(found) for column, found in columns.items()}
    rows = {number: row for found in columns.values() for row, number in enumerate(found)}

    def height(number: int) -> float:
        """Where it stands from the middle of its column."""
        return rows[number] - (heights[nodes[number].column] - 1) / 2

    for sweep in range(_SWEEPS):
        joined, backwards = (targets, True) if sweep % 2 else (sources, False)
        for column in sorted(columns, reverse=backwards):
            middle = {
                n: sum(map(height, joined[n])) / len(joined[n]) if joined.get(n) else height(n)
                for n in columns[column]
            }
            columns[column].sort(key=lambda n: (middle[n], rows[n]))
            rows |= {number: row for row, number in enumerate(columns[column])}
    return [rows[number] for number in range(len(nodes))]


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
