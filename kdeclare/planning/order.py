"""Edges between resources, contradictions, and what a refusal takes with it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kdeclare.kinds.verbs.registry import VERBS
from kdeclare.model.diagnostics import Diagnostic, error
from kdeclare.model.operations import Operation


def contradictions(operations: Sequence[Operation]) -> list[Diagnostic]:
    """Two resources that would change the same thing."""
    owner: dict[str, Operation] = {}
    found: list[Diagnostic] = []
    for op in operations:
        for element, claim in VERBS[op.verb].claims(op).items():
            other = owner.setdefault(claim, op)
            if other.resource != op.resource:
                detail = f"{other.resource} and {op.resource} both want to change {element}."
                found.append(
                    error(
                        "contradiction",
                        "Two resources contradict each other",
                        detail,
                        hint="Let one of them say it.",
                        resource=str(op.resource),
                    )
                )
    return found


def without(operations: Sequence[Operation], refused: Iterable[str]) -> tuple[Operation, ...]:
    """The operations that are left when ``refused`` ones and all that need them are taken out."""
    gone = set(refused)
    changed = True
    while changed:
        needing = {op.id for op in operations if op.id not in gone and gone & op.needs.keys()}
        changed = bool(needing)
        gone |= needing
    return tuple(op for op in operations if op.id not in gone)


def in_order(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Needed before needing, and by id where that leaves a choice. Raises ValueError on a cycle."""
    if not any(op.needs for op in operations):
        return tuple(sorted(operations, key=lambda op: op.id))
    import networkx as nx  # slow to import, and most plans have no edge

    graph: nx.DiGraph[str] = nx.DiGraph()
    by_id = {op.id: op for op in operations}
    graph.add_nodes_from(by_id)
    graph.add_edges_from((need, op.id) for op in operations for need in op.needs)
    try:
        return tuple(by_id[id_] for id_ in nx.lexicographical_topological_sort(graph))
    except nx.NetworkXUnfeasible as cycle:
        raise ValueError("The operations need each other in a circle.") from cycle


def ancestors(operations: Sequence[Operation]) -> Mapping[str, frozenset[str]]:
    """All that each operation needs, directly or not. The operations are in order."""
    result: dict[str, frozenset[str]] = {}
    for op in operations:
        result[op.id] = frozenset(op.needs).union(*(result[need] for need in op.needs))
    return result


def linked(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """With the edges between resources: whoever looks at what another produces comes after it."""
    makers: dict[str, str] = {}
    for op in operations:
        if op.verb in ("topic.create", "partitions.increase"):
            makers |= dict.fromkeys(VERBS[op.verb].produces(op), op.id)
    if not makers:
        return tuple(operations)
    return tuple(_linked(op, makers) for op in operations)


def _linked(op: Operation, makers: Mapping[str, str]) -> Operation:
    claims = VERBS[op.verb].claims(op).values()
    needs = {makers[c]: "what it is on is made first" for c in claims if c in makers and makers[c] != op.id}
    return replace(op, needs={**needs, **op.needs}) if needs else op
