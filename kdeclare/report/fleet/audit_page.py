"""Render an audit as an HTML page.

The page shows counts first, then unread clusters, severe findings, all findings, and charts. The data of the
page contains each string once. Table columns contain the indexes of strings.
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
from kdeclare.report.fleet.audit_static_page import (
    MAX_SEVERE_GROUPS,
    MAX_VALUE_LENGTH,
    describe_severe,
    render_static_page,
    render_unused_section,
    select_severe,
)
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
from kdeclare.report.fleet.unused_table import format_unused_figures
from kdeclare.report.run.history_text import format_time
from kdeclare.version import VERSION

_SCRIPTS = ("audit_data.js", "audit_charts.js", "audit_rows.js", "audit.js")


def render_audit_page(audit: Audit) -> str:
    """Render the page (about 0.3 kB per finding). Hashes of secrets are not included."""
    summary = audit.summary
    title = sanitize_for_terminal(f"{summary.fleet}: audit {summary.audit_id}")
    headline = format_headline(summary, with_counts=False)
    rows = sort_worst_first(audit.rows)
    parts = {
        "static": render_static_page(audit, _list_facts(summary), rows, select_severe(rows)),
        "unused": render_unused_section(audit),
    }
    return render_html_page("audit", _SCRIPTS, title, headline, build_page_data(audit), parts)


_COLUMNS: Mapping[str, Callable[[AuditRow], str | None]] = {
    "cluster": lambda row: row.cluster,
    "kind": lambda row: row.kind,
    "name": lambda row: row.name,
    "path": lambda row: row.path,
    "op": lambda row: row.op,
    "before": lambda row: mask_raw_value(row.before),
    "after": lambda row: mask_raw_value(row.after),
    "was": lambda row: truncate(_format_live(row), MAX_VALUE_LENGTH),
    "will": lambda row: truncate(format_sides(row)[1], MAX_VALUE_LENGTH),
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

    Counts of findings are lists in the order of ``kinds``. The columns of ``rows`` (the findings) and
    ``mended`` (the fixed findings) contain indexes into ``strings``, or -1 for no string. The column
    ``finding`` contains indexes into ``kinds``.
    """
    summary = audit.summary
    strings = StringTable()
    rows = sort_worst_first(audit.rows)
    return {
        "version": VERSION,
        "fleet": sanitize_for_terminal(summary.fleet),
        "audit": sanitize_for_terminal(summary.audit_id),
        "taken": format_second(summary.taken_at),
        "facts": _list_facts(summary),
        "kinds": [[kind.value, KIND_MEANINGS[kind]] for kind in FindingKind],
        "severe": _build_severe_data(rows),
        "clusters": [_build_cluster_data(cluster) for cluster in summary.clusters],
        "teams": [[team, _list_counts(found)] for team, found in list_teams_by_findings(summary)],
        "heat": _build_heat_data(summary),
        "since": _build_comparison_data(summary),
        "trend": _build_trend_data(summary),
        "rows": _build_columns(rows, audit, strings),
        "mended": _build_columns(audit.mended, audit, strings),
        "left": audit.left_out,
        "unseen": _list_counts(summary.unseen),
        "accepted": format_accepted(summary),
        "strings": list(strings.places),
    }


def _list_facts(summary: AuditSummary) -> list[tuple[str, str]]:
    clusters = summary.clusters
    read = sum(cluster.error is None for cluster in clusters)
    facts = [
        ("audit", sanitize_for_terminal(summary.audit_id)),
        ("taken", format_time(summary.taken_at)),
        ("took", format_duration(summary.seconds)),
        ("clusters read", f"{read:,} of {len(clusters):,}"),
        (choose_object_noun(clusters), f"{sum(map(sum_objects, clusters)):,}"),
        ("declared", f"{sum(cluster.declared for cluster in clusters):,}"),
    ]
    unchanged = summary.unchanged_count
    return [*facts, ("clusters unchanged", f"{unchanged:,}")] if unchanged else facts


def _build_severe_data(rows: Sequence[AuditRow]) -> dict[str, Any]:
    """Build the list of severe findings.

    Each item stands for a group of findings that differ only in the resource. The item contains the index
    of the group's first finding in ``rows``.
    """
    numbers = {id(row): number for number, row in enumerate(rows)}
    groups = select_severe(rows)
    return {
        "count": sum(len(group.rows) for group in groups),
        "items": [
            {
                "row": numbers[id(group.first)],
                "count": len(group.rows),
                "subject": sanitize_for_terminal(f"{group.resources} in {group.where}"),
                "lines": describe_severe(group),
            }
            for group in groups[:MAX_SEVERE_GROUPS]
        ],
        "left": sum(len(group.rows) for group in groups[MAX_SEVERE_GROUPS:]),
    }


def _build_columns(rows: Sequence[AuditRow], audit: Audit, strings: StringTable) -> dict[str, list[int]]:
    columns = {name: [strings.place(text(row)) for row in rows] for name, text in _COLUMNS.items()}
    urls = [strings.place(audit.find_url(row)) for row in rows]
    return {"finding": [row.finding.rank for row in rows], "url": urls} | columns


def _format_live(row: AuditRow) -> str:
    is_unused = row.finding is FindingKind.UNUSED and row.before is not None
    return format_unused_figures(row) if is_unused else format_sides(row)[0]


def _build_cluster_data(cluster: ClusterSummary) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "labels": dict(sorted(cluster.labels.items())),
        "found": _list_counts(cluster.found),
        "error": cluster.error,
        "notice": cluster.notice,
    }


def _build_heat_data(summary: AuditSummary) -> dict[str, Any]:
    """Build the data of the heat map, which shows the number of findings by cluster and field path.

    The lists ``cluster``, ``path`` and ``count`` have one element for each cell: the index of the cluster,
    the index of the path, and the number of findings. The paths with the most findings come first.
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
