"""Recover earlier runs and clean up after them at the start of the next command."""

from dataclasses import replace
from datetime import datetime

from kdeclare.app.state.summaries import write_run_summary
from kdeclare.app.workspace import Workspace, format_user_at_host
from kdeclare.core.clock import SystemClock
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, error, info, warning
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plans.policy_gate import NO_POLICIES
from kdeclare.core.plans.run import Status
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.engine.cleanup import CleanupResult, run_cleanup
from kdeclare.engine.executor.apply import Applier
from kdeclare.engine.executor.entries import RUN_UNREADABLE, keep_finished_runs
from kdeclare.engine.executor.propagation import VISIBLE_WITHIN_S, await_visibility
from kdeclare.engine.executor.recovery import (
    RecoveryResult,
    ReplayedRuns,
    find_missed_runs,
    find_unfinished_runs,
    is_state_lost,
    recover_runs,
    replay_missed_runs,
)
from kdeclare.engine.state.port import StateStore

NO_PLAN_OPTIONS = PlanOptions()

_UNWRITABLE_STATE_CODES = frozenset({"state-no-access", "disk-full", "state-io", "state-no-locks"})
"""The codes of errors about a state folder that cannot be written.

Commands that change nothing report these errors as warnings.
"""


def recover_before_plan(
    workspace: Workspace,
    connections: Connections,
    command: str,
    progress: Progress,
    visibility_timeout_s: float = VISIBLE_WITHIN_S,
) -> tuple[Diagnostic, ...]:
    """Recover crashed runs, and wait until brokers show the changes of earlier runs. Raises Fault."""
    with keep_finished_runs(workspace.store):
        notices = recover_if_possible(workspace, connections, command, progress=progress, wait=True)
        _await_visibility(workspace, connections, progress, visibility_timeout_s)
    return notices


def recover_if_possible(
    workspace: Workspace,
    connections: Connections,
    command: str,
    *,
    clean_up: bool = False,
    progress: Progress = ignore_progress,
    wait: bool = False,
) -> tuple[Diagnostic, ...]:
    """Recover crashed runs. If a run is still in progress, only report it. Raises Fault.

    command: the command, shown to other users while the lock is held.
    clean_up: whether to run the pending cleanup, rather than only report it. Must be False for a plan, which
    changes nothing.
    wait: whether to wait until brokers no longer work on requests of the crashed run. If False, a run whose
    requests can still take effect stays unfinished.

    Errors about an unreadable run or a state folder that cannot be written become warnings, because the
    command does not change anything.
    """
    store = workspace.store
    state = store.read()
    has_pending_cleanup = bool(state and state.pending_cleanup)
    try:
        if is_state_lost(store):
            return (_build_missing_state_diagnostic(store, Severity.WARNING),)
        if (
            not find_unfinished_runs(store)
            and not find_missed_runs(store)
            and not (has_pending_cleanup and clean_up)
        ):
            return (_build_pending_cleanup_info(),) if has_pending_cleanup else ()
    except KdeclareError as read_error:
        if any(d.code != RUN_UNREADABLE for d in read_error.diagnostics):
            raise
        return tuple(replace(d, severity=Severity.WARNING) for d in read_error.diagnostics)
    try:
        with store.lock(command, progress):
            notices, is_certain = _settle_runs(workspace, connections, progress, wait=wait)
            if clean_up and is_certain:
                return notices + report_cleanup(
                    clean_up_workspace(workspace, connections, command, patient=True)
                )
            state = store.read()
            return (*notices, _build_pending_cleanup_info()) if state and state.pending_cleanup else notices
    except KdeclareError as lock_error:
        if all(d.code in _UNWRITABLE_STATE_CODES for d in lock_error.diagnostics):
            return tuple(map(_build_unsettled_run_warning, lock_error.diagnostics))
        if all(d.code == RUN_UNREADABLE for d in lock_error.diagnostics):
            return tuple(replace(d, severity=Severity.WARNING) for d in lock_error.diagnostics)
        return warn_run_in_progress(lock_error)


