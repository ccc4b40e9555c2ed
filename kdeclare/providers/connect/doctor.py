"""The checks of Connect workers and Connect clusters for `kdeclare doctor`."""

from collections.abc import Iterator, Sequence

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault
from kdeclare.core.provider.provider import (
    Check,
    CheckSection,
    CheckStatus,
    ExaminationRequest,
    ExaminationResult,
    build_error_check,
)
from kdeclare.core.units import format_count
from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.connect.connection import (
    ENVIRONMENT_FIELD,
    ConnectClients,
    ConnectSettings,
    locate_workers,
)
from kdeclare.providers.connect.connector.settings import CONNECTOR
from kdeclare.providers.connect.connector.spec import ConnectorBody
from kdeclare.providers.connect.connector.status import describe_fault
from kdeclare.providers.connect.worker_config.spec import WorkerConfigBody
from kdeclare.providers.connect.worker_state import WorkerGroup

_WORKERS_WHY = "ConnectWorkerConfig"
_WORKERS_HINT = "Run 'kdeclare connect worker-config status' for details."
_CLUSTERS_HINT = (
    "Check that the workers are running, and that the endpoint's settings in the environment are correct."
)


def examine_connect(request: ExaminationRequest) -> ExaminationResult:
    """Check all declared workers, and all Connect clusters of the environment. See `Provider.examine`."""
    if request.surroundings is None:
        return ExaminationResult()
    bodies = [item.body for item in request.desired]
    groups = tuple(dict.fromkeys(body.group for body in bodies if isinstance(body, WorkerConfigBody)))
    declared_endpoints = {body.endpoint for body in bodies if isinstance(body, ConnectorBody)}
    settings = request.get_settings(ConnectSettings)
    target = locate_workers(settings, request.surroundings)
    clients = target.open(request.surroundings.timeout_s)
    missing = sorted(name for name in declared_endpoints if name is not None and name not in clients.clusters)
    sections = (
        CheckSection("Connect workers", _check_groups(clients, groups)),
        CheckSection(
            "Connect clusters",
            (*_check_clusters(clients, settings), *(_report_missing_cluster(name) for name in missing)),
        ),
    )
    return ExaminationResult(tuple(section for section in sections if section.checks))


def _check_groups(clients: ConnectClients, groups: Sequence[WorkerGroup]) -> tuple[Check, ...]:
    checks: list[Check] = []
    for group in groups:
        try:
            workers = clients.open(group)
        except KdeclareError as problem:
            name = ", ".join(group.names)
            checks.append(build_error_check(name, CheckStatus.FAILED, problem, _WORKERS_WHY))
            continue
        try:
            checks += [_check_worker(workers, url) for url in workers.urls]
        finally:
            workers.close()
    return tuple(checks)


def _check_worker(workers: ConnectWorkers, url: str) -> Check:
    try:
        status = workers.status(url)
    except Fault as fault:
        return Check(url, CheckStatus.FAILED, fault.message or fault.error, _WORKERS_WHY, _WORKERS_HINT)
    what = f"responds, with kdeclare's plug-in {status.plugin_version}"
    return Check(url, CheckStatus.OK, what, _WORKERS_WHY)


def _check_clusters(clients: ConnectClients, settings: ConnectSettings) -> Iterator[Check]:
    for name in sorted(clients.clusters):
        yield _check_cluster(clients, name)
        if name in settings.root and settings.root[name].sends_secrets_unencrypted:
            yield Check(
                f"{ENVIRONMENT_FIELD}/{name} encryption",
                CheckStatus.WARNING,
                "credentials are sent without encryption",
                CONNECTOR,
                "Use https:// URLs.",
            )


def _check_cluster(clients: ConnectClients, name: str) -> Check:
    full_name = f"{ENVIRONMENT_FIELD}/{name}"
    try:
        cluster = clients.open_cluster(name)
        info, count = cluster.identify(), len(cluster.list_connectors())
    except KdeclareError as problem:
        return build_error_check(full_name, CheckStatus.FAILED, problem, CONNECTOR)
    except Fault as fault:
        return Check(full_name, CheckStatus.FAILED, describe_fault(fault), CONNECTOR, _CLUSTERS_HINT)
    what = f"responds, with Kafka Connect {info.version} and {format_count(count, 'connector')}"
    return Check(full_name, CheckStatus.OK, what, CONNECTOR)


def _report_missing_cluster(name: str) -> Check:
    return Check(
        f"{ENVIRONMENT_FIELD}/{name}",
        CheckStatus.FAILED,
        "is named by a Connector, but not configured in the environment",
        CONNECTOR,
        f"Add the Connect cluster to the environment in the project file: {ENVIRONMENT_FIELD}: "
        f"{{{name}: {{urls: …}}}}.",
    )
