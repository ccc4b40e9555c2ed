"""Operation types: what an operation touches, how it looks at the live state, runs, and is undone.

References (`Footprint`), and not names that happen to be equal, join the operations of a plan: order, and
what contradicts itself, follow from them. `Completion` follows work that goes on after the request.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from enum import StrEnum
from typing import Protocol

from kdeclare.core.clock import Clock
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Explanation, Fault, Outcome
from kdeclare.core.operations.operation import Arguments, Inverse, Operation, UndoResult, UnprovenDeletion
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.patterns import Pattern
from kdeclare.core.plans.run import MoveProgress, OperationResult, Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.resources.changes import FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource, ValuePath


class Access(StrEnum):
    """What an operation does to an object, or needs of it."""

    CREATE = "create"
    UPDATE = "update"
    """It changes the object, which must exist."""
    DELETE = "delete"
    REQUIRES = "requires"
    """The object must exist: a creation that is denied takes the operation with it."""
    AFTER = "after"
    """It comes after a creation of the object, and before a deletion; it does without either.

    So does what ends a use of the object: a deletion of the user, or an update that refers to it no longer.
    """
    MENTIONS = "mentions"
    """It names the object, which need not exist; nothing follows for the order."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """All keys that begin with a text; an empty one stands for all."""

    text: str


Key = str | Prefix | Pattern
"""One key as it is, all with a prefix, or all that an expression matches as a whole."""


@dataclass(frozen=True, slots=True)
class FootprintEntry:
    """One entry of a footprint.

    sort: what keys are of, in a name that is unique among all providers: of the kind whose resources are
        such objects, where there is one (``Topic``).
    """

    sort: str
    key: Key
    access: Access


Footprint = Sequence[FootprintEntry]
"""All that one operation touches."""


_GOES_ON = "The work goes on in the system; plan again to see what became of it."


@dataclass(frozen=True, slots=True)
class WorkProgress:
    """How far the work is. what: what is being done, in words."""

    what: str
    how_far: MoveProgress


class WorkTracker(Protocol):
    """Follows the work of one run from look to look, for people. Not for several threads."""

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """Return how far the work is; None where there is nothing to tell.

        working: operations whose work goes on. awaiting: those that wait for the work of others.
        """


class SilentTracker:
    """Tells nothing of how far the work is."""

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """See `WorkTracker`."""
        return None


class Completion(Protocol):
    """How a provider tells whether work that goes on in its system is over. Only `is_ongoing` must be said.

    It is asked about operations whose own work goes on, and about those that wait for such work. A run looks
    at the live state again and again until nothing is ongoing, or its limit has passed.
    """

    def __hash__(self) -> int:
        """Return the hash of the object itself, as every object has it."""
        return id(self)

    def is_ongoing(self, op: Operation, live: LiveState) -> bool:
        """Whether work on the objects of ``op`` is not over."""

    def find_limit_s(self, op: Operation) -> float | None:
        """Return for how long ``op`` may take, in seconds; None where the run's own limit holds."""
        return None

    def report_started(self, op: Operation) -> OperationResult:
        """Return the result of ``op`` when the run does not wait for the work to end."""
        return OperationResult(op.id, Status.STARTED, None, _GOES_ON)

    def report_timeout(self, op: Operation, limit_s: float, live: LiveState | None) -> OperationResult:
        """Return the result of ``op`` when its work does not end in time.

        live: as it was seen last; None where the system has not answered once.
        """
        return OperationResult(
            op.id, Status.STARTED, "work-timeout", f"Not finished after {limit_s:g} s. {_GOES_ON}"
        )

    def report_overridden(self, op: Operation) -> OperationResult:
        """Return the result of ``op`` when the work has ended with something else than ``op`` asked for."""
        text = "The work ended, but not with what was asked for: another client changed or stopped it."
        return OperationResult(op.id, Status.FAILED, "work-overridden", text)

    def start_tracking(
        self, connections: Connections, clock: Clock, operations: Sequence[Operation]
    ) -> WorkTracker:
        """Return what tells how far the work of a run is. operations: all of the run. Asks nothing yet."""
        return SilentTracker()


View = Mapping[str, JsonValue]
"""The live state that an operation touches, element by element: a setting, a member of a list, a count.

``expect`` of an operation is the view it was planned on. Comparing views is how apply finds a stale
operation, how a time-out is settled, and how rollback finds what someone else has changed since.
"""


IDENTITY = "(id of "
"""How an element of a view begins that tells an object from a later one of the same name."""


def is_identity(element: str) -> bool:
    """Whether an element of a view says which object it is about."""
    return element.startswith(IDENTITY)


