"""The plans of a fleet in one table, for people; scripts read overview.json."""

from collections import Counter

from kdeclare.fleet.overview import FleetPlan, PlanExit, PlannedCluster
from kdeclare.report.fleet_table import Cell, table
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, duration, listed, plural

_MANY = 50
_HEADER = ("CLUSTER", "OUTCOME", "CREATE", "UPDATE", "DELETE", "FORGET", "MOVES", "BLOCKED", "PLAN")
_WORST_FIRST = (PlanExit.ERROR, PlanExit.DENIED, PlanExit.CHANGES, PlanExit.NO_CHANGES)
_WORDS = {PlanExit.ERROR: "cannot be applied", PlanExit.DENIED: "denied", PlanExit.CHANGES: "with changes"}


def fleet_plan_text(plans: FleetPlan, where: str, style: Style = PLAIN) -> str:
    """What the plans come to, those that need a look first, ending in a new line.

    where: the folder of the plans, as the person named it.
    """
    blocks = [
        f"{_headline(plans, style)}\n",
        "".join(f"{line}\n" for line in _table(plans, style)),
        "".join(f"{line}\n" for line in _errors(plans, style)),
        style.dim(f"Planned in {duration(plans.seconds)}. Plans and overview.json: {clean(where)}") + "\n",
    ]
    return "\n".join(block for block in blocks if block)


def _headline(plans: FleetPlan, style: Style) -> str:
    counts = Counter(cluster.exit for cluster in plans.clusters)
    of = f"{plural(len(plans.clusters), 'cluster')} of {clean(plans.fleet)}"
    parts = [
        f"{counts[exit_]:,} {_WORDS[exit_]}" for exit_ in _WORST_FIRST if exit_ in _WORDS and counts[exit_]
    ]
    if not parts:
        return style.green(f"No changes. {of} as declared.")
    paint = style.red if counts[PlanExit.ERROR] or counts[PlanExit.DENIED] else style.bold
    return paint(f"Plans for {of}: {listed(parts)}.")


def _table(plans: FleetPlan, style: Style) -> list[str]:
    """The clusters of which there is something to say."""
    rank = {exit_: number for number, exit_ in enumerate(_WORST_FIRST)}
    telling = [cluster for cluster in plans.clusters if cluster.exit is not PlanExit.NO_CHANGES]
    telling.sort(key=lambda c: (rank[c.exit], -c.changes, c.name))
    if not telling:
        return []
    lines = [f"  {line}" for line in table(_HEADER, [_row(cluster) for cluster in telling[:_MANY]], style)]
    if len(telling) > _MANY:
        lines.append(style.dim(f"  … and {len(telling) - _MANY:,} more"))
    return lines


def _row(cluster: PlannedCluster) -> tuple[Cell, ...]:
    s = cluster.summary
    counts = (s.create, s.update, s.delete, s.forget, s.reassign, s.blocked)
    return clean(cluster.name), cluster.exit.value, *counts, clean((cluster.plan_id or "-")[:12])


def _errors(plans: FleetPlan, style: Style) -> list[str]:
    failed = [cluster for cluster in plans.clusters if cluster.error is not None]
    lines = [f"{style.red('error:')} {clean(c.name)}: {clean(c.error or '')}" for c in failed[:_MANY]]
    if len(failed) > _MANY:
        lines.append(style.dim(f"… and {plural(len(failed) - _MANY, 'more error')}"))
    return lines
