"""Connect to the workers of Connect clusters.

The addresses of the workers are in the environment or in manifests.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pydantic import ConfigDict, RootModel

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.retry import build_retry_policy
from kdeclare.core.provider.connection import ConnectionContext, ConnectionType, References, SettingsFile
from kdeclare.core.resources.endpoint_choice import EndpointChoice, choose_endpoint, report_missing_endpoint
from kdeclare.http.endpoint_settings import HttpEndpointSettings
from kdeclare.http.target import HttpTarget

if TYPE_CHECKING:  # the outline of the provider imports this module, and must not import the clients
    from kdeclare.providers.connect.client.connectors_port import ConnectCluster
    from kdeclare.providers.connect.client.port import ConnectWorkers
    from kdeclare.providers.connect.worker_state import WorkerGroup

ConnectClientFactory: TypeAlias = "Callable[[WorkerGroup], ConnectWorkers]"
"""A function that returns the client for a group of workers. Raises KdeclareError.

The first call for a group reads the group's TLS files and resolves the references in its headers.
"""

ConnectClusterFactory: TypeAlias = "Callable[[], ConnectCluster]"
"""A function that returns the client for the connectors of one Connect cluster. Raises KdeclareError."""


@dataclass(frozen=True, slots=True)
class ConnectClients:
    """The clients for Connect clusters. The client for a group of workers is created on first use.

    Callers do not have to close the clients, because no connections stay open. The kdeclare shell creates the
    clients again for each command, so that it reads the current content of certificate files.

    clusters: the named Connect clusters of the environment.
    """

    open: ConnectClientFactory
    clusters: Mapping[str, ConnectClusterFactory] = field(default_factory=dict)

    def choose_cluster(self, declared: str | None) -> EndpointChoice:
        """Return the Connect cluster that a manifest names.

        If the manifest names none, return the only Connect cluster of the environment.
        """
        return choose_endpoint(declared, self.clusters, ENVIRONMENT_FIELD)

    def open_cluster(self, name: str) -> "ConnectCluster":
        """Return the client for the connectors of a named Connect cluster.

        Raises KdeclareError, for example if a TLS file cannot be used.
        """
        return self.clusters[name]()


ENVIRONMENT_FIELD = "connect"
"""The name of the field in which an environment lists the named Connect clusters."""


class ConnectSettings(RootModel[dict[str, HttpEndpointSettings]]):
    """The named Connect clusters of an environment. Each URL belongs to a worker."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    root: dict[str, HttpEndpointSettings] = {}

    def build_targets(self, folder: Path) -> tuple[tuple[str, HttpTarget], ...]:
        """Return the data for connecting to each Connect cluster, by name.

        ``folder`` is the folder of the project file.
        """
        return tuple((name, endpoint.build_target(folder)) for name, endpoint in self.root.items())


@dataclass(frozen=True, slots=True)
class ConnectTarget:
    """The data for connecting to Connect workers. File paths and references are relative to ``folder``."""

    folder: Path
    references: References = field(repr=False)
    attempts: int | None = None
    endpoints: tuple[tuple[str, HttpTarget], ...] = ()

    def open(self, timeout_s: float) -> ConnectClients:
        """Return the clients for the Connect clusters, without sending a request. See `Target`."""
        from kdeclare.providers.connect.client.workers_retry import RetryingWorkers

        opened_groups: dict[WorkerGroup, ConnectWorkers] = {}

        def open_group(group: "WorkerGroup") -> "ConnectWorkers":
            if group not in opened_groups:
                workers = (
                    open_workers(group, self.folder, self.references, timeout_s)
                    if group.endpoint is None
                    else open_named_workers(group.endpoint, dict(self.endpoints), timeout_s)
                )
                opened_groups[group] = RetryingWorkers(workers, build_retry_policy(self.attempts))
            return opened_groups[group]

        clusters = {name: partial(open_cluster, target, timeout_s) for name, target in self.endpoints}
        return ConnectClients(open_group, {name: cache(opener) for name, opener in clusters.items()})


def open_workers(
    group: "WorkerGroup", folder: Path, references: References, timeout_s: float
) -> "ConnectWorkers":
    """Read the TLS files of a group, and resolve the references in its headers. Raises KdeclareError.

    timeout_s: how long to wait for the response of one worker, in seconds.
    """
    from kdeclare.providers.connect.client.rest import (
        open_rest_workers,  # This imports httpx, which most commands do not need.
    )

    return open_rest_workers(group, folder, references.resolve, timeout_s)


def open_named_workers(name: str, endpoints: Mapping[str, HttpTarget], timeout_s: float) -> "ConnectWorkers":
    """Return the workers of a named Connect cluster. Raises KdeclareError."""
    from kdeclare.providers.connect.client.rest import open_workers_of  # imports httpx

    choice = choose_endpoint(name, endpoints, ENVIRONMENT_FIELD)
    if choice.name is None:
        raise KdeclareError(report_missing_endpoint(choice))
    return open_workers_of(endpoints[choice.name], timeout_s)


def open_cluster(target: HttpTarget, timeout_s: float) -> "ConnectCluster":
    """Return the connectors of a Connect cluster. Retry changes during rebalances. Raises KdeclareError.

    timeout_s: how long to wait for the response to a read request, in seconds.
    """
    from kdeclare.providers.connect.client.connectors_rest import open_rest_cluster  # imports httpx
    from kdeclare.providers.connect.client.connectors_retry import RetryingConnectCluster

    return RetryingConnectCluster(open_rest_cluster(target, timeout_s))


def locate_workers(settings: ConnectSettings, context: ConnectionContext) -> ConnectTarget:
    """Return the connection data of named Connect clusters, and of workers that manifests declare."""
    endpoints = settings.build_targets(context.folder)
    return ConnectTarget(context.folder, context.references, context.attempts, endpoints)


def find_tls_files(settings: ConnectSettings, options: Mapping[str, str]) -> Iterator[SettingsFile]:
    """Yield the TLS files of all named Connect clusters, so that tasks on other machines can use them."""
    for endpoint in settings.root.values():
        yield from endpoint.list_files()


def explain_fault(fault: Fault, name: str) -> Diagnostic | None:
    """Return a diagnostic if the fault is a failed request to Connect workers; otherwise None."""
    from kdeclare.providers.connect.client.connectors_port import CONNECTOR_ERRORS
    from kdeclare.providers.connect.client.port import ERRORS

    if fault.error in CONNECTOR_ERRORS - ERRORS:
        return error(
            "connect-request-failed",
            "Request to a Connect cluster failed",
            f"{fault.message or 'No reason is given'} ({fault.error}).",
            hint="Check that the workers are running and that the settings under 'connect' in the "
            "environment are correct.",
        )
    if fault.error not in ERRORS:
        return None
    return error(
        "workers-unreachable",
        "Request to Connect workers failed",
        f"{fault.message or 'No reason is given'} ({fault.error}).",
        hint="Check that the workers are running with kdeclare's plug-in, and that their URLs are correct.",
    )


CONNECTION = ConnectionType(
    ConnectClients,
    ConnectSettings,
    locate_workers,
    environment_field=ENVIRONMENT_FIELD,
    find_files=find_tls_files,
    explain=explain_fault,
)
