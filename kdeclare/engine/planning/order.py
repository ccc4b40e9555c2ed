"""The order of operations, contradictions, and what a refusal takes with it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from kdeclare.core.capabilities import list_exclusive_settings
from kdeclare.core.contradictions import report_contradiction
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired
from kdeclare.core.operations import Operation


class OperationCycleError(ValueError):
    """Operations wait for each other.

    path: their ids; each comes before the next one, and the last before the first.
    """

    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__(" → ".join((*path, path[0])))
        self.path = path


def contradictions(declared: Iterable[Desired]) -> list[Diagnostic]:
    """Two declared resources that want something else of the same thing."""
    first: dict[str, tuple[Desired, Json]] = {}
    found: list[Diagnostic] = []
    for item in sorted(declared, key=lambda d: d.id):
        for thing, wish in list_exclusive_settings(item).items():
            other, their_wish = first.setdefault(thing, (item, wish))
            if their_wish != wish:
                what = f"{thing}: {wish} here, {their_wish} at {other.id}"
                found.append(report_contradiction(item, other, what))
    return found


def without(operations: Sequence[Operation], refused: Iterable[str]) -> tuple[Operation, ...]:
    """The operations that are left when ``refused`` ones and all that need them are taken out."""
    gone = set(refused)
    if not gone:
        return tuple(operations)
    needing: dict[str, list[str]] = {}
    for op in operations:
        for need in op.needs:
            needing.setdefault(need, []).append(op.id)
    spreading = list(gone)
    while spreading:
        for id_ in needing.get(spreading.pop(), ()):
            if id_ not in gone:
                gone.add(id_)
                spreading.append(id_)
    return tuple(op for op in operations if op.id not in gone)


def in_order(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Needed before needing, and by id where that leaves a choice. Raises OperationCycleError."""
    if not any(op.needs or op.follows for op in operations):
        return tuple(sorted(operations, key=lambda op: op.id))
    import networkx as nx  # slow to import, and most plans have no edge

    graph: nx.DiGraph[str] = nx.DiGraph()
    by_id = {op.id: op for op in operations}
    graph.add_nodes_from(by_id)
    graph.add_edges_from((need, op.id) for op in operations for need in op.after)
    try:
        return tuple(by_id[id_] for id_ in nx.lexicographical_topological_sort(graph))
    except nx.NetworkXUnfeasible as cycle:
        path = [start for start, _ in nx.find_cycle(graph)]
        raise OperationCycleError(tuple(path)) from cycle


def find_made_before(
    operations: Sequence[Operation],
    produced: Mapping[str, Set[str]],
    asked: Mapping[str, Set[str]],
) -> dict[str, frozenset[str]]:
    """Of the claims asked for of each operation, those that something it comes after changes.

    operations: in order. produced, asked: claims by operation id. Operations of which nothing is asked, or
    that come after no such change, are left out.

    Which operations come before which is kept as bits, one per operation that makes a claim somebody asks
    for, and only until all that come after an operation have been seen: sets of all predecessors would take
    memory quadratic in the number of operations.
    """
    wanted: frozenset[str] = frozenset().union(*asked.values())
    makers: dict[str, list[int]] = {}
    bits: dict[str, int] = {}
    for op in operations:
        claims = produced[op.id] & wanted
        if claims:
            bits[op.id] = len(bits)
            for claim in claims:
                makers.setdefault(claim, []).append(bits[op.id])
    if not makers:
        return {}
    waiting = Counter(id_ for op in operations for id_ in op.after)
    reached: dict[str, int] = {}  # of each operation, the makers among it and what it comes after
    found: dict[str, frozenset[str]] = {}
    for op in operations:
        before = 0
        for id_ in op.after:
            before |= reached[id_]
            waiting[id_] -= 1
            if not waiting[id_]:
                del reached[id_]
        if waiting[op.id]:
            reached[op.id] = before | (1 << bits[op.id]) if op.id in bits else before
        made = frozenset(
            claim for claim in asked.get(op.id, ()) if any(before >> bit & 1 for bit in makers.get(claim, ()))
        )
        if made:
            found[op.id] = made
    return found
