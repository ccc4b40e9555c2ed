"""The checks of schema registries for `kdeclare doctor`."""

from collections.abc import Iterator

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault
from kdeclare.core.provider.provider import (
    Check,
    CheckSection,
    CheckStatus,
    ExaminationRequest,
    ExaminationResult,
    build_error_check,
)
from kdeclare.core.units import format_count
from kdeclare.providers.schema_registry.client.port import RegistryInfo
from kdeclare.providers.schema_registry.connection import (
    ENVIRONMENT_FIELD,
    RegistryClients,
    RegistrySettings,
    locate_registries,
)
from kdeclare.providers.schema_registry.schema.spec import SCHEMA, SchemaBody

_HINT = f"Check that the registry is running, and that its settings under '{ENVIRONMENT_FIELD}' are correct."


def examine_registries(request: ExaminationRequest) -> ExaminationResult:
    """Check all registries of the environment, and all registries that manifests name.

    See `Provider.examine`.
    """
    if request.surroundings is None:
        return ExaminationResult()
    settings = request.get_settings(RegistrySettings)
    declared = {item.body.registry for item in request.desired if isinstance(item.body, SchemaBody)}
    clients = locate_registries(settings, request.surroundings).open(request.surroundings.timeout_s)
    missing = sorted(name for name in declared if name is not None and name not in clients.names)
    if None in declared and not clients.names:
        missing.append("")
    try:
        checks = (
            *(check for name in clients.names for check in _check_registry(clients, name, settings)),
            *(_report_missing(clients, name or None) for name in missing),
        )
    finally:
        clients.close()
    return ExaminationResult((CheckSection("Schema registries", checks),) if checks else ())


def _check_registry(clients: RegistryClients, name: str, settings: RegistrySettings) -> Iterator[Check]:
    endpoint = f"{ENVIRONMENT_FIELD}/{name}"
    try:
        registry = clients.open(name)
        info, count = registry.identify(), len(registry.list_subjects())
    except KdeclareError as problem:
        yield build_error_check(endpoint, CheckStatus.FAILED, problem, SCHEMA)
        return
    except Fault as fault:
        yield Check(endpoint, CheckStatus.FAILED, fault.message or fault.error, SCHEMA, _HINT)
        return
    yield Check(endpoint, CheckStatus.OK, _describe(info, count), SCHEMA)
    if info.mode is not None and not info.mode.permits_registration:
        yield Check(
            f"{endpoint} mode",
            CheckStatus.WARNING,
            f"is {info.mode.value}, so no schema can be registered",
            SCHEMA,
            "Set the mode of the registry to READWRITE.",
        )
    if settings.root[name].sends_secrets_unencrypted:
        yield Check(
            f"{endpoint} encryption",
            CheckStatus.WARNING,
            "credentials are sent without encryption",
            SCHEMA,
            "Use an https:// URL.",
        )


def _describe(info: RegistryInfo, count: int) -> str:
    version = f"version {info.version}, " if info.version else ""
    return f"responds, with {version}level {info.level.value} and {format_count(count, 'subject')}"


def _report_missing(clients: RegistryClients, name: str | None) -> Check:
    choice = clients.choose(name)
    endpoint = f"{ENVIRONMENT_FIELD}/{name}" if name is not None else ENVIRONMENT_FIELD
    return Check(endpoint, CheckStatus.FAILED, choice.problem.rstrip("."), SCHEMA, choice.hint)
