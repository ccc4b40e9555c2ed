"""What was done to the clusters of a fleet, wave by wave, for people and for scripts."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from typing import Any

from kdeclare.fleet.overview import AppliedCluster, AppliedStatus, FleetApply
from kdeclare.report.json_output import FORMAT_VERSION
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, duration, listed, plural

_MANY = 50
"""How many clusters of a wave that need no look are named."""

_WORDS = {
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
    lines = [_headline(run, style)]
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


def fleet_apply_document(run: FleetApply) -> dict[str, Any]:
    """The same for scripts: format_version, fleet, seconds, stopped, counts by status, and ``clusters`` with
    the fields of AppliedCluster.
    """
    counts = Counter(cluster.status for cluster in run.clusters)
    return {
        "format_version": FORMAT_VERSION,
        "fleet": run.fleet,
        "seconds": run.seconds,
        "stopped": run.stopped,
        "counts": {status.value: counts[status] for status in AppliedStatus},
        "clusters": [asdict(cluster) | {"status": cluster.status.value} for cluster in run.clusters],
    }


def _headline(run: FleetApply, style: Style) -> str:
    counts = Counter(cluster.status for cluster in run.clusters)
    of = f"{plural(len(run.clusters), 'cluster')} of {clean(run.fleet)}"
    said = listed(f"{counts[status]:,} {_WORDS[status]}" for status in AppliedStatus if counts[status])
    good = sum(cluster.status.good for cluster in run.clusters)
    if good == len(run.clusters):
        return style.green(f"Applied to {of} in {duration(run.seconds)}: {said or 'nothing to do'}.")
    begun = any(cluster.done for cluster in run.clusters)
    head = f"Applied in part to {of}" if good or begun else f"Nothing was applied to {of}"
    return style.red(f"{head} in {duration(run.seconds)}: {said}.")


def _wave(clusters: list[AppliedCluster], style: Style) -> Iterator[str]:
    width = max(len(clean(cluster.name)) for cluster in clusters)
    words = max(len(_WORDS[cluster.status]) for cluster in clusters)
    good = [cluster for cluster in clusters if cluster.status.good]
    hidden = {cluster.name for cluster in good[_MANY:]}
    for cluster in clusters:
        if cluster.name not in hidden:
            word = _paint(cluster.status, f"{_WORDS[cluster.status]:<{words}}", style)
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
