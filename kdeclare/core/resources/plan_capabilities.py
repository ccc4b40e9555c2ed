"""Capabilities of kinds for planning and applying: risks, static checks, object ids, and protection.

A capability is a small protocol that a kind can implement. Generic code calls the function of the same name
in this module, which returns a default for kinds without the capability.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from functools import cache
from typing import Protocol, runtime_checkable

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.operations.footprint import Footprint
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.provider.registry import KINDS, OPERATION_TYPES, get_operation_type
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord


@runtime_checkable
class AssessesRisks(Protocol):
    """A kind whose changes can interrupt clients or lose data."""

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """Return the field change with its risk and the cause. The live state is not considered."""


@runtime_checkable
class StaticallyChecked(Protocol):
    """A kind with diagnostics that depend only on the manifest."""

    def find_static_diagnostics(self, desired: DesiredResource) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of `diff` that do not depend on live state."""


@runtime_checkable
class SharesSettings(Protocol):
    """A kind whose resources declare settings that resources of other kinds can also declare."""

    def list_exclusive_settings(self, name: str, body: object) -> Mapping[str, JsonValue]:
        """Return the values of settings that only one resource is allowed to declare, by setting name."""


@runtime_checkable
class AffectsResources(Protocol):
    """A kind whose resources, when applied, change other resources of the same or a different kind."""

    def find_affected(self, body: object) -> Collection[ResourceId]:
        """Return the other resources that change when a resource with this body is applied."""


@runtime_checkable
class MentionsObjects(Protocol):
    """A kind whose resources use objects that resources of other kinds declare."""

    def list_mentions(self, body: object) -> Footprint:
        """Return each object that a body names, with `Access.MENTIONS`, even if no operation touches it."""


@runtime_checkable
class RecordsIdentity(Protocol):
    """A kind whose ownership records distinguish the owned object from later objects with the same name."""

    def record_identity(
        self, record: OwnedRecord | None, done: tuple[Operation, ...], created_ids: Mapping[str, str | None]
    ) -> OwnedRecord | None:
        """Return the ownership record with the id of the created object, or without an id if it is uncertain.

        created_ids: the ids that the system acknowledged, by operation id.
        """

    def forget_identity(self, record: OwnedRecord | None) -> OwnedRecord | None:
        """Return the record without an id, so that the record matches any object with the same name."""


@runtime_checkable
class ProtectsObjects(Protocol):
    """A kind with live objects that must never be deleted, such as the internal objects of a system."""

    def find_undeletable(self, names: Collection[str], live: LiveState) -> Mapping[str, str]:
        """Return the names that must not be deleted, each with the reason as a sentence.

        live: the live state that was read for the operations that delete these objects.
        """


@runtime_checkable
class DescribesDeletion(Protocol):
    """A kind whose objects contain data that deletion destroys."""

    deletion_cause: str
    """A sentence about the data that is lost when an object is deleted."""


@runtime_checkable
class RatesByLiveState(Protocol):
    """A kind whose changes can have a lower risk than `assess_field` returns, depending on the live state."""

    def is_rated_by_live_state(self, field: FieldChange) -> bool:
        """Whether the risk of this field depends on live state."""


Values = tuple[JsonValue, ...]
"""The values of one field in order: the current value, any intermediate values, and the final value."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The values of a resource's fields in a plan file and in operations, by field path.

    shown: the values in the plan file.
    done: the values set by the operations of this resource.
    shared: the values set by all operations whose work continues after the request, for any resource. If two
        resources declare the same value, only one of them has an operation.
    """

    shown: Mapping[str, Values]
    done: Mapping[str, Values]
    shared: Mapping[str, Values]


@runtime_checkable
class ProvesFields(Protocol):
    """A kind whose changes show fields in a different form than its operations, or show fewer fields.

    For any other kind, a plan file is accepted only if each field change in the file is exactly the change
    that an operation makes, in one step.
    """

    def normalize_field(self, resource: ResourceId, field: FieldChange) -> FieldChange:
        """Return the field change in the form in which changes and operations are compared."""

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """Return the paths of fields whose values in the plan need not match the operations."""


