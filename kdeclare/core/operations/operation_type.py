"""Operation types: what an operation touches, how it views the live state, how it runs, and how it is undone.

References (`Footprint`), not names that happen to be equal, link the operations of a plan: they determine the
order and reveal contradictions. `Completion` tracks work that continues after the request.
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
    """What an operation does to an object, or requires of it."""

    CREATE = "create"
    UPDATE = "update"
    """The operation changes the object, which must exist."""
    DELETE = "delete"
    REQUIRES = "requires"
    """The object must exist: if its creation is denied, so is this operation."""
    AFTER = "after"
    """The operation runs after a creation of the object and before its deletion, but needs neither.

    The same applies to an operation that ends a use of the object: deleting the user of the object, or an
    update that no longer refers to it.
    """
    MENTIONS = "mentions"
    """The operation names the object, which need not exist; this does not affect the order."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """All keys that begin with a text; an empty text means all keys."""

    text: str


Key = str | Prefix | Pattern
"""One exact key, all keys with a prefix, or all keys that an expression matches as a whole."""


@dataclass(frozen=True, slots=True)
class FootprintEntry:
    """One entry of a footprint.

    sort: the type of object that the key names, unique among all providers. If a kind declares such objects,
        it is the name of that kind (``Topic``).
    """

    sort: str
    key: Key
    access: Access


Footprint = Sequence[FootprintEntry]
"""Everything that one operation touches."""


_GOES_ON = "The work continues in the system. Plan again to see the result."


@dataclass(frozen=True, slots=True)
class WorkProgress:
    """The progress of the work. what: a description of the work."""

    what: str
    how_far: MoveProgress


class WorkTracker(Protocol):
    """Tracks the work of one run across repeated observations, for display. Not thread-safe."""

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """Return the progress of the work; None if there is nothing to report.

        working: operations whose work continues. awaiting: operations that wait for the work of others.
        """


class SilentTracker:
    """Reports no progress."""

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """See `WorkTracker`."""
        return None


class Completion(Protocol):
    """How a provider detects that work in its system, which continues after the request, has ended.

    Only `is_ongoing` is mandatory. The methods are called for operations whose own work continues, and for
    those that wait for such work. A run reads the live state repeatedly until no work is ongoing, or until
    its limit has passed.
    """

    def __hash__(self) -> int:
        """Return the identity hash of the object."""
        return id(self)

    def is_ongoing(self, op: Operation, live: LiveState) -> bool:
        """Whether work on the objects of ``op`` is still ongoing."""

    def find_limit_s(self, op: Operation) -> float | None:
        """Return how long ``op`` may take, in seconds; None to use the run's own limit."""
        return None

    def report_started(self, op: Operation) -> OperationResult:
        """Return the result of ``op`` if the run does not wait for the work to end."""
        return OperationResult(op.id, Status.STARTED, None, _GOES_ON)

    def report_timeout(self, op: Operation, limit_s: float, live: LiveState | None) -> OperationResult:
        """Return the result of ``op`` if its work does not end in time.

        live: the last observed live state; None if the system has never responded.
        """
        return OperationResult(
            op.id, Status.STARTED, "work-timeout", f"Not finished after {limit_s:g} s. {_GOES_ON}"
        )

    def report_overridden(self, op: Operation) -> OperationResult:
        """Return the result of ``op`` if the work has ended with a result that ``op`` did not request."""
        text = "The work ended without the requested result. Another client changed or stopped it."
        return OperationResult(op.id, Status.FAILED, "work-overridden", text)

    def start_tracking(
        self, connections: Connections, clock: Clock, operations: Sequence[Operation]
    ) -> WorkTracker:
        """Return a tracker for the work of a run. operations: all of the run. Sends no request."""
        return SilentTracker()


View = Mapping[str, JsonValue]
"""The live state that an operation touches, by element: a setting, a member of a list, a count.

``expect`` of an operation is the view that it was planned on. Apply compares views to detect a stale
operation and to resolve a time-out; rollback compares them to find what another client has changed since.
"""


IDENTITY = "(id of "
"""The prefix of view elements that hold an object's id, which differs for a later one of the same name."""


def is_identity(element: str) -> bool:
    """Whether an element of a view says which object it is about."""
    return element.startswith(IDENTITY)


def find_expected_names(op: Operation) -> Iterator[str]:
    """Yield the names of the objects that ``op`` was planned on and whose ids it knows."""
    identity_elements = (element for element, value in op.expect.items() if is_identity(element) and value)
    return (element.removeprefix(IDENTITY).removesuffix(")") for element in identity_elements)


