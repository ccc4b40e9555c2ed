"""What is about to be applied to a fleet, wave by wave."""

from collections.abc import Sequence

from kdeclare.fleet.overview import FleetPlan
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, plural


def waves_text(planned: FleetPlan, waves: Sequence[Sequence[str]], style: Style = PLAIN) -> str:
    """Which clusters are changed when, and how many resources of each; ends in a new line."""
    if not waves:
        return "No changes. Nothing is left to apply.\n"
    changes = {cluster.name: cluster.changes for cluster in planned.clusters}
    total = sum(changes[name] for wave in waves for name in wave)
    count = sum(map(len, waves))
    lines = [style.bold(f"To apply: {_told(total)} in {plural(count, 'cluster')} of {clean(planned.fleet)}.")]
    for number, wave in enumerate(waves, start=1):
        lines += ["", style.bold(f"Wave {number}")]
        lines += [f"  {clean(name)}  {_told(changes[name])}" for name in wave]
    return "".join(f"{line}\n" for line in lines)


def _told(changes: int) -> str:
    """A plan without changes is applied for its records of who owns what."""
    return plural(changes, "change") if changes else "records of ownership"