@runtime_checkable
class MovesData(Protocol):
    """A kind with fields that determine where data is stored.

    Reports call a change to such a field a move.
    """

    def is_location(self, path: str) -> bool:
        """Whether a field only determines where data is stored."""


@runtime_checkable
class PlansBlockedChanges(Protocol):
    """A kind whose plans describe what a blocked change would do; see `Provider.describe_blocked`."""

    def plan_blocked(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """Return the operations that describe a blocked change. They are never executed."""


@runtime_checkable
class Replaceable(Protocol):
    """A kind whose objects can be deleted and re-created under the same name in one plan (``--replace``)."""

    def remove_from_live(self, resource: ResourceId, live: LiveState) -> LiveState:
        """Return the live state without the object of a resource, as if it had been deleted."""


PREVENT_DESTROY = "prevent-destroy"
"""The diagnostic code for an object that is protected from deletion."""


# Protocol checks are slow and a plan makes thousands of them, so each kind is checked once.


@cache
def _find_risk_assessor(kind: object) -> AssessesRisks | None:
    return kind if isinstance(kind, AssessesRisks) else None


@cache
def _find_deletion_describer(kind: object) -> DescribesDeletion | None:
    return kind if isinstance(kind, DescribesDeletion) else None


@cache
def _find_static_checker(kind: object) -> StaticallyChecked | None:
    return kind if isinstance(kind, StaticallyChecked) else None


@cache
def _find_settings_lister(kind: object) -> SharesSettings | None:
    return kind if isinstance(kind, SharesSettings) else None


@cache
def _find_mention_lister(kind: object) -> MentionsObjects | None:
    return kind if isinstance(kind, MentionsObjects) else None


@cache
def _find_identity_recorder(kind: object) -> RecordsIdentity | None:
    return kind if isinstance(kind, RecordsIdentity) else None


@cache
def _find_field_prover(kind: object) -> ProvesFields | None:
    return kind if isinstance(kind, ProvesFields) else None


def assess_field(kind: str, action: Action, field: FieldChange) -> FieldChange:
    """Return the field change with its risk. If the kind does not assess risks, return it unchanged."""
    assessor = _find_risk_assessor(KINDS.get(kind))
    return assessor.assess_field(action, field) if assessor is not None else field


def find_deletion_cause(kind: str) -> str:
    """Return the kind's sentence about the data that is lost when an object is deleted; empty by default."""
    describer = _find_deletion_describer(KINDS.get(kind))
    return describer.deletion_cause if describer is not None else ""


def is_rated_by_live_state(kind: str, field: FieldChange) -> bool:
    """Whether a plan can show a lower risk for a field than `assess_field` returns."""
    registered_kind = KINDS.get(kind)
    return isinstance(registered_kind, RatesByLiveState) and registered_kind.is_rated_by_live_state(field)


def normalize_field(resource: ResourceId, field: FieldChange) -> FieldChange:
    """Return the field change in the form in which changes and operations are compared."""
    field_prover = _find_field_prover(KINDS.get(resource.kind))
    return field_prover.normalize_field(resource, field) if field_prover is not None else field


def find_proven_fields(change: Change, evidence: Evidence) -> Set[str]:
    """Return the paths of fields whose values in the plan need not match the operations.

    By default, the result is empty.
    """
    field_prover = _find_field_prover(KINDS.get(change.id.kind))
    return field_prover.find_proven_fields(change, evidence) if field_prover is not None else frozenset()


def plan_blocked(
    change: Change,
    desired: DesiredResource | None,
    live: LiveState,
    owned: OwnedRecord | None,
    context: PlanContext,
) -> tuple[Operation, ...]:
    """Return the operations of a blocked change, which are never executed. By default, there are none."""
    kind = KINDS.get(change.id.kind)
    if not isinstance(kind, PlansBlockedChanges):
        return ()
    operations = kind.plan_blocked(change, desired, live, owned, context)
    return tuple(Operation(op.id, op.verb, op.resource, op.args, op.expect) for op in operations)


def find_static_diagnostics(desired: DesiredResource) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a resource that do not depend on live state."""
    static_checker = _find_static_checker(KINDS[desired.id.kind])
    return static_checker.find_static_diagnostics(desired) if static_checker is not None else ()


def list_exclusive_settings(desired: DesiredResource) -> Mapping[str, JsonValue]:
    """Return the values of settings that only one resource is allowed to declare, by setting name."""
    settings_lister = _find_settings_lister(KINDS[desired.id.kind])
    return (
        settings_lister.list_exclusive_settings(desired.id.name, desired.body)
        if settings_lister is not None
        else {}
    )


def find_affected(kind: object, body: object) -> Collection[ResourceId]:
    """Return the other resources that change when a resource of this kind, with this body, is applied."""
    return kind.find_affected(body) if isinstance(kind, AffectsResources) else ()


def list_mentions(desired: DesiredResource) -> Footprint:
    """Return the objects of other kinds that a declared resource names."""
    kind = _find_mention_lister(KINDS.get(desired.id.kind))
    return kind.list_mentions(desired.body) if kind is not None else ()


def record_identity(
    kind: str, record: OwnedRecord | None, done: tuple[Operation, ...], created_ids: Mapping[str, str | None]
) -> OwnedRecord | None:
    """Return the ownership record with the id of the object that the operations created."""
    recorder = _find_identity_recorder(KINDS[kind])
    return recorder.record_identity(record, done, created_ids) if recorder is not None else record


def forget_identity(kind: str, record: OwnedRecord | None) -> OwnedRecord | None:
    """Return the ownership record without an id, so that the record matches any object with the same name."""
    recorder = _find_identity_recorder(KINDS[kind])
    return recorder.forget_identity(record) if recorder is not None else record


def find_undeletable(kind: str, names: Collection[str], live: LiveState) -> Mapping[str, str]:
    """Return the objects of a kind that must not be deleted, each with the reason as a sentence.

    live: the live state that was read for the operations that delete these objects.
    """
    registered_kind = KINDS.get(kind)
    return (
        registered_kind.find_undeletable(names, live) if isinstance(registered_kind, ProtectsObjects) else {}
    )


def find_replaceable(kind: str) -> Replaceable | None:
    """Return the kind if its objects can be replaced; otherwise None."""
    registered_kind = KINDS.get(kind)
    return registered_kind if isinstance(registered_kind, Replaceable) else None


def find_replacements(operations: Sequence[Operation]) -> dict[str, Operation]:
    """Return the operations that delete an object so that a later operation can create it again.

    The keys are the ids of the operations that create the objects again.
    """
    if not any(OPERATION_TYPES[verb].deletes for verb in {op.verb for op in operations}):
        return {}  # the usual case
    typed_operations = [(op, get_operation_type(op)) for op in operations]
    deletions = {
        op.id: (op, resource)
        for op, operation_type in typed_operations
        if operation_type.deletes and (resource := operation_type.find_deleted_resource(op)) is not None
    }
    if not deletions:
        return {}
    return {
        op.id: deletions[need][0]
        for op, operation_type in typed_operations
        if op.needs and operation_type.creates
        for need in op.needs
        if need in deletions and deletions[need][1] == operation_type.find_created_resource(op) == op.resource
    }


def is_move(change: Change) -> bool:
    """Whether a change only affects where data is stored."""
    kind = _find_data_mover(KINDS.get(change.id.kind)) if change.fields else None
    return kind is not None and all(kind.is_location(field.path) for field in change.fields)


@cache
def _find_data_mover(kind: object) -> MovesData | None:
    return kind if isinstance(kind, MovesData) else None
