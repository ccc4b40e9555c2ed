"""Everything that ACLs contribute to the Kafka provider."""

from dataclasses import replace

from kdeclare.core.provider.kind_group import KindGroup
from kdeclare.providers.kafka.acl import collector
from kdeclare.providers.kafka.acl.fleet import AclCodec
from kdeclare.providers.kafka.acl.kind import AclKind
from kdeclare.providers.kafka.acl.operations import CREATE, DELETE
from kdeclare.providers.kafka.acl.planning import AclPlanning

ACLS = KindGroup(
    kinds=(AclKind(),),
    operation_types=(CREATE, DELETE),
    collectors=(replace(collector.ACLS, codec=AclCodec()),),
    start_plan=AclPlanning,
)
