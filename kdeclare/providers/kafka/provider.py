"""The Kafka provider, as its entry point names it."""

from dataclasses import replace

from kdeclare.core.provider import Provider
from kdeclare.providers.kafka.broker_config import BrokerConfigKind
from kdeclare.providers.kafka.client_quota.collector import QUOTAS
from kdeclare.providers.kafka.client_quota.kind import ClientQuotaKind
from kdeclare.providers.kafka.client_quota.operations import AlterQuota
from kdeclare.providers.kafka.collector import CLUSTER, find_principal
from kdeclare.providers.kafka.config.catalog import is_secret_setting, may_hold_secret
from kdeclare.providers.kafka.connection import CONNECTION
from kdeclare.providers.kafka.doctor import examine_cluster
from kdeclare.providers.kafka.fleet.codec import KafkaCodec
from kdeclare.providers.kafka.operations.alter_configs import AlterConfigs
from kdeclare.providers.kafka.operations.delete_topic import DeleteTopic
from kdeclare.providers.kafka.operations.topics import CreateTopic, IncreasePartitions
from kdeclare.providers.kafka.plan_options import REASSIGNMENTS
from kdeclare.providers.kafka.planning import KafkaPlanning
from kdeclare.providers.kafka.propagation import find_invisible
from kdeclare.providers.kafka.reassignment.batching import TOGETHER
from kdeclare.providers.kafka.reassignment.cleanup import find_cleanup
from kdeclare.providers.kafka.reassignment.kind import ReassignmentKind
from kdeclare.providers.kafka.reassignment.operations.elect import ElectLeaders
from kdeclare.providers.kafka.reassignment.operations.moves import AwaitMoves, CancelMoves
from kdeclare.providers.kafka.reassignment.operations.reassign import ReassignPartitions
from kdeclare.providers.kafka.reassignment.operations.relocate import RelocateReplicas
from kdeclare.providers.kafka.reassignment.operations.throttle import ClearThrottle, SetThrottle
from kdeclare.providers.kafka.reassignment.placement_constraints import clashes
from kdeclare.providers.kafka.reassignment.plan_section import describe_moves
from kdeclare.providers.kafka.topic import TopicKind

PROVIDER = Provider(
    "kafka",
    kinds=(TopicKind(), BrokerConfigKind(), ReassignmentKind(), ClientQuotaKind()),
    operation_types=(
        CreateTopic(),
        DeleteTopic(),
        IncreasePartitions(),
        AlterConfigs(),
        ReassignPartitions(),
        SetThrottle(),
        ClearThrottle(),
        ElectLeaders(),
        CancelMoves(),
        RelocateReplicas(),
        AwaitMoves(),
        AlterQuota(),
    ),
    connection=CONNECTION,
    examine=examine_cluster,
    collectors=(replace(CLUSTER, codec=KafkaCodec()), QUOTAS),
    plan_settings=REASSIGNMENTS,
    start_plan=KafkaPlanning,
    find_invisible=find_invisible,
    find_principal=find_principal,
    find_cleanup=find_cleanup,
    auxiliary_kinds=frozenset({TOGETHER.kind}),
    describe_plan=describe_moves,
    is_secret_setting=is_secret_setting,
    may_hold_secret=may_hold_secret,
    find_contradictions=clashes,
)
