"""The definition of the Kafka Connect provider."""

from dataclasses import replace

from kdeclare.core.provider.provider import ExaminationRequest, ExaminationResult, Provider
from kdeclare.providers.connect.connection import CONNECTION
from kdeclare.providers.connect.connector.collector import CONNECTORS
from kdeclare.providers.connect.connector.config_operations import CONFIGURE, CREATE, DELETE
from kdeclare.providers.connect.connector.fleet import ConnectorCodec
from kdeclare.providers.connect.connector.kind import ConnectorKind
from kdeclare.providers.connect.connector.planning import ConnectorPlanning
from kdeclare.providers.connect.connector.settings import is_sensitive_setting
from kdeclare.providers.connect.connector.state_operations import DELETE_OFFSETS, RESTART, SET_STATE
from kdeclare.providers.connect.connector_health import FAILED_CONNECTORS
from kdeclare.providers.connect.operations import PatchWorkers
from kdeclare.providers.connect.worker_config.fleet import WORKERS
from kdeclare.providers.connect.worker_config.kind import ConnectWorkerConfigKind
from kdeclare.providers.connect.worker_state import is_secret_setting


def _examine(request: ExaminationRequest) -> ExaminationResult:
    from kdeclare.providers.connect.doctor import examine_connect  # few commands need this module

    return examine_connect(request)


PROVIDER = Provider(
    "connect",
    kinds=(ConnectWorkerConfigKind(), ConnectorKind()),
    operation_types=(
        PatchWorkers(),
        CREATE,
        CONFIGURE,
        SET_STATE,
        RESTART,
        DELETE_OFFSETS,
        DELETE,
    ),
    builds_on=("kafka",),
    connection=CONNECTION,
    examine=_examine,
    collectors=(WORKERS, replace(CONNECTORS, codec=ConnectorCodec())),
    start_plan=ConnectorPlanning,
    health_checks=(FAILED_CONNECTORS,),
    is_secret_setting=is_secret_setting,
    may_hold_secret=is_sensitive_setting,
)
