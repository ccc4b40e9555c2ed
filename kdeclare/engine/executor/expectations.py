"""Compare-and-set: what an operation was planned on must still be so."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from kdeclare.core.clock import Clock
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonValue, canonical_json
from kdeclare.core.live.collector import Patience
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import View, is_identity
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import type_of
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.record_binding import dump_record
from kdeclare.core.secrets.secret_refs import SecretRef, SecretSource, find_records
from kdeclare.engine.observation import Observed, observe, observe_expected, select_all
from kdeclare.engine.planning import operation_graph

NOT_VISIBLE_YET = "not visible yet"
"""Stands for what brokers do not show although the controller says that it exists."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One element that is no longer as planned."""

    operation: str
    resource: str
    element: str
    planned: JsonValue
    now: JsonValue


def views(connections: Connections, operations: Sequence[Operation]) -> Mapping[str, View]:
    """What each operation touches, as it is now, read in one batch. Raises Fault."""
    if not operations:
        return {}
    live = observe(connections, select_all(operations))
    return {op.id: type_of(op).view(op, live) for op in operations}


def observe_operations(
    connections: Connections, operations: Sequence[Operation], patience: Patience | None = None
) -> Observed:
    """Read what operations are about; what exists and is not shown yet is waited for. Raises Fault."""
    if not operations:
        return Observed(LiveState())
    expected = {object_ for op in operations for object_ in type_of(op).find_expected(op)}
    return observe_expected(connections, select_all(operations), expected, patience or Patience())


def stale_live(operations: Sequence[Operation], seen: Observed) -> list[Mismatch]:
    """What is no longer as planned, leaving out what an earlier operation of the plan is to change.

    seen: see `observe_operations`. What is not shown although it exists is no longer as planned; a deletion
    by id goes without being shown.
    """
    now = {op.id: type_of(op).view(op, seen.live) for op in operations}
    # only what is not as expected needs the question whether an earlier operation makes it so
    unlike = {op.id: _unlike(op, now[op.id]) for op in operations}
    made = operation_graph.find_made_before(
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
            first = min(hidden)
            identity = f"{first.kind.lower()} {first.name}"
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


def show_value(value: JsonValue) -> str:
    """A value of a view, for people."""
    return "not set" if value is None else canonical_json(value)


def stale_owned(plan: Plan, resources: Mapping[str, OwnedRecord]) -> list[Mismatch]:
    """Records of ownership that are no longer as planned."""
    return [
        Mismatch(
            "",
            str(item.id),
            "ownership",
            dump_record(item.before),
            dump_record(resources.get(str(item.id))),
        )
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


_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class Verified:
    """What was seen last, and what of it is not as it should be.

    unlike: by operation id, the elements of its view that differ; empty where all agree.
    seconds: how long it took until all agreed, or until time was up.
    """

    live: LiveState
    unlike: Mapping[str, tuple[str, ...]]
    seconds: float


def verify(
    connections: Connections, operations: Sequence[Operation], clock: Clock, timeout_s: float
) -> Verified:
    """Read what ``operations``, which were done, are about, until it is as they leave it or time is up.

    Auxiliary operations are left out. Raises Fault when a system does not answer.
    """
    operations = [op for op in operations if not type_of(op).is_auxiliary]
    selections = select_all(operations)
    last = {claim: op.id for op in operations for claim in type_of(op).claims(op).values()}
    begun, pause = clock.monotonic(), _FIRST_PAUSE_S
    while True:
        live = observe(connections, selections)
        unlike = {op.id: found for op in operations if (found := _find_differing(op, live, last))}
        passed = clock.monotonic() - begun
        if not unlike or passed >= timeout_s:
            return Verified(live, unlike, passed)
        clock.sleep(min(pause, timeout_s - passed))
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def _find_differing(op: Operation, live: LiveState, last: Mapping[str, str]) -> tuple[str, ...]:
    """The elements that ``op`` is the last one to do something about, and that are not as it leaves them."""
    verb = type_of(op)
    now, claims = verb.view(op, live), verb.claims(op)
    return tuple(
        element
        for element, value in verb.expected_state(op).items()
        if not is_identity(element) and last[claims[element]] == op.id and now.get(element) != value
    )
