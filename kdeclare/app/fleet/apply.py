"""Applying the saved plans of a fleet in waves; on the driver, with the executor of every apply."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import field
from threading import Event
from time import monotonic

from kdeclare.app.apply import How, apply_saved, stops_at_ctrl_c
from kdeclare.app.fleet.job import FleetOptions, storage_of, the_fleet
from kdeclare.app.fleet.reach import Reach
from kdeclare.app.fleet.saved_plans import list_some, read_cluster_plan, read_done, read_planned, write_done
from kdeclare.core.diagnostics import KdeclareError, error, gist
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen import dataclass
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import RunResult
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
from kdeclare.manifests.fleet.fleet_file import unknown_labels
from kdeclare.report.outcome import run_outcome

Waves = tuple[tuple[str, ...], ...]

ConfirmFleet = Callable[[FleetPlan, Waves], bool]
"""Shows what is to be applied, wave by wave, and says whether to go on."""

Told = Callable[[AppliedCluster, int, int], None]
"""Is told of each cluster that is over, with how many are and how many there are."""


@dataclass(frozen=True, slots=True)
class HowFleet:
    """How a fleet is applied.

    adopt: whether plans may adopt resources because they were made with ``--adopt``.
    rollout: makes of what the fleet file says what is to hold. stopping: called from a signal handler
    when the first Ctrl-C is heeded.
    """

    command: str
    confirm: ConfirmFleet
    told: Told
    options: RunOptions
    rollout: Callable[[Rollout], Rollout]
    stopping: Callable[[], None] = lambda: None
    adopt: bool = False


@dataclass
class _Rollout:
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
        if not result.status.good:
            self.failures += 1
        elif plan_id is not None and result.status is not AppliedStatus.SKIPPED and not failed_canary:
            self.done[result.name] = plan_id
            write_done(self.storage, self.planned_at, self.done)


def apply_fleet(options: FleetOptions, how: HowFleet, environ: Mapping[str, str]) -> FleetApply | None:
    """Apply the plans that ``fleet plan`` saved; None when the person said no. Raises KdeclareError.

    Clusters that an earlier apply of the same plans has done are left out.
    """
    began = monotonic()
    fleet = the_fleet(options, environ)
    with storage_of(options) as storage:
        planned = read_planned(storage, fleet, options.clusters)
        plans = {c.name: read_cluster_plan(storage, c) for c in planned.clusters if c.plan_id is not None}
        planned_at = planned.taken_at.isoformat()
        rollout = _Rollout(storage, planned_at, read_done(storage, planned_at))
        todo = [c.name for c in planned.clusters if c.name in plans and _asks_for(c, plans[c.name])]
        _check_adoption(planned, {name: plans[name].plan for name in todo}, adopt=how.adopt)
        rules = how.rollout(fleet.rollout)
        _refuse_without_canary(fleet, planned, rules)
        waves = waves_of(fleet, todo, rules)
        rollout.canaries = _canaries(fleet, rules)
        _set_aside(planned, frozenset(todo), rollout)
        if not how.confirm(planned, waves):
            return None
        reach = Reach(str(options.fleet), timeout_s=options.timeout_s)
        run = _Run(reach, plans, rollout, how, rules.max_failures, fleet.max_concurrent)
        with stops_at_ctrl_c(run.stop, how.stopping):
            stopped = run.waves(waves)
    results = tuple(rollout.results[c.name] for c in planned.clusters)
    seconds = round(monotonic() - began, 1)
    return FleetApply(fleet.name, seconds, stopped, results, interrupted=run.stop.is_set())


def waves_of(fleet: Fleet, names: Sequence[str], rollout: Rollout) -> Waves:
    """The clusters in the order in which they are to be changed: canaries, then batches."""
    canaries = _canaries(fleet, rollout)
    first = [name for name in names if name in canaries]
    rest = [name for name in names if name not in first]
    size = rollout.batch_size or fleet.max_concurrent
    batches = [tuple(rest[i : i + size]) for i in range(0, len(rest), size)]
    return tuple(wave for wave in (tuple(first), *batches) if wave)


def _canaries(fleet: Fleet, rollout: Rollout) -> frozenset[str]:
    """The names of the clusters to be changed first, whether they are planned or not."""
    if not rollout.canary:
        return frozenset()
    return frozenset(e.name for e in fleet.clusters if rollout.canary.items() <= e.labels.items())


def _refuse_without_canary(fleet: Fleet, planned: FleetPlan, rules: Rollout) -> None:
    """Raise KdeclareError where there is no canary, or one without a plan: others would be first."""
    unknown = unknown_labels(rules.canary, [entry.labels for entry in fleet.clusters])
    if unknown is not None:
        raise KdeclareError(unknown)
    canaries = _canaries(fleet, rules)
    for cluster in planned.clusters:
        if cluster.plan_id is None and cluster.name in canaries:
            raise KdeclareError(
                error(
                    "canary-not-planned",
                    "A canary has no plan",
                    f"{cluster.name} is to be changed first, and could not be planned: {cluster.error}",
                    hint="Mend that and plan again, or choose other canaries with --canary.",
                )
            )


def _check_adoption(planned: FleetPlan, plans: Mapping[str, Plan], *, adopt: bool) -> None:
    """Raise KdeclareError unless plans and apply agree on ``--adopt``, where it makes a difference."""
    if adopt == planned.adopt:
        return
    concerned = [
        name
        for name, plan in plans.items()
        if any(
            c.reason in (Reason.ADOPT, Reason.RECREATED) and (c.blocked == ADOPTION) is adopt
            for c in plan.changes
        )
    ]
    if not concerned:
        return
    if adopt:
        summary, detail = "The plans were made without --adopt", "have adoptions that are blocked"
        hint = "Run kdeclare fleet plan with --adopt and review the new plans."
    else:
        summary, detail = "The plans adopt resources", "take over resources that exist and were never applied"
        hint = "Pass --adopt to apply them, or plan again without it."
    detail = f"The plans of {list_some(concerned)} {detail}. Nothing was applied."
    raise KdeclareError(error(ADOPTION, summary, detail, hint=hint), exit_code=ExitCode.DENIED)


def _asks_for(cluster: PlannedCluster, file: PlanFile) -> bool:
    """Whether a plan has anything to do; what is as declared may still have to be taken into ownership."""
    return cluster.changes > 0 or bool(file.plan.ownership)


def _set_aside(planned: FleetPlan, todo: Set[str], rollout: _Rollout) -> None:
    for cluster in planned.clusters:
        if cluster.plan_id is None:
            message = f"There is no plan: {cluster.error or 'it has errors'}"
            result = AppliedCluster(cluster.name, 0, AppliedStatus.NOT_BEGUN, message=message)
        elif cluster.name not in todo:
            result = AppliedCluster(cluster.name, 0, AppliedStatus.NOTHING)
        else:
            continue
        rollout.results[cluster.name] = result


@dataclass(frozen=True, slots=True)
class _Run:
    """What every cluster of an apply shares. enough: no more clusters are to be begun."""

    reach: Reach
    plans: Mapping[str, PlanFile]
    rollout: _Rollout
    how: HowFleet
    max_failures: int
    at_once: int
    stop: Event = field(default_factory=Event)
    enough: Event = field(default_factory=Event)

    def waves(self, waves: Waves) -> str | None:
        """Apply wave after wave, until a canary or too many clusters have failed.

        Returns why it ended early, if it did.
        """
        over, everything = 0, sum(map(len, waves))
        for number, wave in enumerate(waves, start=1):
            with self._under_way(number, wave) as ended:
                for result in ended:
                    over += 1
                    self.rollout.add(result, self.plans[result.name].plan_id)
                    self.how.told(result, over, everything)
                    if self.rollout.failed_canaries or self.rollout.failures > self.max_failures:
                        self.enough.set()
            if self.enough.is_set() or self.stop.is_set():
                break
        for number, wave in enumerate(waves, start=1):
            for name in wave:
                left = AppliedCluster(name, number, AppliedStatus.NOT_BEGUN)
                self.rollout.results.setdefault(name, left)
        return self._ended_early()

    def _ended_early(self) -> str | None:
        if self.stop.is_set():
            return "It was interrupted."
        if self.rollout.failed_canaries:
            return _describe(self.rollout.failed_canaries)
        failures, limit = self.rollout.failures, self.max_failures
        if not self.enough.is_set():
            return None
        return f"{failures} clusters did not go well, and no more than {limit} may."

    @contextmanager
    def _under_way(self, number: int, wave: Sequence[str]) -> Iterator[Iterator[AppliedCluster]]:
        """The clusters of a wave as they come to an end; what was not begun in time is left out.

        What cannot be recorded, or ends in a bug, is no reason to begin the rest of the wave. The second
        Ctrl-C waits for nothing.
        """
        pool = ThreadPoolExecutor(min(self.at_once, len(wave)), thread_name_prefix="apply")
        try:
            begun = [pool.submit(self._cluster, number, name) for name in wave]
            ended = (future.result() for future in as_completed(begun))
            yield (result for result in ended if result is not None)
        except KeyboardInterrupt:
            self.enough.set()
            pool.shutdown(wait=False)
            raise
        except BaseException:
            self.enough.set()
            pool.shutdown()
            raise
        pool.shutdown()

    def _cluster(self, number: int, name: str) -> AppliedCluster | None:
        if self.enough.is_set() or self.stop.is_set():
            return None
        file = self.plans[name]
        if self.rollout.done.get(name) == file.plan_id:
            return AppliedCluster(name, number, AppliedStatus.SKIPPED, message="It was applied already.")
        how = How(self.how.command, options=self.how.options, stop=self.stop)
        try:
            run = apply_saved(self.reach.workspace(name), file, how)
        except KdeclareError as problem:
            return AppliedCluster(name, number, _status_of(problem), message=gist(problem.diagnostics))
        assert run is not None  # nobody was asked
        return _applied(name, number, run)


def _describe(failed: Sequence[AppliedCluster]) -> str:
    """Why a rollout ended with its canaries."""
    names = ", ".join(f"{cluster.name} ({cluster.status.value})" for cluster in failed)
    return (
        f"Not every canary is done: {names}. No other cluster is begun before, whatever --max-failures says; "
        "fix the canary and plan again, or choose other canaries with --canary."
    )


_STATUSES = {ExitCode.STALE: AppliedStatus.STALE, ExitCode.LOCKED: AppliedStatus.LOCKED}


def _status_of(problem: KdeclareError) -> AppliedStatus:
    return _STATUSES.get(problem.exit_code, AppliedStatus.FAILED)


def _applied(name: str, wave: int, run: RunResult) -> AppliedCluster:
    outcome = run_outcome(run)
    done = sum(r.is_good for r in run.results.values())
    status = AppliedStatus.DONE
    if outcome.exit_code is ExitCode.DENIED:
        status = AppliedStatus.DENIED
    elif outcome.exit_code is not ExitCode.OK and not (run.interrupted and done == len(run.plan.operations)):
        status = AppliedStatus.PARTIAL if done else AppliedStatus.FAILED
    message = "" if status is AppliedStatus.DONE else outcome.headline
    return AppliedCluster(name, wave, status, run.run_id, done, len(run.plan.operations), message)
