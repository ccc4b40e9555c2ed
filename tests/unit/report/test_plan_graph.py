"""The drawn graph of operations: its contents, and a size that remains readable."""

import itertools
import random
from collections import Counter

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.resources.ids import ResourceId
from kdeclare.report.plan.plan_graph import (
    MAX_COLUMNS,
    MAX_SINGLE_NODES,
    build_graph_layout,
    find_critical_path,
    list_levels,
)

OPERATION_TYPES = ("configs.alter", "partitions.reassign", "throttle.set")


def make_operation(id_: str, *after: str, verb: str = "configs.alter", kind: str = "Topic") -> Operation:
    return Operation(
        id_, verb, ResourceId(kind, id_), Arguments(), {}, dict.fromkeys(after, "for a reason"), None, "no"
    )


@st.composite
def draw_operations(draw: st.DrawFn) -> list[Operation]:
    """Generate operations in order; each can depend on any of the earlier ones."""
    dice = random.Random(draw(st.integers(0, 2**32)))
    count, width = draw(st.integers(0, 3 * MAX_SINGLE_NODES)), draw(st.floats(0, 0.3))
    return [
        make_operation(
            f"o{n}", *(f"o{m}" for m in range(n) if dice.random() < width), verb=dice.choice(OPERATION_TYPES)
        )
        for n in range(count)
    ]


def build_networkx_graph(operations: list[Operation], seconds: dict[str, float]) -> "nx.DiGraph[str]":
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from((need, o.id, {"weight": seconds[o.id]}) for o in operations for need in o.after)
    graph.add_edges_from(("start", o.id, {"weight": seconds[o.id]}) for o in operations)
    return graph


@given(draw_operations())
def test_critical_path_without_times_visits_every_level(operations: list[Operation]) -> None:
    path = find_critical_path(operations)
    by_id = {o.id: o for o in operations}
    assert all(first in by_id[second].after for first, second in itertools.pairwise(path))
    steps = len(list_levels(operations))
    assert len(path) == (steps if steps > 1 else 0)


@given(draw_operations(), st.integers(0, 2**32))
def test_critical_path_with_times_is_longest(operations: list[Operation], seed: int) -> None:
    dice = random.Random(seed)
    seconds = {o.id: dice.randrange(1, 100) / 4 for o in operations}
    longest = nx.dag_longest_path_length(build_networkx_graph(operations, seconds)) if operations else 0
    took = sum(seconds[id_] for id_ in find_critical_path(operations, seconds))
    assert took == longest or (not took and longest == max(seconds.values()))


@given(draw_operations())
def test_graph_places_every_operation_once(operations: list[Operation]) -> None:
    drawn = build_graph_layout(operations)
    assert sorted(n for node in drawn.nodes for n in node.operations) == list(range(len(operations)))
    assert len({(node.column, node.row) for node in drawn.nodes}) == len(drawn.nodes)
    for node in drawn.nodes:
        found = [operations[n] for n in node.operations]
        assert {(o.verb, o.resource.kind) for o in found} == {(node.verb, node.kind)}
    if len(operations) <= MAX_SINGLE_NODES:
        assert all(len(node.operations) == 1 for node in drawn.nodes)
    assert [drawn.nodes[at].critical for at in range(len(drawn.nodes))] == [
        not set(drawn.critical).isdisjoint(node.operations) for node in drawn.nodes
    ]


@given(draw_operations())
def test_graph_columns_are_consecutive_levels_within_limit(operations: list[Operation]) -> None:
    drawn = build_graph_layout(operations)
    steps = list_levels(operations)
    assert [n for a, b in drawn.columns for n in range(a, b + 1)] == list(range(1, len(steps) + 1))
    assert len(drawn.columns) <= MAX_COLUMNS or len(operations) <= MAX_SINGLE_NODES
    step_of = {o.id: number for number, step in enumerate(steps, 1) for o in step}
    for node in drawn.nodes:
        first, last = drawn.columns[node.column]
        assert all(first <= step_of[operations[n].id] <= last for n in node.operations)


@given(draw_operations())
def test_graph_edges_imply_all_dependencies(operations: list[Operation]) -> None:
    """Omitted edges are implied by drawn ones, and every drawn edge exists."""
    drawn = build_graph_layout(operations)
    node_of = {operations[n].id: at for at, node in enumerate(drawn.nodes) for n in node.operations}
    pairs = Counter((node_of[need], node_of[o.id]) for o in operations for need in o.after)
    joined: nx.DiGraph[int] = nx.DiGraph((edge.source, edge.target) for edge in drawn.edges)
    joined.add_nodes_from(range(len(drawn.nodes)))
    for (source, target), count in pairs.items():
        assert nx.has_path(joined, source, target)
        assert all(e.count == count for e in drawn.edges if (e.source, e.target) == (source, target))
    assert {(e.source, e.target) for e in drawn.edges} <= pairs.keys()
    assert all(drawn.nodes[e.source].column <= drawn.nodes[e.target].column for e in drawn.edges)


def test_graph_groups_similar_operations() -> None:
    drawn = build_graph_layout(
        [
            *(make_operation(f"c{n}") for n in range(3_000)),
            *(make_operation(f"m{n}", f"c{n}", verb="x") for n in range(3_000)),
        ]
    )
    assert [(n.column, n.verb, len(n.operations)) for n in drawn.nodes] == [
        (0, "configs.alter", 3_000),
        (1, "x", 3_000),
    ]
    assert [(e.source, e.target, e.count, e.critical) for e in drawn.edges] == [(0, 1, 3_000, True)]


@pytest.mark.parametrize("turns", [("move",), ("move", "wait")])
def test_graph_joins_alternating_batches_in_one_column(turns: tuple[str, ...]) -> None:
    batches = [make_operation("b0", "set", verb=turns[0])]
    batches += [make_operation(f"b{n}", f"b{n - 1}", verb=turns[n % len(turns)]) for n in range(1, 400)]
    drawn = build_graph_layout(
        [
            make_operation("set", verb="throttle.set"),
            *batches,
            make_operation("end", "b399", verb="throttle.clear"),
        ]
    )
    assert drawn.columns[0] == (1, 1)
    assert drawn.columns[-1] == (402, 402)
    assert len(drawn.columns) <= 4
    assert len(drawn.critical) == 402


def test_graph_omits_edge_implied_by_others() -> None:
    drawn = build_graph_layout([make_operation("a"), make_operation("b", "a"), make_operation("c", "a", "b")])
    assert [(e.source, e.target) for e in drawn.edges] == [(0, 1), (1, 2)]


def test_graph_puts_operation_beside_its_dependency() -> None:
    drawn = build_graph_layout(
        [
            make_operation("a"),
            make_operation("b"),
            make_operation("c"),
            make_operation("z", "a"),
            make_operation("y", "b"),
            make_operation("x", "c"),
        ]
    )
    rows = {node.operations[0]: node.row for node in drawn.nodes}
    assert (rows[3], rows[4], rows[5]) == (rows[0], rows[1], rows[2])
