"""An audit as one HTML page: every text is embedded once, and columns of numbers point to it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kdeclare.core.clock import format_second
from kdeclare.core.jsontypes import canonical_json
from kdeclare.fleet.findings import Audit, AuditRow, AuditSummary, ClusterSummary, Counts, FindingKind
from kdeclare.report.elements.html_page import Strings, html_page
from kdeclare.report.elements.values import clean, clipped, duration
from kdeclare.report.fleet.audit_words import (
    MEANINGS,
    headline,
    name_objects,
    raw,
    sides,
    sum_objects,
    teams_by_total,
    worst_first,
)
from kdeclare.version import VERSION

_SCRIPTS = ("audit_data.js", "audit_charts.js", "audit_rows.js", "audit.js")


def audit_html(audit: Audit) -> str:
    """The whole page; some 0.3 kB a finding. What secrets left as hashes is not in it."""
    summary = audit.summary
    title = clean(f"{summary.fleet}: audit {summary.audit_id}")
    return html_page("audit", _SCRIPTS, title, headline(summary, tallied=False), page_data(audit))


_WIDEST = 200
"""Of a longer value a row of the list shows the beginning; the whole is shown where the row is opened."""

_RANK = {kind: number for number, kind in enumerate(FindingKind)}


_COLUMNS: Mapping[str, Callable[[AuditRow], str | None]] = {
    "cluster": lambda row: row.cluster,
    "kind": lambda row: row.kind,
    "name": lambda row: row.name,
    "path": lambda row: row.path,
    "op": lambda row: row.op,
    "before": lambda row: raw(row.before),
    "after": lambda row: raw(row.after),
    "was": lambda row: clipped(sides(row)[0], _WIDEST),
    "will": lambda row: clipped(sides(row)[1], _WIDEST),
    "message": lambda row: row.message or None,
    "team": lambda row: row.labels.get("team", ""),
    "labels": lambda row: canonical_json(dict(row.labels)),
    "first": lambda row: format_second(row.first_seen),
    "status": lambda row: row.status,
}


def page_data(audit: Audit) -> dict[str, Any]:
    """The data of the page, as its script reads it.

    Counts of kinds are lists in the order of ``kinds``. Columns of ``rows`` and ``mended`` hold places in
    ``strings``, -1 where there is none; ``finding`` holds places in ``kinds``.
    """
    summary = audit.summary
    strings = Strings()
    return {
        "version": VERSION,
        "fleet": clean(summary.fleet),
        "audit": clean(summary.audit_id),
        "taken": format_second(summary.taken_at),
        "took": duration(summary.seconds),
        "kinds": [[kind.value, MEANINGS[kind]] for kind in FindingKind],
        "clusters": [_cluster(cluster) for cluster in summary.clusters],
        "objects": name_objects(summary.clusters),
        "teams": [[team, _counts(found)] for team, found in teams_by_total(summary)],
        "heat": _heat(summary),
        "since": _since(summary),
        "trend": _trend(summary),
        "rows": _columns(worst_first(audit.rows), strings),
        "mended": _columns(audit.mended, strings),
        "left": audit.left_out,
        "unseen": _counts(summary.unseen),
        "strings": list(strings.places),
    }


def _columns(rows: Sequence[AuditRow], strings: Strings) -> dict[str, list[int]]:
    columns = {name: [strings.place(text(row)) for row in rows] for name, text in _COLUMNS.items()}
    return {"finding": [_RANK[row.finding] for row in rows]} | columns


def _cluster(cluster: ClusterSummary) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "labels": dict(sorted(cluster.labels.items())),
        "objects": sum_objects(cluster),
        "declared": cluster.declared,
        "found": _counts(cluster.found),
        "error": cluster.error,
        "notice": cluster.notice,
    }


def _heat(summary: AuditSummary) -> dict[str, Any]:
    """Cells by the places of their cluster and path; the paths found most often first."""
    clusters = {cluster.name: number for number, cluster in enumerate(summary.clusters)}
    totals: dict[str | None, int] = {}
    for cell in summary.heat:
        totals[cell.path] = totals.get(cell.path, 0) + cell.count
    paths = {path: n for n, path in enumerate(sorted(totals, key=lambda p: (-totals[p], p or "")))}
    cells = [cell for cell in summary.heat if cell.cluster in clusters and cell.count]
    return {
        "paths": list(paths),
        "cluster": [clusters[cell.cluster] for cell in cells],
        "path": [paths[cell.path] for cell in cells],
        "count": [cell.count for cell in cells],
    }


def _trend(summary: AuditSummary) -> list[dict[str, Any]]:
    """Earlier audits, oldest first, and this one."""
    points: Iterable[tuple[datetime, Counts]] = ((p.taken_at, p.found) for p in summary.trend)
    every = [*points, (summary.taken_at, summary.remembered)]
    return [{"taken": format_second(taken), "found": _counts(found)} for taken, found in every]


def _since(summary: AuditSummary) -> dict[str, Any] | None:
    since = summary.since
    if since is None:
        return None
    counts = {"new": since.new, "known": since.known, "mended": since.mended}
    return {"taken": format_second(since.taken_at)} | counts


def _counts(found: Counts) -> list[int]:
    return [found.get(kind, 0) for kind in FindingKind]
