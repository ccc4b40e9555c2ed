"""Runs as the state has them, read one at a time, with errors that say how to go on without a damaged one."""

from collections.abc import Iterator
from contextlib import contextmanager

from kdeclare.core.diagnostics import KdeclareError, error, gist
from kdeclare.core.plan import Plan
from kdeclare.engine.executor.entries import RunRecord, fold
from kdeclare.engine.planning.planfile import read_plan
from kdeclare.engine.state.port import StateStore

RUN_UNREADABLE = "run-unreadable"

_DAMAGE = frozenset(
    {
        "state-corrupt",
        "journal-corrupt",
        "not-a-plan",
        "plan-not-json",
        "plan-format-version",
        "plan-tampered",
        "plan-malformed",
    }
)
"""What is wrong with the run itself; a folder that cannot be read or is not there is another problem."""


def read_run(store: StateStore, run_id: str) -> RunRecord:
    """The folded journal of a run. Raises KdeclareError (``run-unreadable`` where it is damaged)."""
    with _explained(store, run_id):
        return fold(run_id, store.entries(run_id))


def read_run_plan(store: StateStore, run_id: str) -> Plan:
    """The plan that a run executed. Raises KdeclareError (``run-unreadable`` where it is damaged)."""
    with _explained(store, run_id):
        return read_plan(store.plan_text(run_id), f"run {run_id}")


@contextmanager
def _explained(store: StateStore, run_id: str) -> Iterator[None]:
    try:
        yield
    except KdeclareError as problem:
        if not any(d.code in _DAMAGE for d in problem.diagnostics):
            raise
        place = store.run_location(run_id)
        raise KdeclareError(
            error(
                RUN_UNREADABLE,
                "A recorded run cannot be read",
                f"Run {run_id}: {gist(problem.diagnostics)}",
                hint=f"Restore {place} from a copy, or move it out of the state folder. What the run changed "
                "and the state does not know then shows in 'kdeclare plan'.",
            )
        ) from problem
