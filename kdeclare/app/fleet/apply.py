"""Applying the saved plans of a fleet in waves; on the driver, with the executor of every apply."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import field
from threading import Event
from time import monotonic

from kdeclare.app.apply import ApplyOptions, apply_saved, handle_interrupts
from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.job import FleetOptions, open_results_storage, open_selected_fleet
from kdeclare.app.fleet.saved_plans import (
    format_names,
    read_applied_plans,
    read_cluster_plan,
    read_fleet_plan,
    write_applied_plans,
)
from kdeclare.core.diagnostics import KdeclareError, error, summarize_diagnostics
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult
from kdeclare.core.resources.adoption import ADOPTION
from kdeclare.core.resources.changes import Reason
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.planning.planfile import PlanFile
from kdeclare.fleet.overview import (
    AppliedCluster,
    AppliedStatus,
    FleetApply,
    FleetPlan,
    PlannedCluster,
)
from kdeclare.fleet.storage import Storage
from kdeclare.manifests.fleet import Fleet, Rollout
from kdeclare.manifests.fleet.fleet_file import find_unknown_label
from kdeclare.report.outcome import run_outcome

Waves = tuple[tuple[str, ...], ...]

ConfirmFleet = Callable[[FleetPlan, Waves], bool]
"""Shows what is to be applied, wave by wave, and says whether to go on."""

ReportCluster = Callable[[AppliedCluster, int, int], None]
"""Is told of each cluster that is over, with how many are and how many there are."""


@dataclass(frozen=True, slots=True)
class FleetApplyOptions:
    """How a fleet is applied.

    adopt: whether plans may adopt resources because they were made with ``--adopt``.
    rollout: makes of what the fleet file says what is to hold. stopping: called from a signal handler
    when the first Ctrl-C is heeded.
    """

    command: str
    confirm: ConfirmFleet
    told: ReportCluster
    options: RunOptions
    rollout: Callable[[Rollout], Rollout]
    stopping: Callable[[], None] = lambda: None
    adopt: bool = False


@dataclass
class _RolloutState:
    """What has happened so far; only the driver's main thread writes to it."""

    storage: Storage
    planned_at: str
    done: dict[str, str]
    canaries: frozenset[str] = frozenset()
    results: dict[str, AppliedCluster] = field(default_factory=dict)
    failures: int = 0
    failed_canaries: list[AppliedCluster] = field(default_factory=list)

    def add(self, result: AppliedCluster, plan_id: str | None) -> None:
        """Add the result of a cluster. What went well is remembered for the next apply of these plans.

        A canary with a denied change did not try it out: it is not remembered, so that it stops the next
        apply, too.
        """
        self.results[result.name] = result
        failed_canary = result.name in self.canaries and not result.status.is_done
        if failed_canary:
            self.failed_canaries.append(result)
        if not result.status.is_finished:
            self.failures += 1
        elif plan_id is not None and result.status is not AppliedStatus.SKIPPED and not failed_canary:
            self.done[result.name] = plan_id
            write_applied_plans(self.storage, self.planned_at, self.done)


def apply_fleet(
    options: FleetOptions, apply_options: FleetApplyOptions, environ: Mapping[str, str]
) -> FleetApply | None:
    """Apply the plans that ``fleet plan`` saved; None when the person said no. Raises KdeclareError.

    Clusters that an earlier apply of the same plans has done are left out.
    """
    started_at = monotonic()
    fleet = open_selected_fleet(options, environ)
    with open_results_storage(options) as storage:
        fleet_plan = read_fleet_plan(storage, fleet, options.clusters)
        plans = {c.name: read_cluster_plan(storage, c) for c in fleet_plan.clusters if c.plan_id is not None}
        planned_at = fleet_plan.taken_at.isoformat()
        rollout_state = _RolloutState(storage, planned_at, read_applied_plans(storage, planned_at))
        cluster_names = [
            c.name for c in fleet_plan.clusters if c.name in plans and _has_work(c, plans[c.name])
        ]
        _check_adoption(
            fleet_plan, {name: plans[name].plan for name in cluster_names}, adopt=apply_options.adopt
        )
        rollout_rules = apply_options.rollout(fleet.rollout)
        _require_planned_canaries(fleet, fleet_plan, rollout_rules)
        waves = split_waves(fleet, cluster_names, rollout_rules)
        rollout_state.canaries = _find_canaries(fleet, rollout_rules)
        _record_unapplied(fleet_plan, frozenset(cluster_names), rollout_state)
        if not apply_options.confirm(fleet_plan, waves):
            return None
        locator = ClusterLocator(str(options.fleet), timeout_s=options.timeout_s)
        fleet_run = _FleetRun(
            locator, plans, rollout_state, apply_options, rollout_rules.max_failures, fleet.max_concurrent
        )
        with handle_interrupts(fleet_run.stop, apply_options.stopping):
            stop_reason = fleet_run.run_waves(waves)
    results = tuple(rollout_state.results[c.name] for c in fleet_plan.clusters)
    seconds = round(monotonic() - started_at, 1)
    return FleetApply(fleet.name, seconds, stop_reason, results, interrupted=fleet_run.stop.is_set())


