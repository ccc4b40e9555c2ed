"""Render an audit in Markdown, for an issue on GitHub or GitLab.

The report lists the clusters that could not be read, the number of findings by cluster and by team, and the
worst findings. If not all lines fit, the report says how many are omitted.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from kdeclare.fleet.audit_summary import Audit, ClusterSummary, KindCounts
from kdeclare.fleet.findings import AuditRow, FindingKind
from kdeclare.report.elements.markdown_escape import escape_code, escape_prose
from kdeclare.report.elements.values import format_count, format_duration, strip_configs_prefix
from kdeclare.report.fleet.audit_wording import (
    NO_TEAM,
    EqualFindings,
    count_findings,
    format_accepted,
    format_age,
    format_change,
    format_comparison,
    format_headline,
    format_severities,
    format_unchanged,
    group_equal_findings,
    list_teams_by_findings,
    sort_by_findings,
    sort_worst_first,
)
from kdeclare.report.fleet.unused_table import UNUSED_HEADER, build_unused_cells, select_unused
from kdeclare.report.plan.plan_markdown import MAX_COMMENT_LENGTH, take_fitting
from kdeclare.report.run.history_text import format_time

_MAX_CLUSTERS = 50
_MAX_TEAMS = 50
_MAX_ROWS = 200


def render_audit_markdown(audit: Audit) -> str:
    """Render the whole report, with at most ``MAX_COMMENT_LENGTH`` characters and a final newline."""
    header = _render_header(audit)
    footer = _render_footer(audit)
    sections: tuple[tuple[Callable[[Audit, int], str], float], ...] = (
        (_render_incomplete, 0.3),
        (_render_undetermined, 0.2),
        (_render_clusters, 0.4),
        (_render_teams, 0.4),
        (_render_accepted, 0.3),
        (_render_unused, 0.3),
        (_render_findings, 1.0),
    )
    remaining = (
        MAX_COMMENT_LENGTH - len(header) - len(footer) - len(sections) - 1
    )  # and a newline between sections
    blocks = [header]
    for section, share in sections:
        blocks.append(section(audit, int(remaining * share)))
        remaining -= len(blocks[-1])
    return "\n".join(block for block in (*blocks, footer) if block)


def _render_header(audit: Audit) -> str:
    severities = format_severities(audit.summary)
    sentences = (
        f"Severity: {severities}." if severities else "",
        format_comparison(audit.summary),
        format_unchanged(audit.summary),
    )
    headline = f"## {escape_prose(format_headline(audit.summary))}\n"
    return headline + "".join(f"\n{escape_prose(sentence)}\n" for sentence in sentences if sentence)


def _render_footer(audit: Audit) -> str:
    summary = audit.summary
    timing = f"taken {format_time(summary.taken_at)} in {format_duration(summary.seconds)}"
    return (
        f"Audit {escape_code(summary.audit_id)} · {timing} · more findings in report.html, "
        f"all findings in the Parquet tables in the same folder\n"
    )


def _render_incomplete(audit: Audit, max_length: int) -> str:
    incomplete = audit.summary.incomplete
    title = "### Clusters not read, or only partially read\n\n"
    lines = (_render_cluster_note(cluster, cluster.error) for cluster in incomplete)
    return _render_fitting_lines(title, lines, len(incomplete), "cluster", max_length) if incomplete else ""


def _render_undetermined(audit: Audit, max_length: int) -> str:
    noticed_clusters = [cluster for cluster in audit.summary.clusters if cluster.notice is not None]
    if not noticed_clusters:
        return ""
    title = "### Checks that could not be completed\n\n"
    lines = (_render_cluster_note(cluster, cluster.notice) for cluster in noticed_clusters)
    return _render_fitting_lines(title, lines, len(noticed_clusters), "cluster", max_length)


def _render_cluster_note(cluster: ClusterSummary, text: str | None) -> str:
    return f"- {escape_code(cluster.name)}: {escape_prose(text or '', 300)}\n"


def _render_clusters(audit: Audit, max_length: int) -> str:
    clusters = sort_by_findings(audit.summary.clusters)
    return (
        _render_counts_table(
            "Cluster", [(escape_code(c.name), c.found) for c in clusters], _MAX_CLUSTERS, max_length
        )
        if clusters
        else ""
    )


def _render_teams(audit: Audit, max_length: int) -> str:
    teams = list_teams_by_findings(audit.summary)
    if not any(team for team, _ in teams):
        return ""
    rows = [(escape_code(team) if team else escape_prose(NO_TEAM), found) for team, found in teams]
    return _render_counts_table("Team", rows, _MAX_TEAMS, max_length)


def _render_counts_table(
    name: str, rows: Sequence[tuple[str, KindCounts]], max_rows: int, max_length: int
) -> str:
    kinds = [kind for kind in FindingKind if any(found.get(kind) for _, found in rows)]
    cells = " | ".join(kind.value for kind in kinds)
    title = f"### By {name.lower()}\n\n| {name} | {cells} | total |\n|---|{'---:|' * (len(kinds) + 1)}\n"
    lines = (
        f"| {cell} | {' | '.join(_format_count(found.get(kind, 0)) for kind in kinds)} "
        f"| {count_findings(found):,} |\n"
        for cell, found in islice(rows, max_rows)
    )
    return _render_fitting_lines(title, lines, len(rows), name.lower(), max_length)


def _format_count(count: int) -> str:
    return f"{count:,}" if count else ""


def _render_accepted(audit: Audit, max_length: int) -> str:
    accepted = format_accepted(audit.summary)
    if not accepted:
        return ""
    lines = (f"- {escape_code(name)}: {escape_prose(text, 300)}\n" for name, text in accepted)
    return _render_fitting_lines("### Accepted drift\n\n", lines, len(accepted), "AcceptedDrift", max_length)


def _render_unused(audit: Audit, max_length: int) -> str:
    unused, _ = select_unused(audit.rows)
    if not unused:
        return ""
    header = " | ".join(UNUSED_HEADER)
    title = f"### Unused, largest first\n\n| {header} |\n|---|---|---:|---:|---|---:|\n"
    lines = (_render_unused_line(row) for row in unused[:_MAX_ROWS])
    return _render_fitting_lines(title, lines, len(unused), "unused resource", max_length)


def _render_unused_line(row: AuditRow) -> str:
    cluster, name, *figures = build_unused_cells(row)
    cells = " | ".join((escape_code(cluster), escape_code(name), *map(escape_prose, figures)))
    return f"| {cells} |\n"


def _render_findings(audit: Audit, max_length: int) -> str:
    rows = sort_worst_first(select_unused(audit.rows)[1])
    if not rows:
        return ""
    title = "### Findings, worst first\n\n"
    details_start = f"<details><summary>{format_count(len(rows) + audit.left_out, 'finding')}</summary>\n\n"
    details_end = "\n</details>\n"
    groups = group_equal_findings(rows)[:_MAX_ROWS]
    lines = (_render_findings_line(group, audit) for group in groups)
    sizes = [len(group.rows) for group in groups]
    table = _render_fitting_lines(
        title + details_start,
        lines,
        len(rows) + audit.left_out,
        "finding",
        max_length - len(details_end),
        sizes,
    )
    return table + details_end


def _render_findings_line(group: EqualFindings, audit: Audit) -> str:
    row, age = group.first, format_age(group.rows, audit.summary.taken_at)
    values = format_change(row)
    field = f" {escape_code(strip_configs_prefix(row.path))}" if row.path else ""
    field += f": {escape_code(values, 120)}" if values else ""
    notes = "".join(f"<br>{escape_prose(text, 300)}" for text in (group.names, row.message) if text)
    label = f"**{row.severity.value}** {row.finding.value}{f' **{age}**' if age else ''}"
    url = audit.find_url(row) if len(group.rows) == 1 else None
    link = f" ([manifest]({url}))" if url is not None else ""
    return f"- {label} {escape_code(group.where)} {escape_code(group.resources)}{link}{field}{notes}\n"


def _render_fitting_lines(
    title: str,
    lines: Iterable[str],
    count: int,
    noun: str,
    max_length: int,
    sizes: Sequence[int] | None = None,
) -> str:
    """Render the lines that fit into the report, and the number of omitted items.

    sizes: the number of items that each line stands for; None if each line is one item.
    """
    fitting_lines = take_fitting(lines, max_length - len(title) - 80)
    omitted_count = count - (len(fitting_lines) if sizes is None else sum(sizes[: len(fitting_lines)]))
    omission_note = (
        f"\n… and {format_count(omitted_count, f'more {noun}')} (omitted)\n" if omitted_count else ""
    )
    return "".join([title, *fitting_lines, omission_note])
