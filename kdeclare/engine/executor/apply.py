"""Applying a plan: refuse what is stale, run the rest, remember what is owned."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Literal

from kdeclare.core.clock import Clock, SystemClock, timestamp
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exits import ExitCode
from kdeclare.core.judging import Judge
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plan import Plan
from kdeclare.core.progress import Progress
from kdeclare.core.registry import find_principal, type_of
from kdeclare.core.run import REQUEST_DEADLINE_S, OperationResult, RunResult, Status
from kdeclare.core.secret_hashes import KEY_MISSING
from kdeclare.core.secrets import SecretSource
from kdeclare.core.state import State
from kdeclare.core.visibility import Patience
from kdeclare.engine.executor.attempt import Attempt
from kdeclare.engine.executor.entries import OverrideLine, RunLine, as_json, end_line, finish_line
from kdeclare.engine.executor.expectations import Mismatch, changed_secrets, shown, stale_live, stale_owned
from kdeclare.engine.executor.lookout import RunOptions
from kdeclare.engine.executor.ownership import next_state
from kdeclare.engine.executor.protection import refuse_protected
from kdeclare.engine.executor.scheduler import Scheduler
from kdeclare.engine.executor.stored_runs import read_run
from kdeclare.engine.planning.deletion_limit import limit_deletions
from kdeclare.engine.planning.judging import judge_plan, overridden
from kdeclare.engine.planning.planfile import plan_file_text
from kdeclare.engine.state.port import StateStore
from kdeclare.engine.state.runs import new_run_id


@dataclass(frozen=True)
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
        stale = self._stale(plan, state, options.visibility_timeout_s)
        if stale and not skip_stale:
            raise KdeclareError(*map(_stale_problem, stale), exit_code=ExitCode.STALE)
        refuse_protected(plan, state, self.connections, self.store)
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
        return judge_plan(plan, self.connections, self.judge, records, overridden(plan), left_out)

    def _stale(self, plan: Plan, state: State | None, timeout_s: float) -> list[Mismatch]:
        secrets = changed_secrets(plan.operations, self.secrets)
        if secrets:
            problems = [d for problem in secrets for d in problem.diagnostics]
            if any(d.code == KEY_MISSING for d in problems):
                raise KdeclareError(*problems)  # with the key the plan may well be good
            raise KdeclareError(*problems, exit_code=ExitCode.STALE)
        owned = stale_owned(plan, state.resources if state else {})
        patience = Patience(timeout_s, self.progress, self.clock.monotonic, self.clock.sleep)
        return [*owned, *stale_live(self.connections, plan.operations, patience)]

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
        """Who has had which policy's denial overridden, and why; not of what is left alone all the same."""
        acting = {(str(resource), name) for resource, name in self.judge.list_judged(operations)}
        found = [
            (v, v.override)
            for v in plan.verdicts
            if v.override is not None and (v.resource, v.topic or "") in acting
        ]
        principal = find_principal(self.connections) if found else None
        return [
            OverrideLine(
                policy=v.policy, resource=v.resource, topic=v.topic, reason=reason, principal=principal
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
    if state is not None and state.cluster_id != plan.cluster.id:
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
    planned, now = shown(stale.planned), shown(stale.now)
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