def split_waves(fleet: Fleet, names: Sequence[str], rollout: Rollout) -> Waves:
    """The clusters in the order in which they are to be changed: canaries, then batches."""
    canaries = _find_canaries(fleet, rollout)
    canary_names = [name for name in names if name in canaries]
    other_names = [name for name in names if name not in canary_names]
    batch_size = rollout.batch_size or fleet.max_concurrent
    batches = [tuple(other_names[i : i + batch_size]) for i in range(0, len(other_names), batch_size)]
    return tuple(wave for wave in (tuple(canary_names), *batches) if wave)


def _find_canaries(fleet: Fleet, rollout: Rollout) -> frozenset[str]:
    """The names of the clusters to be changed first, whether they are planned or not."""
    if not rollout.canary:
        return frozenset()
    return frozenset(e.name for e in fleet.clusters if rollout.canary.items() <= e.labels.items())


def _require_planned_canaries(fleet: Fleet, fleet_plan: FleetPlan, rollout: Rollout) -> None:
    """Raise KdeclareError where there is no canary, or one without a plan: others would be first."""
    label_error = find_unknown_label(rollout.canary, [entry.labels for entry in fleet.clusters])
    if label_error is not None:
        raise KdeclareError(label_error)
    canary_names = _find_canaries(fleet, rollout)
    for cluster in fleet_plan.clusters:
        if cluster.plan_id is None and cluster.name in canary_names:
            raise KdeclareError(
                error(
                    "canary-not-planned",
                    "A canary has no plan",
                    f"{cluster.name} is to be changed first, and could not be planned: {cluster.error}",
                    hint="Mend that and plan again, or choose other canaries with --canary.",
                )
            )


def _check_adoption(fleet_plan: FleetPlan, plans: Mapping[str, Plan], *, adopt: bool) -> None:
    """Raise KdeclareError unless plans and apply agree on ``--adopt``, where it makes a difference."""
    if adopt == fleet_plan.adopt:
        return
    affected_names = [
        name
        for name, plan in plans.items()
        if any(
            c.reason in (Reason.ADOPT, Reason.RECREATED) and (c.blocked == ADOPTION) is adopt
            for c in plan.changes
        )
    ]
    if not affected_names:
        return
    if adopt:
        summary, detail = "The plans were made without --adopt", "have adoptions that are blocked"
        hint = "Run kdeclare fleet plan with --adopt and review the new plans."
    else:
        summary, detail = "The plans adopt resources", "take over resources that exist and were never applied"
        hint = "Pass --adopt to apply them, or plan again without it."
    detail = f"The plans of {format_names(affected_names)} {detail}. Nothing was applied."
    raise KdeclareError(error(ADOPTION, summary, detail, hint=hint), exit_code=ExitCode.DENIED)


def _has_work(cluster: PlannedCluster, plan_file: PlanFile) -> bool:
    """Whether a plan has anything to do; what is as declared may still have to be taken into ownership."""
    return cluster.changes > 0 or bool(plan_file.plan.ownership)


def _record_unapplied(fleet_plan: FleetPlan, cluster_names: Set[str], rollout_state: _RolloutState) -> None:
    for cluster in fleet_plan.clusters:
        if cluster.plan_id is None:
            message = f"There is no plan: {cluster.error or 'it has errors'}"
            result = AppliedCluster(cluster.name, 0, AppliedStatus.NOT_BEGUN, message=message)
        elif cluster.name not in cluster_names:
            result = AppliedCluster(cluster.name, 0, AppliedStatus.NOTHING)
        else:
            continue
        rollout_state.results[cluster.name] = result


