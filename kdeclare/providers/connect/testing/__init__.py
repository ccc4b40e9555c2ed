"""Connect workers in this process, for tests."""

from kdeclare.providers.connect.testing.workers import MemoryWorkers

__all__ = ["MemoryWorkers"]
