"""The health check of connectors during fleet rollouts."""

from kdeclare.core.parts import Connections
from kdeclare.core.provider.health import HealthCheck
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.connector.status import list_failures


def count_failed_connectors(connections: Connections) -> int:
    """Return the number of connectors that failed or have failed tasks, in all Connect clusters.

    Return 0 if the environment configures no Connect cluster. Raises Fault.
    """
    clients = connections.get(ConnectClients)
    clusters = (clients.open_cluster(name) for name in clients.clusters)
    connectors = (connector for cluster in clusters for connector in cluster.list_connectors().values())
    return sum(bool(list_failures(connector)) for connector in connectors)


FAILED_CONNECTORS = HealthCheck(
    "failed-connectors", "failed connector", "failed connectors", count_failed_connectors
)
