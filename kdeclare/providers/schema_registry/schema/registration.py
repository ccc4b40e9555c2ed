"""The operation type that registers a schema as the latest version of a subject."""

from collections.abc import Iterable, Sequence

from kdeclare.core.live.faults import CreatedObject, Fault, Outcome
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Operation, UndoResult
from kdeclare.core.operations.operation_type import View
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.schema_registry.client.port import (
    SchemaContent,
    SchemaReference,
    SchemaRegistry,
)
from kdeclare.providers.schema_registry.schema.arguments import (
    DELETE_NAME,
    REGISTER_NAME,
    ContentArgs,
    DeleteArgs,
    ReferenceArgs,
    RegisterArgs,
    VersionArgs,
    mark_content,
)
from kdeclare.providers.schema_registry.schema.fields import (
    TEXT,
    TYPE,
    build_references_field,
    list_location_fields,
)
from kdeclare.providers.schema_registry.schema.live import (
    LiveSubject,
    LiveVersion,
    RegistryReader,
)
from kdeclare.providers.schema_registry.schema.operations import (
    SUBJECT,
    SubjectOperationType,
    select_elements,
)
from kdeclare.providers.schema_registry.schema.spec import SCHEMA

VERSION = "schema-registry.version"
"""The object type of registered schemas in footprints.

The name of such an object is ``REGISTRY/SUBJECT/FINGERPRINT``.
"""
REFERENCE_CHANGED = "REFERENCE_CHANGED"
"""The error code for a reference if no version of the subject has the content that the plan expects."""


def register_contents(registry: SchemaRegistry, subject: str, contents: Iterable[ContentArgs]) -> int | None:
    """Register contents one after another. Return the number of the last version, if it is known.

    Raises Fault.
    """
    reader = RegistryReader(registry)
    number: int | None = None
    for content in contents:
        number = registry.register(subject, resolve_content(registry, reader, content)).version
    return number


def resolve_content(registry: SchemaRegistry, reader: RegistryReader, content: ContentArgs) -> SchemaContent:
    """Return the content with references to versions that exist in the registry. Raises Fault."""
    references = tuple(
        SchemaReference(item.name, item.subject, _find_version(registry, reader, item).number)
        for item in content.references
    )
    return SchemaContent(content.type, content.text, references)


def _find_version(registry: SchemaRegistry, reader: RegistryReader, item: ReferenceArgs) -> LiveVersion:
    """Return the version that has the content to which the plan refers.

    If the planned version was deleted and registered again, its number has changed, but its content is the
    same. Raises Fault if there is no such version.
    """
    version = reader.read_version(item.subject, item.version)
    if version is not None and version.fingerprint == item.content:
        return version
    if item.version is not None:
        for number in sorted(registry.list_versions(item.subject), reverse=True):
            version = reader.read_version(item.subject, number)
            if version is not None and version.fingerprint == item.content:
                return version
    which = "the latest version" if item.version is None else f"version {item.version}"
    raise Fault(
        REFERENCE_CHANGED,
        f"{which} of subject '{item.subject}' does not have the content that the plan expects for "
        f"the reference '{item.name}'",
    )


class RegisterSchema(SubjectOperationType):
    """The operation type that registers a schema as the latest version of a subject."""

    name = REGISTER_NAME
    done_label = ("schema registered", "schemas registered")
    arguments = RegisterArgs
    creates = True

    def find_object(self, op: Operation) -> ResourceId | None:
        """Return the resource of the operation if the subject has no version yet; otherwise None."""
        return op.resource if _is_new(op) else None

    def describe_target(self, op: Operation) -> tuple[str, str] | None:
        """Return the subject and its registry, so that plans show where the schema is registered.

        Return None for a new subject, because its fields already show both.
        """
        return None if _is_new(op) else super().describe_target(op)

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return the subject, the new version, and the subjects and versions to which the schema refers.

        Every registration counts as a creation, so that everything that needs the schema comes after it.
        """
        args = get_arguments(op, RegisterArgs)
        contents = (*args.earlier, args.content)
        references = {item for content in contents for item in content.references}
        return [
            FootprintEntry(SCHEMA, op.resource.name, Access.CREATE),
            FootprintEntry(SUBJECT, args.key, Access.CREATE if _is_new(op) else Access.UPDATE),
            FootprintEntry(VERSION, f"{args.key}/{args.content.fingerprint}", Access.CREATE),
            *(
                FootprintEntry(SUBJECT, f"{args.endpoint}/{subject}", Access.REQUIRES)
                for subject in sorted({item.subject for item in references})
            ),
            *(
                FootprintEntry(VERSION, f"{args.endpoint}/{item.subject}/{item.content}", Access.REQUIRES)
                for item in sorted(references, key=str)
                if item.version is None
            ),
        ]

    def list_elements(self, op: Operation) -> Sequence[str]:
        """Return the name of the only element of the view: the content of the latest version."""
        return (TEXT,)

    def view_subject(self, op: Operation, subject: LiveSubject) -> View:
        """Return the content of the latest version. None means that the subject does not exist."""
        latest = subject.latest
        return {TEXT: None if latest is None else mark_content(latest.content.type, latest.fingerprint)}

    def expected_state(self, op: Operation) -> View:
        """Return the content that is registered."""
        return {TEXT: get_arguments(op, RegisterArgs).content.mark}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return the type and the text, the references if they change, and the name of a new subject.

        The texts are not normalized, because policies also consider comments. Raises ValueError if the
        content before the operation is not the expected content.
        """
        args = get_arguments(op, RegisterArgs)
        before, after = args.before, args.content
        if (None if before is None else before.mark) != op.expect.get(TEXT):
            raise ValueError("the content before the operation is not the expected content")
        fields = [
            FieldChange(
                TYPE, FieldOp.CHANGE, None if before is None else before.type.value, after.type.value
            ),
            FieldChange(TEXT, FieldOp.CHANGE, None if before is None else before.text, after.text),
        ]
        if before is None:
            fields = [*list_location_fields(args.endpoint, args.subject), *fields]
        listed = () if before is None else before.listed
        if listed != after.listed:
            fields.append(build_references_field(listed, after.listed))
        return tuple(fields)

    def is_repeatable(self, op: Operation) -> bool:
        """Return True: if the same content is registered again, the registry only returns its version."""
        return True

    def change_subject(self, registry: SchemaRegistry, op: Operation) -> Outcome:
        """Register the content. Return the version number as the id of the created object."""
        args = get_arguments(op, RegisterArgs)
        number = register_contents(registry, args.subject, (*args.earlier, args.content))
        return CreatedObject("" if number is None else str(number))

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the operation that soft-deletes the version. The schema can still be read by its id."""
        before, after = select_elements(op.expect, now), self.expected_state(op)
        if now == before:
            return UndoResult()
        if now != after:
            return UndoResult(conflicts=tuple(e for e in now if now[e] != after[e]))
        args = get_arguments(op, RegisterArgs)
        contents = (*args.earlier, args.content) if _is_new(op) else (args.content,)
        versions = tuple(VersionArgs(None, content) for content in contents)
        undo_args = DeleteArgs(
            args.endpoint, args.subject, versions=versions, whole=_is_new(op), remaining=args.before
        )
        return UndoResult(DELETE_NAME, undo_args)


REGISTER = RegisterSchema()


def _is_new(op: Operation) -> bool:
    """Whether the subject of a registration had no version when the operation was planned."""
    return op.expect.get(TEXT) is None
