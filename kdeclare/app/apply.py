"""Apply manifests or a saved plan, or roll back a run, while holding the lock of the state."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field, replace
from pathlib import Path
from threading import Event, current_thread, main_thread

from kdeclare.app.authoring.restored_manifests import list_restored_changes, write_restored_manifests
from kdeclare.app.authoring.write_back import prepare_edits
from kdeclare.app.plan import complete_options, load_valid_manifests, plan_manifests, save_plan
from kdeclare.app.policies import ActivePolicies, open_active_policies
from kdeclare.app.recovery import clean_up_after_run, recover_under_lock
from kdeclare.app.secrets import ProjectSecrets
from kdeclare.app.signatures import build_signature_check, reject_unsigned_apply
from kdeclare.app.state.summaries import write_run_summary
from kdeclare.app.workspace import Workspace, format_user_at_host
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult
from kdeclare.core.plans.state import State
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.changes import Reason
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.core.stop_signals import STOP_SIGNALS, is_ignored
from kdeclare.engine.executor.apply import Applier, report_denied_changes
from kdeclare.engine.executor.effects import observe_run_effects
from kdeclare.engine.executor.entries import (
    RunRecord,
    keep_finished_runs,
    keep_run_plans,
    read_reasons,
    read_run,
    read_run_plan,
)
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.executor.rollback import RollbackPlan, build_rollback_plan
from kdeclare.engine.observation import identify_system, observe, select_all
from kdeclare.engine.planning.compared_request import validate_cluster_id
from kdeclare.engine.planning.plan_impact import add_current_impact
from kdeclare.engine.planning.planfile import PlanFile, require_known_parts, verify_plan
from kdeclare.engine.planning.prune_denied import evaluate_and_prune
from kdeclare.engine.planning.request import PlanScope
from kdeclare.engine.signatures.signature import SignMessage
from kdeclare.engine.state.problems import build_run_abandoned_error

Confirm = Callable[[Plan, tuple[Diagnostic, ...]], bool]
"""Shows the plan, with the notices from recovering earlier runs, and returns whether to continue."""


WRITE_MANIFEST = "--write-manifest"
"""The option that makes an ad hoc command also write its change to the manifests."""


def confirm_always(plan: Plan, notices: tuple[Diagnostic, ...]) -> bool:
    """Confirm every plan without asking the user. A plan with errors is rejected later."""
    return True


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """Options of a run.

    command: the command line, or the name of the calling program, for the history. confirm: see `Confirm`.
    stopping: called from a signal handler after the first Ctrl-C.
    overrides: for a rollback or an ad hoc command, the policies to override, each with the reason. For
    manifests, use `PlanScope`.
    stop: an event that stops the run gracefully when it is set. If None, Ctrl-C stops the run gracefully if
    the run is in the main thread.
    require_signature: whether a saved plan must be signed, even if the project does not require this.
    stops_on_denial: whether `apply_manifests` and `apply_saved` apply nothing if a policy or a guard denies a
    change; None uses the setting in the project file.
    """

    command: str
    confirm: Confirm = confirm_always
    progress: Progress = ignore_progress
    options: RunOptions = field(default_factory=RunOptions)
    skip_stale: bool = False
    stopping: Callable[[], None] = lambda: None
    overrides: Mapping[str, str] = field(default_factory=dict)
    stop: Event | None = None
    require_signature: bool = False
    stops_on_denial: bool | None = None


def apply_manifests(
    workspace: Workspace, paths: Sequence[Path], scope: PlanScope, apply_options: ApplyOptions
) -> ApplyResult | None:
    """Plan and apply manifests under the lock. Return None if ``apply_options.confirm`` declines.

    paths: files or folders with manifests; if empty, all manifests of the project.
    Raises KdeclareError if the run did not start: the project requires signed plans (exit code 3), the
    manifests or the plan have errors, the cluster or the state cannot be read, or another process holds the
    lock (exit code 6). Failures during the run are in the result.
    """
    reject_unsigned_apply(workspace.project)
    apply_options = _decide_on_denials(workspace, apply_options)
    pending_connections = workspace.connect()
    try:
        manifests = load_valid_manifests(workspace, paths, scope.targets)
        with (
            workspace.translate_faults(),
            open_active_policies(workspace, manifests.rules, scope.overrides) as active_policies,
            workspace.store.lock(apply_options.command, apply_options.progress),
        ):
            connections = pending_connections.get()
            notices = _recover(workspace, connections, apply_options)
            plan_result = plan_manifests(
                workspace, manifests, active_policies, connections, scope, apply_options.progress, notices
            )
            return confirm_and_apply(
                workspace,
                connections,
                plan_result.plan,
                plan_result.secrets,
                apply_options,
                active_policies,
                notices,
            )
    finally:
        pending_connections.close()


def apply_saved(workspace: Workspace, file: PlanFile, apply_options: ApplyOptions) -> ApplyResult | None:
    """Apply exactly the plan of a plan file. Return None if ``apply_options.confirm`` declines.

    Raises KdeclareError for the same reasons as `apply_manifests`. Also raises KdeclareError if the plan is
    for a different environment or cluster, was already applied, or is stale (exit code 4), or if it is not
    signed as required (exit code 3).
    """
    plan = file.plan
    apply_options = _decide_on_denials(workspace, apply_options)
    check_signature = build_signature_check(workspace.project, is_demanded=apply_options.require_signature)
    if check_signature is not None:
        check_signature(file.signed_content, f"plan {file.plan_id[:12]}")
    _reject_outdated_plan(file)
    require_known_parts(plan)
    verify_plan(file, f"plan {file.plan_id[:12]}")
    _require_same_environment(workspace, plan)
    with (
        open_active_policies(workspace) as active_policies,
        workspace.open_connections() as connections,
        workspace.store.lock(apply_options.command, apply_options.progress),
    ):
        _check_system(workspace, connections, plan)
        notices = (
            *active_policies.diagnostics,
            *_recover(workspace, connections, apply_options),
        )
        secrets = ProjectSecrets(workspace.project, workspace.environ)
        if plan.observations:  # not current, and not covered by the id or a signature
            apply_options.progress("Reading the impact", 0, 0)
            plan = add_current_impact(plan, connections, workspace.store.read())
        return confirm_and_apply(
            workspace, connections, plan, secrets, apply_options, active_policies, notices, file.plan_id
        )


def roll_back(
    workspace: Workspace,
    run_id: str | None,
    apply_options: ApplyOptions,
    *,
    allow_data_loss: bool = False,
    recreates_deleted: bool = False,
    options: PlanOptions | None = None,
    out: Path | None = None,
    sign: SignMessage | None = None,
    writes_manifests: bool = False,
    shows_impact: bool = True,
) -> ApplyResult | None:
    """Undo a run. With ``out``, only save the plan for the rollback and return None.

    run_id: the run to undo; None means the last run. options: see `PlanScope`.
    allow_data_loss: whether to delete topics that the run created, even if they contain records.
    recreates_deleted: whether to re-create the topics that the run deleted, without their records.
    sign: signs the saved plan; None saves it without a signature.
    writes_manifests: whether to also write the restored values to the manifests.
    shows_impact: whether to read the data that shows how the changes affect records and clients.
    Values that another client changed after the run are left unchanged and reported in the plan's
    diagnostics.
    Also return None if ``apply_options.confirm`` declines.
    Raises KdeclareError for the same reasons as `apply_manifests`, and if there is no such run.
    """
    store = workspace.store
    if run_id is None and not store.runs():
        raise _build_no_run_error()
    with (
        open_active_policies(workspace, overrides=apply_options.overrides) as active_policies,
        workspace.open_connections() as connections,
        store.lock(apply_options.command, apply_options.progress),
    ):
        secrets = ProjectSecrets(workspace.project, workspace.environ)
        rollback, recovery_notices = _recover_and_invert(
            workspace,
            connections,
            run_id,
            apply_options,
            secrets,
            options,
            allow_data_loss=allow_data_loss,
            recreates_deleted=recreates_deleted,
        )
        notices = (*active_policies.diagnostics, *recovery_notices)
        plan = prune_denied_operations(
            rollback.plan, connections, store.read(), active_policies, apply_options
        )
        if shows_impact:
            apply_options.progress("Reading the impact", 0, 0)
            plan = add_current_impact(plan, connections, store.read(), rollback.live)
        if out is not None:
            save_plan(plan, out, sign)
            apply_options.confirm(plan, notices)
            return None
        if writes_manifests:
            notices = (*notices, *prepare_edits(workspace, list_restored_changes(plan)).notices)
        result = confirm_and_apply(
            workspace, connections, plan, secrets, apply_options, active_policies, notices
        )
        if result is None or not writes_manifests:
            return result
        return replace(
            result, diagnostics=(*result.diagnostics, *write_restored_manifests(workspace, result))
        )


def _recover_and_invert(
    workspace: Workspace,
    connections: Connections,
    run_id: str | None,
    apply_options: ApplyOptions,
    secrets: SecretSource,
    options: PlanOptions | None,
    *,
    allow_data_loss: bool,
    recreates_deleted: bool,
) -> tuple[RollbackPlan, tuple[Diagnostic, ...]]:
    """Recover interrupted runs. Return the plan that undoes ``run_id``, and notices from the recovery.

    The plan of the run to undo is not kept in memory, because it can be as large as the returned plan.
    """
    store = workspace.store
    with keep_run_plans(store), keep_finished_runs(store):
        started_at = time.monotonic()
        notices = _recover(workspace, connections, apply_options)
        run, record = _find_run(workspace, run_id)
        _check_system(workspace, connections, run)
        patience = WaitPolicy(apply_options.options.visibility_timeout_s, apply_options.progress)
        rollback = build_rollback_plan(
            run,
            record,
            store.read(),
            connections,
            secrets,
            options=complete_options(options or PlanOptions(), workspace.project),
            allow_data_loss=allow_data_loss,
            recreates_deleted=recreates_deleted,
            patience=patience.less(time.monotonic() - started_at),
        )
        return rollback, notices


def _check_system(workspace: Workspace, connections: Connections, plan: Plan) -> None:
    """Raise KdeclareError if the plan is for a system other than the connected one.

    Raises Fault if a system does not respond.
    """
    expected_id = plan.cluster.id
    actual_id = identify_system(observe(connections, ()), expected_id)
    # The id can belong to a system that observe() reads only if an operation uses the system.
    if expected_id not in ("", actual_id):
        actual_id = (
            identify_system(observe(connections, select_all(plan.operations)), expected_id) or actual_id
        )
    validate_cluster_id(expected_id, actual_id, workspace.cluster_name)


def prune_denied_operations(
    plan: Plan,
    connections: Connections,
    state: State | None,
    active_policies: ActivePolicies,
    apply_options: ApplyOptions,
) -> Plan:
    """Return the plan of a rollback or an ad hoc command without the operations that policies deny.

    Raises Fault if a system does not respond.
    """
    owned = state.resources if state else {}
    return evaluate_and_prune(
        plan, connections, active_policies.judge, owned, lambda v: apply_options.overrides.get(v.policy)
    )


def _decide_on_denials(workspace: Workspace, apply_options: ApplyOptions) -> ApplyOptions:
    """Return the options, with ``stops_on_denial`` taken from the project file if it is None."""
    stops = apply_options.stops_on_denial
    stops = workspace.project.stops_on_denial if stops is None else stops
    return replace(apply_options, options=replace(apply_options.options, stop_on_denial=stops))


def _recover(
    workspace: Workspace, connections: Connections, apply_options: ApplyOptions
) -> tuple[Diagnostic, ...]:
    return recover_under_lock(
        workspace,
        connections,
        apply_options.command,
        progress=apply_options.progress,
        visibility_timeout_s=apply_options.options.visibility_timeout_s,
    )


def is_manifest_rollback(workspace: Workspace, apply_result: ApplyResult) -> bool:
    """Return whether a run undid changes that the manifests may still declare.

    Return True if the run rolled back an apply of manifests, or an ad hoc command that also wrote its change
    into the manifests. Return False if the run rolled back any other ad hoc command, or another rollback:
    undoing a rollback restores the values that the manifests declare. Raises KdeclareError.
    """
    undone_run_id = apply_result.plan.undoes
    has_effect = any(result.is_good for result in apply_result.results.values())
    if undone_run_id is None or not has_effect or undone_run_id not in workspace.store.runs():
        return False
    if not read_reasons(workspace.store, undone_run_id) <= {Reason.ASKED, Reason.ROLLBACK}:
        return True
    start = read_run(workspace.store, undone_run_id).start
    return start is not None and WRITE_MANIFEST in start.command.split()


def confirm_and_apply(
    workspace: Workspace,
    connections: Connections,
    plan: Plan,
    secrets: SecretSource,
    apply_options: ApplyOptions,
    active_policies: ActivePolicies,
    notices: tuple[Diagnostic, ...],
    identity: str | None = None,
    *,
    clean_up: bool = True,
) -> ApplyResult | None:
    """Ask for confirmation and run the plan. Return None if the user declines. The caller holds the lock.

    active_policies: the policies, which are evaluated again before the run.
    notices: diagnostics from before the plan was made, which are shown with it. identity: the plan's id if
    the plan was read from a file.
    clean_up: whether to run the pending cleanup of this run and of earlier runs afterwards.
    Raises KdeclareError.
    """
    refusals = (
        (report_denied_changes(plan),)
        if apply_options.options.stop_on_denial and plan.is_partly_denied and not plan.has_errors
        else ()
    )
    if not apply_options.confirm(plan, (*notices, *_announce_losses(connections, plan), *refusals)):
        return None
    stop = apply_options.stop or Event()
    applier = Applier(
        workspace.store,
        connections,
        secrets,
        apply_options.progress,
        format_user_at_host(),
        apply_options.command,
        active_policies.judge,
        stop=stop,
        request_deadline_s=workspace.request_deadline_s,
    )
    is_worker_thread = current_thread() is not main_thread()  # only the main thread sets signal handlers
    with (
        nullcontext()
        if apply_options.stop or is_worker_thread
        else handle_interrupts(stop, apply_options.stopping)
    ):
        apply_result = applier.apply(
            plan, apply_options.options, skip_stale=apply_options.skip_stale, identity=identity
        )
        write_run_summary(workspace.store, apply_result.run_id, apply_result.plan)
        if apply_result.plan.observations:
            apply_options.progress("Observing the effects", 0, 0)
            effects = observe_run_effects(workspace.store, connections, apply_result)
            apply_result = replace(apply_result, effects=effects)
        if not clean_up:
            return apply_result
        return replace(
            apply_result,
            diagnostics=(
                *apply_result.diagnostics,
                *clean_up_after_run(workspace, connections, apply_options.command),
            ),
        )


def _announce_losses(connections: Connections, plan: Plan) -> tuple[Diagnostic, ...]:
    """Return notices about the data that the plan deletes, to show before the confirmation."""
    operations_by_type: dict[str, list[Operation]] = {}
    for op in plan.operations:
        operations_by_type.setdefault(op.verb, []).append(op)
    return tuple(
        found
        for ops in operations_by_type.values()
        for found in get_operation_type(ops[0]).announce_losses(connections, ops)
    )


@contextmanager
def handle_interrupts(stop: Event, on_stop: Callable[[], None]) -> Iterator[None]:
    """Return a context manager that handles Ctrl-C inside its ``with`` block.

    The first Ctrl-C stops the run gracefully. A second Ctrl-C interrupts the run, as a crash would. The other
    `STOP_SIGNALS` work like Ctrl-C, but a second SIGHUP is ignored, because a closing terminal sends two.
    """

    def handle_signal(number: int, _: object) -> None:
        if not stop.is_set():
            stop.set()
            on_stop()
        elif number != signal.SIGHUP:
            raise KeyboardInterrupt

    handled = (n for n in STOP_SIGNALS if n != signal.SIGHUP or not is_ignored(n))
    previous_handlers = {number: signal.signal(number, handle_signal) for number in handled}
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _reject_outdated_plan(file: PlanFile) -> None:
    if not file.is_outdated:
        return
    raise KdeclareError(
        error(
            "outdated-plan",
            "Plan from an earlier version",
            f"The plan has format {file.format_version}, which kdeclare {file.kdeclare_version} wrote. The "
            "rules for adopting, deleting and owning resources have changed since that version. "
            "Nothing was applied.",
            hint="Run 'kdeclare plan --out FILE' again and review the new plan.",
        ),
        exit_code=ExitCode.STALE,
    )


def _require_same_environment(workspace: Workspace, plan: Plan) -> None:
    current = (workspace.project.name, workspace.project.environment.name)
    if current == (plan.project, plan.env):
        return
    raise KdeclareError(
        error(
            "other-environment",
            "Plan for another environment",
            f"The plan is for {plan.project}/{plan.env}, but the current environment is "
            f"{current[0]}/{current[1]}.",
            hint="Choose the plan's project file and environment with --project and --env.",
        )
    )


def _is_cleanup_only(plan: Plan) -> bool:
    """Return whether a plan only cleans up after earlier runs. Such a plan has no changes to undo."""
    return bool(plan.operations) and not plan.changes


def _find_run(workspace: Workspace, run_id: str | None) -> tuple[Plan, RunRecord]:
    runs = workspace.store.runs()
    if run_id is not None and run_id not in runs:
        from kdeclare.app.history import build_unknown_run_error  # slow to import, and rarely needed here

        raise build_unknown_run_error(run_id, runs)
    abandoned_ids = workspace.store.list_abandoned()
    if run_id in abandoned_ids:
        raise build_run_abandoned_error(run_id)
    for candidate_id in [run_id] if run_id else (id_ for id_ in reversed(runs) if id_ not in abandoned_ids):
        plan = read_run_plan(workspace.store, candidate_id)
        if run_id or not _is_cleanup_only(plan):
            return plan, read_run(workspace.store, candidate_id)
    raise _build_no_run_error()


def _build_no_run_error() -> KdeclareError:
    return KdeclareError(
        error(
            "no-run",
            "Nothing to undo",
            "No run that can be undone has been recorded in this environment.",
            hint="Check the environment and the state (--env, --state).",
        )
    )
