"""Everything that groups and their committed offsets contribute to the Kafka provider."""

from kdeclare.core.provider.kind_group import KindGroup
from kdeclare.providers.kafka.consumer_group.collector import GROUPS
from kdeclare.providers.kafka.consumer_group.operations import AlterOffsets, DeleteGroup

CONSUMER_GROUPS = KindGroup(operation_types=(AlterOffsets(), DeleteGroup()), collectors=(GROUPS,))
