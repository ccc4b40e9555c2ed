"""Show the order in which operations run, as text and as a graph.

The graph highlights the critical path: the longest chain of dependent operations.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import format_count, sanitize_for_terminal

MAX_SINGLE_NODES = 24
"""The maximum number of operations in a graph that shows each operation as a separate node.

If a plan has more operations, they are grouped, and each group is a node.
"""

MAX_COLUMNS = 24
"""The maximum number of columns in a graph whose nodes are groups of operations."""

_SWEEPS = 4

NodePair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the graph: one operation, or a group of operations with the same kind and verb.

    column: the column, counted from the left.
    row: the row, counted from the top of the column.
    operations: the indexes of the operations in the plan.
    critical: whether an operation of the node is on the critical path, the longest chain of dependent
        operations.
    """

    column: int
    row: int
    kind: str
    verb: str
    operations: tuple[int, ...]
    critical: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge of the graph: operations of node ``target`` depend on operations of node ``source``.

    count: the number of dependencies between the operations of the two nodes.
    critical: whether the edge is on the critical path, the longest chain of dependent operations.
    """

    source: int
    target: int
    count: int
    critical: bool = False


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """The layout of a graph of operations.

    columns: for each column, the numbers of its first and its last step. Steps are counted from 1.
    critical: the indexes of the operations on the critical path, the longest chain of dependent operations.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    columns: tuple[tuple[int, int], ...]
    critical: tuple[int, ...]


