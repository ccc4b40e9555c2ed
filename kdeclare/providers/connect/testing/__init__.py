"""In-process Connect workers, and in-process connectors, for tests."""

from kdeclare.providers.connect.testing.connectors import MemoryConnectCluster
from kdeclare.providers.connect.testing.workers import MemoryWorkers

__all__ = ["MemoryConnectCluster", "MemoryWorkers"]
