"""Applying a plan: refuse what is stale, run the rest, remember what is owned."""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import field
from threading import Event
from typing import Literal

from kdeclare.core.clock import Clock, SystemClock, timestamp
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, denied, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen import dataclass
from kdeclare.core.live.collector import Patience
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.policy_gate import Judge
from kdeclare.core.plans.run import REQUEST_DEADLINE_S, OperationResult, RunResult, Status
from kdeclare.core.plans.state import State
from kdeclare.core.progress import Progress
from kdeclare.core.provider.registry import find_principal, type_of
from kdeclare.core.resources.capabilities import PREVENT_DESTROY, find_undeletable
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord, is_protected
from kdeclare.core.secrets.secret_hashes import KEY_MISSING
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.engine.executor.attempt import Attempt
from kdeclare.engine.executor.entries import (
    OverrideLine,
    RunLine,
    as_json,
    end_line,
    finish_line,
    read_run,
    read_run_plan,
)
from kdeclare.engine.executor.expectations import (
    Mismatch,
    changed_secrets,
    observe_operations,
    show_value,
    stale_live,
    stale_owned,
)
from kdeclare.engine.executor.ownership import next_state
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.executor.scheduler import Scheduler
from kdeclare.engine.planning.planfile import plan_file_text
from kdeclare.engine.planning.prune_denied import judge_plan, replay_overrides
from kdeclare.engine.planning.request import limit_deletions
from kdeclare.engine.state.port import StateStore, new_run_id


@dataclass(frozen=True, slots=True)
class Applier:
    """What it takes to apply plans: connections, a store whose lock is held, and how to go about it.

    who, command: for the history. judge: the policies, which judge every change again on the systems as they
    are at that time. stop: set from outside to end in good order. request_deadline_s: see `Attempt`.
    """

    store: StateStore
    connections: Connections
    secrets: SecretSource
    progress: Progress
    who: str
    command: str
    judge: Judge
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
    ) -> RunResult:
        """Run ``plan``. Raises KdeclareError when it must not be run at all (exit 1 or 4), and Fault.

        identity: the plan's id where it was read from a file; such a plan is applied only once.
        Every expectation is checked before the first request is sent.
        """
        state = self.store.read()
        _refuse(plan, state)
        if identity is not None:
            _refuse_again(identity, self.store)
        text, own_identity = plan_file_text(plan)
        identity = identity or own_identity
        stale, live = self._find_stale(plan, state, options.visibility_timeout_s)
        if stale and not skip_stale:
            raise KdeclareError(*map(_stale_problem, stale), exit_code=ExitCode.STALE)
        refuse_protected(plan, state, live, self.store)
        left_out = _left_out(plan, stale)
        untaken = _untaken(plan, stale)
        allowed = limit_deletions(self._judged(plan, state, left_out), state.resources if state else {})
        untaken += tuple(d for d in allowed.diagnostics if d not in plan.diagnostics)
        if allowed is not plan:
            plan, (text, _) = allowed, plan_file_text(allowed)
        if not plan.operations and not plan.ownership:
            return RunResult(None, plan, {}, untaken, identity=identity)
        return self._run(plan, text, identity, state, left_out, untaken, options)

    def _judged(self, plan: Plan, state: State | None, left_out: Collection[str]) -> Plan:
        """Without what the policies deny by now; what is left out anyway is not put before them."""
        records = state.resources if state else {}
        return judge_plan(plan, self.connections, self.judge, records, replay_overrides(plan), left_out)

    def _find_stale(
        self, plan: Plan, state: State | None, timeout_s: float
    ) -> tuple[list[Mismatch], LiveState]:
        """What no longer is as planned, and the live state that this was seen in."""
        secrets = changed_secrets(plan.operations, self.secrets)
        if secrets:
            problems = [d for problem in secrets for d in problem.diagnostics]
            if any(d.code == KEY_MISSING for d in problems):
                raise KdeclareError(*problems)  # with the key the plan may well be good
            raise KdeclareError(*problems, exit_code=ExitCode.STALE)
        owned = stale_owned(plan, state.resources if state else {})
        patience = Patience(timeout_s, self.progress, self.clock.monotonic, self.clock.sleep)
        seen = observe_operations(self.connections, plan.operations, patience)
        return [*owned, *stale_live(plan.operations, seen)], seen.live

    def _run(
        self,
        plan: Plan,
        text: str,
        identity: str,
        state: State | None,
        left_out: dict[str, OperationResult],
        untaken: tuple[Diagnostic, ...],
        options: RunOptions,
    ) -> RunResult:
        run_id = new_run_id(self.clock.now(), identity, self.store.runs())
        operations = [op for op in plan.operations if op.id not in left_out]
        left_out = {op.id: left_out[op.id] for op in plan.operations if op.id in left_out}
        attempt = Attempt(
            self.connections,
            self.secrets,
            self.clock,
            options.follow_timeout_s,
            self.stop,
            self.request_deadline_s,
        )
        with self.store.begin_run(run_id, text) as journal:
            start = RunLine(
                at=timestamp(self.clock),
                plan_id=identity,
                who=self.who,
                command=self.command,
                undoes=plan.undoes,
                overrides=self._overrides(plan, operations),
            )
            journal.append(as_json(start))
            if left_out:
                journal.append(as_json(end_line(timestamp(self.clock), left_out.values())))
            scheduler = Scheduler(operations, attempt, journal, self.clock, options, self.progress, self.stop)
            results = {**left_out, **scheduler.run()}
            result = RunResult(
                run_id, plan, results, untaken, interrupted=self.stop.is_set(), identity=identity
            )
            new = next_state(plan, results, state)
            if new is not None:
                self.store.write(new)
            if not any(r.status is Status.UNKNOWN for r in results.values()):
                journal.append(as_json(finish_line(timestamp(self.clock), _outcome(result), new or state)))
        return result

    def _overrides(self, plan: Plan, operations: Sequence[Operation]) -> list[OverrideLine]:
        """Record the policy overrides that this run uses, with who kdeclare is to each resource's system."""
        overridden = [(v, v.override) for v in plan.verdicts if v.override is not None]
        if not overridden:
            return []
        acting = {(str(resource), name) for resource, name in self.judge.list_judged(operations)}
        found = [(v, reason) for v, reason in overridden if (v.resource, v.topic or "") in acting]
        kinds = {v.resource: ResourceId.parse(v.resource).kind for v, _ in found}
        principals = {kind: find_principal(self.connections, kind) for kind in set(kinds.values())}
        return [
            OverrideLine(
                policy=v.policy,
                resource=v.resource,
                topic=v.topic,
                reason=reason,
                principal=principals[kinds[v.resource]],
            )
            for v, reason in found
        ]


