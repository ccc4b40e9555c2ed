"""Read the state: the owned resources, their records, and the whole document.

This module has few imports, so that the commands that use it start quickly.
"""

from pathlib import Path

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.plans.state import State
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.record_binding import dump_record
from kdeclare.core.suggestions import format_suggestion
from kdeclare.engine.state.document import encode_state
from kdeclare.engine.state.durable_files import PRIVATE_MODE, replace_file
from kdeclare.report.run.state_views import OwnedResource, OwnedResources


def read_state(workspace: Workspace) -> State:
    """Return the state. Raises KdeclareError if there is none, or if it is damaged."""
    state = workspace.store.read()
    if state is None:
        raise build_no_state_error()
    return state


def list_owned(workspace: Workspace) -> OwnedResources:
    """Return the resources that kdeclare owns. Raises KdeclareError."""
    state = read_state(workspace)
    project = workspace.project
    return OwnedResources(
        project.name,
        project.environment.name,
        state.cluster_id,
        state.lineage,
        state.serial,
        tuple(sorted(state.resources)),
    )


def show_owned(workspace: Workspace, resource: ResourceId) -> OwnedResource:
    """Return the ownership record of a resource. Raises KdeclareError if kdeclare does not own it."""
    state = read_state(workspace)
    require_owned(state, resource)
    return OwnedResource(str(resource), dump_record(state.resources[str(resource)]))


def save_state(state: State, path: Path) -> None:
    """Write a state to a file that only its owner can read. Raises KdeclareError."""
    try:
        replace_file(path, encode_state(state).encode(), mode=PRIVATE_MODE)
    except OSError as problem:
        raise KdeclareError(
            error(
                "file-not-written",
                "The file cannot be written",
                f"{path}: {problem.strerror or problem}.",
                hint="Choose another file with --out, or check the permissions of the folder.",
            )
        ) from problem


def load_state_text(path: Path) -> bytes:
    """Return the content of a file that contains a state. Raises KdeclareError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise KdeclareError(
            error(
                "file-not-read",
                "The file cannot be read",
                f"{path}: {problem.strerror or problem}.",
                hint="Pass a file that 'kdeclare state pull --out FILE' wrote.",
            )
        ) from problem


def require_owned(state: State, resource: ResourceId) -> None:
    """Raise KdeclareError if kdeclare does not own the resource."""
    if str(resource) in state.resources:
        return
    raise KdeclareError(
        error(
            "not-owned",
            "The resource is not owned",
            f"The state has no ownership record of {resource}. Nothing was changed.",
            hint=format_suggestion(str(resource), state.resources)
            or "Run 'kdeclare state list' to see the owned resources.",
        )
    )


def build_no_state_error() -> KdeclareError:
    """Build the error about a command that needs a state."""
    return KdeclareError(
        error(
            "no-state",
            "There is no state",
            "No state is stored for this project and environment.",
            hint="Check --project, --env and --state. The first apply creates the state, and 'kdeclare state "
            "push' restores it from a copy.",
        )
    )
