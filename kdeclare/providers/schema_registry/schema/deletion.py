"""The operation types that delete subjects and versions, softly or permanently."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Explanation, Fault, FaultCause, Outcome
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Operation, UndoResult
from kdeclare.core.operations.operation_type import View
from kdeclare.core.parts import LiveState, PlanOptions
from kdeclare.core.resources.changes import FieldChange, FieldOp, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.schema_registry.client import port
from kdeclare.providers.schema_registry.client.port import SchemaRegistry
from kdeclare.providers.schema_registry.schema.arguments import (
    DELETE_NAME,
    REGISTER_NAME,
    DeleteArgs,
    PurgeArgs,
    RegisterArgs,
)
from kdeclare.providers.schema_registry.schema.fields import (
    IDS,
    VERSIONS,
)
from kdeclare.providers.schema_registry.schema.live import (
    LiveSubject,
    SchemaSelection,
    SchemaState,
    SubjectQuery,
    identify_content,
)
from kdeclare.providers.schema_registry.schema.operations import (
    SUBJECT,
    SubjectOperationType,
    select_elements,
    select_subject,
)
from kdeclare.providers.schema_registry.schema.spec import SCHEMA

_VERSION_ELEMENT = "version"

_GONE_ERRORS = frozenset(
    {
        port.SUBJECT_NOT_FOUND,
        port.VERSION_NOT_FOUND,
        port.SUBJECT_SOFT_DELETED,
        port.VERSION_SOFT_DELETED,
    }
)


class DeleteSchema(SubjectOperationType):
    """The operation type that soft-deletes a subject or one of its versions."""

    name = DELETE_NAME
    done_label = ("schema deleted", "schemas deleted")
    arguments = DeleteArgs
    deletes = True
    deletion_risk = Risk.DISRUPTIVE

    def find_object(self, op: Operation) -> ResourceId | None:
        """Return the resource if the whole subject is deleted; otherwise None."""
        return op.resource if get_arguments(op, DeleteArgs).whole else None

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return the subject, and the subjects that the deleted versions refer to."""
        args = get_arguments(op, DeleteArgs)
        subjects = {item.subject for version in args.versions for item in version.content.references}
        access = Access.DELETE if args.whole else Access.UPDATE
        return [
            *([FootprintEntry(SCHEMA, op.resource.name, access)] if args.whole else ()),
            FootprintEntry(SUBJECT, args.key, access),
            *(
                FootprintEntry(SUBJECT, f"{args.endpoint}/{subject}", Access.AFTER)
                for subject in sorted(subjects)
            ),
        ]

    def select(self, op: Operation) -> Selections:
        """Select the versions of the subject."""
        args = get_arguments(op, DeleteArgs)
        contents = (version.content for version in args.versions)
        wanted = frozenset(identify_content(item.type, item.text) for item in contents)
        query = SubjectQuery(args.endpoint, args.subject, wanted, has_history=args.whole)
        return (SchemaSelection(frozenset({query})),)

    def list_elements(self, op: Operation) -> Sequence[str]:
        """List the only element of the view: all versions of the subject, or the version that is deleted."""
        return (VERSIONS,) if get_arguments(op, DeleteArgs).whole else (_VERSION_ELEMENT,)

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return a claim for all versions or, if only one version is deleted, for its content."""
        args = get_arguments(op, DeleteArgs)
        if args.whole:
            return super().claims(op)
        return {_VERSION_ELEMENT: f"schema-registry/{args.key}/{args.versions[0].content.fingerprint}"}

    def view_subject(self, op: Operation, subject: LiveSubject) -> View:
        """Return the numbers of all versions, or the number of the version that is deleted.

        None means that there is no version.
        """
        args = get_arguments(op, DeleteArgs)
        if args.whole:
            return {VERSIONS: list(subject.numbers) or None}
        version = subject.find(args.versions[0].content.fingerprint)
        return {_VERSION_ELEMENT: None if version is None else version.number}

    def expected_state(self, op: Operation) -> View:
        """Return the view without the deleted versions."""
        return dict.fromkeys(self.list_elements(op))

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return the field change for the deleted versions."""
        args = get_arguments(op, DeleteArgs)
        before = op.expect.get(VERSIONS) if args.whole else _as_list(op.expect.get(_VERSION_ELEMENT))
        return (FieldChange(VERSIONS, FieldOp.CHANGE, before, None),)

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Return the cause of a fault. If the version does not exist, it was already deleted."""
        if fault.error in _GONE_ERRORS:
            return Explanation(FaultCause.GONE_ALREADY)
        return super().explain(op, fault)

    def change_subject(self, registry: SchemaRegistry, op: Operation) -> Outcome:
        """Soft-delete the subject, or only the version in the arguments."""
        args = get_arguments(op, DeleteArgs)
        if args.whole:
            registry.delete_subject(args.subject)
            return None
        number = args.versions[0].number
        if number is None:
            raise Fault(port.VERSION_NOT_FOUND, "the version to delete is not known")
        registry.delete_version(args.subject, number)
        return None

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the operation that registers the deleted versions again.

        The versions get new numbers and keep their ids.
        """
        if now == select_elements(op.expect, now):
            return UndoResult()
        if now != self.expected_state(op):
            return UndoResult(conflicts=tuple(now))
        args = get_arguments(op, DeleteArgs)
        *earlier, latest = (version.content for version in args.versions)
        undo_args = RegisterArgs(
            args.endpoint, args.subject, content=latest, before=args.remaining, earlier=tuple(earlier)
        )
        return UndoResult(REGISTER_NAME, undo_args)

    def bind_to_created(
        self, op: Operation, created_id: str | None, live: LiveState, options: PlanOptions
    ) -> Operation:
        """Add to the arguments the number of the version that the run registered."""
        args = get_arguments(op, DeleteArgs)
        subject = live.get(SchemaState).get(args.endpoint).get(args.subject)
        found = subject.find(args.versions[-1].content.fingerprint)
        number = int(created_id) if created_id else found.number if found is not None else None
        versions = (*args.versions[:-1], replace(args.versions[-1], number=number))
        return replace(op, args=replace(args, versions=versions))


