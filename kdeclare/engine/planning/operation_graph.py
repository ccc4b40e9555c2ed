"""Link and order operations, find contradictions, and remove operations together with their dependents."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry, Key, Prefix
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan_hooks import PlanStep
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import CONTRADICTION, DesiredResource, report_contradiction
from kdeclare.core.resources.plan_capabilities import (
    find_replacements,
    list_exclusive_settings,
)


class OperationCycleError(ValueError):
    """Raised if operations depend on each other in a cycle.

    path: the ids of the operations. Each must run before the next one, and the last before the first.
    """

    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__(" → ".join((*path, path[0])))
        self.path = path


def check_exclusive_settings(declared: Iterable[DesiredResource]) -> list[Diagnostic]:
    """Return an error for each pair of declared resources with different values for the same setting."""
    first_values: dict[str, tuple[DesiredResource, JsonValue]] = {}
    diagnostics: list[Diagnostic] = []
    for item in sorted(declared, key=lambda d: (d.id.kind, d.id.name)):
        for setting, value in list_exclusive_settings(item).items():
            other_resource, other_value = first_values.setdefault(setting, (item, value))
            if other_value != value:
                description = f"{setting}: {value} here, {other_value} at {other_resource.id}"
                diagnostics.append(report_contradiction(item, other_resource, description))
    return diagnostics


def exclude_operations(operations: Sequence[Operation], refused_ids: Iterable[str]) -> tuple[Operation, ...]:
    """Return the operations without the refused operations and their direct and indirect dependents."""
    removed_ids = set(refused_ids)
    if not removed_ids:
        return tuple(operations)
    dependents: dict[str, list[str]] = {}
    for op in operations:
        for predecessor in op.needs:
            dependents.setdefault(predecessor, []).append(op.id)
    pending_ids = list(removed_ids)
    while pending_ids:
        for id_ in dependents.get(pending_ids.pop(), ()):
            if id_ not in removed_ids:
                removed_ids.add(id_)
                pending_ids.append(id_)
    return tuple(op for op in operations if op.id not in removed_ids)


def order_operations(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Sort operations so that each operation comes after its dependencies.

    Operations without an order between them are sorted by id. Raises OperationCycleError.
    """
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


def find_claims_made_before(
    operations: Sequence[Operation],
    produced: Mapping[str, Set[str]],
    requested: Mapping[str, Set[str]],
) -> dict[str, frozenset[str]]:
    """For each operation, find the claims in ``requested`` that a direct or indirect predecessor produces.

    Return these claims by operation id. Operations without such claims are left out.

    operations: all operations, predecessors first. ``produced``, ``requested``: claims by operation id.
    """
    requested_claims: frozenset[str] = frozenset().union(*requested.values())
    makers: dict[str, list[int]] = {}
    bits: dict[str, int] = {}
    for op in operations:
        claims = produced[op.id] & requested_claims
        if claims:
            bits[op.id] = len(bits)
            for claim in claims:
                makers.setdefault(claim, []).append(bits[op.id])
    if not makers:
        return {}
    remaining_successors = Counter(id_ for op in operations for id_ in op.after)
    # By operation id: the bit set of the operation and its predecessors. It is dropped after the last
    # successor, because sets for all operations would take memory quadratic in their number.
    reached_makers: dict[str, int] = {}
    made_before: dict[str, frozenset[str]] = {}
    for op in operations:
        makers_before = 0
        for id_ in op.after:
            makers_before |= reached_makers[id_]
            remaining_successors[id_] -= 1
            if not remaining_successors[id_]:
                del reached_makers[id_]
        if remaining_successors[op.id]:
            reached_makers[op.id] = makers_before | (1 << bits[op.id]) if op.id in bits else makers_before
        made_claims = frozenset(
            claim
            for claim in requested.get(op.id, ())
            if any(makers_before >> bit & 1 for bit in makers.get(claim, ()))
        )
        if made_claims:
            made_before[op.id] = made_claims
    return made_before


_HARD_ACCESS = frozenset({Access.UPDATE, Access.REQUIRES})
_ORDERED_ACCESS = _HARD_ACCESS | {Access.AFTER}

_CREATED_FIRST_REASON = "the object that it uses is created first"
_RELEASED_FIRST_REASON = "operations on objects that refer to it run first"


