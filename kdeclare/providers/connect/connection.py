"""Connecting to the workers of Connect clusters, whose manifests say themselves where they are.

Changes that workers were not ready for (a rebalance was under way, the leader new) are sent again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Collector
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.retry import RetryPolicy, log_retry
from kdeclare.core.parts import Connections
from kdeclare.core.provider.connection import ConnectionContext, ConnectionType, References
from kdeclare.providers.connect.client.port import ERRORS, Changes, ConnectWorkers, Validation, read_workers
from kdeclare.providers.connect.worker_state import Certificate, GroupSnapshot, PluginStatus, WorkerGroup

ConnectClientFactory = Callable[[WorkerGroup], ConnectWorkers]
"""Opens a group, or gives it again: reads its files and resolves its references. Raises KdeclareError."""


@dataclass(frozen=True, slots=True)
class ConnectClients:
    """The connection to Connect clusters: opens the workers of a group when they are needed.

    Who asks for workers does not close them: they keep no connection that would have to be closed. For the
    same reason a shell opens them again for each command, which so reads their files as they are by now.
    """

    open: ConnectClientFactory


class ConnectSettings(BaseModel):
    """What an environment says of Connect clusters: nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


@dataclass(frozen=True, slots=True)
class ConnectTarget:
    """Workers whose files and references are relative to a folder."""

    folder: Path
    references: References = field(repr=False)
    attempts: int | None = None

    def open(self, timeout_s: float) -> ConnectClients:
        """See `Target`. Nothing is sent yet."""
        opened_groups: dict[WorkerGroup, ConnectWorkers] = {}

        def open_group(group: WorkerGroup) -> ConnectWorkers:
            if group not in opened_groups:
                workers = open_workers(group, self.folder, self.references, timeout_s)
                opened_groups[group] = RetryingWorkers(workers, _build_retry_policy(self.attempts))
            return opened_groups[group]

        return ConnectClients(open_group)


def open_workers(
    group: WorkerGroup, folder: Path, references: References, timeout_s: float
) -> ConnectWorkers:
    """Read the files of a group and resolve its references. Raises KdeclareError.

    timeout_s: how long one worker may take to answer.
    """
    from kdeclare.providers.connect.client.rest import (
        open_rest_workers,  # httpx: most commands meet no worker
    )

    return open_rest_workers(group, folder, references.resolve, timeout_s)


def _build_retry_policy(attempts: int | None) -> RetryPolicy:
    if attempts is None:
        return RetryPolicy(on_retry=log_retry)
    return RetryPolicy(attempts, on_retry=log_retry)


def locate_workers(settings: ConnectSettings, context: ConnectionContext) -> ConnectTarget:
    """Return what leads to the workers that manifests of the project name."""
    return ConnectTarget(context.folder, context.references, context.attempts)


def explain_fault(fault: Fault, name: str) -> Diagnostic | None:
    """Return what a fault about workers means; None for all others."""
    if fault.error not in ERRORS:
        return None
    return error(
        "workers-unreachable",
        "Connect workers do not do as asked",
        f"{fault.message or 'No reason is given'} ({fault.error}).",
        hint="Check that they run, with kdeclare's plug-in, and how they are to be reached.",
    )


CONNECTION = ConnectionType(ConnectClients, ConnectSettings, locate_workers, explain=explain_fault)


class RetryingWorkers:
    """The port `ConnectWorkers`, with changes that are sent again.

    Who only looks asks once: either they look again anyway, or they want to know who is silent.
    """

    def __init__(self, workers: ConnectWorkers, policy: RetryPolicy) -> None:
        self.urls = workers.urls
        self._workers = workers
        self._policy = policy

    def overrides(self, url: str) -> Mapping[str, str]:
        """As the port says."""
        return self._workers.overrides(url)

    def status(self, url: str) -> PluginStatus:
        """As the port says."""
        return self._workers.status(url)

    def read_served_certificate(self, url: str) -> Certificate | None:
        """As the port says."""
        return self._workers.read_served_certificate(url)

    def validate(self, url: str, changes: Changes) -> Validation:
        """As the port says."""
        return self._workers.validate(url, changes)

    def patch(self, url: str, changes: Changes) -> Mapping[str, str]:
        """As the port says."""
        return self._policy.whole("patch", lambda: self._workers.patch(url, changes))

    def delete(self, url: str, key: str) -> None:
        """As the port says."""
        self._policy.whole("delete", lambda: self._workers.delete(url, key))

    def close(self) -> None:
        """As the port says."""
        self._workers.close()


@dataclass(frozen=True, slots=True)
class WorkerSelection:
    """Groups of workers to read, with their overrides and certificates."""

    groups: frozenset[WorkerGroup]

    def merge(self, others: Sequence["WorkerSelection"]) -> "WorkerSelection":
        """See `Selection`."""
        return WorkerSelection(self.groups.union(*(other.groups for other in others)))


@dataclass(frozen=True, slots=True)
class WorkerState:
    """The workers that were read, by group."""

    groups: Mapping[WorkerGroup, GroupSnapshot]


def collect_workers(connections: Connections, selection: WorkerSelection) -> WorkerState:
    """Read the workers of every group. What does not answer is part of the result."""
    clients = connections.get(ConnectClients)
    return WorkerState(
        {group: read_workers(clients.open(group)) for group in sorted(selection.groups, key=str)}
    )


WORKERS = Collector(WorkerSelection, collect_workers)
