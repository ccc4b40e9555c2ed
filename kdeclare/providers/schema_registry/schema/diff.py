"""The three-way diff of one subject. The diff makes no requests."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import (
    FIELD_SUBJECT_PREFIX,
    Diagnostic,
    SourcePosition,
    denied,
    error,
    warning,
)
from kdeclare.core.resources.adoption import report_adoption
from kdeclare.core.resources.changes import (
    Action,
    Change,
    FieldChange,
    FieldOp,
    Reason,
    Risk,
    find_highest_risk,
)
from kdeclare.core.resources.endpoint_choice import (
    report_missing_endpoint,
    report_unreachable_endpoint,
    withhold_resource,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.plan_capabilities import PREVENT_DESTROY
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, RegistryInfo
from kdeclare.providers.schema_registry.connection import ENVIRONMENT_FIELD
from kdeclare.providers.schema_registry.schema.arguments import SchemaRecord
from kdeclare.providers.schema_registry.schema.content import normalize_text
from kdeclare.providers.schema_registry.schema.fields import (
    IDS,
    LEVEL,
    TEXT,
    VERSIONS,
    assess_schema_field,
    build_level_field,
    build_references_field,
    list_location_fields,
    list_shown_fields,
)
from kdeclare.providers.schema_registry.schema.levels import find_storable_level, is_as_declared
from kdeclare.providers.schema_registry.schema.live import LiveSubject, RegistrySnapshot, SchemaState
from kdeclare.providers.schema_registry.schema.resolution import (
    PlannedSchemas,
    ResolvedSchema,
    resolve_schema,
)
from kdeclare.providers.schema_registry.schema.spec import DeclaredLevel, SchemaBody

OLDER_VERSION = "schema-older-version"


def find_target_level(body: SchemaBody, owned: SchemaRecord | None) -> DeclaredLevel | None:
    """Return the level that kdeclare gives to a subject; None if kdeclare does not manage the level.

    A level that kdeclare owns and that the manifest no longer declares is removed.
    """
    if LEVEL in body.ignored:
        return None
    if body.compatibility is not None:
        return DeclaredLevel(body.compatibility.level)
    return DeclaredLevel(None) if owned is not None and owned.compatibility is not None else None


def ignore_fields(body: SchemaBody, live: SchemaState) -> SchemaBody:
    """Apply ``ignoreChanges`` to the body of an existing subject.

    Replace an ignored schema with the live schema, and remove an ignored level. A new subject gets all
    fields.
    """
    if not body.ignored:
        return body
    snapshot = live.get(body.registry)
    if snapshot.choice.name is None or snapshot.problem is not None:
        return body  # the plan reports the problem and changes nothing
    latest = snapshot.get(body.subject).latest
    if latest is None:
        return replace(body, ignored=())
    if TEXT in body.ignored:
        # References are part of the live schema, and are not resolved again.
        body = replace(body, type=latest.content.type, text=latest.content.text, references=())
    return replace(body, compatibility=None) if LEVEL in body.ignored else body


def restore_ignored(record: SchemaRecord, body: SchemaBody, owned: SchemaRecord | None) -> SchemaRecord:
    """Copy the ignored fields from the previous record to the new record, because they are not applied.

    body: the result of `ignore_fields`.
    """
    if owned is None:
        return record
    if TEXT in body.ignored:
        record = replace(record, fingerprint=owned.fingerprint, version=owned.version)
    return replace(record, compatibility=owned.compatibility) if LEVEL in body.ignored else record


def build_absent_record(
    desired: DesiredResource, live: SchemaState, owned: SchemaRecord | None
) -> SchemaRecord | None:
    """Return a record of everything to delete; see `DeletesByRecord`.

    The manifest decides whether the subject is deleted softly or permanently.
    """
    body = desired.get_body(SchemaBody)
    if owned is not None:
        return replace(owned, onDelete=body.on_delete)
    snapshot = live.get(body.registry)
    if snapshot.choice.name is None or snapshot.problem is not None:
        return None
    subject = snapshot.get(body.subject)
    if subject.latest is None:
        return None
    labels = dict(desired.labels)
    return SchemaRecord(
        snapshot.name, body.subject, subject.latest.fingerprint, onDelete=body.on_delete, labels=labels
    )


def diff_schema(
    resource: ResourceId,
    desired: DesiredResource | None,
    live: SchemaState,
    owned: SchemaRecord | None,
    planned: PlannedSchemas,
) -> Difference:
    """Compare the desired, live and owned state of one subject."""
    problem = find_registry_problem(resource, desired, live, owned)
    if problem is not None:
        return withhold_resource(problem, desired, owned)
    if desired is None:
        return _diff_undeclared(resource, live, owned)
    body = ignore_fields(desired.get_body(SchemaBody), live)
    desired = replace(desired, body=body)
    snapshot = live.get(body.registry)
    if owned is not None and (owned.registry, owned.subject) != (snapshot.name, body.subject):
        return Difference(None, owned, diagnostics=(_report_moved(resource, desired, snapshot.name, owned),))
    resolved = resolve_schema(desired, snapshot, planned)
    if resolved.problems:
        return Difference(None, owned, diagnostics=resolved.problems)
    return _diff_declared(resource, desired, snapshot, owned, resolved)


def find_registry_problem(
    resource: ResourceId, desired: DesiredResource | None, live: SchemaState, owned: SchemaRecord | None
) -> Diagnostic | None:
    """Return a diagnostic if the diff needs the registry of a subject, but the registry could not be read."""
    if desired is not None:
        endpoint = desired.get_body(SchemaBody).registry
    elif owned is not None and owned.onDelete != "keep":
        endpoint = owned.registry
    else:
        return None  # the diff does not need the registry
    snapshot = live.get(endpoint)
    if snapshot.choice.name is None:
        return report_missing_endpoint(snapshot.choice, str(resource))
    if snapshot.problem is not None:
        reason = snapshot.problem.message or snapshot.problem.error
        return report_unreachable_endpoint(f"{ENVIRONMENT_FIELD}/{snapshot.name}", reason, str(resource))
    return None


def _diff_declared(
    resource: ResourceId,
    desired: DesiredResource,
    snapshot: RegistrySnapshot,
    owned: SchemaRecord | None,
    resolved: ResolvedSchema,
) -> Difference:
    body = desired.get_body(SchemaBody)
    subject = snapshot.get(body.subject)
    fields = list_declared_fields(body, snapshot, owned, resolved)
    record = restore_ignored(build_record(desired, snapshot, subject, resolved), body, owned)
    drifted = _find_drift(snapshot, subject, owned, fields, body.ignored)
    problems = list(_check_level(desired, snapshot.require_info()))
    latest = subject.latest
    if latest is None:
        reason = Reason.DECLARED if owned is None else Reason.MISSING
        change = Change(resource, Action.CREATE, reason, find_highest_risk(fields), fields, desired.source)
        return Difference(change, record, diagnostics=tuple(problems))
    older = subject.find(resolved.fingerprint)
    if older is not None and older.number != latest.number:
        problems.append(_report_older_version(desired, older.number, latest.number))
    if owned is None and fields:
        problems.append(report_adoption(desired, fields))
    if not fields:
        return Difference(None, record, diagnostics=tuple(problems), drifted=drifted)
    blocked_by = next((problem.code for problem in problems if problem.is_blocking), None)
    reason = Reason.ADOPT if owned is None else Reason.DRIFTED if drifted else Reason.CHANGED
    change = Change(
        resource, Action.UPDATE, reason, find_highest_risk(fields), fields, desired.source, blocked_by
    )
    return Difference(change, record, (), tuple(problems), drifted=drifted)


def list_declared_fields(
    body: SchemaBody, snapshot: RegistrySnapshot, owned: SchemaRecord | None, resolved: ResolvedSchema
) -> tuple[FieldChange, ...]:
    """Return the field changes that a plan shows for a declared subject."""
    fields: list[FieldChange] = []
    subject = snapshot.get(body.subject)
    latest = subject.latest
    if latest is None:
        fields += list_location_fields(snapshot.name, body.subject)
    if latest is None or latest.fingerprint != resolved.fingerprint:
        before_type = latest.content.type.value if latest is not None else None
        before = latest.normalized if latest is not None else None
        after = normalize_text(body.type, body.text)
        if before != after or before_type != body.type.value:
            fields += list_shown_fields(before_type, before, body.type.value, after)
        before_references = latest.references if latest is not None else ()
        if before_references != resolved.listed:
            fields.append(build_references_field(before_references, resolved.listed))
    target, info = find_target_level(body, owned), snapshot.require_info()
    if target is not None and not is_as_declared(target.level, subject.level, info):
        level = find_storable_level(target.level, info)
        fields.append(build_level_field(_get_name(subject.level.own), _get_name(level)))
    return tuple(fields)


def _get_name(level: CompatibilityLevel | None) -> str | None:
    return None if level is None else level.value


def build_record(
    desired: DesiredResource, snapshot: RegistrySnapshot, subject: LiveSubject, resolved: ResolvedSchema
) -> SchemaRecord:
    """Return the ownership record after the change.

    The number of a version that has not been registered yet is added to the record later.
    """
    body = desired.get_body(SchemaBody)
    latest = subject.latest
    is_registered = latest is not None and latest.fingerprint == resolved.fingerprint
    level = body.compatibility.level if body.compatibility is not None else None
    return SchemaRecord(
        snapshot.name,
        body.subject,
        resolved.fingerprint,
        latest.number if latest is not None and is_registered else None,
        level,
        body.on_delete,
        body.prevent_destroy,
        dict(desired.labels),
    )


def _find_drift(
    snapshot: RegistrySnapshot,
    subject: LiveSubject,
    owned: SchemaRecord | None,
    fields: Sequence[FieldChange],
    ignored: Sequence[str],
) -> tuple[str, ...]:
    if owned is None or subject.latest is None:
        return ()
    drifted: list[str] = []
    if subject.latest.fingerprint != owned.fingerprint and TEXT not in ignored:
        drifted = [item.path for item in fields if item.path != LEVEL] or [TEXT]
    info = snapshot.require_info()
    is_level_owned = owned.compatibility is not None and LEVEL not in ignored
    if is_level_owned and not is_as_declared(owned.compatibility, subject.level, info):
        drifted.append(LEVEL)
    return tuple(drifted)


def _diff_undeclared(resource: ResourceId, live: SchemaState, owned: SchemaRecord | None) -> Difference:
    """Return the diff of an orphan, which deletes the subject unless ``onDelete`` is ``keep``."""
    if owned is None or owned.onDelete == "keep":
        return Difference(None)
    subject = live.get(owned.registry).get(owned.subject)
    is_purged = owned.onDelete == "hard" and bool(subject.all_numbers)
    if subject.latest is None and not is_purged:
        return Difference(None)
    fields: list[FieldChange] = []
    if subject.latest is not None:
        fields.append(FieldChange(VERSIONS, FieldOp.CHANGE, list(subject.numbers), None))
    if is_purged:
        fields.append(FieldChange(IDS, FieldOp.CHANGE, list(subject.all_numbers), None))
    if subject.level.own is not None:
        fields.append(FieldChange(LEVEL, FieldOp.CHANGE, subject.level.own.value, None))
    assessed = tuple(assess_schema_field(Action.DELETE, field) for field in fields)
    change = Change(
        resource, Action.DELETE, Reason.ORPHANED, find_highest_risk(assessed, Risk.DISRUPTIVE), assessed
    )
    if owned.preventDestroy:
        problem = _report_protected(resource)
        return Difference(replace(change, blocked=problem.code), owned, diagnostics=(problem,))
    return Difference(change)


def find_schema_subject(desired: DesiredResource) -> str | None:
    """Return the manifest field that diagnostics about the schema refer to.

    Return None if the schema is in a file.
    """
    return f"{FIELD_SUBJECT_PREFIX}{TEXT}" if desired.get_body(SchemaBody).file is None else None


def locate_schema(desired: DesiredResource) -> SourcePosition | None:
    """Return the start of the schema file or, without a file, the position of the resource."""
    file = desired.get_body(SchemaBody).file
    return SourcePosition(file, 1, 1) if file is not None else desired.source


def _check_level(desired: DesiredResource, info: RegistryInfo) -> Iterator[Diagnostic]:
    """Yield a warning if the registry cannot store the declared level, so that a different level applies."""
    declared = desired.get_body(SchemaBody).compatibility
    level = declared.level if declared is not None else None
    if level is not None and find_storable_level(level, info) is None and info.level is not level:
        yield warning(
            "level-not-stored",
            "Registry does not store the compatibility level NONE",
            f"{desired.id} declares the compatibility level NONE, but the registry removes the level of a "
            f"subject instead of setting it to NONE. The global level {info.level.value} applies to the "
            "subject.",
            hint="Set the global level of the registry to NONE, or declare another level.",
            place=desired.source,
            resource=str(desired.id),
            subject=f"{FIELD_SUBJECT_PREFIX}{LEVEL}",
        )


def _report_older_version(desired: DesiredResource, number: int, latest: int) -> Diagnostic:
    subject = desired.get_body(SchemaBody).subject
    return error(
        OLDER_VERSION,
        "Schema is an older version",
        f"{desired.id} declares the same schema as version {number} of subject '{subject}', but the latest "
        f"version is {latest}. If this schema were registered again, the registry would return version "
        f"{number}, and version {latest} would remain the latest.",
        hint=f"To make this schema the latest version, delete the versions after {number}, or change the "
        f"schema, for example its documentation. To keep version {latest}, declare its schema "
        "(kdeclare import writes it).",
        place=locate_schema(desired),
        resource=str(desired.id),
        subject=find_schema_subject(desired),
    )


def _report_moved(
    resource: ResourceId, desired: DesiredResource, registry: str, owned: SchemaRecord
) -> Diagnostic:
    body = desired.get_body(SchemaBody)
    return denied(
        "subject-changed",
        "Subject changed",
        f"{resource} was applied to subject '{owned.subject}' in registry '{owned.registry}', but the "
        f"manifest now names subject '{body.subject}' in registry '{registry}'. kdeclare leaves both "
        "subjects unchanged.",
        hint="Give the manifest a different metadata.name. To delete the earlier subject, pass "
        f"--allow-deletes or --delete {resource}; to keep it but stop managing it, pass --forget {resource}.",
        place=desired.source,
        resource=str(resource),
    )


def _report_protected(resource: ResourceId) -> Diagnostic:
    return denied(
        PREVENT_DESTROY,
        "Deletion prevented",
        f"{resource} must not be deleted: lifecycle.preventDestroy was true when the resource was last "
        "applied.",
        hint=f"Declare the resource again, or release it with kdeclare apply --forget {resource}.",
        resource=str(resource),
    )
