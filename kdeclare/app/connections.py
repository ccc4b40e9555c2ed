"""The connections of all providers to the systems of an environment."""

from kdeclare.core.parts import Connections
from kdeclare.providers.connect.collector import ConnectClients
from kdeclare.providers.kafka.collector import KafkaConnection
from kdeclare.providers.kafka.port import Cluster


def connections_to(cluster: Cluster) -> Connections:
    """Return the connections of all providers: workers of Connect are opened by way of their cluster."""
    return Connections(KafkaConnection(cluster), ConnectClients(cluster.workers))
