"""Remove temporary settings of finished work from a system. Each cleanup is a run with its own journal."""

from dataclasses import replace

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import PlanOptions
from kdeclare.core.plans.plan import ClusterRef, Plan, PlanBase, Summary
from kdeclare.core.plans.run import ApplyResult
from kdeclare.core.provider.provider import CleanupRequest
from kdeclare.core.provider.provider_queries import find_cleanups
from kdeclare.engine.executor.apply import Applier
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.observation import identify_system, observe, select_all

NO_OPTIONS = PlanOptions()


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """The result of a cleanup: its run, and the work that is still in progress.

    The run is None if nothing was removed.
    """

    run: ApplyResult | None
    ongoing: tuple[str, ...]


def run_cleanup(
    applier: Applier,
    project: str,
    env: str,
    cluster_name: str,
    *,
    options: PlanOptions = NO_OPTIONS,
    patient: bool = False,
) -> CleanupResult:
    """Remove temporary settings of earlier runs that are no longer needed. The caller holds the state lock.

    patient: see `CleanupRequest`. Raises Fault if a system does not respond.
    """
    state = applier.store.read()
    if state is None or not state.pending_cleanup:
        return CleanupResult(None, ())
    request = CleanupRequest(applier.connections, state.pending_cleanup, options, patient)
    cleanups = find_cleanups(request)
    pending = cleanups[-1].pending if cleanups else state.pending_cleanup
    if pending != state.pending_cleanup:
        state = replace(state, serial=state.serial + 1, pending_cleanup=pending)
        applier.store.write(state)
    ongoing = tuple(name for cleanup in cleanups for name in cleanup.ongoing)
    operations = tuple(op for cleanup in cleanups for op in cleanup.operations)
    if not operations:
        return CleanupResult(None, ongoing)
    live = observe(applier.connections, select_all(operations))
    plan = Plan(
        project=project,
        env=env,
        cluster=ClusterRef(state.cluster_id or identify_system(live), cluster_name),
        base=PlanBase(state.lineage, state.serial),
        summary=Summary(),
        operations=operations,
    )
    return CleanupResult(applier.apply(plan, RunOptions(wait=False), skip_stale=True), ongoing)
