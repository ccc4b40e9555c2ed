"""Render an audit as an HTML page.

The data of the page contains each string once. Table columns contain the indexes of strings.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kdeclare.core.clock import format_second
from kdeclare.core.jsontypes import dump_canonical_json
from kdeclare.fleet.audit_summary import Audit, AuditSummary, ClusterSummary, KindCounts
from kdeclare.fleet.findings import AuditRow, FindingKind
from kdeclare.report.elements.html_page import StringTable, render_html_page
from kdeclare.report.elements.values import format_duration, sanitize_for_terminal, truncate
from kdeclare.report.fleet.audit_wording import (
    KIND_MEANINGS,
    choose_object_noun,
    format_accepted,
    format_headline,
    format_sides,
    list_teams_by_findings,
    mask_raw_value,
    sort_worst_first,
    sum_objects,
)
from kdeclare.version import VERSION

_SCRIPTS = ("audit_data.js", "audit_charts.js", "audit_rows.js", "audit.js")


def render_audit_page(audit: Audit) -> str:
    """Render the page (about 0.3 kB per finding). Hashes of secrets are not included."""
    summary = audit.summary
    title = sanitize_for_terminal(f"{summary.fleet}: audit {summary.audit_id}")
    return render_html_page(
        "audit", _SCRIPTS, title, format_headline(summary, with_counts=False), build_page_data(audit)
    )


_MAX_VALUE_LENGTH = 200
"""The maximum length of a value in the list of findings. The details show the whole value."""

_COLUMNS: Mapping[str, Callable[[AuditRow], str | None]] = {
    "cluster": lambda row: row.cluster,
    "kind": lambda row: row.kind,
    "name": lambda row: row.name,
    "path": lambda row: row.path,
    "op": lambda row: row.op,
    "before": lambda row: mask_raw_value(row.before),
    "after": lambda row: mask_raw_value(row.after),
    "was": lambda row: truncate(format_sides(row)[0], _MAX_VALUE_LENGTH),
    "will": lambda row: truncate(format_sides(row)[1], _MAX_VALUE_LENGTH),
    "message": lambda row: row.message or None,
    "team": lambda row: row.labels.get("team", ""),
    "labels": lambda row: dump_canonical_json(dict(row.labels)),
    "first": lambda row: format_second(row.first_seen),
    "status": lambda row: row.status,
    "severity": lambda row: row.severity.value,
    "source": lambda row: row.source,
    "id": lambda row: row.id,
}


def build_page_data(audit: Audit) -> dict[str, Any]:
    """Build the data for the scripts of the page.

    Counts of findings are lists in the order of ``kinds``. The columns of ``rows`` and ``mended`` contain
    indexes into ``strings``, or -1 for no string. The column ``finding`` contains indexes into ``kinds``.
    """
    summary = audit.summary
    strings = StringTable()
    return {
        "version": VERSION,
        "fleet": sanitize_for_terminal(summary.fleet),
        "audit": sanitize_for_terminal(summary.audit_id),
        "taken": format_second(summary.taken_at),
        "took": format_duration(summary.seconds),
        "unchanged": summary.unchanged_count,
        "kinds": [[kind.value, KIND_MEANINGS[kind]] for kind in FindingKind],
        "clusters": [_build_cluster_data(cluster) for cluster in summary.clusters],
        "objects": choose_object_noun(summary.clusters),
        "teams": [[team, _list_counts(found)] for team, found in list_teams_by_findings(summary)],
        "heat": _build_heat_data(summary),
        "since": _build_comparison_data(summary),
        "trend": _build_trend_data(summary),
        "rows": _build_columns(sort_worst_first(audit.rows), audit, strings),
        "mended": _build_columns(audit.mended, audit, strings),
        "left": audit.left_out,
        "unseen": _list_counts(summary.unseen),
        "accepted": format_accepted(summary),
        "strings": list(strings.places),
    }


def _build_columns(rows: Sequence[AuditRow], audit: Audit, strings: StringTable) -> dict[str, list[int]]:
    columns = {name: [strings.place(text(row)) for row in rows] for name, text in _COLUMNS.items()}
    urls = [strings.place(audit.find_url(row)) for row in rows]
    return {"finding": [row.finding.rank for row in rows], "url": urls} | columns


def _build_cluster_data(cluster: ClusterSummary) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "labels": dict(sorted(cluster.labels.items())),
        "objects": sum_objects(cluster),
        "declared": cluster.declared,
        "found": _list_counts(cluster.found),
        "error": cluster.error,
        "notice": cluster.notice,
    }


def _build_heat_data(summary: AuditSummary) -> dict[str, Any]:
    """Build the cells of the heat map as lists of cluster indexes, path indexes and counts.

    The paths with the most findings come first.
    """
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


def _build_trend_data(summary: AuditSummary) -> list[dict[str, Any]]:
    """Build the points of the trend chart: earlier audits, oldest first, then this audit."""
    points: Iterable[tuple[datetime, KindCounts]] = ((p.taken_at, p.found) for p in summary.trend)
    all_points = [*points, (summary.taken_at, summary.remembered)]
    return [{"taken": format_second(taken), "found": _list_counts(found)} for taken, found in all_points]


def _build_comparison_data(summary: AuditSummary) -> dict[str, Any] | None:
    comparison = summary.since
    if comparison is None:
        return None
    counts = {"new": comparison.new, "known": comparison.known, "mended": comparison.mended}
    return {"taken": format_second(comparison.taken_at)} | counts


def _list_counts(counts: KindCounts) -> list[int]:
    return [counts.get(kind, 0) for kind in FindingKind]
