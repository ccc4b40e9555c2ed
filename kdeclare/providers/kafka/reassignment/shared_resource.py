"""The resource that plans show for an operation on the replicas of several resources."""

from kdeclare.core.resources.ids import ResourceId

SHARED_RESOURCE = ResourceId("Moves", "topics")
