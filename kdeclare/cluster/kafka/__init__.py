"""The adapter to a real Kafka over kafka-python, the only package that imports it."""

from kdeclare.cluster.kafka.adapter import KafkaCluster
from kdeclare.cluster.kafka.connect import connect
from kdeclare.cluster.kafka.properties_file import read_properties
from kdeclare.cluster.kafka.providers import provided

__all__ = ["KafkaCluster", "connect", "provided", "read_properties"]
