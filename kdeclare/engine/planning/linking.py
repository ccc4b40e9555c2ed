"""Edges between resources: what follows from what operations touch, and what of it contradicts itself."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kdeclare.core.contradictions import CONTRADICTION
from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.footprint import Access, Footprint, Key, Prefix, Touch
from kdeclare.core.operation_type import OperationType
from kdeclare.core.operations import Operation
from kdeclare.core.planning import Step
from kdeclare.core.registry import type_of

_HARD = frozenset({Access.UPDATE, Access.REQUIRES})
_ORDERED = _HARD | {Access.AFTER}

_MADE_FIRST = "what it is on is made first"
_USED_UNTIL_THEN = "what refers to it goes first"


def link_operations(operations: Sequence[Operation]) -> Step:
    """Return the operations with the edges between resources, and an error for each use of what is deleted.

    Who needs an object, or an element of one, comes after what makes it; who deletes an object comes after
    the deletion of what needs it.
    """
    steps = [_look_at(op) for op in operations]
    makers = {claim: s.op.id for s in steps if s.type.creates for claim in s.type.produces(s.op)}
    created, deleted = _Index(steps, Access.CREATE), _Index(steps, Access.DELETE)
    if not (makers or created or deleted):
        return Step(tuple(operations))
    needs: dict[str, dict[str, str]] = defaultdict(dict)
    follows: dict[str, dict[str, str]] = defaultdict(dict)
    problems: list[Diagnostic] = []
    for step in steps:
        own = step.op.id
        claims = step.type.claims(step.op).values() if makers else ()
        needs[own] |= {makers[claim]: _MADE_FIRST for claim in claims if makers.get(claim, own) != own}
        used: set[str] = set()
        for touch in step.footprint:
            if touch.access not in _ORDERED:
                continue
            edges = needs if touch.access in _HARD else follows
            edges[own] |= {maker.id: _MADE_FIRST for _, maker in created.find(touch) if maker.id != own}
            for name, remover in deleted.find(touch):
                if remover.id == own:
                    continue
                if touch.access in _HARD and not step.type.deletes:
                    used.add(name)
                else:
                    needs[remover.id][own] = _USED_UNTIL_THEN
        if used:
            problems.append(_report_use(step.op, used))
    return Step(tuple(_with_edges(op, needs[op.id], follows[op.id]) for op in operations), tuple(problems))


def deletes_what_is_used(deletion: Operation, user: Operation) -> bool:
    """Whether ``deletion`` deletes an object that ``user`` touches in a way that makes it come first."""
    deleted = _Index([_look_at(deletion)], Access.DELETE)
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


@dataclass(frozen=True, slots=True)
class _Linked:
    """An operation with what is asked of it more than once."""

    op: Operation
    type: OperationType
    footprint: Footprint


def _look_at(op: Operation) -> _Linked:
    return _Linked(op, type_of(op), type_of(op).footprint(op))


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

    def __init__(self, steps: Iterable[_Linked], access: Access) -> None:
        self._sorts: dict[str, _Names] = {}
        for step in steps:
            for touch in step.footprint:
                if touch.access is access and isinstance(touch.key, str):
                    self._sorts.setdefault(touch.sort, _Names()).by_name[touch.key] = step.op

    def __bool__(self) -> bool:
        return bool(self._sorts)

    def find(self, touch: Touch) -> Iterator[tuple[str, Operation]]:
        """The keys that a touch is about, each with its operation."""
        names = self._sorts.get(touch.sort)
        if names is not None:
            yield from ((name, names.by_name[name]) for name in names.find(touch.key))
