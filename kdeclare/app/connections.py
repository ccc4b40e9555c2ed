"""Open each connection that a command needs, and close all connections when the command ends.

In a kdeclare shell, a `Keepable` connection stays open for later commands.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from threading import Lock
from typing import Protocol

from pydantic import BaseModel, ValidationError

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.parts import Connections, SystemSettings
from kdeclare.core.provider.connection import (
    NOT_CONFIGURED,
    AnyConnectionType,
    Closable,
    ConnectionContext,
    Keepable,
    Target,
)
from kdeclare.core.provider.installed_providers import load_providers
from kdeclare.manifests.project import Project
from kdeclare.manifests.syntax.reference_limits import Limits
from kdeclare.manifests.syntax.substitution import resolve_reference


@dataclass(frozen=True, slots=True)
class ProjectReferences:
    """Resolves references of a project; see `References`."""

    folder: Path
    environ: Mapping[str, str] = field(compare=False, repr=False)
    limits: Limits = ()

    def resolve(self, reference: str) -> str:
        """Resolve a reference with the limits that apply to manifests. Raises KdeclareError."""
        return resolve_reference(reference, self.folder, self.environ, self.limits)

    def resolve_beside(self, file: Path, reference: str) -> str:
        """Resolve a reference in a settings file. Paths are relative to that file. Raises KdeclareError."""
        return resolve_reference(reference, file.parent, self.environ)


class ConnectionKeeper(Protocol):
    """Keeps connections open for later commands."""

    def open(self, target: Target, timeout_s: float) -> object:
        """Return a connection. Callers must not close a `Keepable` connection. Raises KdeclareError."""


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens the connection of one provider.

    makes, is_always_needed: see `ConnectionType`. open: opens the connection; raises KdeclareError if that
    fails.
    is_kept: whether a `Keepable` connection stays open for later commands. If so, the `ConnectionKeeper` that
    opened the connection closes it.
    settings: what the environment contains about the system; see `find_openers`.
    """

    makes: type[object]
    open: Callable[[], object]
    is_always_needed: bool = False
    is_kept: bool = False
    settings: SystemSettings = SystemSettings.PRESENT


class PendingConnections:
    """The connections of one command. Each connection is opened when it is first needed.

    The connections that every command needs are opened in the background immediately, while files are read.
    The caller must close this object.
    """

    def __init__(
        self,
        openers: Sequence[Opener] = (),
        open_connections: Connections | None = None,
        check: Callable[[Connections], None] | None = None,
    ) -> None:
        """Start to open the connections that every command needs.

        open_connections: connections that are already open. Their owner closes them.
        check: refuses connections by raising an error; called once, before the connections are used.
        """
        self._check = check
        open_connections = open_connections or Connections()
        self._pending = [
            _PendingConnection(opener) for opener in openers if not open_connections.holds(opener.makes)
        ]
        self._connections = open_connections.with_openers(
            {item.opener.makes: item.get for item in self._pending},
            {item.opener.makes: item.opener.settings for item in self._pending},
        )
        for pending in self._find_needed():
            pending.begin()

    def get(self) -> Connections:
        """Wait until the connections that every command needs are open, and return all connections.

        Raises KdeclareError, and Fault if a check of the connections fails.
        """
        for pending in self._find_needed():
            pending.get()
        if self._check is not None:
            self._check(self._connections)
            self._check = None
        return self._connections

    def close(self) -> None:
        """Close all connections, including unused ones, without waiting for any of them."""
        for pending in self._pending:
            pending.close()

    def _find_needed(self) -> Iterator["_PendingConnection"]:
        openers = ((item, item.opener) for item in self._pending)
        return (
            item
            for item, opener in openers
            if opener.is_always_needed and opener.settings is not SystemSettings.MISSING
        )


class _PendingConnection:
    """A connection that is opened on first use, in the background."""

    def __init__(self, opener: Opener) -> None:
        self.opener = opener
        self._lock = Lock()
        self._future: Future[object] | None = None

    def begin(self) -> Future[object]:
        """Start to connect, unless an earlier call already did."""
        with self._lock:
            if self._future is None:
                pool = ThreadPoolExecutor(1, thread_name_prefix="connect")
                self._future = pool.submit(self.opener.open)
                pool.shutdown(wait=False)
            return self._future

    def get(self) -> object:
        """Return the connection. If connecting failed, raise the exception of that attempt."""
        return self.begin().result()

    def close(self) -> None:
        """Close the connection now, or as soon as it is open. Returns immediately."""
        with self._lock:
            future = self._future
        if future is not None:
            future.cancel()
            future.add_done_callback(self._close_opened)

    def _close_opened(self, connection_future: Future[object]) -> None:
        if connection_future.cancelled() or connection_future.exception() is not None:
            return
        connection = connection_future.result()
        is_kept = self.opener.is_kept and isinstance(connection, Keepable)
        if isinstance(connection, Closable) and not is_kept:
            connection.close()


