"""The base class of operations on subjects, and the operation type for compatibility levels."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue, as_text_or_none
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Explanation, Fault, FaultCause, Outcome
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Operation, UndoResult
from kdeclare.core.operations.operation_type import OperationType, View
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.changes import FieldChange, FieldOp, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.providers.schema_registry.client import port
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, SchemaRegistry
from kdeclare.providers.schema_registry.connection import RegistryClients
from kdeclare.providers.schema_registry.schema.arguments import (
    LevelArgs,
    SubjectArgs,
)
from kdeclare.providers.schema_registry.schema.fields import LEVEL
from kdeclare.providers.schema_registry.schema.live import (
    LiveSubject,
    SchemaSelection,
    SchemaState,
    SubjectQuery,
    read_in_parallel,
)
from kdeclare.providers.schema_registry.schema.spec import SCHEMA

SUBJECT = "schema-registry.subject"
"""The object type of subjects in footprints. The name of an object is ``REGISTRY/SUBJECT``."""

_HINTS: Mapping[str, str] = {
    port.INCOMPATIBLE: "Change the schema so that it is compatible, or declare a looser compatibility level.",
    port.REFERENCE_EXISTS: "First delete the schemas that refer to this version. Some registries, such as "
    "Apicurio Registry, also count soft-deleted versions; delete these for good (onDelete: hard).",
    port.NOT_PERMITTED: "Set the mode of the registry or the subject to READWRITE.",
}


class SubjectOperationType(OperationType):
    """The base class of operation types that change one subject."""

    def __init__(self) -> None:
        """Create the operation type."""

    def describe_target(self, op: Operation) -> tuple[str, str] | None:
        """Return the subject and its registry."""
        args = get_arguments(op, SubjectArgs)
        return "subject", f"{args.subject} in registry {args.endpoint}"

    def is_confined(self, op: Operation) -> bool:
        """Whether the operation belongs to a Schema resource, whose name can differ from the subject."""
        return op.resource.kind == SCHEMA

    def select(self, op: Operation) -> Selections:
        """Select the subject."""
        return select_subject(get_arguments(op, SubjectArgs))

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim per element of the view."""
        key = get_arguments(op, SubjectArgs).key
        return {element: f"schema-registry/{key}/{element}" for element in self.list_elements(op)}

    def get_batch_key(self, op: Operation) -> str:
        """Return the subject as the batch key, so that changes to one subject are made one after another."""
        return get_arguments(op, SubjectArgs).key

    @abstractmethod
    def list_elements(self, op: Operation) -> Sequence[str]:
        """Return the elements of the view."""

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the view of the subject that the operation changes.

        Raises Fault if the registry could not be read.
        """
        args = get_arguments(op, SubjectArgs)
        return self.view_subject(op, live.get(SchemaState).get(args.endpoint).get(args.subject))

    @abstractmethod
    def view_subject(self, op: Operation, subject: LiveSubject) -> View:
        """Return the view of the live subject."""

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Return the cause of a fault that the registry reported."""
        if fault.error == port.NOT_AUTHORIZED:
            args = get_arguments(op, SubjectArgs)
            right = f"permission to change subject '{args.subject}' in registry '{args.endpoint}'"
            return Explanation(FaultCause.NOT_AUTHORIZED, right)
        if fault.error == port.THROTTLED:
            return Explanation(FaultCause.OVER_QUOTA)
        return Explanation(hint=_HINTS.get(fault.error, ""))

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Outcome]:
        """Execute the operations in parallel. Each operation changes a different subject."""
        clients = connections.get(RegistryClients)

        def change(op: Operation) -> Outcome:
            try:
                return self.change_subject(clients.open(get_arguments(op, SubjectArgs).endpoint), op)
            except Fault as fault:
                return fault

        return dict(zip((op.id for op in ops), read_in_parallel(ops, change), strict=True))

    @abstractmethod
    def change_subject(self, registry: SchemaRegistry, op: Operation) -> Outcome:
        """Change the subject. Raises Fault."""


class SetLevel(SubjectOperationType):
    """The operation type that sets or removes the compatibility level of a subject."""

    name = "schema.compatibility"
    done_label = ("compatibility level set", "compatibility levels set")
    arguments = LevelArgs
    deletion_risk = Risk.DISRUPTIVE

    def find_deleted_resource(self, op: Operation) -> ResourceId | None:
        """Return the resource of the operation if the plan deletes the subject; otherwise None."""
        return op.resource if get_arguments(op, LevelArgs).whole else None

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return a footprint that lists the subject.

        If the plan deletes the subject, the access is ``AFTER``, so that the level is removed first.
        """
        args = get_arguments(op, LevelArgs)
        return [FootprintEntry(SUBJECT, args.key, Access.AFTER if args.whole else Access.UPDATE)]

    def describe_target(self, op: Operation) -> tuple[str, str] | None:
        """Return the subject and its registry, so that plans show where the level is set.

        Return None for a new subject, because its registration already shows both.
        """
        return None if get_arguments(op, LevelArgs).is_new else super().describe_target(op)

    def list_elements(self, op: Operation) -> Sequence[str]:
        """Return the name of the only element of the view: the level."""
        return (LEVEL,)

    def view_subject(self, op: Operation, subject: LiveSubject) -> View:
        """Return the level of the subject.

        None means that the subject has no level of its own, or that this is unknown.
        """
        own = subject.level.own
        return {LEVEL: None if own is None else own.value}

    def expected_state(self, op: Operation) -> View:
        """Return the new level.

        If the new level is the global level, and the registry does not distinguish a subject's own level from
        the inherited level, return None, because the view then contains no level either.
        """
        args = get_arguments(op, LevelArgs)
        return {LEVEL: None if args.level in (None, args.inherited) else args.level.value}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return the change of the level."""
        level = get_arguments(op, LevelArgs).level
        after = None if level is None else level.value
        return (FieldChange(LEVEL, FieldOp.CHANGE, op.expect.get(LEVEL), after),)

    def is_repeatable(self, op: Operation) -> bool:
        """Return True, because a repeated operation has the same effect."""
        return True

    def change_subject(self, registry: SchemaRegistry, op: Operation) -> Outcome:
        """Set or remove the compatibility level of the subject."""
        args = get_arguments(op, LevelArgs)
        if args.level is None:
            registry.delete_level(args.subject)
        else:
            registry.set_level(args.subject, args.level)
        return None

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the operation that restores the earlier level."""
        before = as_text_or_none(op.expect.get(LEVEL))
        if now[LEVEL] == before:
            return UndoResult()
        if now != self.expected_state(op):
            return UndoResult(conflicts=(LEVEL,))
        args = get_arguments(op, LevelArgs)
        level = None if before is None else CompatibilityLevel(before)
        undo_args = replace(args, level=level, is_new=args.whole, whole=args.is_new)
        return UndoResult(self.name, undo_args)


LEVEL_TYPE = SetLevel()


def select_subject(args: SubjectArgs, *, has_deleted: bool = False) -> Selections:
    """Return the selection of the subject that an operation changes."""
    query = SubjectQuery(args.endpoint, args.subject, has_deleted=has_deleted)
    return (SchemaSelection(frozenset({query})),)


def select_elements(expect: Mapping[str, JsonValue], now: View) -> View:
    """Return the expected values of those elements that a view contains."""
    return {element: expect.get(element) for element in now}
