"""Plan and apply for a fleet: texts for people, exit codes, and the JSON Schemas of all fleet commands."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any

from kdeclare.core.documents import publish_schemas
from kdeclare.core.exit_codes import ExitCode
from kdeclare.fleet.findings import TO_BE_APPLIED, AuditSummary, FindingKind
from kdeclare.fleet.overview import (
    AppliedCluster,
    AppliedStatus,
    FleetApply,
    FleetPlan,
    PlanExit,
    PlannedCluster,
)
from kdeclare.fleet.snapshots import SnapshotRecord
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import clean, duration, listed, plural
from kdeclare.report.fleet.cluster_table import Cell, table
from kdeclare.report.fleet.snapshot_text import TopicHistory

_MANY = 50
"""How many clusters are named; of more, a count."""

_APPLIED = {
    AppliedStatus.DONE: "done",
    AppliedStatus.NOTHING: "nothing to do",
    AppliedStatus.DENIED: "done but for what was denied",
    AppliedStatus.PARTIAL: "done in part",
    AppliedStatus.FAILED: "failed",
    AppliedStatus.STALE: "no longer as planned",
    AppliedStatus.LOCKED: "locked by someone else",
    AppliedStatus.SKIPPED: "skipped",
    AppliedStatus.NOT_BEGUN: "not begun",
}


def fleet_apply_text(run: FleetApply, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line. What did not end well is never left out."""
    lines = [_apply_headline(run, style)]
    if run.stopped is not None:
        lines.append(style.red(f"Stopped: {clean(run.stopped)}"))
    by_wave = sorted(run.clusters, key=lambda c: (not c.wave, c.wave))
    for wave, clusters in groupby(by_wave, key=lambda c: c.wave):
        title = f"Wave {wave}" if wave else "In no wave"
        lines += ["", style.bold(title), *_wave(list(clusters), style)]
    if not all(cluster.status.good for cluster in run.clusters):
        lines += [
            "",
            f"{style.cyan('next:')} plan what did not go well anew; the same command goes on with the rest.",
        ]
    return "".join(f"{line}\n" for line in lines)


def _apply_headline(run: FleetApply, style: Style) -> str:
    counts = Counter(cluster.status for cluster in run.clusters)
    of = f"{plural(len(run.clusters), 'cluster')} of {clean(run.fleet)}"
    said = listed(f"{counts[status]:,} {_APPLIED[status]}" for status in AppliedStatus if counts[status])
    good = sum(cluster.status.good for cluster in run.clusters)
    if good == len(run.clusters):
        return style.green(f"Applied to {of} in {duration(run.seconds)}: {said or 'nothing to do'}.")
    begun = any(cluster.done for cluster in run.clusters)
    head = f"Applied in part to {of}" if good or begun else f"Nothing was applied to {of}"
    return style.red(f"{head} in {duration(run.seconds)}: {said}.")


def _wave(clusters: list[AppliedCluster], style: Style) -> Iterator[str]:
    width = max(len(clean(cluster.name)) for cluster in clusters)
    words = max(len(_APPLIED[cluster.status]) for cluster in clusters)
    good = [cluster for cluster in clusters if cluster.status.good]
    hidden = {cluster.name for cluster in good[_MANY:]}
    for cluster in clusters:
        if cluster.name not in hidden:
            word = _paint(cluster.status, f"{_APPLIED[cluster.status]:<{words}}", style)
            yield f"  {clean(cluster.name):<{width}}  {word}  {_rest(cluster, style)}".rstrip()
    if hidden:
        yield style.dim(f"  … and {len(hidden):,} more that ended well")


def _rest(cluster: AppliedCluster, style: Style) -> str:
    done = f"{cluster.done:,} of {plural(cluster.operations, 'operation')}" if cluster.operations else ""
    run = style.dim(f"run {clean(cluster.run_id)}") if cluster.run_id else ""
    return "  ".join(part for part in (done, run, clean(cluster.message)) if part)


def _paint(status: AppliedStatus, text: str, style: Style) -> str:
    if status.good:
        return style.green(text)
    return style.dim(text) if status is AppliedStatus.NOT_BEGUN else style.red(text)


def waves_text(planned: FleetPlan, waves: Sequence[Sequence[str]], style: Style = PLAIN) -> str:
    """Which clusters are changed when, and how many resources of each; ends in a new line."""
    if not waves:
        return "No changes. Nothing is left to apply.\n"
    changes = {cluster.name: cluster.changes for cluster in planned.clusters}
    total = sum(changes[name] for wave in waves for name in wave)
    count = sum(map(len, waves))
    lines = [
        style.bold(f"To apply: {_counted(total)} in {plural(count, 'cluster')} of {clean(planned.fleet)}.")
    ]
    for number, wave in enumerate(waves, start=1):
        lines += ["", style.bold(f"Wave {number}")]
        lines += [f"  {clean(name)}  {_counted(changes[name])}" for name in wave]
    return "".join(f"{line}\n" for line in lines)


def _counted(changes: int) -> str:
    """A plan without changes is applied for its records of who owns what."""
    return plural(changes, "change") if changes else "records of ownership"


_HEADER = ("CLUSTER", "OUTCOME", "CREATE", "UPDATE", "DELETE", "FORGET", "MOVES", "BLOCKED", "PLAN")
_WORST_FIRST = (PlanExit.ERROR, PlanExit.DENIED, PlanExit.CHANGES, PlanExit.NO_CHANGES)
_PLANNED = {
    PlanExit.ERROR: "cannot be applied",
    PlanExit.DENIED: "denied",
    PlanExit.CHANGES: "with changes",
}


