"""Connect to the workers of Connect clusters.

The addresses of the workers are in the environment or in manifests. If workers are not ready for a change
because of a rebalance or a new leader, the change is retried.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from pydantic import ConfigDict, RootModel

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.endpoints import EndpointStatus
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.retry import RetryPolicy, log_retry
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.provider.connection import ConnectionContext, ConnectionType, References, SettingsFile
from kdeclare.core.resources.endpoint_choice import EndpointChoice, choose_endpoint, report_missing_endpoint
from kdeclare.http.endpoint_settings import HttpEndpointSettings
from kdeclare.http.target import HttpTarget
from kdeclare.providers.connect.client.connectors_port import CONNECTOR_ERRORS, ConnectCluster
from kdeclare.providers.connect.client.connectors_retry import RetryingConnectCluster
from kdeclare.providers.connect.client.port import ERRORS, Changes, ConnectWorkers, Validation, read_workers
from kdeclare.providers.connect.worker_state import (
    Certificate,
    GroupSnapshot,
    PluginStatus,
    WorkerGroup,
    WorkerSnapshot,
)

ConnectClientFactory = Callable[[WorkerGroup], ConnectWorkers]
"""A function that returns the client for a group of workers. Raises KdeclareError.

The first call for a group reads the group's TLS files and resolves the references in its headers.
"""

ConnectClusterFactory = Callable[[], ConnectCluster]
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

    def open_cluster(self, name: str) -> ConnectCluster:
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
        opened_groups: dict[WorkerGroup, ConnectWorkers] = {}

        def open_group(group: WorkerGroup) -> ConnectWorkers:
            if group not in opened_groups:
                workers = (
                    open_workers(group, self.folder, self.references, timeout_s)
                    if group.endpoint is None
                    else open_named_workers(group.endpoint, dict(self.endpoints), timeout_s)
                )
                opened_groups[group] = RetryingWorkers(workers, _build_retry_policy(self.attempts))
            return opened_groups[group]

        clusters = {name: partial(open_cluster, target, timeout_s) for name, target in self.endpoints}
        return ConnectClients(open_group, {name: cache(opener) for name, opener in clusters.items()})


def open_workers(
    group: WorkerGroup, folder: Path, references: References, timeout_s: float
) -> ConnectWorkers:
    """Read the TLS files of a group, and resolve the references in its headers. Raises KdeclareError.

    timeout_s: how long to wait for the response of one worker, in seconds.
    """
    from kdeclare.providers.connect.client.rest import (
        open_rest_workers,  # This imports httpx, which most commands do not need.
    )

    return open_rest_workers(group, folder, references.resolve, timeout_s)


def open_named_workers(name: str, endpoints: Mapping[str, HttpTarget], timeout_s: float) -> ConnectWorkers:
    """Return the workers of a named Connect cluster. Raises KdeclareError."""
    from kdeclare.providers.connect.client.rest import open_workers_of  # imports httpx

    choice = choose_endpoint(name, endpoints, ENVIRONMENT_FIELD)
    if choice.name is None:
        raise KdeclareError(report_missing_endpoint(choice))
    return open_workers_of(endpoints[choice.name], timeout_s)


def open_cluster(target: HttpTarget, timeout_s: float) -> ConnectCluster:
    """Return the connectors of a Connect cluster. Retry changes during rebalances. Raises KdeclareError.

    timeout_s: how long to wait for the response to a read request, in seconds.
    """
    from kdeclare.providers.connect.client.connectors_rest import open_rest_cluster  # imports httpx

    return RetryingConnectCluster(open_rest_cluster(target, timeout_s))


def _build_retry_policy(attempts: int | None) -> RetryPolicy:
    if attempts is None:
        return RetryPolicy(on_retry=log_retry)
    return RetryPolicy(attempts, on_retry=log_retry)


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


class RetryingWorkers:
    """Wraps a `ConnectWorkers` object, and retries its changes after RETRIABLE faults.

    Read requests are not retried: callers repeat them, or report the worker that does not respond.
    """

    def __init__(self, workers: ConnectWorkers, policy: RetryPolicy) -> None:
        self.urls = workers.urls
        self._workers = workers
        self._policy = policy

    def overrides(self, url: str) -> Mapping[str, str]:
        """See `ConnectWorkers.overrides`."""
        return self._workers.overrides(url)

    def status(self, url: str) -> PluginStatus:
        """See `ConnectWorkers.status`."""
        return self._workers.status(url)

    def read_served_certificate(self, url: str) -> Certificate | None:
        """See `ConnectWorkers.read_served_certificate`."""
        return self._workers.read_served_certificate(url)

    def validate(self, url: str, changes: Changes) -> Validation:
        """See `ConnectWorkers.validate`."""
        return self._workers.validate(url, changes)

    def patch(self, url: str, changes: Changes) -> Mapping[str, str]:
        """See `ConnectWorkers.patch`."""
        return self._policy.whole("patch", lambda: self._workers.patch(url, changes))

    def delete(self, url: str, key: str) -> None:
        """See `ConnectWorkers.delete`."""
        self._policy.whole("delete", lambda: self._workers.delete(url, key))

    def close(self) -> None:
        """See `ConnectWorkers.close`."""
        self._workers.close()


@dataclass(frozen=True, slots=True)
class WorkerSelection:
    """The groups of workers whose overrides and certificates must be read."""

    groups: frozenset[WorkerGroup]

    def merge(self, others: Sequence["WorkerSelection"]) -> "WorkerSelection":
        """See `Selection`."""
        return WorkerSelection(self.groups.union(*(other.groups for other in others)))


@dataclass(frozen=True, slots=True)
class WorkerState:
    """The live state of Connect workers, by group.

    endpoints: the named Connect clusters among the groups, by full name.
    """

    groups: Mapping[WorkerGroup, GroupSnapshot]
    endpoints: Mapping[str, EndpointStatus] = field(default_factory=dict)

    def get_snapshot(self, group: WorkerGroup) -> GroupSnapshot:
        """Return the state of a group of workers.

        If there is no state for this group itself, as with fleet snapshots, return the state of a group whose
        workers have the same names.
        """
        if group in self.groups:
            return self.groups[group]
        same_workers = (snapshot for known, snapshot in self.groups.items() if known.names == group.names)
        not_read = (WorkerSnapshot(name, trouble="it was not read") for name in group.names)
        return next(same_workers, None) or GroupSnapshot(datetime.now(UTC), None, tuple(not_read))


def collect_workers(connections: Connections, selection: WorkerSelection) -> WorkerState:
    """Read the workers of every group. The result includes workers that do not respond.

    The result also includes groups whose TLS files or headers cannot be used, so that other groups are still
    read.
    """
    clients = connections.get(ConnectClients)
    groups = {group: _read_group(clients, group) for group in sorted(selection.groups, key=str)}
    statuses = {
        str(group): _find_status(clients, group.endpoint, snapshot)
        for group, snapshot in groups.items()
        if group.endpoint is not None
    }
    return WorkerState(groups, statuses)


def _find_status(clients: ConnectClients, endpoint: str, snapshot: GroupSnapshot) -> EndpointStatus:
    """Return the id of a named Connect cluster, or the reason why none of its workers responded."""
    if snapshot.overrides is None:
        troubles = [worker.trouble for worker in snapshot.workers if worker.trouble]
        return EndpointStatus(problem="; ".join(dict.fromkeys(troubles)) or "no reason is known")
    try:
        return EndpointStatus(clients.open_cluster(endpoint).identify().kafka_cluster_id)
    except Fault:
        return EndpointStatus()  # the overrides were read, so the workers can be used without an id


def _read_group(clients: ConnectClients, group: WorkerGroup) -> GroupSnapshot:
    try:
        workers = clients.open(group)
    except KdeclareError as problem:
        trouble = " ".join(d.detail.rstrip(".") for d in problem.diagnostics)
        snapshots = tuple(WorkerSnapshot(name, trouble=trouble) for name in group.names)
        return GroupSnapshot(datetime.now(UTC), None, snapshots)
    return read_workers(workers)


def list_worker_endpoints(live: LiveState) -> Mapping[str, EndpointStatus]:
    """Return the named Connect clusters whose workers were read, by full name."""
    state = live.find(WorkerState)
    return state.endpoints if state is not None else {}
