"""The adapter to a real Kafka over kafka-python, the only package that imports it."""

from kdeclare.providers.kafka.client.adapter import KafkaCluster
from kdeclare.providers.kafka.client.connect import connect
from kdeclare.providers.kafka.client.properties_file import read_properties
from kdeclare.providers.kafka.client.providers import provided

__all__ = ["KafkaCluster", "connect", "provided", "read_properties"]
