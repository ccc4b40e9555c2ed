"""Applying manifests or a saved plan, and rolling a run back: all under the lock."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field, replace
from pathlib import Path
from threading import Event, current_thread, main_thread

from kdeclare.app.plan import complete_options, loaded_well, plan_for, save_plan
from kdeclare.app.policies import InForce, policies_in_force
from kdeclare.app.recovery import recover_locked, tidied_up
from kdeclare.app.secrets import ProjectSecrets
from kdeclare.app.workspace import Workspace, who
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen import dataclass
from kdeclare.core.live.collector import Patience
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import RunResult
from kdeclare.core.plans.state import State
from kdeclare.core.progress import Progress, quietly
from kdeclare.core.provider.registry import type_of
from kdeclare.core.resources.changes import Reason
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.engine.executor.apply import Applier
from kdeclare.engine.executor.entries import (
    RunRecord,
    keep_finished_runs,
    keep_run_plans,
    read_reasons,
    read_run,
    read_run_plan,
)
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.executor.rollback import rollback_plan
from kdeclare.engine.observation import identify_system, observe, select_all
from kdeclare.engine.planning.build import check_cluster_id
from kdeclare.engine.planning.planfile import PlanFile, refuse_unknown_parts, verify_plan
from kdeclare.engine.planning.prune_denied import judge_plan
from kdeclare.engine.planning.request import Scope

Confirm = Callable[[Plan, tuple[Diagnostic, ...]], bool]
"""Shows the plan, with what was recovered before it, and says whether to go on."""


def agreed(plan: Plan, notices: tuple[Diagnostic, ...]) -> bool:
    """The `Confirm` of who asks nobody; the run itself refuses a plan with errors."""
    return True


@dataclass(frozen=True, slots=True)
class How:
    """How a run is done.

    command: what the person typed, or which program this is, for the history. confirm: see `Confirm`.
    stopping: called from a signal handler when the first Ctrl-C is heeded. overrides: policies whose denials
    a rollback does not heed, each with the reason (a plan's own are in its `Scope`). stop: ends the run in
    good order when set; without one, Ctrl-C does, where the run is in the main thread.
    """

    command: str
    confirm: Confirm = agreed
    progress: Progress = quietly
    options: RunOptions = field(default_factory=RunOptions)
    skip_stale: bool = False
    stopping: Callable[[], None] = lambda: None
    overrides: Mapping[str, str] = field(default_factory=dict)
    stop: Event | None = None


def apply_manifests(workspace: Workspace, paths: Sequence[Path], scope: Scope, how: How) -> RunResult | None:
    """Plan and apply under the lock; None when ``how.confirm`` said no.

    paths: files or folders; all of the project's manifests where none is given.
    Raises KdeclareError when nothing was done: manifests or a plan with errors, a cluster or state that
    cannot be read, a lock that somebody else holds (exit code 6). What fails during the run is in the result.
    """
    connecting = workspace.connect()
    try:
        loaded = loaded_well(workspace, paths)
        with (
            workspace.explained(),
            policies_in_force(workspace, loaded.rules, scope.overrides) as in_force,
            workspace.store.lock(how.command),
        ):
            connections = connecting.get()
            notices = _recover(workspace, connections, how)
            planned = plan_for(workspace, loaded, in_force, connections, scope, how.progress, notices)
            return confirmed(workspace, connections, planned.plan, planned.secrets, how, in_force, notices)
    finally:
        connecting.close()


def apply_saved(workspace: Workspace, file: PlanFile, how: How) -> RunResult | None:
    """Apply exactly what a plan file says; None when ``how.confirm`` said no.

    Raises KdeclareError as `apply_manifests` does, for a plan of another environment or cluster, and for one
    that has been applied or no longer holds (exit code 4): then nothing was done.
    """
    plan = file.plan
    _refuse_outdated(file)
    refuse_unknown_parts(plan)
    verify_plan(file, f"plan {file.plan_id[:12]}")
    _same_environment(workspace, plan)
    with (
        policies_in_force(workspace) as in_force,
        workspace.connected() as connections,
        workspace.store.lock(how.command),
    ):
        _check_system(workspace, connections, plan)
        notices = (
            *in_force.diagnostics,
            *_recover(workspace, connections, how),
        )
        secrets = ProjectSecrets(workspace.project, workspace.environ)
        return confirmed(workspace, connections, plan, secrets, how, in_force, notices, file.plan_id)


def roll_back(
    workspace: Workspace,
    run_id: str | None,
    how: How,
    *,
    allow_data_loss: bool = False,
    options: PlanOptions | None = None,
    out: Path | None = None,
) -> RunResult | None:
    """Undo a run (None: the last); with ``out`` only save the plan, and return None.

    allow_data_loss: delete topics that the run created although they hold records. options: see `Scope`.
    What someone else has changed since is left alone, and among the plan's diagnostics. None also when
    ``how.confirm`` said no.
    Raises KdeclareError as `apply_manifests` does, and when there is no such run.
    """
    store = workspace.store
    if run_id is None and not store.runs():
        raise _nothing_to_undo()
    with (
        policies_in_force(workspace, overrides=how.overrides) as in_force,
        workspace.connected() as connections,
        store.lock(how.command),
        keep_run_plans(store),
        keep_finished_runs(store),
    ):
        begun = time.monotonic()
        notices = (
            *in_force.diagnostics,
            *_recover(workspace, connections, how),
        )
        run, record = _find_run(workspace, run_id)
        _check_system(workspace, connections, run)
        secrets = ProjectSecrets(workspace.project, workspace.environ)
        plan = rollback_plan(
            run,
            record,
            store.read(),
            connections,
            secrets,
            options=complete_options(options or PlanOptions(), workspace.project),
            allow_data_loss=allow_data_loss,
            patience=Patience(how.options.visibility_timeout_s, how.progress).less(time.monotonic() - begun),
        )
        plan = judge_finished(plan, connections, store.read(), in_force, how)
        if out is not None:
            save_plan(plan, out)
            how.confirm(plan, notices)
            return None
        return confirmed(workspace, connections, plan, secrets, how, in_force, notices)


def _check_system(workspace: Workspace, connections: Connections, plan: Plan) -> None:
    """Refuse a plan of another system. Raises KdeclareError, and Fault when a system does not answer."""
    bound = plan.cluster.id
    found = identify_system(observe(connections, ()), bound)
    if bound not in ("", found):  # it may be that of a system which is read only where something is of it
        found = identify_system(observe(connections, select_all(plan.operations)), bound) or found
    check_cluster_id(bound, found, workspace.cluster_name)


def judge_finished(
    plan: Plan, connections: Connections, state: State | None, in_force: InForce, how: How
) -> Plan:
    """Return a plan that was not made from manifests without what the policies deny. Raises Fault."""
    owned = state.resources if state else {}
    return judge_plan(plan, connections, in_force.judge, owned, lambda v: how.overrides.get(v.policy))


def _recover(workspace: Workspace, connections: Connections, how: How) -> tuple[Diagnostic, ...]:
    return recover_locked(
        workspace,
        connections,
        how.command,
        progress=how.progress,
        visibility_timeout_s=how.options.visibility_timeout_s,
    )


def undoes_manifests(workspace: Workspace, run: RunResult) -> bool:
    """Whether a run has undone what came from manifests, which may well say it still. Raises KdeclareError.

    False for what was asked for by hand, and for a rollback undone: that makes it as manifests have it.
    """
    undone = run.plan.undoes
    did = any(result.is_good for result in run.results.values())
    if undone is None or not did or undone not in workspace.store.runs():
        return False
    return not read_reasons(workspace.store, undone) <= {Reason.ASKED, Reason.ROLLBACK}


def confirmed(
    workspace: Workspace,
    connections: Connections,
    plan: Plan,
    secrets: SecretSource,
    how: How,
    in_force: InForce,
    notices: tuple[Diagnostic, ...],
    identity: str | None = None,
    *,
    tidies: bool = True,
) -> RunResult | None:
    """Ask, and run the plan; None when the person said no. The caller holds the lock.

    in_force: the policies that the plan has to pass once more.
    notices: what was found on the way to the plan. identity: the plan's id where it was read from a file.
    tidies: take away afterwards what this run or an earlier one has left and nobody needs any more.
    Raises KdeclareError.
    """
    if not how.confirm(plan, (*notices, *_announce_losses(connections, plan))):
        return None
    stop = how.stop or Event()
    applier = Applier(
        workspace.store,
        connections,
        secrets,
        how.progress,
        who(),
        how.command,
        in_force.judge,
        stop=stop,
        request_deadline_s=workspace.request_deadline_s,
    )
    elsewhere = current_thread() is not main_thread()  # where Python takes no handlers of signals
    with nullcontext() if how.stop or elsewhere else stops_at_ctrl_c(stop, how.stopping):
        run = applier.apply(plan, how.options, skip_stale=how.skip_stale, identity=identity)
        if not tidies:
            return run
        return replace(run, diagnostics=(*run.diagnostics, *tidied_up(workspace, connections, how.command)))


def _announce_losses(connections: Connections, plan: Plan) -> tuple[Diagnostic, ...]:
    """What operation types have to say of what is lost, before anybody confirms the plan."""
    by_type: dict[str, list[Operation]] = {}
    for op in plan.operations:
        by_type.setdefault(op.verb, []).append(op)
    return tuple(
        found for ops in by_type.values() for found in type_of(ops[0]).announce_losses(connections, ops)
    )


@contextmanager
def stops_at_ctrl_c(stop: Event, stopping: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C ends the run in good order, the second one as a crash would."""

    def on_signal(number: int, _: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        stopping()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _refuse_outdated(file: PlanFile) -> None:
    if not file.is_outdated:
        return
    raise KdeclareError(
        error(
            "outdated-plan",
            "The plan was made by an earlier version",
            f"The plan has format {file.format_version} (kdeclare {file.kdeclare_version}). Since then the "
            "rules for adopting, deleting and owning resources have changed. Nothing was applied.",
            hint="Run 'kdeclare plan --out FILE' again and review the new plan.",
        ),
        exit_code=ExitCode.STALE,
    )


def _same_environment(workspace: Workspace, plan: Plan) -> None:
    here = (workspace.project.name, workspace.project.environment.name)
    if here == (plan.project, plan.env):
        return
    raise KdeclareError(
        error(
            "other-environment",
            "The plan is for another environment",
            f"The plan is for {plan.project}/{plan.env}, and this is {here[0]}/{here[1]}.",
            hint="Choose its project file and environment with --project and --env.",
        )
    )


def _is_housekeeping(plan: Plan) -> bool:
    """Whether a plan only removes what earlier runs have left: it shows no change that people would undo."""
    return bool(plan.operations) and not plan.changes


def _find_run(workspace: Workspace, run_id: str | None) -> tuple[Plan, RunRecord]:
    runs = workspace.store.runs()
    if run_id is not None and run_id not in runs:
        from kdeclare.app.history import unknown_run  # reads much that apply has no need of

        raise unknown_run(run_id, runs)
    for chosen in [run_id] if run_id else reversed(runs):
        plan = read_run_plan(workspace.store, chosen)
        if run_id or not _is_housekeeping(plan):
            return plan, read_run(workspace.store, chosen)
    raise _nothing_to_undo()


def _nothing_to_undo() -> KdeclareError:
    return KdeclareError(
        error("no-run", "Nothing to undo", "No run has been recorded yet in this environment.")
    )
