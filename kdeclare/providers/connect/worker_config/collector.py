"""Read the overrides and certificates of Connect workers."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.endpoints import EndpointStatus
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, LiveState
from kdeclare.providers.connect.client.port import read_workers
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.worker_state import GroupSnapshot, WorkerGroup, WorkerSnapshot


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
