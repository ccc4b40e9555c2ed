"""Apply a plan: refuse stale operations, run the others, and record the resources that kdeclare owns."""

from collections.abc import Collection, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import field, replace
from threading import Event
from typing import Literal

from kdeclare.core.clock import Clock, SystemClock, format_now
from kdeclare.core.diagnostics import DENIED_CHANGES, Diagnostic, KdeclareError, Severity, denied, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.live.endpoints import validate_endpoints
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.plan_hooks import PlanInputs
from kdeclare.core.plans.policy_gate import PolicyGate
from kdeclare.core.plans.run import REQUEST_DEADLINE_S, ApplyResult, OperationResult, Status
from kdeclare.core.plans.state import State
from kdeclare.core.progress import Progress
from kdeclare.core.provider.provider_queries import find_guards, find_principal, start_plan
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import is_protected
from kdeclare.core.resources.plan_capabilities import (
    PREVENT_DESTROY,
    find_replacements,
    find_undeletable,
)
from kdeclare.core.secrets.secret_hashes import KEY_MISSING
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.engine.executor.attempt import Attempt
from kdeclare.engine.executor.entries import (
    LockLoss,
    OverrideLine,
    RunLine,
    as_json,
    build_end_line,
    build_finish_line,
    is_abandoned,
    read_run,
    read_run_plan,
)
from kdeclare.engine.executor.expectations import (
    Mismatch,
    find_changed_secrets,
    find_stale_live,
    find_stale_ownership,
    format_value,
    observe_operations,
)
from kdeclare.engine.executor.ownership import compute_next_state
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.executor.scheduler import Scheduler
from kdeclare.engine.observation import list_endpoints
from kdeclare.engine.planning.planfile import render_plan_file
from kdeclare.engine.planning.prune_denied import (
    evaluate_and_prune,
    evaluate_guards_and_prune,
    replay_overrides,
)
from kdeclare.engine.planning.request import limit_deletions
from kdeclare.engine.state.port import Journal, StateStore, make_run_id

_MAX_DENIED_NAMES = 3


def report_denied_changes(plan: Plan) -> Diagnostic:
    """Return the reason why a run that stops on denials does not apply the plan."""
    names = {d.resource or d.subject or "" for d in plan.diagnostics if d.severity is Severity.DENIED}
    names |= {verdict.resource for verdict in plan.verdicts if verdict.is_denial}
    listed = sorted(name for name in names if name)
    more_count = len(listed) - _MAX_DENIED_NAMES
    more = f" and {more_count} more" if more_count > 0 else ""
    return denied(
        DENIED_CHANGES,
        "Denied changes stop the apply",
        f"A policy or a guard denies changes to {', '.join(listed[:_MAX_DENIED_NAMES])}{more}, and the run "
        "stops on denials. Nothing was applied.",
        hint="Resolve the denials, or pass --on-denied continue to apply the allowed changes.",
    )


