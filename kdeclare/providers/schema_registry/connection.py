"""Connect to the schema registries that an environment lists by name."""

from collections.abc import Callable, Collection, Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING

from pydantic import ConfigDict, RootModel

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.retry import build_retry_policy
from kdeclare.core.provider.connection import ConnectionContext, ConnectionType, SettingsFile
from kdeclare.core.resources.endpoint_choice import EndpointChoice, choose_endpoint
from kdeclare.http.endpoint_settings import HttpEndpointSettings
from kdeclare.http.target import HttpTarget

if TYPE_CHECKING:  # the outline of the provider imports this module, and must not import the client
    from kdeclare.providers.schema_registry.client.port import SchemaRegistry

ENVIRONMENT_FIELD = "registries"
"""The field of an environment that contains the named schema registries."""


class RegistrySettings(RootModel[dict[str, HttpEndpointSettings]]):
    """The schema registries of an environment, by name. Each URL belongs to a server of its registry."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    root: dict[str, HttpEndpointSettings] = {}


class RegistryClients:
    """The connections to the schema registries of an environment. Each registry is opened on first use.

    Thread-safe.
    """

    def __init__(self, names: Collection[str], open_registry: "Callable[[str], SchemaRegistry]") -> None:
        """Create the object without sending a request.

        open_registry: a function that returns the registry with a given name, or raises KdeclareError.
        """
        self._names = tuple(sorted(names))
        self._open_registry = open_registry
        self._opened: dict[str, SchemaRegistry] = {}
        self._lock = Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the registries, sorted."""
        return self._names

    def choose(self, declared: str | None) -> EndpointChoice:
        """Return the registry with the declared name, or the only registry if no name is declared."""
        return choose_endpoint(declared, self._names, ENVIRONMENT_FIELD)

    def open(self, name: str) -> "SchemaRegistry":
        """Return the registry with this name.

        Raises KdeclareError if the registry is not configured or cannot be used.
        """
        choice = self.choose(name)
        if choice.name is None:
            raise KdeclareError(
                error(
                    "endpoint-not-configured", "Endpoint is not configured", choice.problem, hint=choice.hint
                )
            )
        with self._lock:
            if name not in self._opened:
                self._opened[name] = self._open_registry(name)
            return self._opened[name]

    def close(self) -> None:
        """Close all registries. A second call has no effect."""
        with self._lock:
            for registry in self._opened.values():
                registry.close()
            self._opened.clear()


@dataclass(frozen=True, slots=True)
class RegistryTarget:
    """The settings for connecting to the registries of an environment, by registry name. See `Target`."""

    registries: tuple[tuple[str, HttpTarget], ...]
    attempts: int | None = None

    def open(self, timeout_s: float) -> RegistryClients:
        """See `Target`. Sends no request."""
        targets = dict(self.registries)

        def open_registry(name: str) -> "SchemaRegistry":
            from kdeclare.providers.schema_registry.client.rest import (
                open_rest_registry,  # This imports httpx, which most commands do not need.
            )

            return open_rest_registry(targets[name], timeout_s, build_retry_policy(self.attempts))

        return RegistryClients(targets, open_registry)


def locate_registries(settings: RegistrySettings, context: ConnectionContext) -> RegistryTarget:
    """Return the connection target for the named registries."""
    targets = tuple((name, item.build_target(context.folder)) for name, item in settings.root.items())
    return RegistryTarget(targets, context.attempts)


def find_tls_files(settings: RegistrySettings, options: Mapping[str, str]) -> Iterator[SettingsFile]:
    """Yield the TLS files of all registries, so that tasks on other machines can use the files."""
    for endpoint in settings.root.values():
        yield from endpoint.list_files()


def explain_fault(fault: Fault, name: str) -> Diagnostic | None:
    """Return a diagnostic if the fault comes from a schema registry; otherwise None."""
    from kdeclare.providers.schema_registry.client.port import ERRORS

    if fault.error not in ERRORS:
        return None
    return error(
        "registry-failed",
        "Request to the schema registry failed",
        f"{fault.message or 'No reason is given'} ({fault.error}).",
        hint="Check that the registry is running, and that its settings under "
        f"'{ENVIRONMENT_FIELD}' are correct.",
    )


CONNECTION = ConnectionType(
    RegistryClients,
    RegistrySettings,
    locate_registries,
    environment_field=ENVIRONMENT_FIELD,
    find_files=find_tls_files,
    explain=explain_fault,
)
