"""An unfinished run, seen by whatever command comes next: it says so, settles it, and goes on."""

from kdeclare.applying.clock import SystemClock
from kdeclare.applying.recovery import Recovered, recover, unfinished
from kdeclare.cluster.port import Cluster
from kdeclare.model.diagnostics import Diagnostic, KdeclareError, Severity, warning
from kdeclare.model.exits import ExitCode
from kdeclare.model.run import Status
from kdeclare.state.port import StateStore


def recover_if_possible(store: StateStore, cluster: Cluster, what: str) -> tuple[Diagnostic, ...]:
    """Settle what a crashed run left open; a run that is alive is only named. Raises Fault."""
    if not unfinished(store):
        return ()
    try:
        with store.lock(what):
            return recover_locked(store, cluster)
    except KdeclareError as taken:
        if taken.exit_code is not ExitCode.LOCKED:
            raise
        return tuple(_under_way(d) for d in taken.diagnostics)


def recover_locked(store: StateStore, cluster: Cluster) -> tuple[Diagnostic, ...]:
    """Settle what a crashed run left open; the caller holds the lock. Raises Fault."""
    return tuple(_notice(item) for item in recover(store, cluster, SystemClock()))


def _under_way(lock: Diagnostic) -> Diagnostic:
    return Diagnostic(
        Severity.WARNING,
        "run-under-way",
        "A run is under way",
        f"What follows may change any moment. {lock.detail}",
        lock.hint,
    )


def _notice(item: Recovered) -> Diagnostic:
    done = sum(r.status is Status.DONE for r in item.settled.values())
    not_done = sum(r.status is Status.INTERRUPTED for r in item.settled.values())
    unclear = [r for r in item.settled.values() if r.status is Status.FAILED]
    parts = [
        f"{done} of the operations under way had taken effect" if done else "",
        f"{not_done} had not" if not_done else "",
        f"{item.not_begun} had not been begun" if item.not_begun else "",
        *(f"{r.id}: {r.message}" for r in unclear),
    ]
    said = "; ".join(part for part in parts if part) or "nothing was under way"
    return warning(
        "recovered",
        "A run that had not ended was settled",
        f"Run {item.run_id} did not come to its end: {said}. What is left shows in the plan.",
        hint=f"kdeclare history {item.run_id} shows what it did.",
    )
