"""Apply the saved plans of a fleet in waves, with the same code as ``kdeclare apply``.

The code runs on the driver, not in Spark tasks.
"""

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
    read_applied_plans,
    read_cluster_plan,
    read_fleet_plan,
    write_applied_plans,
)
from kdeclare.app.signatures import build_signature_check
from kdeclare.core.diagnostics import KdeclareError, error, summarize_diagnostics
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult
from kdeclare.core.resources.adoption import ADOPTION
from kdeclare.core.resources.changes import Reason
from kdeclare.core.units import format_names
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.planning.planfile import CheckSignature, PlanFile
from kdeclare.engine.planning.request import MAX_DELETES
from kdeclare.fleet.overview import (
    AppliedCluster,
    AppliedStatus,
    FleetApply,
    FleetPlan,
    PlannedCluster,
)
from kdeclare.fleet.storage import Storage
from kdeclare.manifests.fleet import Fleet, Rollout
from kdeclare.manifests.fleet.cluster_selection import find_unknown_label
from kdeclare.report.outcome import run_outcome

DEFAULT_MAX_DELETES = 50
"""How many resources the plans of a fleet can delete together. A plan alone has a limit of its own."""

Waves = tuple[tuple[str, ...], ...]

ConfirmFleet = Callable[[FleetPlan, Waves], bool]
"""Shows the clusters whose plans will be applied, wave by wave, and returns whether to continue."""

ReportCluster = Callable[[AppliedCluster, int, int], None]
"""Called for each finished cluster, with the number of finished clusters and the total number of clusters."""


@dataclass(frozen=True, slots=True)
class FleetApplyOptions:
    """Options of a fleet apply.

    adopt: whether to apply plans that were made with ``--adopt`` and adopt resources.
    require_signature: whether all plans must be signed, even if their projects do not require this.
    max_deletes: how many resources the plans can delete together.
    rollout: a function that applies the options of the command line to the rollout in the fleet file.
    stopping: called from a signal handler after the first Ctrl-C.
    """

    command: str
    confirm: ConfirmFleet
    told: ReportCluster
    options: RunOptions
    rollout: Callable[[Rollout], Rollout]
    stopping: Callable[[], None] = lambda: None
    adopt: bool = False
    require_signature: bool = False
    max_deletes: int = DEFAULT_MAX_DELETES


