"""Check whether a plan is stale: whether live state or ownership records have changed since planning."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from kdeclare.core.clock import Clock
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, dump_canonical_json
from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import View, is_identity
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.record_binding import dump_record
from kdeclare.core.secrets.secret_refs import SecretRef, SecretSource, find_records
from kdeclare.engine.observation import Observation, observe, observe_expected, select_all
from kdeclare.engine.planning import operation_graph

NOT_VISIBLE_YET = "not visible yet"
"""The value that messages show for an object that the controller confirms but that brokers do not show yet.
"""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A view element or an ownership record whose value differs from the plan."""

    operation: str
    resource: str
    element: str
    planned: JsonValue
    now: JsonValue


def read_views(connections: Connections, operations: Sequence[Operation]) -> Mapping[str, View]:
    """Read the current view of each operation in one batch. Raises Fault."""
    if not operations:
        return {}
    live = observe(connections, select_all(operations))
    return {op.id: get_operation_type(op).compute_view(op, live) for op in operations}


def observe_operations(
    connections: Connections, operations: Sequence[Operation], patience: WaitPolicy | None = None
) -> Observation:
    """Read the live state that operations touch. Raises Fault.

    The read waits for objects that exist but that brokers do not show yet.
    """
    if not operations:
        return Observation(LiveState())
    expected = {object_ for op in operations for object_ in get_operation_type(op).find_expected_objects(op)}
    return observe_expected(connections, select_all(operations), expected, patience or WaitPolicy())


def find_stale_live(operations: Sequence[Operation], observation: Observation) -> list[Mismatch]:
    """Return the mismatches between the live state and the expectations of the operations.

    An expectation that an earlier operation will fulfill is not a mismatch. If an object exists but the
    system does not show it, this is a mismatch, unless the operation deletes the object by its id.
    observation: see `observe_operations`.
    """
    current_views = {op.id: get_operation_type(op).compute_view(op, observation.live) for op in operations}
    unmet_claims = {op.id: _find_unmet_claims(op, current_views[op.id]) for op in operations}
    if not any(unmet_claims.values()) and not observation.pending:
        return []
    # Only for unmet expectations, check whether an earlier operation will fulfill them.
    claims_made_before = operation_graph.find_claims_made_before(
        operations,
        {op.id: get_operation_type(op).list_produced_claims(op) for op in operations},
        {id_: frozenset(claims.values()) for id_, claims in unmet_claims.items()},
    )
    all_mismatches: list[Mismatch] = []
    for op in operations:
        unexplained = [
            e for e, claim in unmet_claims[op.id].items() if claim not in claims_made_before.get(op.id, ())
        ]
        hidden_objects = observation.pending & get_operation_type(op).find_expected_objects(op)
        if not hidden_objects:
            all_mismatches += find_mismatches(op, current_views[op.id], unexplained)
        elif not get_operation_type(op).deletes:
            first_hidden = min(hidden_objects)
            identity = f"{first_hidden.kind.lower()} {first_hidden.name}"
            all_mismatches.append(Mismatch(op.id, str(op.resource), identity, "visible", NOT_VISIBLE_YET))
    return all_mismatches


def _find_unmet_claims(op: Operation, current_view: View) -> dict[str, str]:
    """Return the elements that differ from the expectations of ``op``, each with its claim."""
    elements = [e for e, planned in op.expect.items() if current_view.get(e) != planned]
    if not elements:
        return {}
    claims = get_operation_type(op).claims(op)
    return {e: claims.get(e, e) for e in elements}


def find_mismatches(
    op: Operation, current_view: View, elements: Iterable[str] | None = None
) -> list[Mismatch]:
    """Return the mismatches between the current view and the expectations of ``op``.

    If the id of an object differs, for example because the object is missing, return only this mismatch.
    """
    differing = [
        Mismatch(op.id, str(op.resource), element, op.expect[element], current_view.get(element))
        for element in (op.expect if elements is None else elements)
        if current_view.get(element) != op.expect[element]
    ]
    return [m for m in differing if is_identity(m.element)] or differing


def format_value(value: JsonValue) -> str:
    """Format a value of a view for messages."""
    return "not set" if value is None else dump_canonical_json(value)


def find_stale_ownership(plan: Plan, resources: Mapping[str, OwnedRecord]) -> list[Mismatch]:
    """Return a mismatch for each ownership record that has changed since the plan was made."""
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


def find_changed_secrets(operations: Sequence[Operation], secrets: SecretSource) -> list[KdeclareError]:
    """Return an error for each secret that no longer has its planned value."""
    errors_by_operation = find_unrevealable(operations, secrets)
    return [problem for op in operations for problem in errors_by_operation.get(op.id, {}).values()]


def find_unrevealable(
    operations: Iterable[Operation], secrets: SecretSource
) -> Mapping[str, Mapping[str, KdeclareError]]:
    """Return the errors about secrets that cannot be resolved, by operation id and then by view element."""
    items = [
        (op.id, get_operation_type(op).find_element(op, at), record)
        for op in operations
        for at, record in find_records(op.args)
    ]

    def reveal_or_explain(record: SecretRef) -> KdeclareError | None:
        try:
            secrets.reveal(record)
        except KdeclareError as problem:
            return problem
        return None

    if not items:
        return {}
    with ThreadPoolExecutor() as pool:  # hashing each secret again is slow
        problems = list(pool.map(reveal_or_explain, (record for *_, record in items)))
    errors_by_operation: dict[str, dict[str, KdeclareError]] = {}
    for (op_id, element, _), problem in zip(items, problems, strict=True):
        if problem is not None:
            errors_by_operation.setdefault(op_id, {})[element] = problem
    return errors_by_operation


_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """The last observed state, and its differences from the expected state.

    unlike: the differing elements of each operation's view, by operation id; empty if nothing differs.
    seconds: how long it took until nothing differed or the time limit was reached.
    """

    live: LiveState
    unlike: Mapping[str, tuple[str, ...]]
    seconds: float


def verify(
    connections: Connections, operations: Sequence[Operation], clock: Clock, timeout_s: float
) -> VerificationResult:
    """Read the objects of completed operations until all effects are visible or the time limit is reached.

    Auxiliary operations are left out. Raises Fault if a system does not respond.
    """
    operations = [op for op in operations if not get_operation_type(op).is_auxiliary]
    selections = select_all(operations)
    last_writers = {claim: op.id for op in operations for claim in get_operation_type(op).claims(op).values()}
    started_at, pause_s = clock.monotonic(), _FIRST_PAUSE_S
    while True:
        live = observe(connections, selections)
        differing = {
            op.id: elements for op in operations if (elements := _find_differing(op, live, last_writers))
        }
        elapsed_s = clock.monotonic() - started_at
        if not differing or elapsed_s >= timeout_s:
            return VerificationResult(live, differing, elapsed_s)
        clock.sleep(min(pause_s, timeout_s - elapsed_s))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _find_differing(op: Operation, live: LiveState, last_writers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the view elements whose values differ from the values that ``op`` wrote.

    Elements that a later operation writes are left out.
    """
    operation_type = get_operation_type(op)
    current_view, claims = operation_type.compute_view(op, live), operation_type.claims(op)
    return tuple(
        element
        for element, value in operation_type.expected_state(op).items()
        if not is_identity(element)
        and last_writers[claims[element]] == op.id
        and current_view.get(element) != value
    )
