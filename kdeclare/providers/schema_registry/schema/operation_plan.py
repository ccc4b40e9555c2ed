"""Plan the operations of one subject, in the order in which the registry accepts them."""

from collections.abc import Iterable
from dataclasses import replace

from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import OperationType, with_inverse
from kdeclare.core.resources.changes import Change
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, RegistryInfo
from kdeclare.providers.schema_registry.schema.arguments import (
    ContentArgs,
    DeleteArgs,
    LevelArgs,
    PurgeArgs,
    ReferenceArgs,
    RegisterArgs,
    SchemaRecord,
    SubjectArgs,
    VersionArgs,
    build_content,
)
from kdeclare.providers.schema_registry.schema.deletion import DELETE, PURGE
from kdeclare.providers.schema_registry.schema.diff import find_target_level
from kdeclare.providers.schema_registry.schema.levels import (
    LevelChange,
    compare_levels,
    find_storable_level,
    is_as_declared,
)
from kdeclare.providers.schema_registry.schema.live import LiveSubject, RegistrySnapshot, SchemaState
from kdeclare.providers.schema_registry.schema.operations import LEVEL_TYPE
from kdeclare.providers.schema_registry.schema.registration import REGISTER
from kdeclare.providers.schema_registry.schema.resolution import (
    PlannedSchemas,
    ResolvedSchema,
    resolve_schema,
)
from kdeclare.providers.schema_registry.schema.spec import SchemaBody

_LEVEL_AFTER_CREATION = "the subject is created first"
_LEVEL_AFTER = "a stricter level is set after the registration"
_LEVEL_BEFORE = "the registration is checked at the new level"
_LEVEL_BEFORE_DELETION = "the level is removed before the subject"
_PURGE_AFTER = "a subject is deleted softly before it is removed for good"


def plan_declared(
    change: Change,
    desired: DesiredResource,
    live: SchemaState,
    owned: SchemaRecord | None,
    planned: PlannedSchemas,
) -> tuple[Operation, ...]:
    """Return the operations that register the declared schema and set the declared level."""
    body = desired.get_body(SchemaBody)
    snapshot = live.get(body.registry)
    subject = snapshot.get(body.subject)
    resolved = resolve_schema(desired, snapshot, planned)
    latest = subject.latest
    register = (
        _plan_registration(change, body, snapshot, subject, resolved)
        if latest is None or latest.fingerprint != resolved.fingerprint
        else None
    )
    level = _plan_level(change, body, snapshot, subject, owned)
    if register is None or level is None:
        return tuple(op for op in (register, level) if op is not None)
    if latest is None:
        return register, _add_needs(level, [register], _LEVEL_AFTER_CREATION)
    if is_set_after_registration(subject, level, snapshot):
        return register, _add_needs(level, [register], _LEVEL_AFTER)
    return _add_needs(register, [level], _LEVEL_BEFORE), level


def is_set_after_registration(subject: LiveSubject, level: Operation, snapshot: RegistrySnapshot) -> bool:
    """Whether a level is stricter than the current level, and therefore set only after a registration."""
    assert isinstance(level.args, LevelArgs)
    return (
        compare_levels(subject.level.effective, find_new_level(level.args, snapshot)) is LevelChange.STRICTER
    )


def find_new_level(args: LevelArgs, snapshot: RegistrySnapshot) -> CompatibilityLevel:
    """Return the level that applies to a subject after an operation."""
    return args.level if args.level is not None else snapshot.require_info().level


def plan_undeclared(change: Change, live: SchemaState, owned: SchemaRecord) -> tuple[Operation, ...]:
    """Return the operations that delete a subject.

    The level is removed first, even if another client set it: in some registries it would outlive the
    subject, and in others a rollback could not restore it.
    """
    snapshot = live.get(owned.registry)
    subject = snapshot.get(owned.subject)
    operations: list[Operation] = []
    if subject.level.own is not None:
        level_args = LevelArgs(
            owned.registry,
            owned.subject,
            level=None,
            inherited=_find_indistinct_level(snapshot.require_info()),
            whole=True,
        )
        operations.append(_build(LEVEL_TYPE, change, level_args, subject))
    if subject.versions:
        versions = tuple(VersionArgs(item.number, build_content(item)) for item in subject.versions)
        args = DeleteArgs(owned.registry, owned.subject, versions=versions, whole=True)
        delete = _build(DELETE, change, args, subject)
        operations.append(_add_needs(delete, operations, _LEVEL_BEFORE_DELETION))
    if owned.onDelete == "hard":
        purge_args = PurgeArgs(owned.registry, owned.subject, numbers=subject.all_numbers)
        purge = _build(PURGE, change, purge_args, subject)
        operations.append(_add_needs(purge, operations[-1:], _PURGE_AFTER))
    return tuple(operations)


def _plan_registration(
    change: Change,
    body: SchemaBody,
    snapshot: RegistrySnapshot,
    subject: LiveSubject,
    resolved: ResolvedSchema,
) -> Operation:
    references = tuple(
        ReferenceArgs(item.name, item.subject, item.version, item.fingerprint) for item in resolved.references
    )
    content = ContentArgs(body.type, body.text, references)
    before = build_content(subject.latest) if subject.latest is not None else None
    args = RegisterArgs(snapshot.name, body.subject, content=content, before=before)
    return _build(REGISTER, change, args, subject)


def _plan_level(
    change: Change,
    body: SchemaBody,
    snapshot: RegistrySnapshot,
    subject: LiveSubject,
    owned: SchemaRecord | None,
) -> Operation | None:
    target, info = find_target_level(body, owned), snapshot.require_info()
    if target is None or is_as_declared(target.level, subject.level, info):
        return None
    args = LevelArgs(
        snapshot.name,
        body.subject,
        level=find_storable_level(target.level, info),
        inherited=_find_indistinct_level(info),
        is_new=subject.latest is None,
    )
    return _build(LEVEL_TYPE, change, args, subject)


def _find_indistinct_level(info: RegistryInfo) -> CompatibilityLevel | None:
    """Return the global level if the registry does not distinguish a subject's own level from it.

    Return None if the registry makes this distinction.
    """
    return None if info.distinguishes_own_levels else info.level


def _build(
    operation_type: OperationType, change: Change, args: SubjectArgs, subject: LiveSubject
) -> Operation:
    op = Operation(f"{operation_type.name}:{change.id}", operation_type.name, change.id, args, {})
    op = replace(op, expect=_VIEWS[operation_type.name](op, subject))
    return with_inverse(operation_type, op)


_VIEWS = {item.name: item.view_subject for item in (REGISTER, LEVEL_TYPE, DELETE, PURGE)}


def _add_needs(op: Operation, needs: Iterable[Operation], reason: str) -> Operation:
    return replace(op, needs={**op.needs, **{need.id: reason for need in needs}})
