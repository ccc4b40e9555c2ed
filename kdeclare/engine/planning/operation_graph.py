"""Edges between operations, their order, contradictions, and what a refusal takes with it."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import Access, Footprint, Key, Prefix, Touch
from kdeclare.core.plans.planning import Step
from kdeclare.core.provider.registry import type_of
from kdeclare.core.resources.capabilities import list_exclusive_settings
from kdeclare.core.resources.kind import CONTRADICTION, Desired, report_contradiction


class OperationCycleError(ValueError):
    """Operations wait for each other.

    path: their ids; each comes before the next one, and the last before the first.
    """

    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__(" → ".join((*path, path[0])))
        self.path = path


def contradictions(declared: Iterable[Desired]) -> list[Diagnostic]:
    """Two declared resources that want something else of the same thing."""
    first: dict[str, tuple[Desired, JsonValue]] = {}
    found: list[Diagnostic] = []
    for item in sorted(declared, key=lambda d: (d.id.kind, d.id.name)):
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


_HARD = frozenset({Access.UPDATE, Access.REQUIRES})
_ORDERED = _HARD | {Access.AFTER}

_MADE_FIRST = "what it is on is made first"
_USED_UNTIL_THEN = "what refers to it goes first"


def link_operations(operations: Sequence[Operation]) -> Step:
    """Return the operations with the edges between resources, and an error for each use of what is deleted.

    Who needs an object, or an element of one, comes after what makes it; who deletes an object comes after
    the deletion of what needs it.
    """
    footprints = {op.id: type_of(op).footprint(op) for op in operations}
    makers = {claim: op.id for op in operations if type_of(op).creates for claim in type_of(op).produces(op)}
    created = _Index(operations, footprints, Access.CREATE)
    deleted = _Index(operations, footprints, Access.DELETE)
    if not (makers or created or deleted):
        return Step(tuple(operations))
    needs: dict[str, dict[str, str]] = defaultdict(dict)
    follows: dict[str, dict[str, str]] = defaultdict(dict)
    problems: list[Diagnostic] = []
    for op in operations:
        own = op.id
        claims = type_of(op).claims(op).values() if makers else ()
        needs[own] |= {makers[claim]: _MADE_FIRST for claim in claims if makers.get(claim, own) != own}
        used: set[str] = set()
        for touch in footprints[own]:
            if touch.access not in _ORDERED:
                continue
            edges = needs if touch.access in _HARD else follows
            edges[own] |= {maker.id: _MADE_FIRST for _, maker in created.find(touch) if maker.id != own}
            for name, remover in deleted.find(touch):
                if remover.id == own:
                    continue
                if touch.access in _HARD and not type_of(op).deletes:
                    used.add(name)
                else:
                    needs[remover.id][own] = _USED_UNTIL_THEN
        if used:
            problems.append(_report_use(op, used))
    return Step(tuple(_with_edges(op, needs[op.id], follows[op.id]) for op in operations), tuple(problems))


def deletes_what_is_used(deletion: Operation, user: Operation) -> bool:
    """Whether ``deletion`` deletes an object that ``user`` touches in a way that makes it come first."""
    footprint = type_of(deletion).footprint(deletion)
    deleted = _Index([deletion], {deletion.id: footprint}, Access.DELETE)
    touches = type_of(user).footprint(user)
    return any(touch.access in _ORDERED and any(deleted.find(touch)) for touch in touches)


def _report_use(op: Operation, used: Iterable[str]) -> Diagnostic:
    return error(
        CONTRADICTION,
        "Two resources contradict each other",
        f"{op.resource} is about {', '.join(sorted(used))}, which is to be deleted.",
        hint="Take the one or the other out of the plan.",
        resource=str(op.resource),
    )


def _with_edges(op: Operation, needs: Mapping[str, str], follows: Mapping[str, str]) -> Operation:
    if not (needs or follows):
        return op
    rest = {id_: why for id_, why in follows.items() if id_ not in op.needs and id_ not in needs}
    return replace(op, needs={**needs, **op.needs}, follows={**rest, **op.follows})


@dataclass(slots=True)
class _Names:
    """The keys of one sort that operations create, or delete, in order once somebody asks for a prefix."""

    by_name: dict[str, Operation] = field(default_factory=dict)
    in_order: list[str] = field(default_factory=list)

    def find(self, key: Key) -> Iterable[str]:
        if isinstance(key, str):
            return (key,) if key in self.by_name else ()
        if not self.in_order:
            self.in_order = sorted(self.by_name)
        if isinstance(key, Prefix):
            return self._find_prefixed(key.text)
        return (name for name in self.in_order if key.matches(name))

    def _find_prefixed(self, prefix: str) -> Iterator[str]:
        for at in range(bisect_left(self.in_order, prefix), len(self.in_order)):
            if not self.in_order[at].startswith(prefix):
                return
            yield self.in_order[at]


class _Index:
    """The operations of one access to objects with exact keys, by sort and key."""

    def __init__(
        self, operations: Iterable[Operation], footprints: Mapping[str, Footprint], access: Access
    ) -> None:
        self._sorts: dict[str, _Names] = {}
        for op in operations:
            for touch in footprints[op.id]:
                if touch.access is access and isinstance(touch.key, str):
                    self._sorts.setdefault(touch.sort, _Names()).by_name[touch.key] = op

    def __bool__(self) -> bool:
        return bool(self._sorts)

    def find(self, touch: Touch) -> Iterator[tuple[str, Operation]]:
        """The keys that a touch is about, each with its operation."""
        names = self._sorts.get(touch.sort)
        if names is not None:
            yield from ((name, names.by_name[name]) for name in names.find(touch.key))
