"""Read an unregistered schema from a file, for `kdeclare schema-registry diff` and `check`."""

from collections.abc import Callable
from pathlib import Path

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.whole_number import parse_whole_number
from kdeclare.manifests.syntax.substitution import format_os_error, read_regular_file
from kdeclare.providers.schema_registry.client.port import (
    SchemaContent,
    SchemaReference,
    SchemaType,
)
from kdeclare.providers.schema_registry.commands.subject_lookup import LocatedSubject
from kdeclare.providers.schema_registry.schema.content import compute_fingerprint, format_reference
from kdeclare.providers.schema_registry.schema.live import LiveVersion, RegistryReader
from kdeclare.providers.schema_registry.schema.spec import DeclaredReference
from kdeclare.providers.schema_registry.schemas.comparison import parse_schema
from kdeclare.providers.schema_registry.schemas.problems import SchemaError, SchemaProblem

_TYPES = {".avsc": SchemaType.AVRO, ".proto": SchemaType.PROTOBUF}
"""The possible schema types of a file, by its extension. JSON files can contain Avro or JSON Schema."""


@dataclass(frozen=True, slots=True)
class CandidateFile:
    """A file with a schema, and options that say how to interpret it.

    type: None to derive the type from the extension of the file, or from the latest version of the subject.
    references: None to use the references of the manifest or of the latest version.
    """

    path: Path
    type: SchemaType | None = None
    references: tuple[DeclaredReference, ...] | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A valid schema with resolved references.

    fingerprint: the hash of the content, including the contents of all references.
    """

    content: SchemaContent
    fingerprint: str


def read_candidate(
    file: CandidateFile,
    subject: LocatedSubject,
    reader: RegistryReader,
    find_declared: Callable[[], tuple[DeclaredReference, ...] | None],
) -> Candidate:
    """Read and parse a schema. Raises KdeclareError with the positions of the problems, and Fault.

    reader: reads the registry of the subject. find_declared: returns the references of the manifest that
    declares the subject; None if no manifest declares it.
    """
    text = _read_text(file.path)
    latest = reader.read_version(subject.name) if subject.numbers else None
    references = file.references
    if references is None:
        references = find_declared()
    if references is None and latest is not None:
        references = tuple(
            DeclaredReference(item.name, item.subject, item.version) for item in latest.content.references
        )
    targets = {item: _resolve(item, subject, reader) for item in references or ()}
    content = SchemaContent(
        _find_type(file, latest),
        text,
        tuple(SchemaReference(item.name, item.subject, target.number) for item, target in targets.items()),
    )
    try:
        parse_schema(content, {item.name: target.content for item, target in targets.items()})
    except SchemaError as e:
        raise KdeclareError(
            *(_build_error(file.path, content.type, problem) for problem in e.problems)
        ) from None
    listed = (
        format_reference(item.name, item.subject, target.fingerprint) for item, target in targets.items()
    )
    return Candidate(content, compute_fingerprint(content.type, text, listed))


def parse_reference(text: str) -> DeclaredReference:
    """Parse ``NAME=SUBJECT`` or ``NAME=SUBJECT:VERSION``. Raises ValueError."""
    name, separator, target = text.partition("=")
    if not (name and separator and target):
        raise ValueError(f"'{text}' does not have the form NAME=SUBJECT or NAME=SUBJECT:VERSION")
    subject, separator, version = target.rpartition(":")
    number = parse_whole_number(version)
    if separator and subject and number is not None:
        return DeclaredReference(name, subject, number)
    return DeclaredReference(name, target)


def _read_text(path: Path) -> str:
    try:
        return read_regular_file(path)
    except (OSError, ValueError) as e:
        reason = "it is not UTF-8 text" if isinstance(e, ValueError) else format_os_error(e).rstrip(".")
        raise KdeclareError(
            error(
                "unreadable-file",
                "File cannot be read",
                f"'{path}' cannot be read: {reason}.",
                hint="Correct the path, or check the file.",
            )
        ) from None


def _find_type(file: CandidateFile, latest: LiveVersion | None) -> SchemaType:
    if file.type is not None:
        return file.type
    extension = file.path.suffix.lower()
    if extension in _TYPES:
        return _TYPES[extension]
    if latest is not None:
        return latest.content.type
    return SchemaType.JSON if extension == ".json" else SchemaType.AVRO


def _resolve(item: DeclaredReference, subject: LocatedSubject, reader: RegistryReader) -> LiveVersion:
    target = reader.read_version(item.subject, item.version)
    if target is None:
        what = f"version {item.version} of subject" if item.version is not None else "subject"
        raise KdeclareError(
            error(
                "reference-missing",
                "Referenced schema does not exist",
                f"The reference '{item.name}' refers to {what} '{item.subject}', which registry "
                f"'{subject.registry}' does not have.",
                hint="Register the referenced schema first, or correct --reference.",
                subject=item.subject,
            )
        )
    return target


def _build_error(path: Path, type_: SchemaType, problem: SchemaProblem) -> Diagnostic:
    where = f" (at {problem.path})" if problem.path else ""
    line = problem.line or 1
    return error(
        "invalid-schema",
        "Schema is not valid",
        f"{problem.message.rstrip('.')}{where}.",
        hint=f"Correct the schema, or pass --type if the schema is not of the type {type_.value}.",
        place=SourcePosition(str(path), line, (problem.column or 1) if problem.line else 1),
    )
