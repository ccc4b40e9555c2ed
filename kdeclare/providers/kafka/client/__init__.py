"""Access to Kafka clusters with kafka-python. Only this package imports kafka-python."""

from kdeclare.providers.kafka.client.kafka_package import defer_packages

defer_packages()  # must run before the modules below import kafka-python

from kdeclare.providers.kafka.client.cluster import KafkaCluster  # noqa: E402
from kdeclare.providers.kafka.client.connect import connect  # noqa: E402
from kdeclare.providers.kafka.client.properties import read_properties, resolve_config_providers  # noqa: E402

__all__ = ["KafkaCluster", "connect", "read_properties", "resolve_config_providers"]