def release_dead_lock(store: StateStore, command: str) -> None:
    """End the lease of a process that died while it held the lock. Raises KdeclareError.

    If it were not ended, the lease would stay until the next command that changes something. A lock that is
    in use is not broken.
    """
    try:
        with store.lock(command):
            pass
    except KdeclareError as lock_error:
        is_unwritable = all(d.code in _UNWRITABLE_STATE_CODES for d in lock_error.diagnostics)
        if not is_unwritable and lock_error.exit_code is not ExitCode.LOCKED:
            raise


def warn_run_in_progress(lock_error: KdeclareError) -> tuple[Diagnostic, ...]:
    """Return warnings if the error says that another process holds the lock. Re-raise any other error."""
    if lock_error.exit_code is not ExitCode.LOCKED:
        raise lock_error
    return tuple(_build_run_in_progress_warning(d) for d in lock_error.diagnostics)


def recover_under_lock(
    workspace: Workspace,
    connections: Connections,
    command: str,
    *,
    options: PlanOptions = NO_PLAN_OPTIONS,
    progress: Progress = ignore_progress,
    visibility_timeout_s: float = VISIBLE_WITHIN_S,
) -> tuple[Diagnostic, ...]:
    """Recover earlier runs and clean up after them. The caller holds the lock. Raises Fault.

    Wait until brokers show the changes, once before and once after the cleanup. Otherwise, the cleanup would
    not remove a throttle that is not visible yet, and a removed throttle that is still visible would be
    mistaken for a throttle of another client.
    """
    with keep_finished_runs(workspace.store):
        notices, is_certain = _settle_runs(workspace, connections, progress, wait=True)
        _await_visibility(workspace, connections, progress, visibility_timeout_s)
    if not is_certain:
        return notices  # requests may still take effect; the cleanup after the run covers them
    cleanup_result = clean_up_workspace(workspace, connections, command, options=options)
    if cleanup_result.run is not None:
        _await_visibility(workspace, connections, progress, visibility_timeout_s)
    return notices + report_cleanup(cleanup_result)


def _await_visibility(
    workspace: Workspace, connections: Connections, progress: Progress, limit_s: float
) -> None:
    await_visibility(workspace.store, connections, SystemClock(), progress, limit_s=limit_s)


def _settle_runs(
    workspace: Workspace, connections: Connections, progress: Progress, *, wait: bool
) -> tuple[tuple[Diagnostic, ...], bool]:
    """Recover runs. Return notices about them, and whether all outcomes are certain.

    Raises KdeclareError if the state is lost.
    """
    if is_state_lost(workspace.store):
        raise KdeclareError(_build_missing_state_diagnostic(workspace.store, Severity.ERROR))
    replayed_runs = replay_missed_runs(workspace.store)
    recovered_runs = recover_runs(workspace.store, connections, SystemClock(), progress, wait=wait)
    for item in recovered_runs:
        write_run_summary(workspace.store, item.run_id, item.plan)
    notices = (
        *report_replay(replayed_runs),
        *map(_build_recovery_warning, recovered_runs),
    )
    return notices, all(item.is_certain for item in recovered_runs)


def clean_up_workspace(
    workspace: Workspace,
    connections: Connections,
    command: str,
    *,
    options: PlanOptions = NO_PLAN_OPTIONS,
    patient: bool = False,
) -> CleanupResult:
    """Run the pending cleanup of earlier runs (see `run_cleanup`). The caller holds the lock.

    Raises Fault.
    """
    # without policies, because they must not prevent the removal of temporary settings
    applier = Applier(
        workspace.store,
        connections,
        _NoSecrets(),
        ignore_progress,
        format_user_at_host(),
        f"{command} (cleanup)",
        NO_POLICIES,
        request_deadline_s=workspace.request_deadline_s,
    )
    project = workspace.project
    cleanup_result = run_cleanup(
        applier,
        project.name,
        project.environment.name,
        workspace.cluster_name,
        options=options,
        patient=patient,
    )
    if cleanup_result.run is not None:
        write_run_summary(workspace.store, cleanup_result.run.run_id, cleanup_result.run.plan)
    return cleanup_result


