"""Operation types define what an operation touches, how it runs, and how it is undone.

The operations of a plan are linked by references (`Footprint`), not by names that happen to be equal.
References determine the order and reveal contradictions. `Completion` tracks work that continues after the
request.
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
    """The object must exist. If the creation of the object is denied, this operation is denied, too."""
    AFTER = "after"
    """The operation runs after the object is created and before it is deleted, if the plan does either.

    Operations that remove a reference to the object use this access, too: they delete the resource that
    refers to the object, or update that resource so that it no longer does.
    """
    MENTIONS = "mentions"
    """The operation names the object. The object need not exist, and the order of operations is not affected.
    """


@dataclass(frozen=True, slots=True)
class Prefix:
    """All keys that begin with a string; an empty string means all keys."""

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
    """The progress of ongoing work. what: a description of the work."""

    what: str
    how_far: MoveProgress


class WorkTracker(Protocol):
    """Tracks the progress of one run's ongoing work, for display. Not thread-safe."""

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """Return the progress of the work; None if there is nothing to report.

        working: operations whose work continues. awaiting: operations that wait for other ongoing work.
        """


class SilentTracker:
    """Reports no progress."""

    def look(
        self, live: LiveState, working: Sequence[Operation], awaiting: Sequence[Operation]
    ) -> WorkProgress | None:
        """See `WorkTracker`."""
        return None


class Completion(Protocol):
    """Detects when work in a system has ended. Such work continues after the request was answered.

    Only `is_ongoing` is mandatory. The methods are called for operations whose own work continues, and for
    those that wait for such work. A run reads the live state repeatedly until no work is ongoing or the time
    limit has passed.
    """

    def __hash__(self) -> int:
        """Return the identity hash of the object."""
        return id(self)

    def is_ongoing(self, op: Operation, live: LiveState) -> bool:
        """Whether work on the objects of ``op`` is still ongoing."""

    def find_limit_s(self, op: Operation) -> float | None:
        """Return the time limit of ``op``, in seconds; None to use the limit of the run."""
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
        """Return the result of ``op`` for work that ended without the result that ``op`` requested."""
        text = "The work ended without the requested result. Another client changed or stopped it."
        return OperationResult(op.id, Status.FAILED, "work-overridden", text)

    def start_tracking(
        self, connections: Connections, clock: Clock, operations: Sequence[Operation]
    ) -> WorkTracker:
        """Return a tracker for the work of a run, without sending a request. operations: all operations of
        the run.
        """
        return SilentTracker()


View = Mapping[str, JsonValue]
"""The live state that an operation touches, by element: a setting, a member of a list, a count.

``expect`` of an operation is the view that it was planned on. Apply compares views to detect a stale
operation and to resolve a time-out. Rollback compares views to find what another client has changed.
"""


IDENTITY = "(id of "
"""The prefix of view elements that hold the id of an object. A later object of the same name has a new id."""


def is_identity(element: str) -> bool:
    """Whether an element of a view holds the id of an object."""
    return element.startswith(IDENTITY)


def find_expected_names(op: Operation) -> Iterator[str]:
    """Yield the names of the objects that ``op`` was planned on and whose ids it knows."""
    identity_elements = (element for element, value in op.expect.items() if is_identity(element) and value)
    return (element.removeprefix(IDENTITY).removesuffix(")") for element in identity_elements)


def has_other_object(op: Operation, current_view: View) -> bool:
    """Whether an object that ``op`` was planned on no longer exists or has been replaced."""
    return any(is_identity(e) and current_view.get(e) != value for e, value in op.expect.items())


@dataclass(frozen=True, slots=True)
class Placement:
    """The members of the system that hold one part of an object, before and after an operation.

    name, number: the name of the object, and the number of its part. before, after: the ids of the members,
    the leader first; ``before`` is empty if the part is new.
    """

    name: str
    number: int
    before: tuple[int, ...]
    after: tuple[int, ...]


