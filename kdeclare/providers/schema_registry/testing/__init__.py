"""An in-memory schema registry for tests."""

from kdeclare.providers.schema_registry.testing.behavior import APICURIO, CONFLUENT, KARAPACE, Behavior
from kdeclare.providers.schema_registry.testing.registry import MemoryRegistry

__all__ = ["APICURIO", "CONFLUENT", "KARAPACE", "Behavior", "MemoryRegistry"]