@dataclass
class _RolloutState:
    """The progress of a rollout. Only the driver's main thread changes it."""

    storage: Storage
    planned_at: str
    done: dict[str, str]
    canaries: frozenset[str] = frozenset()
    results: dict[str, AppliedCluster] = field(default_factory=dict)
    failures: int = 0
    failed_canaries: list[AppliedCluster] = field(default_factory=list)

    def add(self, result: AppliedCluster, plan_id: str | None) -> None:
        """Add the result of a cluster, and record finished clusters, which the next apply skips.

        A canary with a denied change is not recorded, so that the canary also stops the next apply.
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
    """Apply the plans that ``fleet plan`` saved. Return None if the user declines. Raises KdeclareError.

    Clusters that an earlier apply of the same plans finished are skipped.
    """
    started_at = monotonic()
    fleet = open_selected_fleet(options, environ)
    with open_results_storage(options) as storage:
        fleet_plan = read_fleet_plan(storage, fleet, options.clusters)
        locator = ClusterLocator(str(options.fleet), timeout_s=options.timeout_s)
        plans = {
            c.name: read_cluster_plan(storage, c, _build_signature_check(locator, c.name, apply_options))
            for c in fleet_plan.clusters
            if c.plan_id is not None
        }
        planned_at = fleet_plan.taken_at.isoformat()
        rollout_state = _RolloutState(storage, planned_at, read_applied_plans(storage, planned_at))
        cluster_names = [
            c.name for c in fleet_plan.clusters if c.name in plans and _has_work(c, plans[c.name])
        ]
        _check_adoption(
            fleet_plan, {name: plans[name].plan for name in cluster_names}, adopt=apply_options.adopt
        )
        pending = [c for c in fleet_plan.clusters if rollout_state.done.get(c.name) != c.plan_id]
        _check_deletions([c for c in pending if c.name in cluster_names], apply_options.max_deletes)
        rollout_rules = apply_options.rollout(fleet.rollout)
        _require_planned_canaries(fleet, fleet_plan, rollout_rules)
        waves = split_waves(fleet, cluster_names, rollout_rules)
        rollout_state.canaries = _find_canaries(fleet, rollout_rules)
        _record_unapplied(fleet_plan, frozenset(cluster_names), rollout_state)
        if not apply_options.confirm(fleet_plan, waves):
            return None
        fleet_run = _FleetRun(
            locator, plans, rollout_state, apply_options, rollout_rules.max_failures, fleet.max_concurrent
        )
        with handle_interrupts(fleet_run.stop, apply_options.stopping):
            stop_reason = fleet_run.run_waves(waves)
    results = tuple(rollout_state.results[c.name] for c in fleet_plan.clusters)
    seconds = round(monotonic() - started_at, 1)
    return FleetApply(fleet.name, seconds, stop_reason, results, interrupted=fleet_run.stop.is_set())


def _build_signature_check(
    locator: ClusterLocator, name: str, apply_options: FleetApplyOptions
) -> CheckSignature | None:
    """Return the check of the signature of a cluster's plan; None if the plan needs no signature.

    All plans are checked before the first one is applied. If the project of a cluster cannot be read, its
    plan is applied later, which fails with this error.
    """
    try:
        project = locator.workspace(name).project
    except KdeclareError:
        return None
    return build_signature_check(project, is_demanded=apply_options.require_signature)


def split_waves(fleet: Fleet, names: Sequence[str], rollout: Rollout) -> Waves:
    """Split the clusters into waves: canaries first, then batches."""
    canaries = _find_canaries(fleet, rollout)
    canary_names = [name for name in names if name in canaries]
    other_names = [name for name in names if name not in canary_names]
    batch_size = rollout.batch_size or fleet.max_concurrent
    batches = [tuple(other_names[i : i + batch_size]) for i in range(0, len(other_names), batch_size)]
    return tuple(wave for wave in (tuple(canary_names), *batches) if wave)


def _find_canaries(fleet: Fleet, rollout: Rollout) -> frozenset[str]:
    """Return the names of all canary clusters, including clusters without a plan."""
    if not rollout.canary:
        return frozenset()
    return frozenset(e.name for e in fleet.clusters if rollout.canary.items() <= e.labels.items())


def _require_planned_canaries(fleet: Fleet, fleet_plan: FleetPlan, rollout: Rollout) -> None:
    """Raise KdeclareError if no cluster matches the canary labels, or if a canary has no plan.

    Without this check, other clusters would be changed before the canaries.
    """
    label_error = find_unknown_label(rollout.canary, [entry.labels for entry in fleet.clusters])
    if label_error is not None:
        raise KdeclareError(label_error)
    canary_names = _find_canaries(fleet, rollout)
    for cluster in fleet_plan.clusters:
        if cluster.plan_id is None and cluster.name in canary_names:
            raise KdeclareError(
                error(
                    "canary-not-planned",
                    "Canary has no plan",
                    f"The cluster {cluster.name} is a canary but could not be planned: {cluster.error}",
                    hint="Fix the problem and plan again, or choose other canaries with --canary.",
                )
            )


def _check_adoption(fleet_plan: FleetPlan, plans: Mapping[str, Plan], *, adopt: bool) -> None:
    """Raise KdeclareError if a plan contains adoptions, and ``--adopt`` differs between plan and apply."""
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
        summary, detail = "Plans were made without --adopt", "have blocked adoptions"
        hint = "Run kdeclare fleet plan with --adopt and review the new plans."
    else:
        summary, detail = "Plans adopt resources", "adopt existing resources that kdeclare has never applied"
        hint = "Pass --adopt to apply them, or plan again without --adopt."
    detail = f"The plans of {format_names(affected_names)} {detail}. Nothing was applied."
    raise KdeclareError(error(ADOPTION, summary, detail, hint=hint), exit_code=ExitCode.DENIED)


def _check_deletions(clusters: Sequence[PlannedCluster], max_deletes: int) -> None:
    """Raise KdeclareError if the plans that were not applied yet delete too many resources together."""
    counts = {cluster.name: cluster.summary.delete for cluster in clusters if cluster.summary.delete}
    total = sum(counts.values())
    if total <= max_deletes:
        return
    largest = sorted(counts, key=lambda name: (-counts[name], name))
    shown = ", ".join(f"{name} ({counts[name]:,})" for name in largest[:3])
    more = f" and {len(largest) - 3:,} more clusters" if len(largest) > 3 else ""
    detail = (
        f"The plans delete {total:,} resources, but --max-deletes is {max_deletes:,}: {shown}{more}. "
        "Nothing was applied."
    )
    hint = f"Review the plans with kdeclare show, then pass --max-deletes {total} to allow these deletions."
    raise KdeclareError(
        error(MAX_DELETES, "Too many deletions", detail, hint=hint), exit_code=ExitCode.DENIED
    )


def _has_work(cluster: PlannedCluster, plan_file: PlanFile) -> bool:
    return cluster.changes > 0 or bool(plan_file.plan.ownership)


def _record_unapplied(fleet_plan: FleetPlan, cluster_names: Set[str], rollout_state: _RolloutState) -> None:
    for cluster in fleet_plan.clusters:
        if cluster.plan_id is None:
            message = f"The cluster has no plan: {cluster.error or 'the plan had errors'}"
            result = AppliedCluster(cluster.name, 0, AppliedStatus.NOT_BEGUN, message=message)
        elif cluster.name not in cluster_names:
            result = AppliedCluster(cluster.name, 0, AppliedStatus.NOTHING)
        else:
            continue
        rollout_state.results[cluster.name] = result


@dataclass(frozen=True, slots=True)
class _FleetRun:
    """A fleet apply in progress. halted: an event that is set when no further plans may be applied."""

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

        Return the reason if the rollout ended early, otherwise None.
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
            return "The rollout was interrupted."
        if self.rollout.failed_canaries:
            return _explain_failed_canaries(self.rollout.failed_canaries)
        failures, limit = self.rollout.failures, self.max_failures
        if not self.halted.is_set():
            return None
        return (
            f"The number of clusters that did not finish ({failures}) exceeds the allowed failures ({limit})."
        )

    @contextmanager
    def _run_wave(self, number: int, wave: Sequence[str]) -> Iterator[Iterator[AppliedCluster]]:
        """Apply the plans of a wave, and yield the result of each cluster when its plan has been applied.

        After an exception, for example if a result cannot be recorded, no further plans of the wave are
        applied. After a second Ctrl-C, the function does not wait for plans that are still being applied.
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
            return AppliedCluster(name, number, AppliedStatus.SKIPPED, message="The plan is already applied.")
        apply_options = ApplyOptions(
            self.apply_options.command,
            options=self.apply_options.options,
            stop=self.stop,
            require_signature=self.apply_options.require_signature,
        )
        try:
            apply_result = apply_saved(self.locator.workspace(name), plan_file, apply_options)
        except KdeclareError as problem:
            return AppliedCluster(
                name, number, _find_status(problem), message=summarize_diagnostics(problem.diagnostics)
            )
        assert apply_result is not None  # only `confirm` can return None, and the default never declines
        return _build_applied_cluster(name, number, apply_result)


def _explain_failed_canaries(failed_canaries: Sequence[AppliedCluster]) -> str:
    names = ", ".join(f"{cluster.name} ({cluster.status.value})" for cluster in failed_canaries)
    return (
        f"Not all canaries are done: {names}. Until all canaries are done, kdeclare does not apply the plans "
        "of the other clusters, regardless of --max-failures. Fix the problems of these canaries and plan "
        "again, or choose different canaries with --canary."
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
