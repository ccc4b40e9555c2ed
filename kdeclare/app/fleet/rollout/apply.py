"""Check the saved plans of a fleet, and apply them in waves."""

from collections.abc import Mapping, Sequence, Set
from threading import Event
from time import monotonic

from kdeclare.app.apply import handle_interrupts
from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.job import FleetOptions, open_results_storage, open_selected_fleet
from kdeclare.app.fleet.rollout.rollout_control import build_stop_error, read_stop
from kdeclare.app.fleet.rollout.rollout_health import HealthGate
from kdeclare.app.fleet.rollout.saved_plans import (
    read_applied_plans,
    read_cluster_plan,
    read_fleet_plan,
)
from kdeclare.app.fleet.rollout.waves import (
    FleetApplyOptions,
    RolloutState,
    WaveRunner,
    find_canaries,
    split_waves,
)
from kdeclare.app.signatures import build_signature_check
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.adoption import ADOPTION
from kdeclare.core.resources.changes import Reason
from kdeclare.core.units import format_names
from kdeclare.engine.planning.planfile import CheckSignature, PlanFile
from kdeclare.engine.planning.request import MAX_DELETES
from kdeclare.fleet.overview import (
    AppliedCluster,
    AppliedStatus,
    FleetApply,
    FleetPlan,
    PlannedCluster,
)
from kdeclare.manifests.fleet import Fleet, Rollout
from kdeclare.manifests.fleet.cluster_selection import find_unknown_label
from kdeclare.manifests.fleet.rollout import RolloutHealth


def apply_fleet(
    options: FleetOptions, apply_options: FleetApplyOptions, environ: Mapping[str, str]
) -> FleetApply | None:
    """Apply the plans that ``fleet plan`` saved. Return None if the user declines. Raises KdeclareError.

    If an earlier apply of the same plans finished a cluster, the cluster is skipped.
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
        stop_request = read_stop(storage, planned_at)
        if stop_request is not None:
            raise KdeclareError(build_stop_error(stop_request), exit_code=ExitCode.DENIED)
        rollout_state = RolloutState(storage, planned_at, read_applied_plans(storage, planned_at))
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
        rollout_state.canaries = find_canaries(fleet, rollout_rules)
        _record_unapplied(fleet_plan, frozenset(cluster_names), rollout_state)
        if not apply_options.confirm(fleet_plan, waves):
            return None
        stop = Event()
        health = RolloutHealth() if apply_options.skips_health else rollout_rules.health
        gate = HealthGate(
            locator, health, fleet.folder, environ, fleet.max_concurrent, stop, apply_options.progress
        )
        fleet_run = WaveRunner(
            locator,
            plans,
            rollout_state,
            apply_options,
            rollout_rules.max_failures,
            fleet.max_concurrent,
            gate,
            stop,
        )
        with handle_interrupts(fleet_run.stop, apply_options.stopping):
            stop_reason = fleet_run.run_waves(waves)
    results = tuple(rollout_state.results[c.name] for c in fleet_plan.clusters)
    seconds = round(monotonic() - started_at, 1)
    return FleetApply(fleet.name, seconds, stop_reason, results, interrupted=fleet_run.stop.is_set())


def _build_signature_check(
    locator: ClusterLocator, name: str, apply_options: FleetApplyOptions
) -> CheckSignature | None:
    """Return a function that checks the signature of a cluster's plan; None if no signature is required.

    All plans are checked before the first plan is applied. Also return None if the project of the cluster
    cannot be read: applying its plan then fails with the same error.
    """
    try:
        project = locator.workspace(name).project
    except KdeclareError:
        return None
    return build_signature_check(project, is_demanded=apply_options.require_signature)


def _require_planned_canaries(fleet: Fleet, fleet_plan: FleetPlan, rollout: Rollout) -> None:
    """Raise KdeclareError if no cluster matches the canary labels, or if a canary has no plan.

    Without this check, other clusters would be changed before the canaries.
    """
    label_error = find_unknown_label(rollout.canary, [entry.labels for entry in fleet.clusters])
    if label_error is not None:
        raise KdeclareError(label_error)
    canary_names = find_canaries(fleet, rollout)
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
    """Raise KdeclareError if a plan has adoptions and ``--adopt`` was given only to plan or only to apply."""
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
    """Raise KdeclareError if the plans that remain to be applied would delete too many resources in total."""
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


def _record_unapplied(fleet_plan: FleetPlan, cluster_names: Set[str], rollout_state: RolloutState) -> None:
    for cluster in fleet_plan.clusters:
        if cluster.plan_id is None:
            message = f"The cluster has no plan: {cluster.error or 'the plan had errors'}"
            result = AppliedCluster(cluster.name, 0, AppliedStatus.NOT_BEGUN, message=message)
        elif cluster.name not in cluster_names:
            result = AppliedCluster(cluster.name, 0, AppliedStatus.NOTHING)
        else:
            continue
        rollout_state.results[cluster.name] = result