class OperationType(Protocol):
    """One type of operation (``verb`` in the plan format). Methods without ``connections`` are pure."""

    name: str
    arguments: type[Arguments]
    """The class of the operation's arguments."""
    done_label: tuple[str, str] | None = None
    """The singular and plural labels of finished operations of this type (``topic created``, ``topics
    created``). Empty labels omit the operations; None uses the name of the type.
    """
    cleanup_label: str | None = None
    """The phrase by which a run reports this type as a step of cleanup; None to omit this type."""
    validates: bool = False
    """Whether the system can validate an operation without executing it (validate-only)."""
    completion: Completion | None = None
    """How to track work that continues after the request was answered; None if no work continues."""
    contents: str = "data"
    """A noun for what is lost when the operation deletes an object, for display."""
    awaits: Completion | None = None
    """Detects when ongoing work on the operation's objects has ended. The operation begins only after that.
    """
    creates: bool = False
    """Whether the operation creates an object that other operations can refer to."""
    deletes: bool = False
    """Whether the operation deletes the object that it acts on."""
    is_auxiliary: bool = False
    """Whether the operation only supports other operations and changes nothing that a manifest declares."""
    propagates: bool = False
    """Whether the effect reaches the members of the system one after another, after the operation is done."""
    is_cleanup: bool = False
    """Whether the operation removes temporary settings of the run. It then runs even if the run is stopped.
    """
    is_shown_late: bool = False
    """Whether the system can acknowledge the operation before all members show its effect."""
    manner: frozenset[str] = frozenset()
    """The arguments that affect how the work is done, not its result. The inverse can have different values.
    """

    def __hash__(self) -> int:
        """Return the identity hash of the object."""
        return id(self)

    @property
    def goes_on(self) -> bool:
        """Whether the work continues in the system after the request was answered."""
        return self.completion is not None

    @property
    def awaits_others(self) -> bool:
        """Whether the operation begins only after other work on its objects has ended."""
        return self.awaits is not None

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return what ``op`` touches. This determines the order and reveals contradictions."""
        return ()

    def describe_target(self, op: Operation) -> tuple[str, str] | None:
        """Return the target of ``op`` and its label; None if the name of the resource identifies the target.

        Plans show the target with the change, so that users can see where secrets are sent.
        """
        return None

    def list_placements(self, op: Operation) -> Sequence[Placement] | None:
        """Return the members of the system that ``op`` assigns to each part of an object, for display.

        None if ``op`` assigns nothing; empty if the system chooses the members for a new object.
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
        """Return the resources that ``op`` changes, with every id under which a manifest can declare them."""
        return frozenset({op.resource})

    def find_object(self, op: Operation) -> ResourceId | None:
        """Return the resource that ``op`` creates or deletes as a whole; None if it does neither."""
        return op.resource if self.creates or self.deletes else None

    def is_confined(self, op: Operation) -> bool:
        """Whether ``op`` is allowed on its resource and affects no other resource.

        A plan file is trusted only if this is true for each of its operations. Implementations compare the
        names in the arguments with ``op.resource``. The default False rejects the file.
        """
        return False

    def is_temporary(self, op: Operation) -> bool:
        """Whether ``op`` makes a temporary setting, which must be removed even if it takes effect late."""
        return False

    def find_pause_s(self, op: Operation) -> float:
        """Return how many seconds to wait before ``op`` is executed, once nothing else delays it."""
        return 0.0

    def find_deadline_s(self, connections: Connections) -> float | None:
        """Return the time limit of a request in the system, in seconds; None if there is no limit."""
        return None

    def select(self, op: Operation) -> Selections:
        """Return what must be read to compute a view."""

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the live state that ``op`` touches, in the form of ``op.expect``."""

    def expected_state(self, op: Operation) -> View:
        """Return the view that is expected after ``op`` is done."""

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return all field changes of ``op``, based on its arguments and on ``op.expect``.

        A rollback shows these fields, and policies of a `PolicySubject` evaluate them. A plan file that shows
        different fields is rejected. Only an operation that creates or deletes a whole object is allowed to
        return no fields.
        """

    def less(self, op: Operation, subjects: Set[ResourceId]) -> Operation | None:
        """Return the part of ``op`` that does not affect these policy subjects; None if there is none."""
        changed = {op.resource, *self.find_changed_resources(op)}
        return op if self.is_auxiliary or changed.isdisjoint(subjects) else None

    def count_ongoing_parts(self, op: Operation) -> Mapping[ResourceId, int]:
        """Return how many parts of the work continue after the request was answered, by policy subject."""
        return {}

    def find_element(self, op: Operation, at: ValuePath) -> str:
        """Return the view element for a position in the arguments; by default the position as a string."""
        return ".".join(map(str, at))

    def without_elements(self, op: Operation, elements: Set[str]) -> Operation | None:
        """Return ``op`` without these elements of its view; None if the rest cannot be executed alone."""
        return None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return the elements of the view, each with a name that is unique in the system."""

    def get_batch_key(self, op: Operation) -> str:
        """Return the key of ``op`` within a request. A request can contain each key only once."""
        return str(op.resource)

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the claims that ``op`` changes. Operations that depend on ``op`` are checked for these."""
        return frozenset(self.claims(op).values())

    def list_lagging_members(self, op: Operation, live: LiveState) -> tuple[str, ...]:
        """Return the members that the effect of ``op`` has not reached, with reasons; see `propagates`."""
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
        """Return the inverse of ``op``, given the current view. ``op`` was executed fully or in part."""

    def bind_to_created(
        self, op: Operation, created_id: str | None, live: LiveState, options: PlanOptions
    ) -> Operation | UnprovenDeletion:
        """Return ``op`` with the id of the object to delete, so that it deletes only the object that a run
        created.

        created_id: the id that the system acknowledged; None if it is unknown.
        """
        return op

    def announce_losses(self, connections: Connections, ops: Sequence[Operation]) -> tuple[Diagnostic, ...]:
        """Return diagnostics about data that these operations would delete, for display before confirmation.

        If the system does not respond, return a diagnostic instead of raising an error.
        """
        return ()

    def find_losses(self, connections: Connections, ops: Sequence[Operation]) -> Mapping[str, Diagnostic]:
        """Return reasons, by operation id, to omit operations of a rollback that lose data. Raises Fault."""
        return {}

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """Return the pending cleanup after ``op``. status: how ``op`` ended. before: the earlier cleanup."""
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
    """Return ``op`` with its inverse, as far as the inverse is known before ``op`` runs."""
    undo_result = operation_type.invert(op, operation_type.expected_state(op), allow_data_loss=False)
    if undo_result.lost or undo_result.args is None:
        lost_elements = ", ".join(undo_result.lost) or "nothing"
        return replace(op, irreversible=op.irreversible or f"Cannot be restored: {lost_elements}.")
    return replace(op, inverse=Inverse(undo_result.verb, undo_result.args))


def with_args(op: Operation, args: Arguments) -> Operation:
    """Return ``op`` with these arguments. If ``op`` has an inverse, the inverse gets the same arguments."""
    return replace(op, args=args, inverse=replace(op.inverse, args=args) if op.inverse else None)
