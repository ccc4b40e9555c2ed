"""What earlier runs left behind, seen by whatever command comes next: it says so, settles it, and goes on."""

from dataclasses import replace
from datetime import datetime

from kdeclare.app.workspace import Workspace, who
from kdeclare.core.clock import SystemClock
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, error, info, warning
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plans.policy_gate import NO_POLICIES
from kdeclare.core.plans.run import Status
from kdeclare.core.progress import Progress, quietly
from kdeclare.core.provider.registry import type_of
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.engine.cleanup import Tidied, tidy
from kdeclare.engine.executor.apply import Applier
from kdeclare.engine.executor.entries import RUN_UNREADABLE, keep_finished_runs
from kdeclare.engine.executor.propagation import VISIBLE_WITHIN_S, await_visibility
from kdeclare.engine.executor.recovery import (
    Recovered,
    find_missed,
    is_state_lost,
    recover,
    replay_missed,
    unfinished,
)
from kdeclare.engine.state.port import StateStore

NOTHING_CHOSEN = PlanOptions()

_UNWRITABLE = frozenset({"state-no-access", "disk-full", "state-io", "state-no-locks"})
"""Why the state folder cannot be written; whoever only looks goes on all the same."""


def recover_to_plan(
    workspace: Workspace,
    connections: Connections,
    what: str,
    progress: Progress,
    visibility_timeout_s: float = VISIBLE_WITHIN_S,
) -> tuple[Diagnostic, ...]:
    """Settle what a crashed run left open, and wait until brokers show what runs did. Raises Fault."""
    with keep_finished_runs(workspace.store):
        notices = recover_if_possible(workspace, connections, what, progress=progress, wait=True)
        _await_visibility(workspace, connections, progress, visibility_timeout_s)
    return notices


def recover_if_possible(
    workspace: Workspace,
    connections: Connections,
    what: str,
    *,
    tidies: bool = False,
    progress: Progress = quietly,
    wait: bool = False,
) -> tuple[Diagnostic, ...]:
    """Settle what a crashed run left open; a run that is alive is only named. Raises Fault.

    what: the command, for other people's messages. tidies: also take away what moves have left behind, and
    not only name it: who looks at a plan wants nothing changed. wait: until brokers no longer work on what
    the run sent; otherwise a run of which they may still do something stays open.

    A run that cannot be read, and a state folder that cannot be written, are named and stop nothing here:
    nothing is going to be changed.
    """
    store = workspace.store
    state = store.read()
    leftovers = bool(state and state.pending_cleanup)
    try:
        if is_state_lost(store):
            return (_lost(store, Severity.WARNING),)
        if not unfinished(store) and not find_missed(store) and not (leftovers and tidies):
            return (_left(),) if leftovers else ()
    except KdeclareError as damaged:
        if any(d.code != RUN_UNREADABLE for d in damaged.diagnostics):
            raise
        return tuple(replace(d, severity=Severity.WARNING) for d in damaged.diagnostics)
    try:
        with store.lock(what):
            settled, certain = _settled(workspace, connections, progress, wait=wait)
            if tidies and certain:
                return settled + about(tidy_up(workspace, connections, what, patient=True))
            state = store.read()
            return (*settled, _left()) if state and state.pending_cleanup else settled
    except KdeclareError as problem:
        if all(d.code in _UNWRITABLE for d in problem.diagnostics):
            return tuple(map(_unsettled, problem.diagnostics))
        return under_way(problem)


def under_way(taken: KdeclareError) -> tuple[Diagnostic, ...]:
    """What to say where someone else holds the lock. Raises ``taken`` if it is about something else."""
    if taken.exit_code is not ExitCode.LOCKED:
        raise taken
    return tuple(_under_way(d) for d in taken.diagnostics)


def recover_locked(
    workspace: Workspace,
    connections: Connections,
    what: str,
    *,
    options: PlanOptions = NOTHING_CHOSEN,
    progress: Progress = quietly,
    visibility_timeout_s: float = VISIBLE_WITHIN_S,
) -> tuple[Diagnostic, ...]:
    """Settle what earlier runs left open, and tidy up; the caller holds the lock. Raises Fault.

    Before and after it, wait until brokers show what was done: a throttle that does not show yet would not
    be taken away, and one that still shows would pass for someone else's.
    """
    with keep_finished_runs(workspace.store):
        settled, certain = _settled(workspace, connections, progress, wait=True)
        _await_visibility(workspace, connections, progress, visibility_timeout_s)
    if not certain:
        return settled  # what may still take effect is looked for after the run
    tidied = tidy_up(workspace, connections, what, options=options)
    if tidied.run is not None:
        _await_visibility(workspace, connections, progress, visibility_timeout_s)
    return settled + about(tidied)


def _await_visibility(
    workspace: Workspace, connections: Connections, progress: Progress, limit_s: float
) -> None:
    await_visibility(workspace.store, connections, SystemClock(), progress, limit_s=limit_s)


def _settled(
    workspace: Workspace, connections: Connections, progress: Progress, *, wait: bool
) -> tuple[tuple[Diagnostic, ...], bool]:
    """What was settled, and whether that is for certain. Raises KdeclareError where the state is lost."""
    if is_state_lost(workspace.store):
        raise KdeclareError(_lost(workspace.store, Severity.ERROR))
    missed = replay_missed(workspace.store)
    found = recover(workspace.store, connections, SystemClock(), progress, wait=wait)
    notices = (*([_caught_up(missed)] if missed else []), *map(_notice, found))
    return notices, all(item.is_certain for item in found)


