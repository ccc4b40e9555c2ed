"""The Connect workers that manifests speak of."""

from collections.abc import Sequence

from kdeclare.app.connections import ProjectReferences
from kdeclare.app.doctor.problems import of_error
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.faults import Fault
from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.connect.connection import ConnectTarget
from kdeclare.providers.connect.worker_state import WorkerGroup
from kdeclare.report.doctor_views import Check, Section, Standing

_WHY = "ConnectWorkerConfig"
_HINT = "'kdeclare connect worker-config status' shows more."


def workers_section(
    workspace: Workspace, groups: Sequence[WorkerGroup], timeout_s: float
) -> tuple[Section, ...]:
    """Each worker; no section where no manifest speaks of any."""
    if not groups:
        return ()
    checks: list[Check] = []
    for group in groups:
        try:
            project = workspace.project
            references = ProjectReferences(project.folder, workspace.environ, project.limits)
            workers = ConnectTarget(project.folder, references).open(timeout_s).open(group)
        except KdeclareError as problem:
            checks.append(of_error(", ".join(group.urls), Standing.FAILED, problem, _WHY))
            continue
        try:
            checks += [_worker(workers, url) for url in workers.urls]
        finally:
            workers.close()
    return (Section("Connect workers", tuple(checks)),)


def _worker(workers: ConnectWorkers, url: str) -> Check:
    try:
        status = workers.status(url)
    except Fault as fault:
        return Check(url, Standing.FAILED, fault.message or fault.error, _WHY, _HINT)
    return Check(url, Standing.OK, f"answers, with kdeclare's plug-in {status.plugin_version}", _WHY)
