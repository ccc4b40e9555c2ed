"""Change the content of the state without a run: ownership, and the whole document."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from kdeclare.app.recovery import report_replay
from kdeclare.app.state.ownership import build_no_state_error, require_owned
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.plans.state import State
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.executor.entries import read_run, read_undamaged
from kdeclare.engine.executor.recovery import find_unfinished_runs, is_state_lost, replay_missed_runs
from kdeclare.engine.state.document import decode_state
from kdeclare.engine.state.port import StateStore
from kdeclare.engine.state.problems import is_corruption
from kdeclare.report.run.state_views import OwnershipChange

Confirm = Callable[[OwnershipChange], bool]
"""Asks the user whether to write a change to the state."""


def move_ownership(
    workspace: Workspace,
    old: ResourceId,
    new: ResourceId,
    confirm: Confirm,
    command: str,
    progress: Progress = ignore_progress,
) -> OwnershipChange:
    """Move an ownership record to another name of the same kind. No system is contacted.

    Raises KdeclareError if ``old`` is not owned, or ``new`` is owned already.
    """

    def move(state: State) -> State:
        require_owned(state, old)
        if str(new) in state.resources:
            raise _build_owned_error(new)
        resources = dict(state.resources)
        resources[str(new)] = resources.pop(str(old))
        return replace(state, resources=resources)

    return _edit_state(workspace, move, confirm, command, progress)


def release_ownership(
    workspace: Workspace,
    released: Sequence[ResourceId],
    confirm: Confirm,
    command: str,
    progress: Progress = ignore_progress,
) -> OwnershipChange:
    """Remove ownership records. No system is contacted. Raises KdeclareError if a record does not exist."""

    def release(state: State) -> State:
        for resource in released:
            require_owned(state, resource)
        names = set(map(str, released))
        return replace(
            state, resources={name: record for name, record in state.resources.items() if name not in names}
        )

    return _edit_state(workspace, release, confirm, command, progress)


def read_current_state(workspace: Workspace) -> tuple[State | None, tuple[Diagnostic, ...]]:
    """Return the state that is about to be changed, with notices; None if there is no state yet.

    The caller holds the lock. An outdated state is first updated from the journals, because the change would
    otherwise hide that the state is outdated. Raises KdeclareError if a run is unfinished, or if the state
    was lost.
    """
    store = workspace.store
    require_finished_runs(store)
    if is_state_lost(store):
        raise build_no_state_error()
    notices = report_replay(replay_missed_runs(store))
    return store.read(), notices


def _edit_state(
    workspace: Workspace,
    edit: Callable[[State], State],
    confirm: Confirm,
    command: str,
    progress: Progress,
) -> OwnershipChange:
    """Change the state with one write, which increases the serial and keeps a backup."""
    store = workspace.store
    with store.lock(command, progress):
        state, notices = read_current_state(workspace)
        if state is None:
            raise build_no_state_error()
        new_state = replace(edit(state), serial=state.serial + 1)
        change = replace(_compare_states(state, new_state), diagnostics=notices)
        if not confirm(change):
            return change
        store.write(new_state)
        return replace(change, written=True)


def push_state(
    workspace: Workspace,
    text: bytes,
    name: str,
    confirm: Confirm,
    command: str,
    *,
    force: bool = False,
    progress: Progress = ignore_progress,
) -> OwnershipChange:
    """Replace the state with a document. The previous state is kept as a backup.

    text: the document. name: the name of the document in error messages.
    force: whether to accept a document of another lineage or cluster, and one that is older than the state.
        kdeclare then replaces only the serial of the document, and does not add the effects of later runs.
    Raises KdeclareError if the document is not a state, or if it is refused.
    """
    store = workspace.store
    new_state = _parse_state(text, name)
    with store.lock(command, progress):
        require_finished_runs(store)
        stored = _read_replaceable(store, force=force)
        if stored is not None and not force:
            _validate_successor(stored, new_state, name)
        if force:
            new_state = replace(new_state, serial=_find_next_serial(store, stored, new_state))
        change = _compare_states(stored, new_state)
        if not confirm(change):
            return change
        store.overwrite(new_state)
        return replace(change, written=True)


def _parse_state(text: bytes, name: str) -> State:
    try:
        return decode_state(text, name)
    except KdeclareError as problem:
        raise KdeclareError(
            *(
                error(
                    "not-a-state",
                    "The document is not a state",
                    d.detail,
                    hint="Pass a document that 'kdeclare state pull' wrote, or a copy of state.json.",
                )
                for d in problem.diagnostics
            )
        ) from problem


def require_finished_runs(store: StateStore) -> None:
    """Raise KdeclareError if the last run is unfinished, or damaged and not abandoned."""
    for record in find_unfinished_runs(store):
        raise KdeclareError(
            error(
                "run-unfinished",
                "A run is not finished",
                f"Run {record.run_id} is not finished, so the state does not contain its changes yet. This "
                "command changed nothing.",
                hint="Run 'kdeclare status', which recovers unfinished runs. If the run cannot be recovered, "
                f"run 'kdeclare state abandon {record.run_id}'.",
            )
        )


def _read_replaceable(store: StateStore, *, force: bool) -> State | None:
    """Return the stored state; None if there is none, or if it is damaged and ``force`` is set."""
    try:
        return store.read()
    except KdeclareError as problem:
        if force and is_corruption(problem):
            return None
        raise


def _validate_successor(stored: State, new: State, name: str) -> None:
    """Raise KdeclareError unless ``new`` is certainly a later version of the stored state."""
    if new.lineage != stored.lineage:
        reason = f"it has the lineage {new.lineage}, and the state has the lineage {stored.lineage}"
    elif stored.cluster_id and new.cluster_id not in ("", stored.cluster_id):
        reason = f"it belongs to cluster {new.cluster_id}, and the state belongs to {stored.cluster_id}"
    elif new.serial <= stored.serial:
        reason = f"it has the serial {new.serial}, and the state has the serial {stored.serial}"
    else:
        return
    raise KdeclareError(
        error(
            "state-not-newer",
            "The document is not a later version of the state",
            f"{name} was refused: {reason}. Nothing was changed.",
            hint="Run 'kdeclare state pull' to see the current state. Pass --force to replace it anyway.",
        )
    )


def _find_next_serial(store: StateStore, stored: State | None, new: State) -> int:
    """Return a serial that is higher than the serials of the stored state and of all recorded runs.

    With a lower serial, the next command would take the document for an outdated copy.
    """
    serials = [new.serial - 1]
    if stored is not None and stored.lineage == new.lineage:
        serials.append(stored.serial)
    for run_id in reversed(store.runs()):
        record = read_undamaged(partial(read_run, store, run_id))
        if record is not None and record.lineage == new.lineage and record.serial is not None:
            serials.append(record.serial)
            break  # serials increase, so the last run of this lineage has the highest
    return max(serials) + 1


def _compare_states(before: State | None, after: State) -> OwnershipChange:
    old, new = (before.resources if before else {}), after.resources
    return OwnershipChange(
        serial=after.serial,
        lineage=after.lineage,
        released=tuple(sorted(old.keys() - new.keys())),
        added=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(sorted(name for name in old.keys() & new.keys() if old[name] != new[name])),
        written=False,
    )


def _build_owned_error(resource: ResourceId) -> KdeclareError:
    return KdeclareError(
        error(
            "already-owned",
            "The resource is already owned",
            f"The state already has an ownership record of {resource}. Nothing was changed.",
            hint=f"Release it with 'kdeclare state rm {resource}' first.",
        )
    )
