"""In-memory clusters that are served to real clients, in Kafka's protocol on loopback ports."""

from tests.served.cluster import Outage, ServedCluster

__all__ = ["Outage", "ServedCluster"]
