"""Reading the workers of Connect clusters, many at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kdeclare.core.collector import Collector
from kdeclare.core.parts import Connections
from kdeclare.providers.connect.client.reading import read_workers
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.worker_state import WorkerGroup, WorkersSeen


@dataclass(frozen=True, slots=True)
class WorkerSelection:
    """Groups of workers to read, with their overrides and certificates."""

    groups: frozenset[WorkerGroup]

    def merge(self, others: Sequence["WorkerSelection"]) -> "WorkerSelection":
        """See `core.collector.Selection`."""
        return WorkerSelection(self.groups.union(*(other.groups for other in others)))


@dataclass(frozen=True, slots=True)
class WorkerState:
    """The workers that were read, by group."""

    groups: Mapping[WorkerGroup, WorkersSeen]


def collect_workers(connections: Connections, selection: WorkerSelection) -> WorkerState:
    """Read the workers of every group. What does not answer is part of the result."""
    clients = connections.get(ConnectClients)
    return WorkerState(
        {group: read_workers(clients.open(group)) for group in sorted(selection.groups, key=str)}
    )


WORKERS = Collector(WorkerSelection, collect_workers)
