"""Compare and check schemas for `kdeclare schema-registry diff` and `check`. Nothing is changed."""

from kdeclare.app.adhoc.ownership import load_ownership
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError, SourcePosition, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.schema_registry.client.port import (
    INVALID_SCHEMA,
    NOT_A_REGISTRY,
    NOT_AUTHORIZED,
    CompatibilityLevel,
    SchemaContent,
)
from kdeclare.providers.schema_registry.commands.candidate import Candidate, CandidateFile, read_candidate
from kdeclare.providers.schema_registry.commands.registry_views import (
    CheckResult,
    CompatibilityView,
    RegistrationOutcome,
    RegistrationView,
    SchemaCheckView,
    SchemaDiffView,
    SchemaLineView,
    SchemaSideView,
)
from kdeclare.providers.schema_registry.commands.subject_lookup import (
    LocatedSubject,
    SubjectOwners,
    locate_subject,
    locate_target,
)
from kdeclare.providers.schema_registry.connection import CONNECTION, RegistryClients
from kdeclare.providers.schema_registry.schema.levels import is_implied
from kdeclare.providers.schema_registry.schema.live import LiveVersion, RegistryReader, read_in_parallel
from kdeclare.providers.schema_registry.schema.spec import DeclaredReference, SchemaBody
from kdeclare.providers.schema_registry.schemas.comparison import describe_differences
from kdeclare.providers.schema_registry.schemas.differences import classify_differences
from kdeclare.providers.schema_registry.schemas.text_diff import diff_schema_texts


@dataclass(frozen=True, slots=True)
class DiffRequest:
    """The schemas that a command compares.

    before: the number of a version; None for the version that precedes ``after`` or, if ``after`` is a file,
        for the latest version.
    after: the number of a version, or a file; None for the latest version.
    """

    before: int | None = None
    after: int | CandidateFile | None = None


def diff_subject(
    workspace: Workspace, subject: str, registry: str | None, request: DiffRequest, *, detailed_exitcode: bool
) -> SchemaDiffView:
    """Compare two versions of a subject, or a version and a file. Raises KdeclareError."""
    with workspace.open_connections({"schema_registry": CONNECTION}) as connections:
        clients = connections.get(RegistryClients)
        located = locate_subject(clients, subject, registry)
        if isinstance(request.after, CandidateFile):
            number = request.before if request.before is not None else _find_latest(located)
            candidate = _read_candidate(workspace, clients, located, request.after)
            after = candidate.content
            after_side = SchemaSideView(None, str(request.after.path), after.type)
        else:
            after_number = request.after if request.after is not None else _find_latest(located)
            number = request.before if request.before is not None else _find_earlier(located, after_number)
            after = located.read_version(after_number).content
            after_side = SchemaSideView(after_number, None, after.type)
        before = located.read_version(number).content
    differences = describe_differences(before, after)
    is_different = detailed_exitcode and bool(differences)
    return SchemaDiffView(
        int(ExitCode.CHANGES if is_different else ExitCode.OK),
        located.registry,
        subject,
        SchemaSideView(number, None, before.type),
        after_side,
        classify_differences(differences),
        before.text == after.text,
        differences,
        _build_lines(before, after),
    )


def check_file(
    workspace: Workspace,
    subject: str,
    registry: str | None,
    file: CandidateFile,
    level: CompatibilityLevel | None,
) -> SchemaCheckView:
    """Check whether a schema can be the next version of a subject.

    Raises KdeclareError, for example if the schema is invalid.

    level: the level for the compatibility check; None for the level that applies to the subject.
    """
    with workspace.open_connections({"schema_registry": CONNECTION}) as connections:
        clients = connections.get(RegistryClients)
        located = locate_target(clients, subject, registry)
        reader = RegistryReader(located.client)
        candidate = _read_candidate(workspace, clients, located, file, reader)
        latest = reader.read_version(subject) if located.numbers else None
        try:
            registration = _predict_registration(located, reader, candidate, latest)
            compatibility = _check_compatibility(located, candidate.content, latest, level)
        except Fault as fault:
            if fault.error != INVALID_SCHEMA:
                raise
            raise KdeclareError(
                error(
                    "invalid-schema",
                    "Schema is not valid",
                    f"The registry cannot parse the schema: {fault.message.rstrip('.')}.",
                    hint="Correct the schema.",
                    place=SourcePosition(str(file.path), 1, 1),
                )
            ) from None
    differences = describe_differences(latest.content, candidate.content) if latest is not None else ()
    is_incompatible = compatibility.result is CheckResult.INCOMPATIBLE
    return SchemaCheckView(
        int(ExitCode.ERROR if is_incompatible else ExitCode.OK),
        located.registry,
        subject,
        str(file.path),
        candidate.content.type,
        candidate.content.references,
        registration,
        compatibility,
        classify_differences(differences),
        differences,
    )


