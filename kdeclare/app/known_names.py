"""Names of resources, runs, environments and projects, for completion and for reports of failures."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from kdeclare.app.plan import load_manifests
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.parts import Connections
from kdeclare.manifests.project import PROJECT_FILE, read_project, read_project_names

_Answer = TypeVar("_Answer")


def ask_systems(workspace: Workspace, question: Callable[[Connections], _Answer]) -> _Answer:
    """Call ``question`` with connections to the environment's systems, and return the result of the call.

    Raises KdeclareError.
    """
    with workspace.open_connections() as connections:
        return question(connections)


def list_declared_names(workspace: Workspace) -> tuple[str, ...]:
    """List the resources that the manifests declare, as ``Kind/name``, sorted. Raises KdeclareError."""
    manifests = load_manifests(workspace, ())
    return tuple(sorted(str(item.id) for item in (*manifests.desired, *manifests.absent)))


def list_run_ids(workspace: Workspace) -> tuple[str, ...]:
    """List the runs of the project in its environment, latest first. Raises KdeclareError."""
    return tuple(reversed(workspace.store.runs()))


def list_owned_names(workspace: Workspace) -> tuple[str, ...]:
    """Return the resources that the state contains, as KIND/NAME, sorted. Raises KdeclareError."""
    state = workspace.store.read()
    return () if state is None else tuple(sorted(state.resources))


def list_environment_names(project: Path | None) -> tuple[str, ...]:
    """List the environments of a project file (default: kdeclare.yaml). Raises KdeclareError."""
    project_file = project or Path(PROJECT_FILE)
    return tuple(read_project(project_file).spec.environments) if project_file.is_file() else ()


def find_project_names(project: Path | None, env: str | None) -> tuple[str, str] | None:
    """Return the names of the project and its environment, or None if the project file cannot be read."""
    try:
        return read_project_names(project, env)
    except KdeclareError:
        return None