def tidy_up(
    workspace: Workspace,
    connections: Connections,
    what: str,
    *,
    options: PlanOptions = NOTHING_CHOSEN,
    patient: bool = False,
) -> Tidied:
    """Take away what no move needs any more, see `tidy`; the caller holds the lock. Raises Fault."""
    # no policies: what was put there for moves goes, whatever anybody thinks of topics
    applier = Applier(
        workspace.store,
        connections,
        _NoSecrets(),
        quietly,
        who(),
        f"{what} (tidying up)",
        NO_POLICIES,
        request_deadline_s=workspace.request_deadline_s,
    )
    project = workspace.project
    return tidy(
        applier,
        project.name,
        project.environment.name,
        workspace.cluster_name,
        options=options,
        patient=patient,
    )


def tidied_up(workspace: Workspace, connections: Connections, what: str) -> tuple[Diagnostic, ...]:
    """The same after a run, whose result is not lost when the cluster does not answer any more."""
    try:
        return about(tidy_up(workspace, connections, what))
    except Fault as fault:
        return (_not_tidied(str(fault)),)


class _NoSecrets:
    """Nothing that tidies up has any."""

    def reveal(self, secret: SecretRef) -> str:
        """See `SecretSource`."""
        raise KdeclareError(error("no-secret", "There is no such secret", str(secret.reference)))


def _under_way(lock: Diagnostic) -> Diagnostic:
    return Diagnostic(
        Severity.WARNING,
        "run-under-way",
        "A run is under way",
        f"What follows may change any moment. {lock.detail}",
        lock.hint,
    )


def _unsettled(problem: Diagnostic) -> Diagnostic:
    return warning(
        "not-settled",
        "An unfinished run cannot be settled",
        f"{problem.detail} What follows may lack what that run did.",
        hint=problem.hint,
    )


def _caught_up(missed: tuple[str, ...]) -> Diagnostic:
    named = f"run {missed[0]}" if len(missed) == 1 else f"{len(missed)} runs, the last of them {missed[-1]}"
    return warning(
        "state-behind",
        "The state was older than the recorded runs",
        f"What {named} left is missing in the state, so an older copy was put in its place. Ownership was "
        "brought up to date from the journals.",
    )


def _lost(store: StateStore, severity: Severity) -> Diagnostic:
    runs = store.runs()
    return Diagnostic(
        severity,
        "state-missing",
        "The state is missing",
        f"{len(runs)} run{'s are' if len(runs) > 1 else ' is'} recorded, the last one in "
        f"{store.run_location(runs[-1])}, but there is no state. What kdeclare owns is not known.",
        hint="Put state.json or state.json.backup back, two folders above that run. To start anew, move the "
        "folder with all runs away.",
    )


def _notice(item: Recovered) -> Diagnostic:
    if item.open_until is not None:
        return _not_settled(item, item.open_until)
    done = sum(r.is_good for r in item.settled.values())
    not_done = sum(r.status in (Status.INTERRUPTED, Status.UNKNOWN) for r in item.settled.values())
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


def _not_settled(item: Recovered, until: datetime) -> Diagnostic:
    open_ = sum(result.status is Status.UNKNOWN for result in item.settled.values())
    what = "1 operation shows" if open_ == 1 else f"{open_} operations show"
    return warning(
        "outcome-unknown",
        "The outcome of a run is not known yet",
        f"Run {item.run_id} did not come to its end. {what} no effect yet, and the system may still work on "
        f"the requests until {until:%H:%M:%S} UTC.",
        hint="Run the command again after that; kdeclare plan and apply wait for it.",
    )


def _left() -> Diagnostic:
    return info(
        "left-by-moves",
        "Cleanup from an earlier run is pending",
        "An earlier run started work that may still be in progress. What the work needs is removed "
        "when it ends.",
        hint="Run kdeclare status --watch to follow the work and clean up; the next apply cleans up, too.",
    )


def about(tidied: Tidied) -> tuple[Diagnostic, ...]:
    """What became of leftovers, in words."""
    said: list[Diagnostic] = []
    if tidied.ongoing:
        first, count = tidied.ongoing[0], len(tidied.ongoing)
        many = f"{first} is" if count == 1 else f"{first} and {count - 1} more are"
        said.append(
            info(
                "still-moving",
                "Work that kdeclare started is still in progress",
                f"{many} not finished yet.",
                hint="Run kdeclare status --watch to follow the work and clean up when it ends.",
            )
        )
    run = tidied.run
    if run is None:
        return tuple(said)
    left = [r for r in run.results.values() if r.status is not Status.DONE]
    said += [_not_tidied(f"{result.id}: {result.message or result.status}") for result in left]
    done = [op for op in run.plan.operations if op.id not in {r.id for r in left}]
    if done:
        labels = [type_of(op).cleanup_label for op in done]
        what = " and ".join(
            label or f"cleaned up {op.resource}" for label, op in zip(labels, done, strict=True)
        )
        summary = "Tidied up after moves that are over" if all(labels) else "Cleaned up after earlier runs"
        said.append(info("tidied", summary, f"Run {run.run_id} {what}."))
    return tuple(said)


def _not_tidied(why: str) -> Diagnostic:
    return warning(
        "not-tidied",
        "Cleanup after an earlier run failed",
        why,
        hint="Run kdeclare status --watch or apply to try again.",
    )
