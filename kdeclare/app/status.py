"""What goes on right now: unfinished runs, the work of systems, and who holds the lock."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from kdeclare.app.history import iterate_runs, plan_of, steps_of
from kdeclare.app.recovery import recover_if_possible
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.documents import describe_as
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.provider.provider import ActivityWatch, RecentRuns
from kdeclare.core.provider.registry import start_watches, type_of
from kdeclare.engine.executor.entries import fold, read_run_plan
from kdeclare.engine.executor.recovery import find_pending_cleanup
from kdeclare.engine.ongoing_work import describe_ongoing_work
from kdeclare.report.run.views import RunSummary, StatusView, UnfinishedRun

_RUNS_BACK = 20
"""How far back to look for the run that has begun something."""

Looked = tuple[StatusView, tuple[Diagnostic, ...]]
"""What goes on, and what was settled or tidied up on the way."""


def looks(workspace: Workspace, *, tidies: bool) -> Iterator[Looked]:
    """Look again and again; settles what a crashed run left open. Raises KdeclareError.

    tidies: also take away what earlier work has left behind.
    """
    with workspace.connected() as connections:
        watches = start_watches(connections)
        while True:
            yield _look(workspace, connections, watches, tidies)


def _look(
    workspace: Workspace, connections: Connections, watches: Sequence[ActivityWatch], tidies: bool
) -> Looked:
    store = workspace.store
    # systems first: whatever their work leaves behind is seen to after its end has been seen
    unseen = [found for watch in watches for found in watch.look()]
    notices = recover_if_possible(workspace, connections, "status", tidies=tidies)
    open_, last = _latest(workspace)
    state = store.read()
    # without a state, journals alone tell what runs have left behind
    cleanup = state.pending_cleanup if state else find_pending_cleanup(store, _RUNS_BACK)
    runs = RecentRuns(cleanup, lambda: _recent_work(workspace))
    others = describe_ongoing_work(connections, runs)
    view = StatusView(
        project=workspace.project.name,
        env=workspace.project.environment.name,
        cluster=workspace.cluster_name,
        unfinished=tuple(_unfinished(workspace, run) for run in open_),
        activities=(*(watch.describe(runs) for watch in watches), *((others,) if others else ())),
        lock=store.holder(),
        last=last,
    )
    return view, (*notices, *unseen)


def _latest(workspace: Workspace) -> tuple[list[RunSummary], RunSummary | None]:
    """The unfinished runs after the last finished one, and that one."""
    open_: list[RunSummary] = []
    for run in iterate_runs(workspace):
        if run.ended is not None:
            return open_, run
        if run.outcome == "unfinished":
            open_.append(run)
    return open_, None


def _recent_work(workspace: Workspace) -> Iterator[tuple[str, Sequence[Operation]]]:
    """The operations of the latest runs that go on after their request; damaged runs do not count."""
    for run_id in workspace.store.runs()[: -_RUNS_BACK - 1 : -1]:
        with suppress(KdeclareError):
            operations = read_run_plan(workspace.store, run_id).operations
            yield run_id, [op for op in operations if type_of(op).goes_on]


def _unfinished(workspace: Workspace, run: RunSummary) -> UnfinishedRun:
    entries = workspace.store.entries(run.run_id)
    open_ = set(fold(run.run_id, entries).unsettled)
    steps = steps_of(run.run_id, entries, plan_of(workspace, run.run_id))
    unknown = tuple(step for step in steps if step.id in open_)
    not_begun = run.operations - sum(run.counts.values()) - len(unknown)
    return describe_as(UnfinishedRun, run, unknown=unknown, not_begun=not_begun)
