"""Connections to systems in this process."""

from collections.abc import Callable, Mapping
from functools import partial

from kdeclare.app.connections import PendingConnections
from kdeclare.core.parts import Connections
from kdeclare.providers.connect.client.connectors_port import ConnectCluster
from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.worker_state import WorkerGroup
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.port import Cluster

Workers = Mapping[tuple[str, ...], ConnectWorkers]
"""Connect clusters by the URLs of their workers."""


def connections_to(
    cluster: Cluster,
    workers: Workers | None = None,
    connect_clusters: Mapping[str, ConnectCluster] | None = None,
) -> Connections:
    """Return connections to a cluster, to Connect workers, and to named Connect clusters."""

    def open_group(group: WorkerGroup) -> ConnectWorkers:
        return (workers or {})[group.names]

    openers = {name: partial(_return, found) for name, found in (connect_clusters or {}).items()}
    return Connections(KafkaConnection(cluster), ConnectClients(open_group, openers))


def _return(found: ConnectCluster) -> ConnectCluster:
    return found


def make_connector(cluster: Cluster) -> Callable[[], PendingConnections]:
    """Return the function with which a `Workspace` connects."""
    return lambda: PendingConnections(open_connections=connections_to(cluster))
