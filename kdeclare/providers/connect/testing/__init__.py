"""In-process Connect workers for tests."""

from kdeclare.providers.connect.testing.workers import MemoryWorkers

__all__ = ["MemoryWorkers"]
