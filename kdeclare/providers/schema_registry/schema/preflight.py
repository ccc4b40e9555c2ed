"""Find out which operations a registry would refuse, before anything is changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, denied, error, info, warning
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.schema_registry.client import port
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, SchemaRegistry
from kdeclare.providers.schema_registry.connection import RegistryClients
from kdeclare.providers.schema_registry.schema.arguments import DeleteArgs, LevelArgs, RegisterArgs
from kdeclare.providers.schema_registry.schema.diff import find_schema_subject, locate_schema
from kdeclare.providers.schema_registry.schema.fields import TEXT
from kdeclare.providers.schema_registry.schema.levels import is_implied
from kdeclare.providers.schema_registry.schema.live import (
    LiveSubject,
    RegistryReader,
    SchemaState,
    read_in_parallel,
)
from kdeclare.providers.schema_registry.schema.operation_plan import find_new_level
from kdeclare.providers.schema_registry.schema.registration import resolve_content

_MAX_REASONS = 10


def check_operations(
    operations: Sequence[Operation],
    desired: Mapping[ResourceId, DesiredResource],
    live: SchemaState,
    connections: Connections,
) -> Iterator[Diagnostic]:
    """Yield diagnostics about registrations and deletions that a registry would refuse. Raises Fault."""
    clients = connections.get(RegistryClients)
    levels = {op.id: op.args for op in operations if isinstance(op.args, LevelArgs)}

    def check(op: Operation) -> Sequence[Diagnostic]:
        if isinstance(op.args, RegisterArgs):
            level_args = next((levels[need] for need in op.needs if need in levels), None)
            check = _RegistrationCheck(clients.open(op.args.endpoint), op, op.args, level_args, live)
            return [_locate(item, desired.get(op.resource)) for item in check.run()]
        if isinstance(op.args, DeleteArgs) and op.args.whole:
            return list(_check_deletion(clients.open(op.args.endpoint), op, op.args, operations))
        return ()

    for diagnostics in read_in_parallel(operations, check):
        yield from diagnostics


def _locate(diagnostic: Diagnostic, desired: DesiredResource | None) -> Diagnostic:
    if desired is None:
        return diagnostic
    place, subject = locate_schema(desired), find_schema_subject(desired)
    return replace(diagnostic, place=place, subject=subject)


class _RegistrationCheck:
    """Checks whether a registry would refuse one registration.

    level_args: the change of the level before the registration; None if the level does not change.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        op: Operation,
        args: RegisterArgs,
        level_args: LevelArgs | None,
        live: SchemaState,
    ) -> None:
        self._registry, self._op, self._args, self._level_args = registry, op, args, level_args
        self._snapshot = live.get(args.endpoint)
        self._subject = self._snapshot.find(args.subject)

    def run(self) -> Iterator[Diagnostic]:
        """Yield the problems of the registration. Raises Fault."""
        info = self._snapshot.info
        if info is None or info.mode is not None:  # a registry without modes has none for subjects either
            mode = self._registry.read_mode(self._args.subject)
            if mode is not None and not mode.permits_registration:
                yield _report_mode(self._op, self._args, mode)
                return
        if self._op.expect.get(TEXT) is None or self._subject is None:
            return  # there is no version with which the schema could be incompatible
        if any(item.version is None for item in self._args.content.references):
            return  # the registry does not know the referenced version yet
        yield from self._check_compatibility(self._subject)

    def _check_compatibility(self, subject: LiveSubject) -> Iterator[Diagnostic]:
        current = subject.level.effective
        level = current if self._level_args is None else find_new_level(self._level_args, self._snapshot)
        if level is CompatibilityLevel.NONE:
            return
        try:
            content = resolve_content(self._registry, RegistryReader(self._registry), self._args.content)
            result = self._registry.check_compatibility(self._args.subject, content, level=current)
        except Fault as fault:
            if fault.error not in (port.INVALID_SCHEMA, port.NOT_AUTHORIZED, port.NOT_A_REGISTRY):
                raise
            yield _report_unchecked_fault(self._op, fault)
            return
        if not result.is_checked:
            yield _report_unchecked(self._op, result.reasons)
        elif result.is_compatible:
            if not is_implied(level, current):
                yield _report_unchecked_level(self._op, current, level)
        elif current is level:
            yield _report_incompatible(self._op, self._args, level, result.reasons)
        else:
            yield _report_unchecked_level(self._op, current, level)