def clean_up_after_run(
    workspace: Workspace, connections: Connections, command: str
) -> tuple[Diagnostic, ...]:
    """Clean up after a run. If the cluster does not respond, warn instead of losing the run's result."""
    try:
        return report_cleanup(clean_up_workspace(workspace, connections, command))
    except Fault as fault:
        return (_build_cleanup_failed_warning(str(fault)),)


class _NoSecrets:
    """A `SecretSource` for cleanup operations, which never need secrets."""

    def reveal(self, secret: SecretRef) -> str:
        """See `SecretSource`."""
        raise KdeclareError(
            error(
                "no-secret",
                "Secret is not available",
                f"A cleanup operation needs the secret '{secret.reference}', but cleanup operations cannot "
                "use secrets.",
                hint="Report this as a bug in kdeclare.",
            )
        )


def _build_run_in_progress_warning(lock_diagnostic: Diagnostic) -> Diagnostic:
    return Diagnostic(
        Severity.WARNING,
        "run-under-way",
        "Run in progress",
        "Another run is in progress, so the state shown below can change at any time. "
        f"{lock_diagnostic.detail}",
        lock_diagnostic.hint,
    )


def _build_unsettled_run_warning(problem: Diagnostic) -> Diagnostic:
    return warning(
        "not-settled",
        "Unfinished run cannot be recovered",
        f"{problem.detail} The output below may not include the changes of the unfinished run.",
        hint=problem.hint,
    )


def report_replay(replayed_runs: ReplayedRuns) -> tuple[Diagnostic, ...]:
    """Build diagnostics that report the update of an outdated state."""
    return (
        *([_build_state_behind_warning(replayed_runs.run_ids)] if replayed_runs.run_ids else []),
        *([_build_state_incomplete_warning(replayed_runs.damaged)] if replayed_runs.damaged else []),
    )


def _build_state_behind_warning(missed_run_ids: tuple[str, ...]) -> Diagnostic:
    return warning(
        "state-behind",
        "State was older than the recorded runs",
        f"The state did not include the changes of {_format_runs(missed_run_ids)}, so it was an older copy. "
        "Ownership was updated from the journals.",
    )


def _build_state_incomplete_warning(damaged_run_ids: tuple[str, ...]) -> Diagnostic:
    return warning(
        "state-incomplete",
        "Ownership changes are unknown",
        f"The state was older than the recorded runs, and {_format_runs(damaged_run_ids)} cannot be read. "
        "The state may therefore lack resources that these runs created, and contain resources that they "
        "released.",
        hint="Run 'kdeclare plan' and 'kdeclare state list'. Adopt resources with 'kdeclare apply --adopt', "
        "and release resources with 'kdeclare state rm'. If you have a newer copy of the state, restore it "
        "with 'kdeclare state push'.",
    )


def _format_runs(run_ids: tuple[str, ...]) -> str:
    if len(run_ids) == 1:
        return f"run {run_ids[0]}"
    return f"{len(run_ids)} runs, the last of them {run_ids[-1]}"


def _build_missing_state_diagnostic(store: StateStore, severity: Severity) -> Diagnostic:
    runs = store.runs()
    return Diagnostic(
        severity,
        "state-missing",
        "State is missing",
        f"{len(runs)} run{'s are' if len(runs) > 1 else ' is'} recorded, the last one in "
        f"{store.get_run_location(runs[-1])}, but there is no state. kdeclare therefore does not know "
        "which resources it owns.",
        hint="Restore the state with 'kdeclare state push FILE', where FILE is state.json.backup or another "
        "copy. To start with an empty state, choose another location, or move the folder 'runs' to another "
        "location.",
    )


