"""An in-memory Kafka cluster for tests. It implements `Cluster`, and tests control its time and faults."""

from kdeclare.providers.kafka.testing.cluster import OLD_BROKER, MemoryCluster
from kdeclare.providers.kafka.testing.controls import Call
from kdeclare.providers.kafka.testing.partitions import PartitionState
from kdeclare.testing.faults import Crash, FaultPlan

__all__ = ["OLD_BROKER", "Call", "Crash", "FaultPlan", "MemoryCluster", "PartitionState"]
