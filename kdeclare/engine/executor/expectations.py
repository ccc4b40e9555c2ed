"""Compare-and-set: what an operation was planned on must still be so."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.jsontypes import Json, canonical_json
from kdeclare.core.operation_type import View, is_identity
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plan import Plan
from kdeclare.core.registry import type_of
from kdeclare.core.secrets import SecretRef, SecretSource, find_records
from kdeclare.core.visibility import Patience
from kdeclare.engine.observation import observe, observe_expected, select_all
from kdeclare.engine.planning import order

NOT_VISIBLE_YET = "not visible yet"
"""Stands for what brokers do not show although the controller says that it exists."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One element that is no longer as planned."""

    operation: str
    resource: str
    element: str
    planned: Json
    now: Json


def views(connections: Connections, operations: Sequence[Operation]) -> Mapping[str, View]:
    """What each operation touches, as it is now, read in one batch. Raises Fault."""
    if not operations:
        return {}
    live = observe(connections, select_all(operations))
    return {op.id: type_of(op).view(op, live) for op in operations}


def stale_live(
    connections: Connections, operations: Sequence[Operation], patience: Patience | None = None
) -> list[Mismatch]:
    """What is no longer as planned, leaving out what an earlier operation of the plan is to change.

    Topics that exist and that brokers do not show are waited for; a deletion by id goes without.
    """
    if not operations:
        return []
    expected = {name for op in operations for name in type_of(op).find_expected(op)}
    seen = observe_expected(connections, select_all(operations), sorted(expected), patience or Patience())
    now = {op.id: type_of(op).view(op, seen.live) for op in operations}
    # only what is not as expected needs the question whether an earlier operation makes it so
    unlike = {op.id: _unlike(op, now[op.id]) for op in operations}
    made = order.find_made_before(
        operations,
        {op.id: type_of(op).produces(op) for op in operations},
        {id_: frozenset(claims.values()) for id_, claims in unlike.items()},
    )
    found: list[Mismatch] = []
    for op in operations:
        left = [e for e, claim in unlike[op.id].items() if claim not in made.get(op.id, ())]
        hidden = seen.pending & type_of(op).find_expected(op)
        if not hidden:
            found += mismatches(op, now[op.id], left)
        elif not type_of(op).deletes:
            identity = f"topic {min(hidden)}"
            found.append(Mismatch(op.id, str(op.resource), identity, "visible", NOT_VISIBLE_YET))
    return found


def _unlike(op: Operation, now: View) -> dict[str, str]:
    """The elements that are not as ``op`` expects, each with its claim."""
    elements = [e for e, planned in op.expect.items() if now.get(e) != planned]
    if not elements:
        return {}
    claims = type_of(op).claims(op)
    return {e: claims.get(e, e) for e in elements}


def mismatches(op: Operation, now: View, elements: Iterable[str] | None = None) -> list[Mismatch]:
    """The elements of ``op`` that are not as it expects; of a topic that is gone, just that."""
    found = [
        Mismatch(op.id, str(op.resource), element, op.expect[element], now.get(element))
        for element in (op.expect if elements is None else elements)
        if now.get(element) != op.expect[element]
    ]
    return [m for m in found if is_identity(m.element)] or found


def shown(value: Json) -> str:
    """A value of a view, for people."""
    return "not set" if value is None else canonical_json(value)


def stale_owned(plan: Plan, resources: Mapping[str, Json]) -> list[Mismatch]:
    """Records of ownership that are no longer as planned."""
    return [
        Mismatch("", str(item.id), "ownership", item.before, resources.get(str(item.id)))
        for item in plan.ownership
        if resources.get(str(item.id)) != item.before
    ]


def changed_secrets(operations: Sequence[Operation], secrets: SecretSource) -> list[KdeclareError]:
    """Secrets that cannot be had again as they were when planned."""
    found = find_unrevealable(operations, secrets)
    return [problem for op in operations for problem in found.get(op.id, {}).values()]


def find_unrevealable(
    operations: Iterable[Operation], secrets: SecretSource
) -> Mapping[str, Mapping[str, KdeclareError]]:
    """Why secrets cannot be had, by operation and by the element of its view that each belongs to."""
    items = [
        (op.id, type_of(op).element_at(op, at), record)
        for op in operations
        for at, record in find_records(op.args)
    ]

    def find_problem(record: SecretRef) -> KdeclareError | None:
        try:
            secrets.reveal(record)
        except KdeclareError as problem:
            return problem
        return None

    if not items:
        return {}
    with ThreadPoolExecutor() as pool:  # each is hashed again, which is slow
        problems = list(pool.map(find_problem, (record for *_, record in items)))
    found: dict[str, dict[str, KdeclareError]] = {}
    for (op_id, element, _), problem in zip(items, problems, strict=True):
        if problem is not None:
            found.setdefault(op_id, {})[element] = problem
    return found