def _read_candidate(
    workspace: Workspace,
    clients: RegistryClients,
    located: LocatedSubject,
    file: CandidateFile,
    reader: RegistryReader | None = None,
) -> Candidate:
    def find_declared() -> tuple[DeclaredReference, ...] | None:
        owners = SubjectOwners(load_ownership(workspace), clients)
        item = owners.find_declared(located.registry, located.name)
        return None if item is None else item.get_body(SchemaBody).references

    return read_candidate(file, located, reader or RegistryReader(located.client), find_declared)


def _find_latest(located: LocatedSubject) -> int:
    """Return the number of the latest version. Raises KdeclareError if all versions are soft-deleted."""
    if located.numbers:
        return located.numbers[-1]
    raise KdeclareError(
        error(
            "unknown-version",
            "Subject has no version",
            f"All versions of subject '{located.name}' in registry '{located.registry}' are soft-deleted.",
            hint="Pass one of these versions with --from and one with --to: "
            f"{', '.join(map(str, located.deleted))}.",
        )
    )


def _find_earlier(located: LocatedSubject, number: int) -> int:
    """Return the number of the version that precedes the given one. Raises KdeclareError if there is none."""
    earlier = [item for item in located.numbers if item < number]
    if earlier:
        return earlier[-1]
    raise KdeclareError(
        error(
            "no-earlier-version",
            "No earlier version",
            f"The subject '{located.name}' in registry '{located.registry}' has no version before {number}.",
            hint="Pass --from to compare with a later version, or --file to compare the latest version "
            "with a file.",
        )
    )


def _build_lines(before: SchemaContent, after: SchemaContent) -> tuple[SchemaLineView, ...]:
    return tuple(
        SchemaLineView(
            row.change.value,
            row.before.number if row.before is not None else None,
            row.before.text if row.before is not None else None,
            row.after.number if row.after is not None else None,
            row.after.text if row.after is not None else None,
        )
        for row in diff_schema_texts(before, after).rows
    )


def _predict_registration(
    located: LocatedSubject, reader: RegistryReader, candidate: Candidate, latest: LiveVersion | None
) -> RegistrationView:
    """Return what the registry would do if the schema were registered.

    To find an existing version, kdeclare first compares the schemas itself, and then queries the registry.
    """
    mode = located.client.read_mode(located.name)
    refused_mode = mode.value if mode is not None and not mode.permits_registration else None
    if latest is None:
        return RegistrationView(RegistrationOutcome.NEW_SUBJECT, None, None, refused_mode)
    number = _find_same_version(located, reader, candidate, latest)
    if number is None:
        return RegistrationView(RegistrationOutcome.NEW_VERSION, None, latest.number, refused_mode)
    is_latest = number == latest.number
    outcome = RegistrationOutcome.LATEST_VERSION if is_latest else RegistrationOutcome.OLDER_VERSION
    return RegistrationView(outcome, number, latest.number, refused_mode)


def _find_same_version(
    located: LocatedSubject, reader: RegistryReader, candidate: Candidate, latest: LiveVersion
) -> int | None:
    """Return the number of an existing version with the same content; None if the content is new."""
    if latest.fingerprint == candidate.fingerprint:
        return latest.number
    versions = read_in_parallel(located.numbers, lambda number: reader.read_version(located.name, number))
    for version in reversed(versions):
        if version is not None and version.fingerprint == candidate.fingerprint:
            return version.number
    registered = located.client.find_version(located.name, candidate.content)
    return None if registered is None else registered.version


def _check_compatibility(
    located: LocatedSubject,
    content: SchemaContent,
    latest: LiveVersion | None,
    requested: CompatibilityLevel | None,
) -> CompatibilityView:
    """Have the registry check the compatibility of a schema.

    Raises Fault INVALID_SCHEMA if the registry cannot parse the schema.
    """
    current = located.client.read_level(located.name).effective
    level = requested or current
    if latest is None or level is CompatibilityLevel.NONE:
        return CompatibilityView(CheckResult.COMPATIBLE, level, current, ())
    try:
        checked = located.client.check_compatibility(located.name, content, level=current)
    except Fault as fault:
        if fault.error not in (NOT_AUTHORIZED, NOT_A_REGISTRY):
            raise
        return CompatibilityView(CheckResult.UNCHECKED, level, current, (fault.message or fault.error,))
    if not checked.is_checked:
        result, reasons = CheckResult.UNCHECKED, checked.reasons
    elif checked.is_compatible and is_implied(level, current):
        result, reasons = CheckResult.COMPATIBLE, ()
    elif not checked.is_compatible and is_implied(current, level):
        result, reasons = CheckResult.INCOMPATIBLE, checked.reasons
    else:
        verdict = "compatible" if checked.is_compatible else "not compatible"
        result = CheckResult.UNCHECKED
        reasons = (
            f"The registry checks schemas only at the current level {current.value}. The schema is {verdict} "
            f"at this level, but this says nothing about the level {level.value}.",
            *checked.reasons,
        )
    return CompatibilityView(result, level, current, reasons)