def link_operations(operations: Sequence[Operation]) -> PlanStep:
    """Add the dependencies between operations of different resources. Report each use of a deleted object.

    An operation that needs an object, or an element of an object, comes after the operation that creates it.
    The deletion of an object comes after the deletion of everything that needs the object. If the same plan
    creates the object again, operations that need the object come after the creation.
    """
    typed_operations = [(op, get_operation_type(op)) for op in operations]
    footprints = {op.id: operation_type.compute_footprint(op) for op, operation_type in typed_operations}
    makers = {
        claim: op.id
        for op, operation_type in typed_operations
        if operation_type.creates
        for claim in operation_type.list_produced_claims(op)
    }
    replacements = find_replacements(operations)
    replaced_deletions = {deletion.id for deletion in replacements.values()}
    created = _TouchIndex(operations, footprints, Access.CREATE)
    deleted = _TouchIndex(operations, footprints, Access.DELETE)
    if not (makers or created or deleted):
        return PlanStep(tuple(operations))
    needs: dict[str, dict[str, str]] = defaultdict(dict)
    follows: dict[str, dict[str, str]] = defaultdict(dict)
    problems: list[Diagnostic] = []
    for op, operation_type in typed_operations:
        operation_id = op.id
        if makers and operation_id not in replaced_deletions:
            for claim in operation_type.claims(op).values():
                if makers.get(claim, operation_id) != operation_id:
                    needs[operation_id][makers[claim]] = _CREATED_FIRST_REASON
        used_names: set[str] = set()
        for touch in footprints[operation_id]:
            if touch.access not in _ORDERED_ACCESS:
                continue
            edges = needs if touch.access in _HARD_ACCESS else follows
            edges[operation_id] |= {
                maker.id: _CREATED_FIRST_REASON
                for _, maker in created.find(touch)
                if maker.id != operation_id
            }
            for name, remover in deleted.find(touch):
                if remover.id == operation_id:
                    continue
                if remover.id in replaced_deletions:
                    if touch.access is Access.UPDATE:  # its object no longer exists when it would run
                        problems.append(_report_update_of_replaced(op, name))
                    continue
                if touch.access in _HARD_ACCESS and not operation_type.deletes:
                    used_names.add(name)
                else:
                    needs[remover.id][operation_id] = _RELEASED_FIRST_REASON
        if used_names:
            problems.append(_report_use(op, used_names))
    return PlanStep(
        tuple(_with_edges(op, needs.get(op.id, {}), follows.get(op.id, {})) for op in operations),
        tuple(problems),
    )


def find_dependents(operations: Iterable[Operation], required: Set[ResourceId]) -> frozenset[ResourceId]:
    """Return the resources with an operation that requires another resource in ``required``.

    Requirements that match names by a prefix or a pattern do not count.
    """
    required_keys = {(id_.kind, id_.name): id_ for id_ in required}
    return frozenset(
        op.resource
        for op in operations
        for touch in get_operation_type(op).compute_footprint(op)
        if touch.access in _HARD_ACCESS
        and isinstance(touch.key, str)
        and required_keys.get((touch.sort, touch.key), op.resource) != op.resource
    )


def is_deletion_of_used_object(deletion: Operation, user: Operation) -> bool:
    """Whether ``deletion`` deletes an object that ``user`` touches, so that ``user`` must run first."""
    footprint = get_operation_type(deletion).compute_footprint(deletion)
    deleted = _TouchIndex([deletion], {deletion.id: footprint}, Access.DELETE)
    touches = get_operation_type(user).compute_footprint(user)
    return any(touch.access in _ORDERED_ACCESS and any(deleted.find(touch)) for touch in touches)


def _report_use(op: Operation, used_names: Iterable[str]) -> Diagnostic:
    return error(
        CONTRADICTION,
        "Two resources contradict each other",
        f"{op.resource} uses {', '.join(sorted(used_names))}, which the same plan deletes.",
        hint=f"Declare the deleted object again, or change {op.resource} so that it does not use the object.",
        resource=str(op.resource),
    )


def _report_update_of_replaced(op: Operation, name: str) -> Diagnostic:
    return error(
        CONTRADICTION,
        "Two resources contradict each other",
        f"{op.resource} changes {name}, which the same plan replaces.",
        hint="Apply one of the two changes first, with --target.",
        resource=str(op.resource),
    )


def _with_edges(op: Operation, needs: Mapping[str, str], follows: Mapping[str, str]) -> Operation:
    if not (needs or follows):
        return op
    remaining_follows = {id_: why for id_, why in follows.items() if id_ not in op.needs and id_ not in needs}
    return replace(op, needs={**needs, **op.needs}, follows={**remaining_follows, **op.follows})


@dataclass(slots=True)
class _KeyIndex:
    """The keys of objects of one type that operations create or delete. The keys are sorted on first use."""

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
        for index in range(bisect_left(self.in_order, prefix), len(self.in_order)):
            if not self.in_order[index].startswith(prefix):
                return
            yield self.in_order[index]


class _TouchIndex:
    """An index of operations by the objects that they touch, for one type of access, such as creation.

    The index contains only objects with an exact key, but `find` also matches prefixes and patterns.
    """

    def __init__(
        self, operations: Iterable[Operation], footprints: Mapping[str, Footprint], access: Access
    ) -> None:
        self._sorts: dict[str, _KeyIndex] = {}
        for op in operations:
            for touch in footprints[op.id]:
                if touch.access is access and isinstance(touch.key, str):
                    self._sorts.setdefault(touch.sort, _KeyIndex()).by_name[touch.key] = op

    def __bool__(self) -> bool:
        return bool(self._sorts)

    def find(self, touch: FootprintEntry) -> Iterator[tuple[str, Operation]]:
        """Yield the keys that match a footprint entry, each with the operation that touches the object."""
        names = self._sorts.get(touch.sort)
        if names is not None:
            yield from ((name, names.by_name[name]) for name in names.find(touch.key))