def _build_recovery_warning(recovered: RecoveryResult) -> Diagnostic:
    if recovered.open_until is not None:
        return _build_unknown_outcome_warning(recovered, recovered.open_until)
    done_count = sum(r.is_good for r in recovered.settled.values())
    not_done_count = sum(r.status in (Status.INTERRUPTED, Status.UNKNOWN) for r in recovered.settled.values())
    failed_results = [r for r in recovered.settled.values() if r.status is Status.FAILED]
    parts = [
        f"interrupted operations that took effect: {done_count}" if done_count else "",
        f"interrupted operations that had no effect: {not_done_count}" if not_done_count else "",
        f"operations not started: {recovered.not_begun}" if recovered.not_begun else "",
        *(f"{r.id}: {r.message}" for r in failed_results),
    ]
    summary = "; ".join(part for part in parts if part) or "no operation was in progress"
    return warning(
        "recovered",
        "Unfinished run was recovered",
        f"Run {recovered.run_id} did not finish ({summary}). The plan shows the remaining changes.",
        hint=f"Run kdeclare history {recovered.run_id} to see what the run did.",
    )


def _build_unknown_outcome_warning(recovered: RecoveryResult, open_until: datetime) -> Diagnostic:
    open_count = sum(result.status is Status.UNKNOWN for result in recovered.settled.values())
    operation_words = "1 operation shows" if open_count == 1 else f"{open_count} operations show"
    return warning(
        "outcome-unknown",
        "Outcome of a run is not known yet",
        f"Run {recovered.run_id} did not finish. {operation_words} no effect yet, but the system may still "
        f"execute the requests until {open_until:%H:%M:%S} UTC.",
        hint="Run the command again after that time. kdeclare plan and apply wait until then.",
    )


def _build_pending_cleanup_info() -> Diagnostic:
    return info(
        "left-by-moves",
        "Cleanup from an earlier run is pending",
        "An earlier run started work that may still be in progress. When the work ends, its temporary "
        "settings must be removed.",
        hint="Run kdeclare status --watch to follow the work and clean up when it ends. The next apply also "
        "cleans up.",
    )


def report_cleanup(cleanup_result: CleanupResult) -> tuple[Diagnostic, ...]:
    """Build diagnostics that report the result of a cleanup."""
    diagnostics: list[Diagnostic] = []
    if cleanup_result.ongoing:
        first_ongoing, ongoing_count = cleanup_result.ongoing[0], len(cleanup_result.ongoing)
        ongoing_words = (
            f"{first_ongoing} is"
            if ongoing_count == 1
            else f"{first_ongoing} and {ongoing_count - 1} more are"
        )
        diagnostics.append(
            info(
                "still-moving",
                "Work that kdeclare started is still in progress",
                f"{ongoing_words} not finished yet.",
                hint="Run kdeclare status --watch to follow the work and clean up when it ends.",
            )
        )
    run = cleanup_result.run
    if run is None:
        return tuple(diagnostics)
    unfinished_results = [r for r in run.results.values() if r.status is not Status.DONE]
    diagnostics += [
        _build_cleanup_failed_warning(f"{result.id}: {result.message or result.status}")
        for result in unfinished_results
    ]
    finished_operations = [
        op for op in run.plan.operations if op.id not in {r.id for r in unfinished_results}
    ]
    if finished_operations:
        labels = [get_operation_type(op).cleanup_label for op in finished_operations]
        cleanup_words = " and ".join(
            label or f"cleaned up {op.resource}"
            for label, op in zip(labels, finished_operations, strict=True)
        )
        summary = "Cleaned up after reassignments" if all(labels) else "Cleaned up after earlier runs"
        diagnostics.append(info("tidied", summary, f"Run {run.run_id} {cleanup_words}."))
    return tuple(diagnostics)


def _build_cleanup_failed_warning(reason: str) -> Diagnostic:
    return warning(
        "not-tidied",
        "Cleanup of an earlier run failed",
        reason,
        hint="Run kdeclare status --watch or kdeclare apply to retry the cleanup.",
    )