@dataclass(frozen=True, slots=True)
class Applier:
    """Applies plans. The caller holds the lock of ``store``.

    who, command: the user and the command, for the history.
    ``judge``: the policies, which evaluate every change again against the current state of the systems.
    stop: an event that the caller sets to stop the run gracefully. request_deadline_s: see `Attempt`.
    """

    store: StateStore
    connections: Connections
    secrets: SecretSource
    progress: Progress
    who: str
    command: str
    judge: PolicyGate
    clock: Clock = field(default_factory=SystemClock)
    stop: Event = field(default_factory=Event)
    request_deadline_s: float = REQUEST_DEADLINE_S

    def apply(
        self,
        plan: Plan,
        options: RunOptions,
        *,
        skip_stale: bool = False,
        identity: str | None = None,
    ) -> ApplyResult:
        """Run ``plan``. Raises Fault, and KdeclareError if the plan must not run (exit code 1, 3 or 4).

        identity: the plan's id if the plan was read from a file. Such a plan is applied only once.

        All expectations are checked before the first request is sent.
        """
        state = self.store.read()
        if identity is not None:
            _validate_not_applied(identity, self.store)
        _validate_plan_base(plan, state)
        mismatches, live = self._check_live(plan, state, options.visibility_timeout_s, skip_stale=skip_stale)
        skipped_results = _build_skipped_results(plan, mismatches)
        ownership_problems = _report_stale_ownership(plan, mismatches)
        allowed_plan = limit_deletions(
            self._prune_denied(plan, state, live, skipped_results), state.resources if state else {}
        )
        planned_diagnostics = frozenset(plan.diagnostics)  # large plans can have thousands of warnings
        ownership_problems += tuple(d for d in allowed_plan.diagnostics if d not in planned_diagnostics)
        text, allowed_identity = render_plan_file(allowed_plan)
        if identity is None:
            identity = allowed_identity if allowed_plan is plan else render_plan_file(plan)[1]
        plan = allowed_plan
        if options.stop_on_denial and plan.is_partly_denied:
            raise KdeclareError(report_denied_changes(plan), exit_code=ExitCode.DENIED)
        if not plan.operations and not plan.ownership:
            return ApplyResult(None, plan, {}, ownership_problems, identity=identity)
        run_id = make_run_id(self.clock.now(), identity, self.store.runs())
        with self.store.begin_run(run_id, text) as journal:
            del text  # as large as the plan, so not kept during the run
            result = ApplyResult(run_id, plan, {}, ownership_problems, identity=identity)
            return self._run(result, identity, state, journal, skipped_results, options)

    def _prune_denied(
        self, plan: Plan, state: State | None, live: LiveState, skipped_ids: Collection[str]
    ) -> Plan:
        """Return the plan without the changes that policies and guards now deny.

        Skipped operations are not evaluated.
        """
        records = state.resources if state else {}
        allowed_plan = evaluate_and_prune(
            plan, self.connections, self.judge, records, replay_overrides(plan), skipped_ids
        )
        if not allowed_plan.operations:  # `live` is then empty, and guards have nothing to evaluate
            return allowed_plan
        hooks = start_plan(PlanInputs((), state, live, self.connections, PlanOptions()))
        return evaluate_guards_and_prune(allowed_plan, hooks, skipped_ids)

    def _check_live(
        self, plan: Plan, state: State | None, timeout_s: float, *, skip_stale: bool
    ) -> tuple[list[Mismatch], LiveState]:
        """Compare the plan with the current state. Return the mismatches, and the live state that was read.

        Raises KdeclareError if there are mismatches (unless ``skip_stale`` is set), if secrets have changed,
        or if the plan deletes protected resources.
        """
        secret_errors = find_changed_secrets(plan.operations, self.secrets)
        if secret_errors:
            problems = [d for problem in secret_errors for d in problem.diagnostics]
            if any(d.code == KEY_MISSING for d in problems):
                raise KdeclareError(*problems)  # The plan is not stale: only the key is missing.
            raise KdeclareError(*problems, exit_code=ExitCode.STALE)
        patience = WaitPolicy(timeout_s, self.progress, self.clock.monotonic, self.clock.sleep)
        observation = observe_operations(self.connections, plan.operations, patience)
        validate_endpoints(plan.endpoints, list_endpoints(observation.live))
        mismatches = [
            *find_stale_ownership(plan, state.resources if state else {}),
            *find_stale_live(plan.operations, observation),
        ]
        if mismatches and not skip_stale:
            raise KdeclareError(*map(_report_stale, mismatches), exit_code=ExitCode.STALE)
        validate_deletions(plan, state, observation.live, self.store)
        return mismatches, observation.live

    def _run(
        self,
        result: ApplyResult,
        identity: str,
        state: State | None,
        journal: Journal,
        skipped_results: dict[str, OperationResult],
        options: RunOptions,
    ) -> ApplyResult:
        plan = result.plan
        operations = [op for op in plan.operations if op.id not in skipped_results]
        skipped_results = {
            op.id: skipped_results[op.id] for op in plan.operations if op.id in skipped_results
        }
        attempt = Attempt(
            self.connections,
            self.secrets,
            self.clock,
            options.follow_timeout_s,
            self.stop,
            self.request_deadline_s,
            check_lock=self.store.check_lock,
            checks_all=self.store.is_takeover,
            replaced=find_replacements(operations),
            visibility_timeout_s=options.visibility_timeout_s,
        )
        run_line = RunLine(
            at=format_now(self.clock),
            plan_id=identity,
            who=self.who,
            command=self.command,
            undoes=plan.undoes,
            overrides=self._list_overrides(plan, operations),
        )
        journal.append(as_json(run_line))
        if skipped_results:
            journal.append(as_json(build_end_line(format_now(self.clock), skipped_results.values())))
        scheduler = Scheduler(operations, attempt, journal, self.clock, options, self.progress, self.stop)
        try:
            results = {**skipped_results, **scheduler.run()}
        except KdeclareError as problem:
            if problem.exit_code is ExitCode.LOCKED:
                self._report_lock_loss(journal.run_id, scheduler.list_unanswered())
            raise
        result = replace(result, results=results, interrupted=self.stop.is_set())
        new_state = compute_next_state(plan, results, state)
        if new_state is not None:
            self.store.write(new_state)
        if not any(r.status is Status.UNKNOWN for r in results.values()):
            finish_line = build_finish_line(format_now(self.clock), _get_outcome(result), new_state or state)
            journal.append(as_json(finish_line))
        return result

    def _report_lock_loss(self, run_id: str, operations: Sequence[str]) -> None:
        """Record which requests might still take effect, although this process no longer holds the lock."""
        if not operations:
            return
        loss = LockLoss(at=format_now(self.clock), who=self.who, operations=list(operations))
        with suppress(KdeclareError):  # the storage can be the reason for the loss
            self.store.report_loss(run_id, loss.model_dump(mode="json"))

    def _list_overrides(self, plan: Plan, operations: Sequence[Operation]) -> list[OverrideLine]:
        """List the overrides of policies and guards that this run uses.

        Each entry names the principal of kdeclare in the system.
        """
        overridden = [(v, v.override) for v in plan.verdicts if v.override is not None]
        if not overridden:
            return []
        guards, changed_resources = find_guards(), {str(op.resource) for op in operations}
        evaluated_subjects = {
            (str(resource), name) for resource, name in self.judge.list_evaluated(operations)
        }
        used_overrides = [
            (v, reason)
            for v, reason in overridden
            if (v.resource in changed_resources and v.policy in guards)
            or (v.resource, v.topic or "") in evaluated_subjects
        ]
        kinds = {v.resource: ResourceId.parse(v.resource).kind for v, _ in used_overrides}
        principals = {kind: find_principal(self.connections, kind) for kind in set(kinds.values())}
        return [
            OverrideLine(
                policy=v.policy,
                resource=v.resource,
                topic=v.topic,
                reason=reason,
                principal=principals[kinds[v.resource]],
            )
            for v, reason in used_overrides
        ]


