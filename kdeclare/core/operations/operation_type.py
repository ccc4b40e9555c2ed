"""Operation types, which define what operations touch, and how to execute and undo operations."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Protocol

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Explanation, Fault, Outcome
from kdeclare.core.operations.completion import Completion
from kdeclare.core.operations.footprint import Footprint
from kdeclare.core.operations.operation import (
    Arguments,
    Inverse,
    Operation,
    Recreation,
    UndoResult,
    UnprovenDeletion,
)
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.resources.changes import FieldChange, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource, ValuePath

View = Mapping[str, JsonValue]
"""The live state that an operation touches, by element. An element is, for example, a setting or a count.

`Operation.expect` is the view at the time when the operation was planned. Apply compares views to detect
stale operations, and to determine whether a request that timed out took effect. Rollback compares views to
find changes by other clients.
"""


IDENTITY = "(id of "
"""The prefix of view elements that contain the id of an object.

The id shows whether the object was recreated, because a later object of the same name has a different id.
"""


def is_identity(element: str) -> bool:
    """Whether an element of a view contains the id of an object."""
    return element.startswith(IDENTITY)


def find_expected_names(op: Operation) -> Iterator[str]:
    """Yield the names of the objects whose ids are in ``op.expect``."""
    identity_elements = (element for element, value in op.expect.items() if is_identity(element) and value)
    return (element.removeprefix(IDENTITY).removesuffix(")") for element in identity_elements)


def has_other_object(op: Operation, current_view: View) -> bool:
    """Whether an object whose id is in ``op.expect`` was deleted, or recreated with a different id."""
    return any(is_identity(e) and current_view.get(e) != value for e, value in op.expect.items())


@dataclass(frozen=True, slots=True)
class Placement:
    """The members that store one part of an object, such as a partition, before and after an operation.

    name: the name of the object. number: the number of the part.
    before, after: the ids of the members, the leader first; ``before`` is empty if the part is new.
    """

    name: str
    number: int
    before: tuple[int, ...]
    after: tuple[int, ...]


class OperationType(Protocol):
    """One type of operation (``verb`` in the plan format).

    Methods without a parameter ``connections`` are pure.
    """

    name: str
    arguments: type[Arguments]
    """The class of the operation's arguments."""
    done_label: tuple[str, str] | None = None
    """The singular and plural labels of finished operations (``topic created``, ``topics created``).

    If the labels are empty, reports omit the operations. None means that reports use the name of the type.
    """
    cleanup_label: str | None = None
    """The phrase for operations of this type in reports about cleanup.

    None means that reports name the resource (``cleaned up Topic/orders``).
    """
    validates: bool = False
    """Whether the system can validate an operation without executing it (validate-only)."""
    completion: Completion | None = None
    """Tracks work that continues after the response to the request; None if no work continues."""
    contents: str = "data"
    """A noun for the data in the object, such as ``records``. Messages about deletions use the noun."""
    awaits: Completion | None = None
    """Detects the end of ongoing work on the objects of the operation, so that the operation can begin.

    None means that the operation does not wait for ongoing work.
    """
    creates: bool = False
    """Whether the operation creates an object that other operations can refer to."""
    deletes: bool = False
    """Whether the operation deletes the object that it acts on."""
    deletion_risk: Risk = Risk.DESTRUCTIVE
    """The minimum risk of a change that deletes a resource with an operation of this type."""
    is_auxiliary: bool = False
    """Whether the operation only supports other operations and changes nothing that a manifest declares."""
    propagates: bool = False
    """Whether the members of the system show the effect of the operation at different times."""
    is_cleanup: bool = False
    """Whether the operation removes temporary settings of the run.

    Such an operation runs even if the run is stopped.
    """
    is_shown_late: bool = False
    """Whether the system can acknowledge the operation before all members show its effect."""
    is_forwarded: bool = False
    """Whether a member can forward the request to another member, and repeat it if that member fails.

    The response can then belong to the second request: it reports that the object already exists, although
    the first request has just created it.
    """
    manner: frozenset[str] = frozenset()
    """The names of arguments that affect how the work is done, but not its result.

    These arguments can have different values in the inverse of the operation.
    """

    def __hash__(self) -> int:
        return id(self)

    @property
    def goes_on(self) -> bool:
        """Whether the work continues in the system after the response to the request."""
        return self.completion is not None

    @property
    def can_be_refused_in_part(self) -> bool:
        """Whether the system can refuse parts of an operation and execute its other parts.

        The operation then counts as failed, but a rollback still has to undo the executed parts. By default,
        this is true if the work continues after the response.
        """
        return self.goes_on

    @property
    def awaits_others(self) -> bool:
        """Whether the operation begins only after ongoing work on its objects has ended."""
        return self.awaits is not None

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return the objects that ``op`` touches.

        These objects determine the order of operations and reveal contradictions between operations.
        """
        return ()

    def describe_target(self, op: Operation) -> tuple[str, str] | None:
        """Return a label, such as ``workers``, and the target of ``op``, such as the URLs of the workers.

        Return None if the resource name identifies the target. Plans show the target with the change, so that
        users can see where secrets are sent.
        """
        return None

    def list_placements(self, op: Operation) -> Sequence[Placement] | None:
        """Return the members that ``op`` assigns to parts of an object, such as the brokers of a partition.

        Return None if ``op`` assigns no members. Return an empty sequence if the system chooses the members
        for a new object.
        """
        return None

    def find_expected_objects(self, op: Operation) -> frozenset[ResourceId]:
        """Return the objects that must exist before ``op`` runs, because ``op.expect`` contains their ids."""
        return frozenset(ResourceId(op.resource.kind, name) for name in find_expected_names(op))

    def find_subjects(self, op: Operation) -> frozenset[ResourceId]:
        """Return the objects that ``op`` acts on."""
        return frozenset({op.resource})

    def find_created_resource(self, op: Operation) -> ResourceId | None:
        """Return the resource that ``op`` creates; None if ``op`` does not create a whole resource."""
        return self.find_object(op) if self.creates else None

    def find_deleted_resource(self, op: Operation) -> ResourceId | None:
        """Return the resource that ``op`` deletes as a whole, alone or together with other operations.

        Return None if no whole resource is deleted. Override this method for an operation type that removes
        parts of a resource, and deletes the resource if no part is left.
        """
        return self.find_object(op) if self.deletes else None

    def find_changed_resources(self, op: Operation) -> frozenset[ResourceId]:
        """Return all ids under which a manifest can declare the resources that ``op`` changes."""
        return frozenset({op.resource})

    def find_object(self, op: Operation) -> ResourceId | None:
        """Return the resource that ``op`` creates or deletes as a whole; None for any other operation."""
        return op.resource if self.creates or self.deletes else None

    def is_confined(self, op: Operation) -> bool:
        """Whether ``op`` affects no resource other than ``op.resource``. By default, return False.

        kdeclare rejects a plan file if this is False for any of its operations. Implementations compare the
        names in the arguments with ``op.resource``.
        """
        return False

    def is_temporary(self, op: Operation) -> bool:
        """Whether ``op`` creates a temporary setting, such as a throttle, which a later operation removes."""
        return False

    def find_pause_s(self, op: Operation) -> float:
        """Return the pause, in seconds, between the end of the predecessors and the start of ``op``."""
        return 0.0

    def find_deadline_s(self, connections: Connections) -> float | None:
        """Return the time limit, in seconds, for the system to process a request; None for no limit."""
        return None

    def select(self, op: Operation) -> Selections:
        """Return the selections of the live state that `compute_view` needs."""

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the live state that ``op`` touches, in the form of ``op.expect``."""

    def expected_state(self, op: Operation) -> View:
        """Return the view that is expected after ``op`` has been executed."""

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return all field changes of ``op``, based on its arguments and on ``op.expect``.

        A rollback shows these fields, and policies of a `PolicySubject` evaluate them. A plan file that shows
        different fields is rejected. Only an operation that creates or deletes a whole object is allowed to
        return no fields.
        """

    def less(self, op: Operation, subjects: Set[ResourceId]) -> Operation | None:
        """Return ``op`` without its effects on the given policy subjects; None if it then has no effect."""
        changed = {op.resource, *self.find_changed_resources(op)}
        return op if self.is_auxiliary or changed.isdisjoint(subjects) else None

    def count_ongoing_parts(self, op: Operation) -> Mapping[ResourceId, int]:
        """Return how many parts of each policy subject the system is still working on.

        For example, the parts of a topic are its partitions. After the response to a reassignment, the system
        still moves the replicas of these partitions.
        """
        return {}

    def find_element(self, op: Operation, at: ValuePath) -> str:
        """Return the view element that the argument at the path ``at`` belongs to.

        By default, the element is the path joined with dots.
        """
        return ".".join(map(str, at))

    def without_elements(self, op: Operation, elements: Set[str]) -> Operation | None:
        """Return a version of ``op`` that does not change the given view elements; None if impossible."""
        return None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return the claims of ``op``: for each element of its view, a name that is unique in the system."""

    def get_batch_key(self, op: Operation) -> str:
        """Return the key of ``op`` in a batch. No two operations in a batch can have the same key."""
        return str(op.resource)

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the claims that ``op`` changes.

        Operations that depend on ``op`` expect the changed values.
        """
        return frozenset(self.claims(op).values())

    def list_lagging_members(self, op: Operation, live: LiveState) -> tuple[str, ...]:
        """Return the members that do not show the effect of ``op`` yet, each with the reason."""
        return ()

    def is_repeatable(self, op: Operation) -> bool:
        """Whether repeating ``op`` is safe and reveals the outcome of the first request."""
        return False

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Return the cause of a fault that `execute` reported for ``op``, with a hint if there is one."""
        return Explanation()

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Outcome]:
        """Execute or validate a batch of operations, and return the outcomes by operation id.

        The client calls `check_send_permit` immediately before each request that changes something. Raises
        Fault if the whole request failed.
        """

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the inverse of ``op``, and what cannot be restored.

        ``op`` was executed completely or partially. now: the current view.
        """

    def plan_recreation(self, op: Operation, now: View, live: LiveState) -> Recreation | None:
        """Return how to re-create the object that ``op`` deleted, without its contents.

        Return None if objects of this type cannot be re-created without their contents.
        now: the current view.
        """
        return None

    def bind_to_created(
        self, op: Operation, created_id: str | None, live: LiveState, options: PlanOptions
    ) -> Operation | UnprovenDeletion:
        """Return a deletion that is restricted to the object that a run created.

        Return `UnprovenDeletion` if it is not certain that the run created the object.
        created_id: the id of the object, as acknowledged by the system; None if the id is unknown.
        """
        return op

    def announce_losses(self, connections: Connections, ops: Sequence[Operation]) -> tuple[Diagnostic, ...]:
        """Return diagnostics about data that these operations would delete.

        Users see these diagnostics before they confirm the plan. If the system does not respond, return a
        diagnostic instead of raising an error.
        """
        return ()

    def find_losses(self, connections: Connections, ops: Sequence[Operation]) -> Mapping[str, Diagnostic]:
        """Return the operations that a rollback must omit because they would delete data.

        The keys are operation ids. Each diagnostic explains why the operation is omitted. Raises Fault.
        """
        return {}

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """Return the pending cleanup after ``op`` has ended with ``status``.

        before: the pending cleanup before ``op``.
        """
        return before


def batch_operations(
    operation_type: OperationType, operations: Sequence[Operation], size: int
) -> Iterator[list[Operation]]:
    """Yield batches of at most ``size`` operations. No two operations in a batch have the same batch key."""
    remaining = list(operations)
    while remaining:
        batch: dict[str, Operation] = {}
        postponed: list[Operation] = []
        for op in remaining:
            if len(batch) < size and (key := operation_type.get_batch_key(op)) not in batch:
                batch[key] = op
            else:
                postponed.append(op)
        yield list(batch.values())
        remaining = postponed


def with_inverse(operation_type: OperationType, op: Operation) -> Operation:
    """Return ``op`` with its inverse, or with the reason why it cannot be undone."""
    undo_result = operation_type.invert(op, operation_type.expected_state(op), allow_data_loss=False)
    if undo_result.lost or undo_result.args is None:
        lost_elements = ", ".join(undo_result.lost) or "nothing"
        return replace(op, irreversible=op.irreversible or f"Cannot be restored: {lost_elements}.")
    return replace(op, inverse=Inverse(undo_result.verb, undo_result.args))


def with_args(op: Operation, args: Arguments) -> Operation:
    """Replace the arguments of ``op``, and of its inverse if it has one, and return the result."""
    return replace(op, args=args, inverse=replace(op.inverse, args=args) if op.inverse else None)
