"""Read subjects for `kdeclare schema-registry list` and `describe`. The functions here change nothing."""

from collections.abc import Iterator

from kdeclare.app.adhoc.ownership import load_ownership
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.providers.schema_registry.client.port import (
    NOT_A_REGISTRY,
    NOT_AUTHORIZED,
    RegisteredSchema,
    SchemaRegistry,
    SubjectLevel,
    SubjectVersion,
)
from kdeclare.providers.schema_registry.commands.registry_views import (
    LevelOrigin,
    NamingView,
    SubjectDetailView,
    SubjectListView,
    SubjectView,
    UnreadableRegistryView,
)
from kdeclare.providers.schema_registry.commands.subject_lookup import (
    SubjectOwners,
    describe_problem,
    list_registries,
    locate_subject,
)
from kdeclare.providers.schema_registry.connection import CONNECTION, RegistryClients
from kdeclare.providers.schema_registry.schema.content import build_open_content
from kdeclare.providers.schema_registry.schema.live import read_in_parallel
from kdeclare.providers.schema_registry.schemas.comparison import parse_schema
from kdeclare.providers.schema_registry.schemas.problems import SchemaError
from kdeclare.providers.schema_registry.schemas.subject_names import (
    NamingStrategy,
    find_record_name,
    parse_subject,
)


def list_subjects(workspace: Workspace, registry: str | None, *, with_deleted: bool) -> SubjectListView:
    """Return the subjects of one registry, or of all registries if None is given. Raises KdeclareError.

    with_deleted: whether to include soft-deleted subjects and versions.
    """
    views: list[SubjectView] = []
    unreadable: list[UnreadableRegistryView] = []
    ownership = load_ownership(workspace)
    with workspace.open_connections({"schema_registry": CONNECTION}) as connections:
        clients = connections.get(RegistryClients)
        owners = SubjectOwners(ownership, clients)
        for name in list_registries(clients, registry):
            try:
                views += _read_subjects(name, clients.open(name), owners, with_deleted=with_deleted)
            except (Fault, KdeclareError) as problem:
                unreadable.append(UnreadableRegistryView(name, describe_problem(problem)))
    exit_code = ExitCode.ERROR if unreadable else ExitCode.OK
    return SubjectListView(int(exit_code), tuple(views), tuple(unreadable))


def _read_subjects(
    registry: str, client: SchemaRegistry, owners: SubjectOwners, *, with_deleted: bool
) -> Iterator[SubjectView]:
    """Yield the subjects of one registry, sorted. Raises Fault before the first subject."""
    info = client.identify()
    latest_schemas = client.list_latest() or {}

    def read(subject: str) -> SubjectView | None:
        numbers = client.list_versions(subject)
        all_numbers = client.list_versions(subject, include_deleted=True) if with_deleted else numbers
        schema = latest_schemas.get(subject)
        if schema is None and all_numbers:
            number = (numbers or all_numbers)[-1]
            schema = client.read_version(subject, number, include_deleted=not numbers)
        if not all_numbers:
            return None  # the subject was deleted in the meantime
        level = client.read_level(subject, global_level=info.level)
        return SubjectView(
            registry,
            subject,
            schema.content.type if schema is not None else None,
            numbers[-1] if numbers else None,
            len(numbers),
            len(set(all_numbers) - set(numbers)) if with_deleted else None,
            level.effective,
            _find_origin(level),
            owners.find_declared_id(registry, subject),
            owners.find_owner_id(registry, subject),
        )

    views = read_in_parallel(sorted(client.list_subjects(include_deleted=with_deleted)), read)
    yield from (view for view in views if view is not None)


def describe_subject(
    workspace: Workspace, subject: str, registry: str | None, version: int | None
) -> SubjectDetailView:
    """Return one version of a subject, by default the latest. Raises KdeclareError if it does not exist."""
    ownership = load_ownership(workspace)
    with workspace.open_connections({"schema_registry": CONNECTION}) as connections:
        clients = connections.get(RegistryClients)
        owners = SubjectOwners(ownership, clients)
        located = locate_subject(clients, subject, registry)
        client, name = located.client, located.registry
        number = version if version is not None else (located.numbers or located.deleted)[-1]
        schema = located.read_version(number)
        info = client.identify()  # finds out whether the registry distinguishes own levels
        level = client.read_level(subject, global_level=info.level)
        referrers = _read_referrers(client, schema)
    return SubjectDetailView(
        name,
        subject,
        schema.version,
        schema.id,
        schema.version in located.deleted,
        schema.content.type,
        schema.content.text,
        schema.content.references,
        referrers,
        located.numbers,
        located.deleted,
        level.effective,
        _find_origin(level),
        _find_naming(schema),
        owners.find_declared_id(name, subject),
        owners.find_owner_id(name, subject),
    )


def _find_origin(level: SubjectLevel) -> LevelOrigin:
    if level.own is not None:
        return LevelOrigin.OWN
    return LevelOrigin.INHERITED if level.is_own_known else LevelOrigin.UNKNOWN


def _read_referrers(client: SchemaRegistry, schema: RegisteredSchema) -> tuple[SubjectVersion, ...] | None:
    """Return the versions whose schemas refer to a version; None if the registry does not report them."""
    try:
        return client.list_referrers(schema.subject, schema.version)
    except Fault as fault:
        if fault.error in (NOT_A_REGISTRY, NOT_AUTHORIZED):
            return None
        raise


def _find_naming(schema: RegisteredSchema) -> NamingView | None:
    """Return the naming strategy that a subject follows; None if it follows none."""
    try:
        parsed = parse_schema(build_open_content(schema.content.type, schema.content.text))
    except SchemaError:
        record_name = None
    else:
        record_name = find_record_name(parsed)
    if record_name is not None and schema.subject == record_name:
        return NamingView(NamingStrategy.RECORD, None, None)
    for strategy in (NamingStrategy.TOPIC, NamingStrategy.TOPIC_RECORD):
        found = parse_subject(schema.subject, strategy, record_name)
        if found is not None:
            return NamingView(strategy, found.topic, found.part)
    return None
