"""Copy a state with its runs from one location to another, between any two stores."""

from contextlib import suppress

from kdeclare.app.state.contents import require_finished_runs
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.jsontypes import dump_canonical_json
from kdeclare.core.plans.state import State
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.engine.state.port import StateStore
from kdeclare.engine.state.problems import is_corruption

COPYING = "Copying runs"


def migrate_state(
    source: StateStore, target: StateStore, command: str, progress: Progress = ignore_progress
) -> tuple[State, tuple[str, ...]]:
    """Copy a state and its runs. Return the state, and the damaged runs, which cannot be copied.

    The source is not changed. All data of the runs is copied unchanged, and read back from the target. The
    state is written last, so that an interrupted copy is never mistaken for a complete copy. After an error,
    the copied runs are removed from the target.
    Raises KdeclareError if there is no state, if a run is unfinished, or if the target is not empty.
    """
    with source.lock(command, progress), target.lock(command, progress):
        state = source.read()
        if state is None:
            raise _build_empty_source_error()
        if target.read() is not None or target.runs():
            raise _build_target_error()
        require_finished_runs(source)
        try:
            damaged_ids = _copy_runs(source, target, progress)
            target.overwrite(state)
            if target.read() != state:
                raise _build_difference_error("the state")
        except BaseException:
            if target.read() is None:
                _remove_runs(target)
            raise
        return state, damaged_ids


def _copy_runs(source: StateStore, target: StateStore, progress: Progress) -> tuple[str, ...]:
    run_ids = source.runs()
    abandoned_ids = source.list_abandoned()
    damaged_ids: list[str] = []
    for count, run_id in enumerate(run_ids):
        progress(COPYING, count, len(run_ids))
        try:
            plan_text, entries = source.read_plan_text(run_id), source.entries(run_id)
        except KdeclareError as problem:
            if not is_corruption(problem):
                raise
            damaged_ids.append(run_id)
            continue
        with target.begin_run(run_id, plan_text) as journal:
            journal.append_all(entries)
        for report in source.read_losses(run_id):
            target.report_loss(run_id, report)
        if run_id in abandoned_ids:
            target.abandon_run(run_id, source.read_abandonment(run_id))
        for summary in source.read_summaries((run_id,)).values():
            target.write_summary(run_id, summary)
        effects = source.read_effects(run_id)
        if effects is not None:
            target.write_effects(run_id, effects)
        if not _is_equal_run(source, target, run_id):
            raise _build_difference_error(f"run {run_id}")
    if set(target.runs()) != set(run_ids) - set(damaged_ids):
        raise _build_difference_error("the list of runs")
    return tuple(damaged_ids)


def _is_equal_run(source: StateStore, target: StateStore, run_id: str) -> bool:
    """Whether the target returns the same data about a run as the source."""

    def read(store: StateStore) -> tuple[object, ...]:
        return (
            store.read_plan_text(run_id),
            store.entries(run_id),
            sorted(map(dump_canonical_json, store.read_losses(run_id))),
            run_id in store.list_abandoned(),
            store.read_abandonment(run_id),
            store.read_summaries((run_id,)),
            store.read_effects(run_id),
        )

    return read(source) == read(target)


def _remove_runs(target: StateStore) -> None:
    for run_id in target.runs():
        with suppress(KdeclareError):  # the error that stopped the copy is more important
            target.remove_run(run_id)


def _build_empty_source_error() -> KdeclareError:
    return KdeclareError(
        error(
            "no-state",
            "There is no state",
            "No state is stored at the current location, so there is nothing to copy.",
            hint="Check --project, --env and --from. To start with an empty state, change 'state' in the "
            "project file instead of copying a state.",
        )
    )


def _build_target_error() -> KdeclareError:
    return KdeclareError(
        error(
            "state-exists",
            "The target already contains a state",
            "The target contains a state or runs of this project and environment. Nothing was copied.",
            hint="Choose another location with --to. If an earlier copy was interrupted, delete the files "
            "that it left at the target, and run the command again.",
        )
    )


def _build_difference_error(subject: str) -> KdeclareError:
    return KdeclareError(
        error(
            "state-copy-differs",
            "Copied state differs from the original",
            f"The target did not return exactly what was copied: {subject} differs. The state at the "
            "current location is unchanged.",
            hint="Keep using the current location, and check the storage at the target.",
        )
    )
