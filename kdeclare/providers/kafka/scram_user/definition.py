"""Everything that SCRAM users contribute to the Kafka provider."""

from dataclasses import replace

from kdeclare.core.provider.kind_group import KindGroup
from kdeclare.providers.kafka.scram_user import collector
from kdeclare.providers.kafka.scram_user.fleet import ScramCodec
from kdeclare.providers.kafka.scram_user.kind import ScramUserKind
from kdeclare.providers.kafka.scram_user.operations import DELETE, UPSERT
from kdeclare.providers.kafka.scram_user.planning import ScramPlanning

SCRAM_USERS = KindGroup(
    kinds=(ScramUserKind(),),
    operation_types=(UPSERT, DELETE),
    collectors=(replace(collector.SCRAM_USERS, codec=ScramCodec()),),
    start_plan=ScramPlanning,
)
