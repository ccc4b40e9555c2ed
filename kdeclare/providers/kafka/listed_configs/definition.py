"""Everything that configs of groups and of client metrics subscriptions contribute to the Kafka provider."""

from dataclasses import replace

from kdeclare.core.provider.kind_group import KindGroup
from kdeclare.providers.kafka.listed_configs import collector
from kdeclare.providers.kafka.listed_configs.client_metrics import ClientMetricsKind
from kdeclare.providers.kafka.listed_configs.fleet import ListedConfigsCodec
from kdeclare.providers.kafka.listed_configs.group_config import GroupConfigKind
from kdeclare.providers.kafka.listed_configs.planning import ListedConfigsPlanning

LISTED_CONFIGS = KindGroup(
    kinds=(GroupConfigKind(), ClientMetricsKind()),
    collectors=(replace(collector.LISTED_CONFIGS, codec=ListedConfigsCodec()),),
    start_plan=ListedConfigsPlanning,
)
