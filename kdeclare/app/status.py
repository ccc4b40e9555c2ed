"""Read the status: unfinished runs, ongoing work in the systems, and the holder of the lock."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from kdeclare.app.history import build_steps, iterate_runs, load_run_plan, report_lock_losses
from kdeclare.app.recovery import recover_if_possible, release_dead_lock
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.documents import build_document
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.provider.provider import ActivityWatch, RecentRuns
from kdeclare.core.provider.provider_queries import start_watches
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.engine.executor.entries import fold_journal, read_run_plan
from kdeclare.engine.executor.recovery import find_pending_cleanup
from kdeclare.engine.ongoing_work import describe_ongoing_work
from kdeclare.report.run.views import RunSummary, StatusView, UnfinishedRun

_RECENT_RUNS = 20
"""Number of recent runs to search for the run that started ongoing work."""

_RUNS_WITH_LATE_REQUESTS = 3
"""Number of recent runs in which the status searches for requests that may have arrived late."""

StatusReport = tuple[StatusView, tuple[Diagnostic, ...]]
"""The status, and the notices from recovery and cleanup."""


def watch_status(workspace: Workspace, *, clean_up: bool) -> Iterator[StatusReport]:
    """Read and yield the current status in an endless loop. Crashed runs are recovered before each reading.

    clean_up: whether to also run the pending cleanup of earlier work, and to release the lock of a process
        that died. Raises KdeclareError.
    """
    with workspace.open_connections() as connections:
        watches = start_watches(connections)
        while True:
            view, notices = _read_status(workspace, connections, watches, clean_up)
            yield view, notices
            if clean_up and view.lock:
                release_dead_lock(workspace.store, "status")


def _read_status(
    workspace: Workspace, connections: Connections, watches: Sequence[ActivityWatch], clean_up: bool
) -> StatusReport:
    store = workspace.store
    # read the systems first, so that the cleanup runs only after the work was seen to be finished
    watch_diagnostics = [found for watch in watches for found in watch.look()]
    notices = recover_if_possible(workspace, connections, "status", clean_up=clean_up)
    unfinished_runs, last_run = _find_latest_runs(workspace)
    state = store.read()
    # without a state, only the journals show the pending cleanup
    pending_cleanup = state.pending_cleanup if state else find_pending_cleanup(store, _RECENT_RUNS)
    recent_runs = RecentRuns(pending_cleanup, lambda: _list_recent_work(workspace))
    ongoing_work = describe_ongoing_work(connections, recent_runs)
    view = StatusView(
        project=workspace.project.name,
        env=workspace.project.environment.name,
        cluster=workspace.cluster_name,
        unfinished=tuple(_build_unfinished_run(workspace, run) for run in unfinished_runs),
        activities=(
            *(watch.describe(recent_runs) for watch in watches),
            *((ongoing_work,) if ongoing_work else ()),
        ),
        lock=store.read_holder(),
        last=last_run,
    )
    late_requests = [
        found
        for run_id in store.runs()[-_RUNS_WITH_LATE_REQUESTS:]
        for found in report_lock_losses(store, run_id)
    ]
    return view, (*notices, *watch_diagnostics, *late_requests)


def _find_latest_runs(workspace: Workspace) -> tuple[list[RunSummary], RunSummary | None]:
    """Return the unfinished runs since the last finished run, and the last finished run or None."""
    unfinished_runs: list[RunSummary] = []
    for run in iterate_runs(workspace):
        if run.ended is not None:
            return unfinished_runs, run
        if run.outcome == "unfinished":
            unfinished_runs.append(run)
    return unfinished_runs, None


def _list_recent_work(workspace: Workspace) -> Iterator[tuple[str, Sequence[Operation]]]:
    """Yield the recent runs, each with the operations that start work such as reassignments.

    Damaged runs are skipped.
    """
    for run_id in workspace.store.runs()[: -_RECENT_RUNS - 1 : -1]:
        with suppress(KdeclareError):
            operations = read_run_plan(workspace.store, run_id).operations
            yield run_id, [op for op in operations if get_operation_type(op).goes_on]


def _build_unfinished_run(workspace: Workspace, run: RunSummary) -> UnfinishedRun:
    entries = workspace.store.entries(run.run_id)
    unsettled_ids = set(fold_journal(run.run_id, entries).unsettled)
    steps = build_steps(run.run_id, entries, load_run_plan(workspace, run.run_id))
    unknown_steps = tuple(step for step in steps if step.id in unsettled_ids)
    not_begun_count = run.operations - sum(run.counts.values()) - len(unknown_steps)
    return build_document(UnfinishedRun, run, unknown=unknown_steps, not_begun=not_begun_count)
