"""The text output, the exit codes and the JSON Schemas of fleet commands."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any

from kdeclare.core.documents import publish_schemas
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.units import format_names
from kdeclare.fleet.audit_summary import AuditSummary
from kdeclare.fleet.finding_conditions import FindingCondition, is_any_met
from kdeclare.fleet.findings import ACTIONABLE_KINDS
from kdeclare.fleet.overview import (
    AppliedCluster,
    AppliedStatus,
    FleetApply,
    FleetPlan,
    PlanExit,
    PlannedCluster,
)
from kdeclare.fleet.tables.snapshots import SnapshotRecord
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import (
    format_count,
    format_duration,
    join_nonempty,
    sanitize_for_terminal,
)
from kdeclare.report.fleet.cluster_table import ClusterCell, render_cluster_table
from kdeclare.report.fleet.findings_report import FindingsDocument
from kdeclare.report.fleet.notifications.json_message import NotificationDocument
from kdeclare.report.fleet.notifications.notify_output import FleetNotifications
from kdeclare.report.fleet.snapshot_diff_text import SnapshotDiffDocument
from kdeclare.report.fleet.snapshot_text import TopicHistory

_MAX_CLUSTERS = 50
"""The maximum number of clusters that are listed by name. For the others, only their number is shown."""

_APPLIED_LABELS = {
    AppliedStatus.DONE: "done",
    AppliedStatus.NOTHING: "unchanged",
    AppliedStatus.DENIED: "done except for denied changes",
    AppliedStatus.PARTIAL: "partially done",
    AppliedStatus.FAILED: "failed",
    AppliedStatus.STALE: "stale",
    AppliedStatus.LOCKED: "locked by another command",
    AppliedStatus.SKIPPED: "skipped",
    AppliedStatus.NOT_BEGUN: "not started",
}


@dataclass(frozen=True, slots=True)
class NextCommands:
    """The commands that continue a rollout.

    apply: repeats the same ``fleet apply``.
    plan: plans the fleet again.
    """

    apply: str
    plan: str


def render_fleet_apply_text(run: FleetApply, commands: NextCommands, style: Style = PLAIN) -> str:
    """Render the result of ``fleet apply`` as text. All unsuccessful clusters are listed."""
    lines = [_format_apply_headline(run, style)]
    if run.stopped is not None:
        lines.append(style.red(f"Stopped: {sanitize_for_terminal(run.stopped)}"))
    by_wave = sorted(run.clusters, key=lambda c: (not c.wave, c.wave))
    for wave, clusters in groupby(by_wave, key=lambda c: c.wave):
        title = f"Wave {wave}" if wave else "Not in a wave"
        lines += ["", style.bold(title), *_render_wave(list(clusters), style)]
    next_step = _format_next_step(run, commands)
    if next_step:
        lines += ["", f"{style.cyan('next:')} {sanitize_for_terminal(next_step)}"]
    return "".join(f"{line}\n" for line in lines)


def _format_next_step(run: FleetApply, commands: NextCommands) -> str:
    """Return the next step after an incomplete rollout, with its command; empty if all clusters are finished.

    The same command can be repeated for clusters that were not reached, were locked, or were not started.
    Plans that are stale or were applied in part cannot be applied again. If a canary was denied, repeating
    the command would stop at the same denial.
    """
    remaining = [cluster for cluster in run.clusters if not cluster.status.is_finished]
    if not remaining:
        return ""
    outdated = [cluster for cluster in remaining if not _can_be_repeated(cluster)]
    if all(cluster.status is AppliedStatus.NOT_BEGUN for cluster in remaining) and not run.interrupted:
        outdated += [cluster for cluster in run.clusters if cluster.status is AppliedStatus.DENIED]
    if outdated:
        names = format_names([cluster.name for cluster in outdated])
        return f"Plan the fleet again to continue with {names}: {commands.plan}"
    names = format_names([cluster.name for cluster in remaining])
    return f"Run the same command again to continue with {names}: {commands.apply}"


def _can_be_repeated(cluster: AppliedCluster) -> bool:
    has_plan = cluster.wave > 0
    has_begun = cluster.run_id is not None or cluster.status is AppliedStatus.STALE
    return has_plan and not has_begun


def _format_apply_headline(run: FleetApply, style: Style) -> str:
    counts = Counter(cluster.status for cluster in run.clusters)
    clusters = f"{format_count(len(run.clusters), 'cluster')} of {sanitize_for_terminal(run.fleet)}"
    status_counts = join_nonempty(
        f"{counts[status]:,} {_APPLIED_LABELS[status]}" for status in AppliedStatus if counts[status]
    )
    good_count = sum(cluster.status.is_finished for cluster in run.clusters)
    if good_count == len(run.clusters):
        return style.green(
            f"Applied to {clusters} in {format_duration(run.seconds)}: {status_counts or 'nothing to do'}."
        )
    has_progress = any(cluster.done for cluster in run.clusters)
    headline_start = (
        f"Partially applied to {clusters}"
        if good_count or has_progress
        else f"Nothing was applied to {clusters}"
    )
    return style.red(f"{headline_start} in {format_duration(run.seconds)}: {status_counts}.")


def _render_wave(clusters: list[AppliedCluster], style: Style) -> Iterator[str]:
    width = max(len(sanitize_for_terminal(cluster.name)) for cluster in clusters)
    label_width = max(len(_APPLIED_LABELS[cluster.status]) for cluster in clusters)
    finished = [cluster for cluster in clusters if cluster.status.is_finished]
    hidden = {cluster.name for cluster in finished[_MAX_CLUSTERS:]}
    for cluster in clusters:
        if cluster.name not in hidden:
            label = _color_by_status(
                cluster.status, f"{_APPLIED_LABELS[cluster.status]:<{label_width}}", style
            )
            name = sanitize_for_terminal(cluster.name)
            yield f"  {name:<{width}}  {label}  {_format_apply_details(cluster, style)}".rstrip()
    if hidden:
        yield style.dim(f"  … and {len(hidden):,} more that succeeded")


def _format_apply_details(cluster: AppliedCluster, style: Style) -> str:
    progress = (
        f"{cluster.done:,} of {format_count(cluster.operations, 'operation')}" if cluster.operations else ""
    )
    run = style.dim(f"run {sanitize_for_terminal(cluster.run_id)}") if cluster.run_id else ""
    return "  ".join(part for part in (progress, run, sanitize_for_terminal(cluster.message)) if part)


def _color_by_status(status: AppliedStatus, text: str, style: Style) -> str:
    if status.is_finished:
        return style.green(text)
    return style.dim(text) if status is AppliedStatus.NOT_BEGUN else style.red(text)


def render_waves_text(fleet_plan: FleetPlan, waves: Sequence[Sequence[str]], style: Style = PLAIN) -> str:
    """Render the waves of ``fleet apply``, with the number of changes of each cluster."""
    if not waves:
        return "No changes left to apply.\n"
    changes_by_cluster = {cluster.name: cluster.changes for cluster in fleet_plan.clusters}
    change_count = sum(changes_by_cluster[name] for wave in waves for name in wave)
    cluster_count = sum(map(len, waves))
    lines = [
        style.bold(
            f"To apply: {_format_changes(change_count)} in {format_count(cluster_count, 'cluster')} "
            f"of {sanitize_for_terminal(fleet_plan.fleet)}."
        )
    ]
    for number, wave in enumerate(waves, start=1):
        lines += ["", style.bold(f"Wave {number}")]
        lines += [
            f"  {sanitize_for_terminal(name)}  {_format_changes(changes_by_cluster[name])}" for name in wave
        ]
    return "".join(f"{line}\n" for line in lines)


def _format_changes(changes: int) -> str:
    """Format the number of changes in a plan. A plan without changes can still update ownership records."""
    return format_count(changes, "change") if changes else "ownership records"


_HEADER = ("CLUSTER", "OUTCOME", "CREATE", "UPDATE", "DELETE", "FORGET", "MOVES", "BLOCKED", "PLAN")
_WORST_FIRST = (PlanExit.ERROR, PlanExit.DENIED, PlanExit.CHANGES, PlanExit.NO_CHANGES)
_PLANNED_LABELS = {
    PlanExit.ERROR: "cannot be applied",
    PlanExit.DENIED: "denied",
    PlanExit.CHANGES: "with changes",
}


def render_fleet_plan_text(plans: FleetPlan, plans_folder: str, style: Style = PLAIN) -> str:
    """Render the plans of a fleet as text. Plans with problems come first.

    plans_folder: the path or URI of the plans, as the user typed it.
    """
    blocks = [
        f"{_format_plan_headline(plans, style)}\n",
        "".join(f"{line}\n" for line in _render_plan_table(plans, style)),
        "".join(f"{line}\n" for line in _render_plan_errors(plans, style)),
        style.dim(
            f"Planned in {format_duration(plans.seconds)}. Plans and overview.json: "
            f"{sanitize_for_terminal(plans_folder)}"
        )
        + "\n",
    ]
    return "\n".join(block for block in blocks if block)


def _format_plan_headline(plans: FleetPlan, style: Style) -> str:
    counts = Counter(cluster.exit for cluster in plans.clusters)
    clusters = f"{format_count(len(plans.clusters), 'cluster')} of {sanitize_for_terminal(plans.fleet)}"
    parts = [
        f"{counts[exit_]:,} {_PLANNED_LABELS[exit_]}"
        for exit_ in _WORST_FIRST
        if exit_ in _PLANNED_LABELS and counts[exit_]
    ]
    if not parts:
        return style.green(f"No changes. {clusters} up to date.")
    paint = style.red if counts[PlanExit.ERROR] or counts[PlanExit.DENIED] else style.bold
    return paint(f"Plans for {clusters}: {join_nonempty(parts)}.")


def _render_plan_table(plans: FleetPlan, style: Style) -> list[str]:
    """Render a table of the clusters that have changes or problems."""
    rank = {exit_: number for number, exit_ in enumerate(_WORST_FIRST)}
    listed_clusters = [cluster for cluster in plans.clusters if cluster.exit is not PlanExit.NO_CHANGES]
    listed_clusters.sort(key=lambda c: (rank[c.exit], -c.changes, c.name))
    if not listed_clusters:
        return []
    lines = [
        f"  {line}"
        for line in render_cluster_table(
            _HEADER, [_build_plan_row(cluster) for cluster in listed_clusters[:_MAX_CLUSTERS]], style
        )
    ]
    if len(listed_clusters) > _MAX_CLUSTERS:
        lines.append(style.dim(f"  … and {len(listed_clusters) - _MAX_CLUSTERS:,} more"))
    return lines


def _build_plan_row(cluster: PlannedCluster) -> tuple[ClusterCell, ...]:
    summary = cluster.summary
    counts = (
        summary.create,
        summary.update,
        summary.delete,
        summary.forget,
        summary.reassign,
        summary.blocked,
    )
    return (
        sanitize_for_terminal(cluster.name),
        cluster.exit.value,
        *counts,
        sanitize_for_terminal((cluster.plan_id or "-")[:12]),
    )


def _render_plan_errors(plans: FleetPlan, style: Style) -> list[str]:
    failed_clusters = [cluster for cluster in plans.clusters if cluster.error is not None]
    lines = [
        f"{style.red('error:')} {sanitize_for_terminal(c.name)}: {sanitize_for_terminal(c.error or '')}"
        for c in failed_clusters[:_MAX_CLUSTERS]
    ]
    if len(failed_clusters) > _MAX_CLUSTERS:
        lines.append(style.dim(f"… and {format_count(len(failed_clusters) - _MAX_CLUSTERS, 'more error')}"))
    return lines


def compute_snapshot_exit(record: SnapshotRecord) -> ExitCode:
    """Return the exit code of ``fleet snapshot``: 1 if a cluster could not be read completely, else 0."""
    return ExitCode.ERROR if record.incomplete else ExitCode.OK


def compute_audit_exit(
    summary: AuditSummary, *, detailed_exitcode: bool = False, fail_on: Collection[FindingCondition] = ()
) -> ExitCode:
    """Return the exit code of ``fleet audit``.

    - 1: a cluster could not be read completely, so that its drift is unknown
    - 2: a finding meets a condition in ``fail_on``, or, with ``detailed_exitcode``, an apply would fix a
        finding
    - 0: otherwise
    """
    if summary.incomplete:
        return ExitCode.ERROR
    conditions = [*fail_on, *(map(FindingCondition, ACTIONABLE_KINDS) if detailed_exitcode else ())]
    return ExitCode.CHANGES if is_any_met(conditions, summary) else ExitCode.OK


def compute_plans_exit(plans: FleetPlan, *, detailed_exitcode: bool = False) -> ExitCode:
    """Return the exit code of ``fleet plan``: the exit code of the plan with the worst outcome."""
    exits = {cluster.exit for cluster in plans.clusters}
    if PlanExit.ERROR in exits:
        return ExitCode.ERROR
    if PlanExit.DENIED in exits:
        return ExitCode.DENIED
    return ExitCode.CHANGES if detailed_exitcode and PlanExit.CHANGES in exits else ExitCode.OK


def compute_apply_exit(run: FleetApply) -> ExitCode:
    """Return the exit code of ``fleet apply``.

    - 0: all changes were applied
    - 1: nothing was applied, for a reason not listed here
    - 3: all changes were applied, except denied changes
    - 4: nothing was applied, because all plans are stale
    - 5: only some of the changes were applied
    - 6: nothing was applied, because all states are locked
    - 130: the user pressed Ctrl-C
    """
    if run.interrupted:
        return ExitCode.INTERRUPTED
    statuses = {cluster.status for cluster in run.clusters}
    if all(status.is_finished for status in statuses):
        return ExitCode.DENIED if AppliedStatus.DENIED in statuses else ExitCode.OK
    attempted_statuses = statuses - {AppliedStatus.NOTHING, AppliedStatus.NOT_BEGUN, AppliedStatus.SKIPPED}
    if attempted_statuses - _EXIT_WITHOUT_CHANGES.keys():
        return ExitCode.PARTIAL
    exit_codes = {_EXIT_WITHOUT_CHANGES[status] for status in attempted_statuses}
    return exit_codes.pop() if len(exit_codes) == 1 else ExitCode.ERROR


_EXIT_WITHOUT_CHANGES = {
    AppliedStatus.FAILED: ExitCode.ERROR,
    AppliedStatus.STALE: ExitCode.STALE,
    AppliedStatus.LOCKED: ExitCode.LOCKED,
}
"""The exit code of ``fleet apply``, by the status of the clusters, if nothing was changed.

Only clusters whose plans ``fleet apply`` tried to apply are considered.
"""


def build_fleet_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of the documents of fleet commands, by document name."""
    return publish_schemas(
        {
            "fleet-snapshot": SnapshotRecord,
            "fleet-audit": AuditSummary,
            "fleet-plan": FleetPlan,
            "fleet-apply": FleetApply,
            "fleet-history": TopicHistory,
            "fleet-diff": SnapshotDiffDocument,
            "fleet-report": FindingsDocument,
            "fleet-notify": FleetNotifications,
            "fleet-notification": NotificationDocument,
        },
        name_enums=True,
    )