def fleet_plan_text(plans: FleetPlan, where: str, style: Style = PLAIN) -> str:
    """What the plans come to, those that need a look first, ending in a new line.

    where: the folder of the plans, as the person named it.
    """
    blocks = [
        f"{_plan_headline(plans, style)}\n",
        "".join(f"{line}\n" for line in _plan_table(plans, style)),
        "".join(f"{line}\n" for line in _plan_errors(plans, style)),
        style.dim(f"Planned in {duration(plans.seconds)}. Plans and overview.json: {clean(where)}") + "\n",
    ]
    return "\n".join(block for block in blocks if block)


def _plan_headline(plans: FleetPlan, style: Style) -> str:
    counts = Counter(cluster.exit for cluster in plans.clusters)
    of = f"{plural(len(plans.clusters), 'cluster')} of {clean(plans.fleet)}"
    parts = [
        f"{counts[exit_]:,} {_PLANNED[exit_]}"
        for exit_ in _WORST_FIRST
        if exit_ in _PLANNED and counts[exit_]
    ]
    if not parts:
        return style.green(f"No changes. {of} as declared.")
    paint = style.red if counts[PlanExit.ERROR] or counts[PlanExit.DENIED] else style.bold
    return paint(f"Plans for {of}: {listed(parts)}.")


def _plan_table(plans: FleetPlan, style: Style) -> list[str]:
    """The clusters of which there is something to say."""
    rank = {exit_: number for number, exit_ in enumerate(_WORST_FIRST)}
    telling = [cluster for cluster in plans.clusters if cluster.exit is not PlanExit.NO_CHANGES]
    telling.sort(key=lambda c: (rank[c.exit], -c.changes, c.name))
    if not telling:
        return []
    lines = [
        f"  {line}" for line in table(_HEADER, [_plan_row(cluster) for cluster in telling[:_MANY]], style)
    ]
    if len(telling) > _MANY:
        lines.append(style.dim(f"  … and {len(telling) - _MANY:,} more"))
    return lines


def _plan_row(cluster: PlannedCluster) -> tuple[Cell, ...]:
    s = cluster.summary
    counts = (s.create, s.update, s.delete, s.forget, s.reassign, s.blocked)
    return clean(cluster.name), cluster.exit.value, *counts, clean((cluster.plan_id or "-")[:12])


def _plan_errors(plans: FleetPlan, style: Style) -> list[str]:
    failed = [cluster for cluster in plans.clusters if cluster.error is not None]
    lines = [f"{style.red('error:')} {clean(c.name)}: {clean(c.error or '')}" for c in failed[:_MANY]]
    if len(failed) > _MANY:
        lines.append(style.dim(f"… and {plural(len(failed) - _MANY, 'more error')}"))
    return lines


def snapshot_exit(record: SnapshotRecord) -> ExitCode:
    """1 where a cluster could not be read, or not all of it."""
    return ExitCode.ERROR if record.incomplete else ExitCode.OK


def audit_exit(
    summary: AuditSummary, *, detailed_exitcode: bool = False, fail_on: Collection[FindingKind] = ()
) -> ExitCode:
    """1 where a cluster could not be read: what it hides is not known.

    Else 2 with ``detailed_exitcode`` where an apply would change something, and where anything was found
    that is in ``fail_on``.
    """
    if summary.incomplete:
        return ExitCode.ERROR
    watched = {*fail_on, *(TO_BE_APPLIED if detailed_exitcode else ())}
    return ExitCode.CHANGES if any(summary.found.get(kind) for kind in watched) else ExitCode.OK


def plans_exit(plans: FleetPlan, *, detailed_exitcode: bool = False) -> ExitCode:
    """As ``kdeclare plan`` of the cluster that is worst off."""
    exits = {cluster.exit for cluster in plans.clusters}
    if PlanExit.ERROR in exits:
        return ExitCode.ERROR
    if PlanExit.DENIED in exits:
        return ExitCode.DENIED
    return ExitCode.CHANGES if detailed_exitcode and PlanExit.CHANGES in exits else ExitCode.OK


def apply_exit(run: FleetApply) -> ExitCode:
    """0 where all is done; 3 where only what was denied is not; 130 after a Ctrl-C.

    Where nothing could be done: 4 if all plans are stale, 6 if all states are locked, else 1.
    5 where something is left to do.
    """
    if run.interrupted:
        return ExitCode.INTERRUPTED
    statuses = {cluster.status for cluster in run.clusters}
    if all(status.good for status in statuses):
        return ExitCode.DENIED if AppliedStatus.DENIED in statuses else ExitCode.OK
    tried = statuses - {AppliedStatus.NOTHING, AppliedStatus.NOT_BEGUN, AppliedStatus.SKIPPED}
    if tried - _NOTHING_DONE.keys():
        return ExitCode.PARTIAL
    codes = {_NOTHING_DONE[status] for status in tried}
    return codes.pop() if len(codes) == 1 else ExitCode.ERROR


_NOTHING_DONE = {
    AppliedStatus.FAILED: ExitCode.ERROR,
    AppliedStatus.STALE: ExitCode.STALE,
    AppliedStatus.LOCKED: ExitCode.LOCKED,
}
"""How a cluster ended in which nothing was done, and how the command exits if all have ended so."""


def fleet_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of what the commands print, by name; three are files in their folders, too."""
    return publish_schemas(
        {
            "fleet-snapshot": SnapshotRecord,
            "fleet-audit": AuditSummary,
            "fleet-plan": FleetPlan,
            "fleet-apply": FleetApply,
            "fleet-history": TopicHistory,
        },
        name_enums=True,
    )