def find_openers(
    project: Project, surroundings: ConnectionContext, keeper: ConnectionKeeper | None = None
) -> tuple[Opener, ...]:
    """Return the openers for the connections of all installed providers. Raises KdeclareError.

    The settings of a system that every command normally needs count as missing if the environment configures
    only other systems. kdeclare then connects to this system only if a plan has resources or operations of
    the system.
    """
    connection_types = {p.name: p.connection for p in load_providers() if p.connection is not None}
    openers = make_openers(connection_types, project, surroundings, keeper)
    return tuple(
        replace(opener, settings=_find_settings(name, connects, project, surroundings))
        for (name, connects), opener in zip(connection_types.items(), openers, strict=True)
    )


def _find_settings(
    name: str, connection_type: AnyConnectionType, project: Project, surroundings: ConnectionContext
) -> SystemSettings:
    if is_left_out(name, connection_type, project, surroundings):
        return SystemSettings.MISSING
    environment = project.environment
    is_configured = name in environment.providers or any(
        field in environment.connection_fields for field in connection_type.environment_fields
    )
    return SystemSettings.PRESENT if is_configured else SystemSettings.DEFAULT


def is_left_out(
    name: str, connection_type: AnyConnectionType, project: Project, surroundings: ConnectionContext
) -> bool:
    """Return whether the environment configures other systems but not the system of provider ``name``.

    Return False if only some commands need the system, or if the command line has connection options.
    """
    other_systems = project.environment.providers.keys() - {name}
    if not connection_type.is_always_needed or not other_systems or surroundings.options:
        return False
    return not read_settings(name, connection_type, project).model_dump(exclude_defaults=True)


def make_openers(
    connection_types: Mapping[str, AnyConnectionType],
    project: Project,
    surroundings: ConnectionContext,
    keeper: ConnectionKeeper | None = None,
) -> tuple[Opener, ...]:
    """Return one opener per connection type. The keys of ``connection_types`` are the names of providers."""
    return tuple(
        _make_opener(name, connects, project, surroundings, keeper)
        for name, connects in connection_types.items()
    )


def _make_opener(
    name: str,
    connection_type: AnyConnectionType,
    project: Project,
    surroundings: ConnectionContext,
    keeper: ConnectionKeeper | None,
) -> Opener:
    def open_connection() -> object:
        target = connection_type.make_target(read_settings(name, connection_type, project), surroundings)
        open_target = target.open if keeper is None else lambda timeout_s: keeper.open(target, timeout_s)
        return open_target(surroundings.timeout_s)

    return Opener(
        connection_type.makes, open_connection, connection_type.is_always_needed, is_kept=keeper is not None
    )


def find_target(provider: str, project: Project, surroundings: ConnectionContext) -> Target:
    """Return the target of a provider's connection in the environment.

    Raises KdeclareError if no such provider is installed or the environment does not configure it.
    """
    for installed in load_providers():
        if installed.name == provider and installed.connection is not None:
            return installed.connection.make_target(
                read_settings(provider, installed.connection, project), surroundings
            )
    raise KdeclareError(
        error(
            "unknown-provider",
            "Provider is not installed",
            f"No installed provider that connects to a system is named '{provider}'.",
            hint="Run kdeclare providers to list the installed providers.",
        )
    )


def read_settings(provider: str, connection_type: AnyConnectionType, project: Project) -> BaseModel:
    """Return the environment's settings for a provider's system. Raises KdeclareError if there are none."""
    environment = project.environment
    provider_settings = environment.providers.get(provider)
    if provider_settings is not None:
        return provider_settings
    connection_fields = {
        k: v for k, v in environment.connection_fields.items() if k in connection_type.environment_fields
    }
    try:
        return connection_type.settings.model_validate(connection_fields)
    except ValidationError:
        raise KdeclareError(_build_not_configured_error(provider, connection_type, project)) from None