def _get_outcome(result: ApplyResult) -> Literal["complete", "partial", "interrupted"]:
    if result.interrupted:
        return "interrupted"
    return "complete" if result.complete else "partial"


def _validate_plan_base(plan: Plan, state: State | None) -> None:
    """Refuse a plan that cannot be applied for reasons other than the live state. Raises KdeclareError."""
    if plan.has_errors:
        errors = [d for d in plan.diagnostics if d.blocks_plan]
        raise KdeclareError(*errors, exit_code=ExitCode.STALE if plan.is_stale else ExitCode.ERROR)
    # If no system had an id when the plan was made, the plan is not bound to a cluster.
    if state is not None and state.cluster_id and plan.cluster.id not in ("", state.cluster_id):
        raise KdeclareError(
            error(
                "other-cluster",
                "The plan is for another cluster",
                f"The plan is for cluster {plan.cluster.id}, but the state belongs to {state.cluster_id}.",
                hint="Check --env and --state, then plan again.",
            )
        )
    lineage = state.lineage if state else None
    if plan.base.lineage != lineage:
        raise _build_stale_plan_error(
            "other-lineage",
            "The plan was made for a different state",
            f"The plan's state lineage is {plan.base.lineage or 'none'}, but the current state's lineage is "
            f"{lineage or 'none'}.",
        )


def _validate_not_applied(identity: str, store: StateStore) -> None:
    """Refuse a saved plan that a run has already applied. Raises KdeclareError.

    A run does not count if none of the operations that it began had an effect.
    """
    for run_id in store.runs():
        if identity[:8] not in run_id:
            continue
        try:
            record = read_run(store, run_id)
        except KdeclareError:
            if is_abandoned(store, run_id):
                continue
            raise
        has_good_result = any(r.is_good for r in record.results.values())
        is_same_plan = record.start is not None and record.start.plan_id == identity
        if is_same_plan and (has_good_result or not record.begun):
            raise _build_stale_plan_error(
                "already-applied", "The plan was already applied", f"Run {run_id} applied this plan."
            )


def _build_stale_plan_error(code: str, summary: str, detail: str) -> KdeclareError:
    problem = error(code, summary, f"{detail} Nothing was applied.", hint="Make and review a new plan.")
    return KdeclareError(problem, exit_code=ExitCode.STALE)


def _report_stale(mismatch: Mismatch) -> Diagnostic:
    return error(
        "stale",
        "The plan is stale",
        f"{_format_mismatch(mismatch)} Nothing was applied.",
        hint="Make and review a new plan, or pass --skip-stale to skip stale changes.",
        resource=mismatch.resource,
        subject=mismatch.element,
    )