@dataclass(frozen=True, slots=True)
class _FleetRun:
    """What every cluster of an apply shares. halted: no more clusters are to be begun."""

    locator: ClusterLocator
    plans: Mapping[str, PlanFile]
    rollout: _RolloutState
    apply_options: FleetApplyOptions
    max_failures: int
    max_concurrent: int
    stop: Event = field(default_factory=Event)
    halted: Event = field(default_factory=Event)

    def run_waves(self, waves: Waves) -> str | None:
        """Apply wave after wave, until a canary or too many clusters have failed.

        Returns why it ended early, if it did.
        """
        finished_count, total_count = 0, sum(map(len, waves))
        for number, wave in enumerate(waves, start=1):
            with self._run_wave(number, wave) as results:
                for result in results:
                    finished_count += 1
                    self.rollout.add(result, self.plans[result.name].plan_id)
                    self.apply_options.told(result, finished_count, total_count)
                    if self.rollout.failed_canaries or self.rollout.failures > self.max_failures:
                        self.halted.set()
            if self.halted.is_set() or self.stop.is_set():
                break
        for number, wave in enumerate(waves, start=1):
            for name in wave:
                not_begun = AppliedCluster(name, number, AppliedStatus.NOT_BEGUN)
                self.rollout.results.setdefault(name, not_begun)
        return self._explain_early_end()

    def _explain_early_end(self) -> str | None:
        if self.stop.is_set():
            return "It was interrupted."
        if self.rollout.failed_canaries:
            return _explain_failed_canaries(self.rollout.failed_canaries)
        failures, limit = self.rollout.failures, self.max_failures
        if not self.halted.is_set():
            return None
        return f"{failures} clusters did not go well, and no more than {limit} may."

    @contextmanager
    def _run_wave(self, number: int, wave: Sequence[str]) -> Iterator[Iterator[AppliedCluster]]:
        """The clusters of a wave as they come to an end; what was not begun in time is left out.

        What cannot be recorded, or ends in a bug, is no reason to begin the rest of the wave. The second
        Ctrl-C waits for nothing.
        """
        pool = ThreadPoolExecutor(min(self.max_concurrent, len(wave)), thread_name_prefix="apply")
        try:
            futures = [pool.submit(self._apply_cluster, number, name) for name in wave]
            results = (future.result() for future in as_completed(futures))
            yield (result for result in results if result is not None)
        except KeyboardInterrupt:
            self.halted.set()
            pool.shutdown(wait=False)
            raise
        except BaseException:
            self.halted.set()
            pool.shutdown()
            raise
        pool.shutdown()

    def _apply_cluster(self, number: int, name: str) -> AppliedCluster | None:
        if self.halted.is_set() or self.stop.is_set():
            return None
        plan_file = self.plans[name]
        if self.rollout.done.get(name) == plan_file.plan_id:
            return AppliedCluster(name, number, AppliedStatus.SKIPPED, message="It was applied already.")
        apply_options = ApplyOptions(
            self.apply_options.command, options=self.apply_options.options, stop=self.stop
        )
        try:
            apply_result = apply_saved(self.locator.workspace(name), plan_file, apply_options)
        except KdeclareError as problem:
            return AppliedCluster(
                name, number, _find_status(problem), message=summarize_diagnostics(problem.diagnostics)
            )
        assert apply_result is not None  # nobody was asked
        return _build_applied_cluster(name, number, apply_result)


def _explain_failed_canaries(failed_canaries: Sequence[AppliedCluster]) -> str:
    """Why a rollout ended with its canaries."""
    names = ", ".join(f"{cluster.name} ({cluster.status.value})" for cluster in failed_canaries)
    return (
        f"Not every canary is done: {names}. No other cluster is begun before, whatever --max-failures says; "
        "fix the canary and plan again, or choose other canaries with --canary."
    )


_STATUSES = {ExitCode.STALE: AppliedStatus.STALE, ExitCode.LOCKED: AppliedStatus.LOCKED}


def _find_status(problem: KdeclareError) -> AppliedStatus:
    return _STATUSES.get(problem.exit_code, AppliedStatus.FAILED)


def _build_applied_cluster(name: str, wave: int, apply_result: ApplyResult) -> AppliedCluster:
    outcome = run_outcome(apply_result)
    done_count = sum(r.is_good for r in apply_result.results.values())
    status = AppliedStatus.DONE
    if outcome.exit_code is ExitCode.DENIED:
        status = AppliedStatus.DENIED
    elif outcome.exit_code is not ExitCode.OK and not (
        apply_result.interrupted and done_count == len(apply_result.plan.operations)
    ):
        status = AppliedStatus.PARTIAL if done_count else AppliedStatus.FAILED
    message = "" if status is AppliedStatus.DONE else outcome.headline
    return AppliedCluster(
        name, wave, status, apply_result.run_id, done_count, len(apply_result.plan.operations), message
    )
