"""The state: whether it can be read and written, whose it is, who holds its lock."""

import os
from pathlib import Path

from kdeclare.app.doctor.problems import of_error
from kdeclare.app.workspace import Options, Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.state import State
from kdeclare.engine.state.location import folder_of
from kdeclare.report.doctor_views import Check, Section, Standing
from kdeclare.report.values import plural


def state_section(workspace: Workspace, options: Options, cluster_id: str | None) -> Section:
    """cluster_id: of the cluster that was reached; None where none was."""
    project = workspace.project
    folder = folder_of(options.state or project.state, project.name, project.environment.name)
    try:
        state = workspace.store.read()
        holder = workspace.store.holder()
    except KdeclareError as problem:
        return Section("State", (of_error("Store", Standing.FAILED, problem),))
    checks = [_store(folder, state)]
    if state is not None and cluster_id is not None and state.cluster_id != cluster_id:
        checks.append(
            Check(
                "Cluster id",
                Standing.FAILED,
                f"the state is of cluster {state.cluster_id}, and the one that was reached is {cluster_id}",
                hint="Check --env and --bootstrap-server; another cluster wants another --state.",
            )
        )
    if holder is None:
        checks.append(Check("Lock", Standing.OK, "free"))
    else:
        held = f"held by {holder.who} (process {holder.pid}) since {holder.since}: {holder.what}"
        hint = "Wait for it; 'kdeclare lock break' takes it from a process that hangs."
        checks.append(Check("Lock", Standing.WARNING, held, "apply and rollback", hint))
    return Section("State", tuple(checks))


def _store(folder: Path, state: State | None) -> Check:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        return Check(
            "Store",
            Standing.WARNING,
            f"{folder} can be read, but not written: {there} does not permit it",
            "apply and rollback; plan works without",
            "Give yourself the right to write there, or another folder with --state.",
        )
    if state is None:
        return Check("Store", Standing.OK, f"{folder}: nothing yet, the first apply makes it")
    owned = plural(len(state.resources), "owned resource")
    return Check("Store", Standing.OK, f"{folder}: serial {state.serial}, {owned}")