class PurgeSchema(SubjectOperationType):
    """The operation type that permanently deletes a soft-deleted subject and the ids of its schemas."""

    name = "schema.purge"
    done_label = ("schema removed for good", "schemas removed for good")
    arguments = PurgeArgs
    deletion_risk = Risk.IRREVERSIBLE

    def find_deleted_resource(self, op: Operation) -> ResourceId:
        """Return the resource of the operation."""
        return op.resource

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return an empty footprint: the preceding soft deletion already has the subject in its footprint."""
        return ()

    def select(self, op: Operation) -> Selections:
        """Select the subject with its soft-deleted versions."""
        args = get_arguments(op, PurgeArgs)
        return select_subject(args, has_deleted=True)

    def list_elements(self, op: Operation) -> Sequence[str]:
        """List the only element of the view: all versions, including the soft-deleted versions."""
        return (IDS,)

    def view_subject(self, op: Operation, subject: LiveSubject) -> View:
        """Return the numbers of all versions, including the soft-deleted versions."""
        return {IDS: list(subject.all_numbers) or None}

    def expected_state(self, op: Operation) -> View:
        """Return the view after the operation. It contains no versions."""
        return {IDS: None}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return the field change for the versions whose ids are lost."""
        return (FieldChange(IDS, FieldOp.CHANGE, op.expect.get(IDS), None),)

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Return the cause of a fault. If the subject does not exist, it was already removed."""
        if fault.error == port.SUBJECT_NOT_FOUND:
            return Explanation(FaultCause.GONE_ALREADY)
        return super().explain(op, fault)

    def change_subject(self, registry: SchemaRegistry, op: Operation) -> Outcome:
        """Permanently delete the soft-deleted subject."""
        registry.delete_subject(get_arguments(op, PurgeArgs).subject, permanent=True)
        return None

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Report that a rollback cannot restore the ids of the schemas.

        The inverse of the soft deletion registers the schemas again, with new ids.
        """
        return (
            UndoResult()
            if now == select_elements(op.expect, now)
            else UndoResult(lost=("the ids of its schemas",))
        )


DELETE = DeleteSchema()
PURGE = PurgeSchema()


def _as_list(value: JsonValue) -> JsonValue:
    return None if value is None else [value]