def _build_not_configured_error(
    provider: str, connection_type: AnyConnectionType, project: Project
) -> Diagnostic:
    fields = connection_type.settings.model_fields.items()
    required_names = [field.alias or name for name, field in fields if field.is_required()]
    example = f"providers: {{{provider}: {{{', '.join(f'{name}: …' for name in required_names)}}}}}"
    location = "the environment" if project.file is not None else "an environment of a project file"
    return error(
        NOT_CONFIGURED,
        "System is not configured",
        f"The environment '{project.environment.name}' has no connection settings for '{provider}'.",
        hint=f"Add {example} to {location}.",
        place=project.environment.place,
        subject=provider,
    )


@contextmanager
def translate_faults(environment_name: str) -> Iterator[None]:
    """Convert a Fault that is raised inside the ``with`` block to a KdeclareError.

    environment_name: the name of the environment in messages.
    """
    try:
        yield
    except Fault as fault:
        raise KdeclareError(explain_fault(fault, environment_name)) from fault


def explain_fault(fault: Fault, environment_name: str) -> Diagnostic:
    """Return the diagnostic for a Fault that made a whole request fail.

    A provider's own diagnostic takes precedence.
    """
    for provider in reversed(load_providers()):
        diagnostic = (
            provider.connection.explain(fault, environment_name) if provider.connection is not None else None
        )
        if diagnostic is not None:
            return diagnostic
    reason = (fault.message or "The system gave no reason").rstrip(".")
    if fault.kind is not FaultKind.REFUSED:
        return error(
            "system-lost",
            "A system stopped responding",
            f"{reason} ({fault.error}).",
            hint="Check that the system is running. Then run kdeclare status to see whether a run is "
            "unfinished.",
        )
    return error(
        "refused-by-system",
        "A system rejected the request",
        f"{reason} ({fault.error}).",
        hint="Correct the manifest or the command, or check the permissions of kdeclare in the system.",
    )


_log = logging.getLogger(__name__)

_CHECK_TIMEOUT_S = 2.0
"""Timeout for checking that a cached connection still works."""
_MAX_CONNECTIONS = 4
"""The maximum number of cached connections.

If there are more, the least recently used connection is closed.
"""


class ConnectionCache:
    """A thread-safe cache of connections that still respond.

    Callers must not close a `Keepable` connection. If a cached connection no longer responds, `open` replaces
    it with a new connection, within the timeout of the call. The new connection resolves the system's address
    again, and raises the same errors as a first connection.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: dict[Target, Keepable] = {}

    def open(self, target: Target, timeout_s: float) -> object:
        """Return a cached or new connection. Raises KdeclareError."""
        deadline = time.monotonic() + timeout_s
        with self._lock:
            cached = self._connections.get(target)
        if cached is not None:
            if _is_answering(cached, min(timeout_s / 2, _CHECK_TIMEOUT_S)):
                self._keep(target, cached)
                return cached
            self._evict(target, cached)
        opened = target.open(max(0.1, deadline - time.monotonic()))
        if isinstance(opened, Keepable):
            self._keep(target, opened)
        return opened

    def close(self) -> None:
        """Close all connections without waiting for them."""
        with self._lock:
            cached_items = list(self._connections.items())
        for item in cached_items:
            self._evict(*item)

    def _keep(self, target: Target, connection: Keepable) -> None:
        with self._lock:
            previous = self._connections.pop(target, connection)
            self._connections[target] = connection  # most recently used last
            evicted = list(self._connections.items())[:-_MAX_CONNECTIONS]
        if previous is not connection:  # two threads connected at the same time
            _close_in_background(previous)
        for item in evicted:
            self._evict(*item)

    def _evict(self, target: Target, connection: Keepable) -> None:
        with self._lock:
            if self._connections.get(target) is connection:
                del self._connections[target]
        _close_in_background(connection)


def _is_answering(connection: Keepable, timeout_s: float) -> bool:
    answer: Future[bool] = Future()

    def check_connection() -> None:
        try:
            connection.check()
        except Exception as problem:  # noqa: BLE001  if the problem persists, the new connection reports it
            _log.info("connecting again: %s", problem)
            answer.set_result(False)
        else:
            answer.set_result(True)

    threading.Thread(target=check_connection, name="still-there", daemon=True).start()
    return bool(wait([answer], timeout_s).done) and answer.result()


def _close_in_background(connection: object) -> None:
    """Close a connection in the background, because closing an unresponsive connection can take seconds."""

    def close() -> None:
        if isinstance(connection, Closable):
            with suppress(Fault, OSError):
                connection.close()

    threading.Thread(target=close, name="close", daemon=True).start()
