"""Remove old finished runs that no command needs anymore."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from kdeclare.app.state.summaries import parse_run_time
from kdeclare.app.workspace import Workspace
from kdeclare.core.clock import Clock, SystemClock, parse_time
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.engine.executor.entries import RunRecord, read_run, read_undamaged
from kdeclare.engine.executor.recovery import find_missed_runs
from kdeclare.engine.state.port import StateStore
from kdeclare.report.run.views import PrunedRuns

MIN_AGE = timedelta(minutes=10)
"""The minimum age at which a run can be removed.

kdeclare may need the plan of a younger run, to wait until brokers show all changes of that run.
"""

READING = "Reading the recorded runs"
REMOVING = "Removing runs"


@dataclass(frozen=True, slots=True)
class Retention:
    """The limits that determine which runs to keep.

    If both limits are given, a run is removed only if both allow it.

    keep: the number of most recent runs to keep. max_age: the age above which a run is removed.
    """

    keep: int | None = None
    max_age: timedelta | None = None


def prune_runs(
    workspace: Workspace,
    retention: Retention,
    confirm: Callable[[PrunedRuns], bool],
    command: str,
    *,
    progress: Progress = ignore_progress,
    clock: Clock | None = None,
) -> PrunedRuns:
    """Remove runs if ``confirm`` accepts them. Return the runs, and whether they were removed.

    Raises KdeclareError if the state is missing, because the journals are then the only record of ownership.
    """
    store = workspace.store
    with store.lock(command, progress):
        now = (clock or SystemClock()).now()
        run_ids = find_removable_runs(store, retention, now, progress)
        pruned = PrunedRuns(run_ids, kept=len(store.runs()) - len(run_ids), removed=False)
        if not run_ids or not confirm(pruned):
            return pruned
        for count, run_id in enumerate(run_ids):
            progress(REMOVING, count, len(run_ids))
            store.remove_run(run_id)
        return PrunedRuns(run_ids, kept=pruned.kept, removed=True)


def find_removable_runs(
    store: StateStore, retention: Retention, now: datetime, progress: Progress = ignore_progress
) -> tuple[str, ...]:
    """Return the runs that can be removed, oldest first.

    These runs are always kept:

    - unfinished runs, and damaged runs that are not abandoned
    - the last finished run, and runs that the state does not include
    - runs that a kept run undoes, because a rollback of the kept run can need them
    - runs younger than `MIN_AGE`
    """
    if store.read() is None:
        raise _build_no_state_error()
    run_ids = store.runs()
    abandoned_ids = store.list_abandoned()
    records: dict[str, RunRecord | None] = {}
    for count, run_id in enumerate(run_ids):
        progress(READING, count, len(run_ids))
        records[run_id] = read_undamaged(partial(read_run, store, run_id))
    finished_ids = [run_id for run_id, record in records.items() if record is not None and record.is_over]
    needed_ids = {*finished_ids[-1:], *(record.run_id for record in find_missed_runs(store))}
    removable_ids: list[str] = []
    for index, run_id in enumerate(reversed(run_ids)):
        record = records[run_id]
        age = now - _find_end(run_id, record)
        is_removable = (
            (run_id in abandoned_ids or (record is not None and record.is_over))
            and run_id not in needed_ids
            and (retention.keep is None or index >= retention.keep)
            and (retention.max_age is None or age > retention.max_age)
            and age > MIN_AGE
        )
        if is_removable:
            removable_ids.append(run_id)
        elif record is not None and record.start is not None and record.start.undoes is not None:
            needed_ids.add(record.start.undoes)  # an older run, which is considered later
    return tuple(reversed(removable_ids))


def _find_end(run_id: str, record: RunRecord | None) -> datetime:
    """Return the time at which a run ended, or at which it began if it has no end."""
    if record is not None and record.ended is not None:
        return parse_time(record.ended)
    # An id that kdeclare did not generate contains no time. Its run is never old enough to be removed.
    return parse_run_time(run_id) or datetime.max.replace(tzinfo=UTC)


def _build_no_state_error() -> KdeclareError:
    return KdeclareError(
        error(
            "no-state",
            "There is no state",
            "No state is stored for this project and environment, so the runs are the only record of what "
            "kdeclare owns. Nothing was removed.",
            hint="Check --project, --env and --state, or restore the state with 'kdeclare state push'.",
        )
    )