def find_expected_names(op: Operation) -> Iterator[str]:
    """Yield the names of the objects that ``op`` was planned on and whose ids it knows."""
    identity_elements = (element for element, value in op.expect.items() if is_identity(element) and value)
    return (element.removeprefix(IDENTITY).removesuffix(")") for element in identity_elements)


def has_other_object(op: Operation, current_view: View) -> bool:
    """Whether an object that ``op`` was planned on is gone, or another one by now."""
    return any(is_identity(e) and current_view.get(e) != value for e, value in op.expect.items())


@dataclass(frozen=True, slots=True)
class Placement:
    """Which members of the system hold one part of an object, before an operation and after it.

    name, number: of the object, and of its part. before, after: members by id, the one that leads first; none
    where the part is new.
    """

    name: str
    number: int
    before: tuple[int, ...]
    after: tuple[int, ...]


class OperationType(Protocol):
    """One type of operation (``verb`` in the plan format). Everything but `execute` is pure."""

    name: str
    arguments: type[Arguments]
    """The class of its arguments."""
    done_label: tuple[str, str] | None = None
    """What one and what several of it are called once they are done (``topic created``, ``topics created``);
    empty where that is not worth a word, None where its name has to do."""
    cleanup_label: str | None = None
    """What a run says that it did with it in cleaning up (``took their throttle away``), if it has words."""
    validates: bool = False
    """Whether the system can check it without doing it (validate-only)."""
    completion: Completion | None = None
    contents: str = "data"
    """What is lost with an object that it deletes, for people."""
    """How its work is followed that goes on after the request was answered; None where that is the end."""
    awaits: Completion | None = None
    """What tells when the work of others on its objects is over, before which it does not begin."""
    creates: bool = False
    """Whether it creates an object that other operations can be about."""
    deletes: bool = False
    """Whether it deletes the object that it is about."""
    is_auxiliary: bool = False
    """Whether it only accompanies the work of other operations, and changes nothing that anybody declared."""
    propagates: bool = False
    """Whether its effect reaches the members of the system one after the other, once it has been done."""
    is_cleanup: bool = False
    """Whether it removes what the run has set for its own sake, and so runs also when the run is stopped."""
    is_shown_late: bool = False
    """Whether the system can acknowledge it before all its members show it in the live state."""
    manner: frozenset[str] = frozenset()
    """The arguments that say how the work is done, not what it does: undoing it need not have the same."""

    def __hash__(self) -> int:
        """Return the hash of the object itself, as every object has it."""
        return id(self)

    @property
    def goes_on(self) -> bool:
        """Whether its work goes on in the system after the request was answered."""
        return self.completion is not None

    @property
    def awaits_others(self) -> bool:
        """Whether it begins only once the work of others on its objects is over."""
        return self.awaits is not None

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return what ``op`` touches; order, and what contradicts itself, follow from it."""
        return ()

    def describe_target(self, op: Operation) -> tuple[str, str] | None:
        """Return what ``op`` acts on, and what that is called, where the name of its resource does not tell.

        People who review a plan are shown it beside the change: secrets may be sent there.
        """
        return None

    def list_placements(self, op: Operation) -> Sequence[Placement] | None:
        """Return what ``op`` places on which members of the system, for people.

        None where it places nothing; nothing at all where the system chooses for an object that it creates.
        """
        return None

    def find_expected_objects(self, op: Operation) -> frozenset[ResourceId]:
        """Return the objects that must exist for ``op``, because it knows their ids."""
        return frozenset(ResourceId(op.resource.kind, name) for name in find_expected_names(op))

    def find_subjects(self, op: Operation) -> frozenset[ResourceId]:
        """Return the objects that ``op`` is about."""
        return frozenset({op.resource})

    def find_created_resource(self, op: Operation) -> ResourceId | None:
        """Return the resource that ``op`` creates as a whole; None where it creates none."""
        return self.find_object(op) if self.creates else None

    def find_changed_resources(self, op: Operation) -> frozenset[ResourceId]:
        """Return the resources that ``op`` changes, under whichever names they could be declared."""
        return frozenset({op.resource})

    def find_object(self, op: Operation) -> ResourceId | None:
        """Return the resource that ``op`` creates or deletes as a whole; None where it does neither."""
        return op.resource if self.creates or self.deletes else None

    def is_confined(self, op: Operation) -> bool:
        """Whether ``op`` may be done to its resource, and its arguments act on that and on nothing else.

        It is what a plan file is believed by: read the arguments, and compare what they name with
        ``op.resource``. Where nothing says so, the file is refused.
        """
        return False

    def is_temporary(self, op: Operation) -> bool:
        """Whether ``op`` sets what is to be removed again, so that even a late effect is looked for."""
        return False

    def find_pause_s(self, op: Operation) -> float:
        """Return how long to wait, in seconds, once ``op`` could begin."""
        return 0.0

    def find_deadline_s(self, connections: Connections) -> float | None:
        """Return for how long, in seconds, the system may work on a request; None where none says it."""
        return None

    def select(self, op: Operation) -> Selections:
        """Return what must be read for a view."""

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the live state that ``op`` touches, in the form of ``op.expect``."""

    def expected_state(self, op: Operation) -> View:
        """Return the view once ``op`` has been done."""

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return all that ``op`` changes: its arguments, and what they were planned on (``op.expect``).

        A rollback shows it, policies of a `PolicySubject` judge it, and a plan file is refused where it shows
        other fields than these. Only what comes or goes as a whole can have none.
        """

    def less(self, op: Operation, subjects: Set[ResourceId]) -> Operation | None:
        """Return the part of ``op`` that leaves these subjects of policies alone; None if there is none."""
        changed = {op.resource, *self.find_changed_resources(op)}
        return op if self.is_auxiliary or changed.isdisjoint(subjects) else None

    def count_ongoing_parts(self, op: Operation) -> Mapping[ResourceId, int]:
        """Return how many parts of the work go on after the request was answered, by subject of policies."""
        return {}

    def find_element(self, op: Operation, at: ValuePath) -> str:
        """Return the element of the view that a place in the arguments belongs to, or a name of the place."""
        return ".".join(map(str, at))

    def without_elements(self, op: Operation, elements: Set[str]) -> Operation | None:
        """Return ``op`` without these elements of its view; None where it cannot do the rest alone."""
        return None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return the elements of the view under names that are unique in the system."""

    def get_batch_key(self, op: Operation) -> str:
        """Return what ``op`` is about in a request: a request can name it only once."""
        return str(op.resource)

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the claims that ``op`` changes: what depends on it is checked for them after it has run."""
        return frozenset(self.claims(op).values())

    def list_lagging_members(self, op: Operation, live: LiveState) -> tuple[str, ...]:
        """Return which members the effect has not reached yet, and why, in words; for what `propagates`."""
        return ()

    def is_repeatable(self, op: Operation) -> bool:
        """Whether sending ``op`` again does no harm and tells what became of it the first time."""
        return False

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Return what a fault that `execute` answered means for ``op``."""
        return Explanation()

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Outcome]:
        """Run a batch and return an outcome per operation id. Raises Fault when the whole request failed."""

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return what undoes ``op``, which has been done whole or in part, given the view as it is now."""

    def bind_to_created(
        self, op: Operation, created_id: str | None, live: LiveState, options: PlanOptions
    ) -> Operation | UnprovenDeletion:
        """Return ``op``, which deletes what a run created, so that it deletes that object and no other one.

        created_id: as the system acknowledged it; None where nothing tells it.
        """
        return op

    def announce_losses(self, connections: Connections, ops: Sequence[Operation]) -> tuple[Diagnostic, ...]:
        """Return what people should know of what these operations lose before they confirm them.

        It is for people: a system that does not answer is something to say, and raises nothing.
        """
        return ()

    def find_losses(self, connections: Connections, ops: Sequence[Operation]) -> Mapping[str, Diagnostic]:
        """Return by id why operations of a rollback are left out: they would lose data. Raises Fault."""
        return {}

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """Return what is to be removed later, given what was to be before ``op`` ended so."""
        return before


def batch_operations(
    operation_type: OperationType, operations: Sequence[Operation], size: int
) -> Iterator[list[Operation]]:
    """Groups of at most ``size`` operations of one verb in which no item appears twice."""
    remaining = list(operations)
    while remaining:
        batch: dict[str, Operation] = {}
        postponed: list[Operation] = []
        for op in remaining:
            if len(batch) < size and operation_type.get_batch_key(op) not in batch:
                batch[operation_type.get_batch_key(op)] = op
            else:
                postponed.append(op)
        yield list(batch.values())
        remaining = postponed


def with_inverse(operation_type: OperationType, op: Operation) -> Operation:
    """``op`` with what undoes it, as far as that can be said before it has run."""
    undo_result = operation_type.invert(op, operation_type.expected_state(op), allow_data_loss=False)
    if undo_result.lost or undo_result.args is None:
        lost_elements = ", ".join(undo_result.lost) or "nothing"
        return replace(op, irreversible=op.irreversible or f"Cannot be brought back: {lost_elements}.")
    return replace(op, inverse=Inverse(undo_result.verb, undo_result.args))


def with_args(op: Operation, args: Arguments) -> Operation:
    """``op`` with other args, where what undoes it takes the same."""
    return replace(op, args=args, inverse=replace(op.inverse, args=args) if op.inverse else None)