def _format_mismatch(mismatch: Mismatch) -> str:
    planned, current = format_value(mismatch.planned), format_value(mismatch.now)
    subject = f"{mismatch.resource} {mismatch.element}"
    return f"{subject} was {planned} when the plan was made, but is now {current}."


def _build_skipped_results(plan: Plan, mismatches: Sequence[Mismatch]) -> dict[str, OperationResult]:
    """Return a result for each operation that must be skipped.

    These are the stale operations, the operations of resources with a stale ownership record, and all
    operations that depend on them.
    """
    resources = {item.resource for item in mismatches if not item.operation}
    mismatches_by_operation = {item.operation: item for item in mismatches if item.operation}
    results: dict[str, OperationResult] = {}
    for op in plan.operations:
        cause = next((need for need in op.needs if need in results), None)
        if op.id in mismatches_by_operation or str(op.resource) in resources:
            mismatch = mismatches_by_operation.get(op.id)
            message = "The ownership of the resource has changed since the plan was made."
            text = _format_mismatch(mismatch) if mismatch else message
            results[op.id] = OperationResult(op.id, Status.STALE, "stale", text)
        elif cause is not None:
            results[op.id] = OperationResult(
                op.id, Status.SKIPPED, None, f"This operation depends on {cause}, which was skipped.", cause
            )
        elif get_operation_type(op).is_cleanup and op.follows and results.keys() >= op.follows.keys():
            message = "There is nothing to clean up."
            results[op.id] = OperationResult(op.id, Status.SKIPPED, None, message, next(iter(op.follows)))
    return results


def _report_stale_ownership(plan: Plan, mismatches: Sequence[Mismatch]) -> tuple[Diagnostic, ...]:
    """Return an error for each resource that has a stale ownership record and no operations."""
    operated_resources = {str(op.resource) for op in plan.operations}
    return tuple(
        error(
            "stale",
            "Skipped as stale",
            _format_mismatch(item),
            hint="Make and review a new plan.",
            resource=item.resource,
            subject=item.element,
        )
        for item in mismatches
        if not item.operation and item.resource not in operated_resources
    )


def validate_deletions(plan: Plan, state: State | None, live: LiveState, store: StateStore) -> None:
    """Refuse a plan that deletes a protected resource. Raises KdeclareError (exit code 3).

    live: the live state of the objects that the plan's operations touch.

    A rollback can delete a protected resource that the undone run created. If the state does not contain this
    run, the rollback is refused (exit code 4).
    """
    if plan.undoes is not None and plan.undoes not in store.runs():
        raise KdeclareError(_report_unknown_run(plan.undoes), exit_code=ExitCode.STALE)
    deleted = {
        resource
        for op in plan.operations
        if (resource := get_operation_type(op).find_deleted_resource(op)) is not None
    }
    if not deleted:
        return
    records = state.resources if state else {}
    protected = {resource for resource in deleted if is_protected(records.get(str(resource)))}
    if protected and plan.undoes is not None:
        protected -= _find_created_by(plan.undoes, store)
    problems = [*map(_report_protected_when_applied, sorted(protected)), *_find_undeletable(deleted, live)]
    if problems:
        raise KdeclareError(*problems, exit_code=ExitCode.DENIED)


def _find_created_by(run_id: str, store: StateStore) -> frozenset[ResourceId]:
    run = read_run_plan(store, run_id)
    created = (get_operation_type(op).find_created_resource(op) for op in run.operations)
    return frozenset(resource for resource in created if resource is not None)


def _report_unknown_run(run_id: str) -> Diagnostic:
    return error(
        "unknown-run",
        "The run to undo is not in the state",
        f"The plan undoes run {run_id}, but the state has no such run. Nothing was applied.",
        hint="Check --state and --env, or run 'kdeclare history' to list the runs.",
    )


def _find_undeletable(deleted: Set[ResourceId], live: LiveState) -> Iterator[Diagnostic]:
    for kind in sorted({resource.kind for resource in deleted}):
        names = {resource.name for resource in deleted if resource.kind == kind}
        for name, reason in find_undeletable(kind, names, live).items():
            yield _report_protected(ResourceId(kind, name), reason)


def _report_protected_when_applied(resource: ResourceId) -> Diagnostic:
    return _report_protected(
        resource, "lifecycle.preventDestroy was true when the resource was last applied."
    )


def _report_protected(resource: ResourceId, reason: str) -> Diagnostic:
    return denied(
        PREVENT_DESTROY,
        "Deletion prevented",
        f"{resource.kind} '{resource.name}' must not be deleted: {reason} Nothing was applied.",
        hint="Make a new plan with 'kdeclare plan --out FILE' and review it.",
        resource=str(resource),
    )