def has_other_object(op: Operation, current_view: View) -> bool:
    """Whether an object that ``op`` was planned on no longer exists or has been replaced by another one."""
    return any(is_identity(e) and current_view.get(e) != value for e, value in op.expect.items())


@dataclass(frozen=True, slots=True)
class Placement:
    """Which members of the system hold one part of an object, before and after an operation.

    name, number: the name of the object, and the number of its part. before, after: the ids of the members,
    the leader first; ``before`` is empty if the part is new.
    """

    name: str
    number: int
    before: tuple[int, ...]
    after: tuple[int, ...]


class OperationType(Protocol):
    """One type of operation (``verb`` in the plan format). All methods except `execute` are pure."""

    name: str
    arguments: type[Arguments]
    """The class of its arguments."""
    done_label: tuple[str, str] | None = None
    """The label of one and of several finished operations of this type (``topic created``, ``topics
    created``); empty to omit them, None to use the name of the type."""
    cleanup_label: str | None = None
    """How a run reports it as a step of cleanup (``took their throttle away``); None to not mention it."""
    validates: bool = False
    """Whether the system can validate it without executing it (validate-only)."""
    completion: Completion | None = None
    """How to track work that continues after the request was answered; None if no work continues."""
    contents: str = "data"
    """What is lost with an object that it deletes, for display."""
    awaits: Completion | None = None
    """How to detect that the work of others on its objects has ended; it does not begin before."""
    creates: bool = False
    """Whether it creates an object that other operations can refer to."""
    deletes: bool = False
    """Whether it deletes the object that it acts on."""
    is_auxiliary: bool = False
    """Whether it only supports the work of other operations and changes nothing that is declared."""
    propagates: bool = False
    """Whether its effect reaches the members of the system one after another, after it is done."""
    is_cleanup: bool = False
    """Whether it removes temporary settings of the run, and so executes even if the run is stopped."""
    is_shown_late: bool = False
    """Whether the system can acknowledge it before all members show it in the live state."""
    manner: frozenset[str] = frozenset()
    """The arguments that affect how the work is done, not what it does; the inverse may have other values."""

    def __hash__(self) -> int:
        """Return the identity hash of the object."""
        return id(self)

    @property
    def goes_on(self) -> bool:
        """Whether its work continues in the system after the request was answered."""
        return self.completion is not None

    @property
    def awaits_others(self) -> bool:
        """Whether it begins only after the work of others on its objects has ended."""
        return self.awaits is not None

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return what ``op`` touches. This determines the order and reveals contradictions."""
        return ()

    def describe_target(self, op: Operation) -> tuple[str, str] | None:
        """Return what ``op`` acts on and its label; None if the name of the resource already says it.

        It is shown beside the change for review, because secrets may be sent there.
        """
        return None

    def list_placements(self, op: Operation) -> Sequence[Placement] | None:
        """Return which members of the system ``op`` assigns to which parts, for display.

        None if it assigns nothing; empty if the system chooses the members for an object that it creates.
        """
        return None

    def find_expected_objects(self, op: Operation) -> frozenset[ResourceId]:
        """Return the objects that must exist for ``op``, because it refers to their ids."""
        return frozenset(ResourceId(op.resource.kind, name) for name in find_expected_names(op))

    def find_subjects(self, op: Operation) -> frozenset[ResourceId]:
        """Return the objects that ``op`` acts on."""
        return frozenset({op.resource})

    def find_created_resource(self, op: Operation) -> ResourceId | None:
        """Return the resource that ``op`` creates as a whole; None if it creates none."""
        return self.find_object(op) if self.creates else None

    def find_changed_resources(self, op: Operation) -> frozenset[ResourceId]:
        """Return the resources that ``op`` changes, under every name by which they could be declared."""
        return frozenset({op.resource})

    def find_object(self, op: Operation) -> ResourceId | None:
        """Return the resource that ``op`` creates or deletes as a whole; None if it does neither."""
        return op.resource if self.creates or self.deletes else None

    def is_confined(self, op: Operation) -> bool:
        """Whether ``op`` may act on its resource, and its arguments affect that resource and nothing else.

        This decides whether a plan file is trusted: read the arguments, and compare the names in them with
        ``op.resource``. The default False rejects the file.
        """
        return False

    def is_temporary(self, op: Operation) -> bool:
        """Whether ``op`` sets something temporary, so that even a late effect must be found and removed."""
        return False

    def find_pause_s(self, op: Operation) -> float:
        """Return how long to wait, in seconds, after ``op`` could begin."""
        return 0.0

    def find_deadline_s(self, connections: Connections) -> float | None:
        """Return how long, in seconds, the system may work on a request; None if it has no such limit."""
        return None

    def select(self, op: Operation) -> Selections:
        """Return what must be read to compute a view."""

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the live state that ``op`` touches, in the form of ``op.expect``."""

    def expected_state(self, op: Operation) -> View:
        """Return the view that is expected after ``op`` is done."""

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return all field changes of ``op``, based on its arguments and on ``op.expect``.

        A rollback shows them, policies of a `PolicySubject` evaluate them, and a plan file that shows other
        fields is rejected. Only an operation that creates or deletes a whole object may return none.
        """

    def less(self, op: Operation, subjects: Set[ResourceId]) -> Operation | None:
        """Return the part of ``op`` that does not affect these policy subjects; None if there is none."""
        changed = {op.resource, *self.find_changed_resources(op)}
        return op if self.is_auxiliary or changed.isdisjoint(subjects) else None

    def count_ongoing_parts(self, op: Operation) -> Mapping[ResourceId, int]:
        """Return how many parts of the work continue after the request was answered, by policy subject."""
        return {}

    def find_element(self, op: Operation, at: ValuePath) -> str:
        """Return the view element that a position in the arguments belongs to, or a name for the position."""
        return ".".join(map(str, at))

    def without_elements(self, op: Operation, elements: Set[str]) -> Operation | None:
        """Return ``op`` without these elements of its view; None if it cannot execute the rest alone."""
        return None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return the elements of the view, each with a name that is unique in the system."""

    def get_batch_key(self, op: Operation) -> str:
        """Return what ``op`` acts on within a request; a request can contain each key only once."""
        return str(op.resource)

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the claims that ``op`` changes; its dependents are checked for them after it has run."""
        return frozenset(self.claims(op).values())

    def list_lagging_members(self, op: Operation, live: LiveState) -> tuple[str, ...]:
        """Return the members that the effect has not reached yet, with reasons; see `propagates`."""
        return ()

    def is_repeatable(self, op: Operation) -> bool:
        """Whether sending ``op`` again is harmless and reveals the outcome of the first attempt."""
        return False

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Return what a fault from `execute` means for ``op``."""
        return Explanation()

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Outcome]:
        """Run a batch and return an outcome per operation id. Raises Fault if the whole request failed."""

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return what undoes ``op``, which has been executed fully or in part, given the current view."""

    def bind_to_created(
        self, op: Operation, created_id: str | None, live: LiveState, options: PlanOptions
    ) -> Operation | UnprovenDeletion:
        """Return ``op``, which deletes an object that a run created, bound to exactly that object.

        created_id: the id that the system acknowledged; None if it is unknown.
        """
        return op

    def announce_losses(self, connections: Connections, ops: Sequence[Operation]) -> tuple[Diagnostic, ...]:
        """Return what these operations would lose, for display before confirmation.

        If the system does not respond, return a diagnostic instead of raising an error.
        """
        return ()

    def find_losses(self, connections: Connections, ops: Sequence[Operation]) -> Mapping[str, Diagnostic]:
        """Return the reasons, by id, to omit operations of a rollback that would lose data. Raises Fault."""
        return {}

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """Return the pending cleanup after ``op`` ended with this status, given the one before."""
        return before


def batch_operations(
    operation_type: OperationType, operations: Sequence[Operation], size: int
) -> Iterator[list[Operation]]:
    """Yield groups of at most ``size`` operations of one verb, with each batch key at most once per group."""
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
    """Return ``op`` with its inverse, as far as it is known before it has run."""
    undo_result = operation_type.invert(op, operation_type.expected_state(op), allow_data_loss=False)
    if undo_result.lost or undo_result.args is None:
        lost_elements = ", ".join(undo_result.lost) or "nothing"
        return replace(op, irreversible=op.irreversible or f"Cannot be restored: {lost_elements}.")
    return replace(op, inverse=Inverse(undo_result.verb, undo_result.args))


def with_args(op: Operation, args: Arguments) -> Operation:
    """Return ``op`` with other arguments; its inverse, if it has one, gets the same arguments."""
    return replace(op, args=args, inverse=replace(op.inverse, args=args) if op.inverse else None)
