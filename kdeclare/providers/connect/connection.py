"""Connecting to the workers of Connect clusters, whose manifests say themselves where they are."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from kdeclare.core.connecting import ConnectionType, References, Surroundings
from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.faults import Fault
from kdeclare.core.retry import RetryPolicy, log_retry
from kdeclare.providers.connect.client.port import ERRORS, ConnectWorkers
from kdeclare.providers.connect.client.retrying import RetryingWorkers
from kdeclare.providers.connect.worker_state import WorkerGroup

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

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class ConnectTarget:
    """Workers whose files and references are relative to a folder."""

    folder: Path
    references: References = field(repr=False)
    attempts: int | None = None

    def open(self, timeout_s: float) -> ConnectClients:
        """See `core.connecting.Target`. Nothing is sent yet."""
        known: dict[WorkerGroup, ConnectWorkers] = {}

        def open_group(group: WorkerGroup) -> ConnectWorkers:
            if group not in known:
                workers = open_workers(group, self.folder, self.references, timeout_s)
                known[group] = RetryingWorkers(workers, _make_policy(self.attempts))
            return known[group]

        return ConnectClients(open_group)


def open_workers(
    group: WorkerGroup, folder: Path, references: References, timeout_s: float
) -> ConnectWorkers:
    """Read the files of a group and resolve its references. Raises KdeclareError.

    timeout_s: how long one worker may take to answer.
    """
    from kdeclare.providers.connect.client.opening import opened  # httpx: most commands meet no worker

    return opened(group, folder, references.resolve, timeout_s)


def _make_policy(attempts: int | None) -> RetryPolicy:
    if attempts is None:
        return RetryPolicy(on_retry=log_retry)
    return RetryPolicy(attempts, on_retry=log_retry)


def locate_workers(settings: ConnectSettings, surroundings: Surroundings) -> ConnectTarget:
    """Return what leads to the workers that manifests of the project name."""
    return ConnectTarget(surroundings.folder, surroundings.references, surroundings.attempts)


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
