"""An in-memory Kafka cluster that implements `Cluster`. Tests control its time and its faults."""

from kdeclare.providers.kafka.testing.cluster import OLD_BROKER, MemoryCluster
from kdeclare.providers.kafka.testing.controls import Call
from kdeclare.providers.kafka.testing.partitions import PartitionState
from kdeclare.testing.faults import Crash, FaultPlan

__all__ = ["OLD_BROKER", "Call", "Crash", "FaultPlan", "MemoryCluster", "PartitionState"]