def _outcome(result: RunResult) -> Literal["complete", "partial", "interrupted"]:
    if result.interrupted:
        return "interrupted"
    return "complete" if result.complete else "partial"


def _refuse(plan: Plan, state: State | None) -> None:
    """What keeps a plan from being applied whatever the cluster has. Raises KdeclareError."""
    if plan.has_errors:
        errors = [d for d in plan.diagnostics if d.is_error]
        raise KdeclareError(*errors, exit_code=ExitCode.STALE if plan.is_stale else ExitCode.ERROR)
    # one that was made where no system has an id is bound to none
    if state is not None and state.cluster_id and plan.cluster.id not in ("", state.cluster_id):
        raise KdeclareError(
            error(
                "other-cluster",
                "The plan is for another cluster",
                f"The plan is for cluster {plan.cluster.id}, and the state is about {state.cluster_id}.",
                hint="Check --env and --state, then plan again.",
            )
        )
    lineage = state.lineage if state else None
    if plan.base.lineage != lineage:
        raise _stale_plan(
            "other-lineage",
            "The plan was made on another state",
            f"It was made on lineage {plan.base.lineage or 'none'}, and the state's is {lineage or 'none'}.",
        )


def _refuse_again(identity: str, store: StateStore) -> None:
    """Refuse a saved plan that a run has applied; one that had no effect at all does not count."""
    for run_id in store.runs():
        if identity[:8] not in run_id:
            continue
        record = read_run(store, run_id)
        good = any(r.is_good for r in record.results.values())
        same = record.start is not None and record.start.plan_id == identity
        if same and (good or not record.begun):
            raise _stale_plan(
                "already-applied", "The plan was applied already", f"Run {run_id} applied this very plan."
            )


def _stale_plan(code: str, summary: str, detail: str) -> KdeclareError:
    problem = error(code, summary, f"{detail} Nothing was applied.", hint="Make a new plan and look at it.")
    return KdeclareError(problem, exit_code=ExitCode.STALE)


