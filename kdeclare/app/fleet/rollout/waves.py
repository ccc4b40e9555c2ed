"""Apply the plans of a fleet wave by wave, with the same code as ``kdeclare apply``.

The code runs on the driver, not in Spark tasks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import field
from threading import Event

from kdeclare.app.apply import ApplyOptions, apply_saved
from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.rollout.rollout_control import RolloutStop, read_stop
from kdeclare.app.fleet.rollout.rollout_health import HealthGate
from kdeclare.app.fleet.rollout.saved_plans import (
    write_applied_plans,
)
from kdeclare.core.diagnostics import KdeclareError, summarize_diagnostics
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.run import ApplyResult
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.planning.planfile import PlanFile
from kdeclare.fleet.overview import (
    AppliedCluster,
    AppliedStatus,
    FleetPlan,
)
from kdeclare.fleet.tables.storage import Storage
from kdeclare.manifests.fleet import Fleet, Rollout
from kdeclare.report.outcome import run_outcome

DEFAULT_MAX_DELETES = 50
"""The maximum number of resources that all plans of a fleet can delete together.

Each plan also has its own limit.
"""

Waves = tuple[tuple[str, ...], ...]

ConfirmFleet = Callable[[FleetPlan, Waves], bool]
"""Shows the clusters whose plans will be applied, wave by wave, and returns whether to continue."""

ReportCluster = Callable[[AppliedCluster, int, int], None]
"""Called for each finished cluster, with the number of finished clusters and the total number of clusters."""


@dataclass(frozen=True, slots=True)
class FleetApplyOptions:
    """Options of a fleet apply.

    adopt: whether to apply plans that were made with ``--adopt`` and adopt resources. require_signature:
    whether all plans must be signed, even if their projects do not require this. max_deletes: the maximum
    number of resources that all plans can delete together. skips_health: whether to skip the health checks of
    the fleet file. progress: shows what the rollout waits for. rollout: a function that overrides the
    ``rollout`` settings of the fleet file with the command-line options. stopping: called from a signal
    handler after the first Ctrl-C.
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
    skips_health: bool = False
    progress: Progress = ignore_progress


@dataclass
class RolloutState:
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


def split_waves(fleet: Fleet, names: Sequence[str], rollout: Rollout) -> Waves:
    """Split the clusters into waves: canaries first, then batches."""
    canaries = find_canaries(fleet, rollout)
    canary_names = [name for name in names if name in canaries]
    other_names = [name for name in names if name not in canary_names]
    batch_size = rollout.batch_size or fleet.max_concurrent
    batches = [tuple(other_names[i : i + batch_size]) for i in range(0, len(other_names), batch_size)]
    return tuple(wave for wave in (tuple(canary_names), *batches) if wave)


def find_canaries(fleet: Fleet, rollout: Rollout) -> frozenset[str]:
    """Return the names of all canary clusters, including clusters without a plan."""
    if not rollout.canary:
        return frozenset()
    return frozenset(e.name for e in fleet.clusters if rollout.canary.items() <= e.labels.items())


@dataclass(frozen=True, slots=True)
class WaveRunner:
    """A fleet apply in progress. halted: when this event is set, no further plans are applied."""

    locator: ClusterLocator
    plans: Mapping[str, PlanFile]
    rollout: RolloutState
    apply_options: FleetApplyOptions
    max_failures: int
    max_concurrent: int
    gate: HealthGate
    stop: Event
    halted: Event = field(default_factory=Event)

    def run_waves(self, waves: Waves) -> str | None:
        """Apply wave after wave, until a canary or too many clusters have failed, or a wave must not begin.

        Return the reason if the rollout ended early, otherwise None.
        """
        finished_count, total_count = 0, sum(map(len, waves))
        refusal: str | None = None
        for number, wave in enumerate(waves, start=1):
            refusal = self._explain_refusal(number, waves)
            if refusal is not None or self.stop.is_set():
                break
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
        return self._explain_early_end() or refusal

    def _explain_refusal(self, number: int, waves: Waves) -> str | None:
        """Return why a wave must not begin: a request to stop, or a cluster that is not healthy.

        Return None for a wave whose plans were all applied earlier, because it changes nothing.
        """
        wave = waves[number - 1]
        if all(self.rollout.done.get(name) == self.plans[name].plan_id for name in wave):
            return None
        if not self._is_stopped():
            earlier = waves[number - 2] if number > 1 else ()
            problem = self.gate.wait(number, (*earlier, *wave), self._is_stopped)
            if problem is not None:
                return f"The health checks before wave {number} failed: {problem}."
        # Read after the checks, which can take minutes.
        stop_request = self._read_stop_request()
        return None if stop_request is None else f"{stop_request.format()} {stop_request.hint}"

    def _is_stopped(self) -> bool:
        return self._read_stop_request() is not None

    def _read_stop_request(self) -> RolloutStop | None:
        return read_stop(self.rollout.storage, self.rollout.planned_at)

    def _explain_early_end(self) -> str | None:
        if self.stop.is_set():
            return "The rollout was interrupted."
        if self.rollout.failed_canaries:
            return _explain_failed_canaries(self.rollout.failed_canaries)
        failures, limit = self.rollout.failures, self.max_failures
        if not self.halted.is_set():
            return None
        return (
            f"The number of clusters that did not finish ({failures}) exceeds the number of allowed failures "
            f"({limit})."
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
