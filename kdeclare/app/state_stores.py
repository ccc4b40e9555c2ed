"""Open the state store at a location, which is a local folder or shared storage."""

import re
from collections.abc import Callable
from dataclasses import replace

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.provider.connection import ConnectionContext, Target
from kdeclare.core.provider.entry_points import InstalledEntryPoint, find_entry_points
from kdeclare.core.storage.conditional_objects import ConditionalObjects, ListsProjects
from kdeclare.core.storage.location import (
    STATE_STORES,
    StateLocation,
    StorageContext,
    build_location_error,
    parse_state_location,
)
from kdeclare.engine.state.local_store import list_local_projects, open_store
from kdeclare.engine.state.location import find_shared_scheme, parse_folder
from kdeclare.engine.state.port import StateStore

LEASE_OPTION = "lease"
"""The option that sets the duration of the lease, in seconds, in the query string of a location."""

ENCRYPT_OPTION = "encrypt"
"""The option that names the encryption keys of the state: ``env.NAME`` or ``file.PATH``, comma-separated."""

MIN_LEASE_S, MAX_LEASE_S = 5.0, 3600.0

_KEY_REFERENCE = re.compile(r"(env|file)\.[^{}:]+")


def open_state_store(
    location: str,
    project: str,
    environment: str,
    context: ConnectionContext,
    find_target: Callable[[str], Target],
) -> StateStore:
    """Return the store of a project in an environment. Nothing is read, created or connected yet.

    find_target: see `StorageContext`.
    Raises KdeclareError for a location that no store can use.
    """
    scheme = find_shared_scheme(location)
    if scheme is None:
        return open_store(location, project, environment)
    # imported here, because most commands use a folder
    from kdeclare.engine.state.shared.lease import LeaseTiming
    from kdeclare.engine.state.shared.store import SharedStore

    entry_point = _find_storage(location, scheme)
    parsed = parse_state_location(location, project, environment)
    duration_s = parsed.get_number(LEASE_OPTION)
    timing = LeaseTiming() if duration_s is None else LeaseTiming(_check_duration(parsed, duration_s))
    storage_context = _build_context(context, find_target)
    return SharedStore(lambda: _open_storage(entry_point, parsed, storage_context), timing)


def check_state_location(location: str) -> None:
    """Raise KdeclareError if no store can use ``location``. Nothing is connected."""
    scheme = find_shared_scheme(location)
    if scheme is None:
        parse_folder(location)
    else:
        _find_storage(location, scheme)
        parse_state_location(location, "", "")


def is_shared_location(location: str) -> bool:
    """Whether a location is shared storage, and not a local folder."""
    return find_shared_scheme(location) is not None


def list_projects(
    location: str,
    project: str,
    environment: str,
    context: ConnectionContext,
    find_target: Callable[[str], Target],
) -> tuple[tuple[str, str], ...]:
    """Return the projects and environments that have a state at a location.

    The result is empty if the storage cannot list projects. project, environment: the project and environment
    of the command, which are needed to open the storage. Raises KdeclareError.
    """
    scheme = find_shared_scheme(location)
    if scheme is None:
        return list_local_projects(location)
    parsed = parse_state_location(location, project, environment)
    objects = _open_plain_storage(
        _find_storage(location, scheme), parsed, _build_context(context, find_target)
    )
    try:
        return objects.list_projects() if isinstance(objects, ListsProjects) else ()
    finally:
        objects.close()


def _build_context(context: ConnectionContext, find_target: Callable[[str], Target]) -> StorageContext:
    return StorageContext(context.folder, context.environ, context.references, context.timeout_s, find_target)


def _find_storage(location: str, scheme: str) -> InstalledEntryPoint:
    storages = {point.name: point for point in find_entry_points(STATE_STORES)}
    if scheme not in storages:
        known = ", ".join(f"{name}://" for name in sorted(storages))
        raise build_location_error(
            f"'{location}': state stores of type '{scheme}' are not supported.",
            f"Specify a folder, or a URL that starts with one of: {known}.",
        )
    return storages[scheme]


def _check_duration(location: StateLocation, duration_s: float) -> float:
    if not MIN_LEASE_S <= duration_s <= MAX_LEASE_S:
        raise build_location_error(
            f"'{location.url}': a lease cannot last {duration_s:g} s.",
            f"Choose a duration between {MIN_LEASE_S:g} and {MAX_LEASE_S:g} seconds.",
        )
    return duration_s


def _open_storage(
    entry_point: InstalledEntryPoint, location: StateLocation, context: StorageContext
) -> ConditionalObjects:
    """Open shared storage. Encrypt its objects if the location contains the option ``encrypt``."""
    keys = _resolve_keys(location, context)
    opened = _open_plain_storage(entry_point, location, context)
    if not keys:
        return opened
    from kdeclare.engine.state.shared.encrypted_objects import EncryptedObjects, parse_encryption_key

    return EncryptedObjects(opened, [parse_encryption_key(text, name) for name, text in keys.items()])


def _open_plain_storage(
    entry_point: InstalledEntryPoint, location: StateLocation, context: StorageContext
) -> ConditionalObjects:
    try:
        open_storage = entry_point.load()
    except ImportError as cause:
        raise KdeclareError(
            error(
                "state-storage-missing",
                "Package for the state storage is not installed",
                f"'{location.url}' needs a Python package that is not installed: {cause}.",
                hint=f"Install the extra of {entry_point.origin} that includes this package. See the "
                "documentation of the storage for the name of the extra.",
            )
        ) from cause
    if not callable(open_storage):
        raise TypeError(f"{entry_point.value} is a {type(open_storage).__name__}")
    own_options = {n: v for n, v in location.options.items() if n not in (LEASE_OPTION, ENCRYPT_OPTION)}
    opened: ConditionalObjects = open_storage(replace(location, options=own_options), context)
    return opened


def _resolve_keys(location: StateLocation, context: StorageContext) -> dict[str, str]:
    """Resolve the references to encryption keys. Return each key by its reference. Raises KdeclareError."""
    option = location.options.get(ENCRYPT_OPTION)
    if option is None:
        return {}
    names = [name.strip() for name in option.split(",")]
    for name in names:
        if not _KEY_REFERENCE.fullmatch(name):
            raise build_location_error(
                f"'{ENCRYPT_OPTION}' in the location of the state is not a reference to a key.",
                f"Write, for example, {ENCRYPT_OPTION}=env.KDECLARE_STATE_KEY.",
            )
    return {name: context.references.resolve(f"${{{name}}}") for name in names}
