"""Kafka in this process: the port `Cluster` for tests, with explicit time and a plan of faults."""

from .cluster import OLD_BROKER, MemoryCluster
from .faults import Call, Crash, FaultPlan
from .partitions import PartitionState
from .workers import MemoryWorkers

__all__ = ["OLD_BROKER", "Call", "Crash", "FaultPlan", "MemoryCluster", "MemoryWorkers", "PartitionState"]