def _check_deletion(
    registry: SchemaRegistry, op: Operation, args: DeleteArgs, operations: Sequence[Operation]
) -> Iterator[Diagnostic]:
    """Yield a denial if schemas that remain in the registry refer to a deleted version."""
    deleted = {
        (other.args.endpoint, other.args.subject)
        for other in operations
        if isinstance(other.args, DeleteArgs) and other.args.whole
    }
    referrers = {
        item.subject
        for version in args.versions
        if version.number is not None
        for item in registry.list_referrers(args.subject, version.number)
        if (args.endpoint, item.subject) not in deleted
    }
    if referrers:
        yield denied(
            "schema-referenced",
            "Schema is referenced",
            f"{op.resource} cannot be deleted: schemas of {_format_names(referrers)} refer to it. The "
            "registry refuses to delete it.",
            hint="Delete these schemas first, or declare the resource again.",
            resource=str(op.resource),
        )


def _format_names(names: set[str]) -> str:
    listed = [f"subject '{name}'" for name in sorted(names)]
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")


def _report_mode(op: Operation, args: RegisterArgs, mode: port.Mode) -> Diagnostic:
    return denied(
        "registry-read-only",
        "Registry accepts no new versions",
        f"{op.resource} cannot be registered: subject '{args.subject}' in registry '{args.endpoint}' has the "
        f"mode {mode.value}.",
        hint="Set the mode to READWRITE, or leave the schema unchanged.",
        resource=str(op.resource),
    )


def _report_incompatible(
    op: Operation, args: RegisterArgs, level: CompatibilityLevel, reasons: Sequence[str]
) -> Diagnostic:
    lines = [f"- {reason}" for reason in reasons[:_MAX_REASONS]]
    if len(reasons) > _MAX_REASONS:
        lines.append(f"- {len(reasons) - _MAX_REASONS} more reasons")
    which = "the earlier versions" if level.is_transitive else "the latest version"
    detail = (
        f"{op.resource} is not {level.value} compatible with {which} of subject '{args.subject}'. Registry "
        f"'{args.endpoint}' would refuse it."
    )
    return error(
        "schema-incompatible",
        "Schema is not compatible",
        "\n".join([detail, *lines]),
        hint="Change the schema so that it is compatible, or declare a less strict level in 'compatibility'.",
        resource=str(op.resource),
    )


def _report_unchecked_level(
    op: Operation, current: CompatibilityLevel, level: CompatibilityLevel
) -> Diagnostic:
    return info(
        "compatibility-unchecked",
        "Compatibility is checked during the apply",
        f"{op.resource} changes the compatibility level from {current.value} to {level.value} before the "
        "schema is registered. During planning, the registry can check the schema only against the current "
        "level, so it may still refuse the registration.",
        resource=str(op.resource),
    )


def _report_unchecked(op: Operation, reasons: Sequence[str]) -> Diagnostic:
    reason = f" ({reasons[0].rstrip('.')})" if reasons else ""
    return info(
        "compatibility-unchecked",
        "Compatibility is checked during the apply",
        f"The registry cannot check the compatibility of {op.resource} before the apply{reason}.",
        resource=str(op.resource),
    )


def _report_unchecked_fault(op: Operation, fault: Fault) -> Diagnostic:
    if fault.error == port.INVALID_SCHEMA:
        return error(
            "invalid-schema",
            "Schema is not valid",
            f"The registry cannot parse the schema of {op.resource}: {fault.message.rstrip('.')}.",
            hint="Correct the schema.",
            resource=str(op.resource),
        )
    return warning(
        "compatibility-unchecked",
        "Compatibility was not checked",
        f"The registry did not check the schema of {op.resource}: {fault.message.rstrip('.')} "
        f"({fault.error}).",
        hint="Check the permissions of kdeclare in the registry.",
        resource=str(op.resource),
    )
