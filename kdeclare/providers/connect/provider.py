"""The Kafka Connect provider, and its checks for `kdeclare doctor`."""

from dataclasses import replace

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault
from kdeclare.core.provider.provider import (
    Check,
    CheckSection,
    CheckStatus,
    ExaminationRequest,
    ExaminationResult,
    Provider,
    build_error_check,
)
from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.connect.connection import CONNECTION, WORKERS, ConnectSettings, locate_workers
from kdeclare.providers.connect.connector.collector import CONNECTORS
from kdeclare.providers.connect.connector.config_operations import CONFIGURE, CREATE, DELETE
from kdeclare.providers.connect.connector.fleet import ConnectorCodec
from kdeclare.providers.connect.connector.kind import ConnectorKind
from kdeclare.providers.connect.connector.planning import ConnectorPlanning
from kdeclare.providers.connect.connector.settings import is_sensitive_setting
from kdeclare.providers.connect.connector.state_operations import DELETE_OFFSETS, RESTART, SET_STATE
from kdeclare.providers.connect.operations import PatchWorkers
from kdeclare.providers.connect.worker_config.kind import ConnectWorkerConfigKind
from kdeclare.providers.connect.worker_config.spec import WorkerConfigBody
from kdeclare.providers.connect.worker_state import is_secret_setting

_WHY = "ConnectWorkerConfig"
_HINT = "Run 'kdeclare connect worker-config status' for details."


def examine_workers(request: ExaminationRequest) -> ExaminationResult:
    """Check all declared workers for `kdeclare doctor`. If there are none, return no section."""
    bodies = (item.body for item in request.desired if isinstance(item.body, WorkerConfigBody))
    groups = tuple(dict.fromkeys(body.group for body in bodies))
    if request.surroundings is None or not groups:
        return ExaminationResult()
    target = locate_workers(request.get_settings(ConnectSettings), request.surroundings)
    clients = target.open(request.surroundings.timeout_s)
    checks: list[Check] = []
    for group in groups:
        try:
            workers = clients.open(group)
        except KdeclareError as problem:
            checks.append(build_error_check(", ".join(group.names), CheckStatus.FAILED, problem, _WHY))
            continue
        try:
            checks += [_check_worker(workers, url) for url in workers.urls]
        finally:
            workers.close()
    return ExaminationResult((CheckSection("Connect workers", tuple(checks)),))


def _check_worker(workers: ConnectWorkers, url: str) -> Check:
    try:
        status = workers.status(url)
    except Fault as fault:
        return Check(url, CheckStatus.FAILED, fault.message or fault.error, _WHY, _HINT)
    return Check(url, CheckStatus.OK, f"responds, with kdeclare's plug-in {status.plugin_version}", _WHY)


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
    examine=examine_workers,
    collectors=(WORKERS, replace(CONNECTORS, codec=ConnectorCodec())),
    start_plan=ConnectorPlanning,
    may_hold_secret=is_sensitive_setting,
    is_secret_setting=is_secret_setting,
)