def find_critical_path(
    operations: Sequence[Operation], seconds: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """Return the ids of the operations on the critical path, in the order in which they run.

    The critical path is the longest chain of dependent operations. If several chains have this length, the
    first one in the plan is used. If no operation depends on another, return an empty result.

    seconds: the duration of each operation by operation id. Without durations, the length of a chain is its
        number of operations.
    """
    seconds_to_end: dict[str, float] = {}
    predecessor_by_id: dict[str, str | None] = {}
    for step in list_levels(operations):
        for op in step:
            known_predecessors = [id_ for id_ in op.after if id_ in seconds_to_end]
            slowest_predecessor = max(
                sorted(known_predecessors), key=lambda id_: seconds_to_end[id_], default=None
            )
            predecessor_by_id[op.id] = slowest_predecessor
            own_seconds = 1.0 if seconds is None else seconds.get(op.id, 0.0)
            seconds_to_end[op.id] = own_seconds + (
                seconds_to_end[slowest_predecessor] if slowest_predecessor is not None else 0.0
            )
    current_id = max((op.id for op in operations), key=lambda id_: seconds_to_end[id_], default=None)
    path: list[str] = []
    while current_id is not None:
        path.append(current_id)
        current_id = predecessor_by_id[current_id]
    return tuple(reversed(path)) if len(path) > 1 else ()


def build_graph_layout(
    operations: Sequence[Operation], seconds: Mapping[str, float] | None = None
) -> GraphLayout:
    """Compute the layout of the graph of a plan's operations.

    seconds: the duration of each operation by operation id, if the plan was run.
    """
    steps = list_levels(operations)
    is_grouped = len(operations) > MAX_SINGLE_NODES
    columns = _group_steps_into_columns(steps) if is_grouped else [(n, n) for n in range(len(steps))]
    positions = {op.id: number for number, op in enumerate(operations)}
    column_of = {op.id: c for c, (a, b) in enumerate(columns) for step in steps[a : b + 1] for op in step}
    members: dict[tuple[int, str, str, str], list[int]] = {}
    for number, op in enumerate(operations):
        group_key = "" if is_grouped else op.id
        members.setdefault((column_of[op.id], op.resource.kind, op.verb, group_key), []).append(number)
    critical_positions = [positions[id_] for id_ in find_critical_path(operations, seconds)]
    critical_set = frozenset(critical_positions)
    nodes = [
        Node(column, 0, kind, verb, tuple(found), not critical_set.isdisjoint(found))
        for (column, kind, verb, _), found in sorted(members.items(), key=lambda m: (m[0][0], m[1][0]))
    ]
    edges = _build_edges(operations, positions, nodes, critical_positions)
    rows = _assign_rows(nodes, edges)
    return GraphLayout(
        tuple(replace(node, row=rows[number]) for number, node in enumerate(nodes)),
        edges,
        tuple((first + 1, last + 1) for first, last in columns),
        tuple(critical_positions),
    )


def _group_steps_into_columns(steps: Sequence[Sequence[Operation]]) -> list[tuple[int, int]]:
    """Return the indexes of the first and the last step of each column.

    Consecutive steps with the same kinds and verbs share a column. If the graph still has too many columns,
    alternating steps (such as moving a batch and waiting for it) also share a column. If that is not enough,
    neighboring columns are merged.
    """
    step_signatures = [frozenset((op.resource.kind, op.verb) for op in step) for step in steps]
    column_starts = [
        n for n in range(len(step_signatures)) if not n or step_signatures[n] != step_signatures[n - 1]
    ]
    if len(column_starts) > MAX_COLUMNS:
        column_starts = [
            n
            for i, n in enumerate(column_starts)
            if i < 2 or step_signatures[n] != step_signatures[column_starts[i - 2]]
        ]
    steps_per_column = -(-len(column_starts) // MAX_COLUMNS) or 1
    return [(a, b - 1) for a, b in pairwise([*column_starts[::steps_per_column], len(steps)])]


def _build_edges(
    operations: Sequence[Operation],
    positions: Mapping[str, int],
    nodes: Sequence[Node],
    critical_positions: Sequence[int],
) -> tuple[Edge, ...]:
    """Build the edges between different nodes.

    An edge is omitted if a longer path connects the same nodes, unless the edge is on the critical path.
    """
    node_of = {number: at for at, node in enumerate(nodes) for number in node.operations}
    counts: Counter[tuple[int, int]] = Counter()
    for number, op in enumerate(operations):
        counts.update((node_of[positions[id_]], node_of[number]) for id_ in op.after if id_ in positions)
    critical = {(node_of[a], node_of[b]) for a, b in pairwise(critical_positions)}
    edges = {pair: count for pair, count in sorted(counts.items()) if pair[0] != pair[1]}
    for source, target in _list_long_edges(nodes, edges):
        if (source, target) not in critical and _has_other_path(source, target, edges):
            del edges[source, target]
    return tuple(Edge(*pair, count, pair in critical) for pair, count in edges.items())


def _list_long_edges(nodes: Sequence[Node], edges: Iterable[NodePair]) -> list[NodePair]:
    """Return the edges between columns that are not adjacent."""
    return [(a, b) for a, b in edges if nodes[b].column - nodes[a].column > 1]


def _has_other_path(source: int, target: int, edges: Iterable[NodePair]) -> bool:
    """Whether ``target`` can be reached from ``source`` without the direct edge between them."""
    targets: dict[int, list[int]] = {}
    for a, b in edges:
        if (a, b) != (source, target):
            targets.setdefault(a, []).append(b)
    visited, pending = {source}, [source]
    while pending:
        unvisited = {b for b in targets.get(pending.pop(), ()) if b not in visited}
        visited |= unvisited
        pending += unvisited
    return target in visited


def _assign_rows(nodes: Sequence[Node], edges: Sequence[Edge]) -> list[int]:
    """Assign each node to a row close to the rows of its neighbors, so that few edges cross (Sugiyama)."""
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

    def get_offset(number: int) -> float:
        """Return how many rows node ``number`` is below the middle of its column; negative if above."""
        return rows[number] - (heights[nodes[number].column] - 1) / 2

    for sweep in range(_SWEEPS):
        neighbors, is_reversed = (targets, True) if sweep % 2 else (sources, False)
        for column in sorted(columns, reverse=is_reversed):
            barycenters = {
                n: sum(map(get_offset, neighbors[n])) / len(neighbors[n])
                if neighbors.get(n)
                else get_offset(n)
                for n in columns[column]
            }
            columns[column].sort(key=lambda n: (barycenters[n], rows[n]))
            rows |= {number: row for row, number in enumerate(columns[column])}
    return [rows[number] for number in range(len(nodes))]


_MAX_NAMES_PER_REASON = 3


def list_levels(operations: Sequence[Operation]) -> list[list[Operation]]:
    """Group operations into steps. An operation belongs to the step right after its last predecessor.

    Within a step, operations have the order of the plan. The last step contains operations that are in a
    dependency cycle or depend on one.
    """
    by_id = {operation.id: operation for operation in operations}
    pending_counts = {o.id: sum(id_ in by_id for id_ in o.after) for o in operations}
    followers: dict[str, list[str]] = {}
    for operation in operations:
        for predecessor in operation.after:
            followers.setdefault(predecessor, []).append(operation.id)
    depth = {id_: 0 for id_, count in pending_counts.items() if not count}
    ready = list(depth)
    for id_ in ready:
        for follower in followers.get(id_, ()):
            depth[follower] = max(depth.get(follower, 0), depth[id_] + 1)
            pending_counts[follower] -= 1
            if not pending_counts[follower]:
                ready.append(follower)
    level_operations: list[list[Operation]] = [
        [] for _ in range(max((depth[id_] for id_ in ready), default=-1) + 1)
    ]
    cyclic_operations = [operation for operation in operations if pending_counts[operation.id]]
    for operation in operations:
        if not pending_counts[operation.id]:
            level_operations[depth[operation.id]].append(operation)
    return [*level_operations, cyclic_operations] if cyclic_operations else level_operations


def render_graph_text(operations: Sequence[Operation], style: Style = PLAIN) -> str:
    """Render the operations in numbered steps, with their predecessors and the reasons for the order.

    If there are no operations, return an empty string.
    """
    steps = list_levels(operations)
    if not steps:
        return ""
    title = (
        f"Order of execution ({format_count(len(operations), 'operation')}, "
        f"{format_count(len(steps), 'step')}):"
    )
    lines = [style.bold(title)]
    width = max(len(operation.verb) for operation in operations)
    names_by_id = {operation.id: _format_operation(operation) for operation in operations}
    for number, step in enumerate(steps, 1):
        for position, operation in enumerate(step):
            label = f"{number}." if position == 0 else ""
            verb = style.cyan(f"{sanitize_for_terminal(operation.verb):<{width}}")
            lines.append(f"  {label:<4}{verb}  {sanitize_for_terminal(str(operation.resource))}")
            lines += [
                style.dim(f"      {'':<{width}}  └ after {text}")
                for text in _list_reasons(operation, names_by_id)
            ]
    return "".join(f"{line}\n" for line in lines)


def _list_reasons(operation: Operation, names: Mapping[str, str]) -> list[str]:
    """Return the lines that explain why an operation runs after its predecessors.

    Each line names a predecessor and the reason. If many predecessors have the same reason, a single line
    names the first of them and counts the others.
    """
    by_reason: dict[str, list[str]] = {}
    for predecessor_id in sorted(operation.after):
        by_reason.setdefault(sanitize_for_terminal(operation.after[predecessor_id]), []).append(
            names.get(predecessor_id, sanitize_for_terminal(predecessor_id))
        )
    lines = []
    for reason, predecessor_names in by_reason.items():
        shown_names = (
            predecessor_names
            if len(predecessor_names) <= _MAX_NAMES_PER_REASON
            else [f"{predecessor_names[0]} and {len(predecessor_names) - 1:,} more"]
        )
        lines += [f"{name}: {reason}" if reason else name for name in shown_names]
    return lines


def _format_operation(operation: Operation) -> str:
    return sanitize_for_terminal(f"{operation.verb} {operation.resource}")