def _stale_problem(stale: Mismatch) -> Diagnostic:
    return error(
        "stale",
        "The plan is stale",
        f"{_told(stale)} Nothing was applied.",
        hint="Make a new plan and look at it, or leave such changes out with --skip-stale.",
        resource=stale.resource,
        subject=stale.element,
    )


def _told(stale: Mismatch) -> str:
    planned, now = show_value(stale.planned), show_value(stale.now)
    return f"{stale.resource} {stale.element}: planned on {planned}, now it is {now}."


def _left_out(plan: Plan, stale: Sequence[Mismatch]) -> dict[str, OperationResult]:
    """Stale operations, those of resources whose ownership is stale, and all that need them."""
    resources = {item.resource for item in stale if not item.operation}
    direct = {item.operation: item for item in stale if item.operation}
    results: dict[str, OperationResult] = {}
    for op in plan.operations:
        cause = next((need for need in op.needs if need in results), None)
        if op.id in direct or str(op.resource) in resources:
            found = direct.get(op.id)
            text = _told(found) if found else "Its ownership has changed since."
            results[op.id] = OperationResult(op.id, Status.STALE, "stale", text)
        elif cause is not None:
            results[op.id] = OperationResult(op.id, Status.SKIPPED, None, f"It needs {cause}.", cause)
        elif type_of(op).is_cleanup and op.follows and results.keys() >= op.follows.keys():
            why = "There is nothing to tidy up."
            results[op.id] = OperationResult(op.id, Status.SKIPPED, None, why, next(iter(op.follows)))
    return results


def _untaken(plan: Plan, stale: Sequence[Mismatch]) -> tuple[Diagnostic, ...]:
    """What is left out of resources of which only the ownership was to be taken."""
    acting = {str(op.resource) for op in plan.operations}
    return tuple(
        error("stale", "Left out as stale", _told(item), resource=item.resource, subject=item.element)
        for item in stale
        if not item.operation and item.resource not in acting
    )


def refuse_protected(plan: Plan, state: State | None, live: LiveState, store: StateStore) -> None:
    """Refuse a plan that deletes what is protected. Raises KdeclareError (exit 3).

    live: what the operations of the plan are about.
    A rollback may delete a protected resource that its run created. A rollback of a run that does not exist
    is refused (exit code 4).
    """
    if plan.undoes is not None and plan.undoes not in store.runs():
        raise KdeclareError(_report_unknown_run(plan.undoes), exit_code=ExitCode.STALE)
    deletions = (op for op in plan.operations if type_of(op).deletes)
    deleted = {found for op in deletions if (found := type_of(op).find_object(op)) is not None}
    if not deleted:
        return
    created = _find_created_by(plan.undoes, store) if plan.undoes is not None else frozenset()
    problems = list(_find_protected(deleted, created, state.resources if state else {}, live))
    if problems:
        raise KdeclareError(*problems, exit_code=ExitCode.DENIED)


def _find_created_by(run_id: str, store: StateStore) -> frozenset[ResourceId]:
    run = read_run_plan(store, run_id)
    created = (type_of(op).find_created(op) for op in run.operations)
    return frozenset(found for found in created if found is not None)


def _report_unknown_run(run_id: str) -> Diagnostic:
    return error(
        "unknown-run",
        "The run to undo is not in the state",
        f"The plan undoes run {run_id}, which this state does not have. Nothing was applied.",
        hint="Check --state and --env; 'kdeclare history' lists the runs.",
    )


def _find_protected(
    deleted: Set[ResourceId],
    created: Set[ResourceId],
    records: Mapping[str, OwnedRecord],
    live: LiveState,
) -> Iterator[Diagnostic]:
    for resource in sorted(deleted - created):
        if is_protected(records.get(str(resource))):
            yield _report_protected(resource, "Its lifecycle.preventDestroy was true when last applied.")
    for kind in sorted({resource.kind for resource in deleted}):
        names = {resource.name for resource in deleted if resource.kind == kind}
        for name, why in find_undeletable(kind, names, live).items():
            yield _report_protected(ResourceId(kind, name), why)


def _report_protected(resource: ResourceId, why: str) -> Diagnostic:
    return denied(
        PREVENT_DESTROY,
        "Deletion prevented",
        f"{resource.kind} '{resource.name}' must not be deleted: {why} Nothing was applied.",
        hint="Make a new plan with 'kdeclare plan --out FILE' and look at it.",
        resource=str(resource),
    )
