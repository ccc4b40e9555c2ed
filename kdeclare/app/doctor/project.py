"""The project file and its manifests."""

from collections.abc import Mapping, Sequence

from kdeclare.app.doctor.problems import of_error
from kdeclare.app.plan import load_manifests
from kdeclare.app.workspace import Options, Workspace, open_workspace
from kdeclare.core.diagnostics import KdeclareError, gist
from kdeclare.manifests.load import Loaded
from kdeclare.manifests.project import PROJECT_FILE
from kdeclare.providers.connect.worker_config import ConnectWorkerConfigKind
from kdeclare.providers.connect.worker_state import WorkerGroup
from kdeclare.report.doctor_views import Check, Section, Standing
from kdeclare.report.values import plural

Found = tuple[Section, Workspace | None, Loaded | None]
"""What was found; the workspace and what its manifests say, where there are such."""


def project_section(options: Options, environ: Mapping[str, str]) -> Found:
    """What is declared here."""
    try:
        workspace = open_workspace(options, environ)
    except KdeclareError as problem:
        return Section("Project", (of_error("Project file", Standing.FAILED, problem),)), None, None
    project = workspace.project
    if project.file is None:
        none = Check(
            "Project file",
            Standing.SKIPPED,
            f"there is no {PROJECT_FILE} here: commands then go by --bootstrap-server and paths of manifests",
        )
        return Section("Project", (none,)), workspace, None
    found = Check("Project file", Standing.OK, f"{project.file}, environment {project.environment.name}")
    loaded = load_manifests(workspace, ())
    return Section("Project", (found, _manifests(loaded))), workspace, loaded


def declared_workers(loaded: Loaded | None) -> Sequence[WorkerGroup]:
    """The Connect workers that manifests speak of, each group once."""
    if loaded is None:
        return ()
    bodies = (item.body for item in loaded.desired if item.id.kind == ConnectWorkerConfigKind.name)
    return tuple(dict.fromkeys(body.group for body in bodies))


def _manifests(loaded: Loaded) -> Check:
    if loaded.has_errors:
        return Check(
            "Manifests",
            Standing.FAILED,
            gist(loaded.diagnostics),
            "plan and apply",
            "'kdeclare validate' shows all that is wrong.",
        )
    what = f"{plural(len(loaded.desired), 'resource')} in {plural(loaded.files, 'file')}"
    return Check("Manifests", Standing.OK, what)
