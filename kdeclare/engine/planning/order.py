"""Edges between resources, contradictions, and what a refusal takes with it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.capabilities import list_exclusive_settings
from kdeclare.core.contradictions import CONTRADICTION, report_contradiction
from kdeclare.core.diagnostics import Diagnostic, error, warning
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired
from kdeclare.core.operations import Operation
from kdeclare.core.registry import KINDS, type_of
from kdeclare.providers.kafka.collector import select_topics
from kdeclare.providers.kafka.operations.partitions import part
from kdeclare.providers.kafka.topic_effects import find_effects


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


def deleted_and_used(operations: Sequence[Operation]) -> list[Diagnostic]:
    """Operations on a topic that another one deletes."""
    gone = {
        topic for op in operations if type_of(op).deletes for topic in select_topics(type_of(op).select(op))
    }
    return [
        error(
            CONTRADICTION,
            "Two resources contradict each other",
            f"{op.resource} is about {', '.join(sorted(used))}, which is to be deleted.",
            hint="Take the one or the other out of the plan.",
            resource=str(op.resource),
        )
        for op in operations
        if not type_of(op).deletes and (used := select_topics(type_of(op).select(op)) & gone)
    ]


def one_mover(operations: Sequence[Operation]) -> tuple[tuple[Operation, ...], list[Diagnostic]]:
    """Each partition is moved once: what a resource of an earlier kind moves, a later one leaves to it."""
    ranks = {name: rank for rank, name in enumerate(KINDS)}
    movers: dict[str, Operation] = {}
    left: dict[str, Operation | None] = {op.id: op for op in operations}
    said: list[Diagnostic] = []
    moves = [op for op in operations if type_of(op).goes_on]
    for op in sorted(moves, key=lambda op: (ranks.get(op.resource.kind, 0), op.resource, op.id)):
        partitions = op.args["partitions"]
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


def standing(
    operations: Sequence[Operation], stands_on: Mapping[tuple[ResourceId, str], Sequence[ResourceId]]
) -> tuple[Operation, ...]:
    """With the edges of judgements: what was allowed on what another resource makes of a topic needs that.

    The operations are in order; ``stands_on`` names the other resources by resource and topic.
    """
    if not stands_on:
        return tuple(operations)
    made: dict[tuple[ResourceId, str], list[str]] = {}
    result = []
    for op in operations:
        topics = find_effects(op)
        reason = "was allowed on what this makes of the topic"
        others = [(other, t) for t in topics for other in stands_on.get((op.resource, t), ())]
        needs = {id_: reason for key in others for id_ in made.get(key, ())}
        result.append(replace(op, needs={**needs, **op.needs}) if needs else op)
        for topic in topics:
            made.setdefault((op.resource, topic), []).append(op.id)
    return tuple(result)


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
    """Needed before needing, and by id where that leaves a choice. Raises ValueError on a cycle."""
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
        raise ValueError("The operations need each other in a circle.") from cycle


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


def linked(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """With the edges between resources: whoever looks at what another produces comes after it."""
    makers: dict[str, str] = {}
    for op in operations:
        if type_of(op).creates:
            makers |= dict.fromkeys(type_of(op).produces(op), op.id)
    if not makers:
        return tuple(operations)
    return tuple(_linked(op, makers) for op in operations)


def _linked(op: Operation, makers: Mapping[str, str]) -> Operation:
    claims = type_of(op).claims(op).values()
    needs = {makers[c]: "what it is on is made first" for c in claims if c in makers and makers[c] != op.id}
    return replace(op, needs={**needs, **op.needs}) if needs else op
