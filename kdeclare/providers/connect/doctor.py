"""The Connect workers that manifests speak of, for `doctor`."""

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.examining import Check, ExaminationRequest, Examined, Section, Standing, check_of_error
from kdeclare.core.faults import Fault
from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.connect.connection import ConnectSettings, locate_workers
from kdeclare.providers.connect.worker_config.spec import WorkerConfigBody

_WHY = "ConnectWorkerConfig"
_HINT = "'kdeclare connect worker-config status' shows more."


def examine_workers(request: ExaminationRequest) -> Examined:
    """Look at each worker of each group; there is no section where no manifest speaks of any."""
    bodies = (item.body for item in request.desired if isinstance(item.body, WorkerConfigBody))
    groups = tuple(dict.fromkeys(body.group for body in bodies))
    if request.surroundings is None or not groups:
        return Examined()
    target = locate_workers(request.settings_of(ConnectSettings), request.surroundings)
    clients = target.open(request.surroundings.timeout_s)
    checks: list[Check] = []
    for group in groups:
        try:
            workers = clients.open(group)
        except KdeclareError as problem:
            checks.append(check_of_error(", ".join(group.urls), Standing.FAILED, problem, _WHY))
            continue
        try:
            checks += [_worker(workers, url) for url in workers.urls]
        finally:
            workers.close()
    return Examined((Section("Connect workers", tuple(checks)),))


def _worker(workers: ConnectWorkers, url: str) -> Check:
    try:
        status = workers.status(url)
    except Fault as fault:
        return Check(url, Standing.FAILED, fault.message or fault.error, _WHY, _HINT)
    return Check(url, Standing.OK, f"answers, with kdeclare's plug-in {status.plugin_version}", _WHY)
