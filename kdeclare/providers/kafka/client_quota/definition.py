"""Everything that client quotas contribute to the Kafka provider."""

from dataclasses import replace

from kdeclare.core.provider.kind_group import KindGroup
from kdeclare.providers.kafka.client_quota.collector import QUOTAS
from kdeclare.providers.kafka.client_quota.fleet import QuotaCodec
from kdeclare.providers.kafka.client_quota.kind import ClientQuotaKind
from kdeclare.providers.kafka.client_quota.operations import AlterQuota
from kdeclare.providers.kafka.client_quota.planning import QuotaPlanning

CLIENT_QUOTAS = KindGroup(
    kinds=(ClientQuotaKind(),),
    operation_types=(AlterQuota(),),
    collectors=(replace(QUOTAS, codec=QuotaCodec()),),
    start_plan=QuotaPlanning,
)
