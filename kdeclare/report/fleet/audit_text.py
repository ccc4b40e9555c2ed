"""The text output of ``fleet audit``.

It lists the clusters that could not be read, the number of findings by cluster and by team, and the worst
findings.
"""

from collections.abc import Iterator, Sequence

from kdeclare.fleet.audit_summary import Audit, AuditSummary, KindCounts
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import (
    format_count,
    format_duration,
    sanitize_for_terminal,
)
from kdeclare.report.fleet.audit_wording import (
    NO_TEAM,
    choose_object_noun,
    count_findings,
    format_accepted,
    format_comparison,
    format_headline,
    format_severities,
    format_unchanged,
    group_equal_findings,
    list_shown_kinds,
    list_teams_by_findings,
    sort_by_findings,
    sort_worst_first,
    sum_objects,
)
from kdeclare.report.fleet.cluster_table import ClusterCell, render_cluster_table
from kdeclare.report.fleet.finding_lines import render_finding_lines
from kdeclare.report.fleet.unused_table import UNUSED_HEADER, build_unused_cells, select_unused
from kdeclare.report.run.history_text import format_time

_MAX_LINES = 20


def render_audit_text(audit: Audit, style: Style = PLAIN) -> str:
    """Render the audit as text that ends in a newline. If findings are omitted, show how many."""
    blocks = [
        _render_header(audit.summary, style),
        _render_incomplete(audit.summary, style),
        _render_undetermined(audit.summary, style),
        _render_clusters(audit.summary, style),
        _render_teams(audit.summary, style),
        _render_unused(audit, style),
        _render_findings(audit, style),
        _render_accepted(audit.summary, style),
    ]
    texts = ["".join(f"{line}\n" for line in block) for block in blocks]
    return "\n".join(text for text in texts if text)


def _render_header(summary: AuditSummary, style: Style) -> Iterator[str]:
    has_no_findings = not count_findings(summary.found) and not summary.incomplete
    yield (style.green if has_no_findings else style.bold)(format_headline(summary))
    timing = (
        f"Audit {sanitize_for_terminal(summary.audit_id)}, run at "
        f"{format_time(summary.taken_at)} ({format_duration(summary.seconds)})."
    )
    yield style.dim(timing)
    severities = format_severities(summary)
    if severities:
        yield f"Severity: {severities}."
    if summary.since is not None:
        yield format_comparison(summary)
    if summary.unchanged_count:
        yield format_unchanged(summary)


def _render_incomplete(summary: AuditSummary, style: Style) -> Iterator[str]:
    incomplete = summary.incomplete
    if not incomplete:
        return
    yield style.red("Clusters not read, or only partially read:")
    yield from _render_notes([(cluster.name, cluster.error) for cluster in incomplete], style)


def _render_undetermined(summary: AuditSummary, style: Style) -> Iterator[str]:
    noticed_clusters = [
        (cluster.name, cluster.notice) for cluster in summary.clusters if cluster.notice is not None
    ]
    if not noticed_clusters:
        return
    yield style.bold("Checks that could not be completed:")
    yield from _render_notes(noticed_clusters, style)


def _render_notes(notes: Sequence[tuple[str, str | None]], style: Style) -> Iterator[str]:
    width = max(len(sanitize_for_terminal(name)) for name, _ in notes[:_MAX_LINES])
    for name, text in notes[:_MAX_LINES]:
        yield f"  {sanitize_for_terminal(name):<{width}}  {sanitize_for_terminal(text or '')}"
    yield from _render_omission(len(notes), style)


def _render_clusters(summary: AuditSummary, style: Style) -> Iterator[str]:
    clusters = sort_by_findings(summary.clusters)
    if not clusters:
        return
    rows: list[tuple[ClusterCell, ...]] = [
        (sanitize_for_terminal(c.name), *_list_counts(c.found, summary), sum_objects(c), c.declared)
        for c in clusters[:_MAX_LINES]
    ]
    yield from _render_counts_table(
        "CLUSTER", (choose_object_noun(summary.clusters).upper(), "DECLARED"), rows, summary, style
    )
    yield from _render_omission(len(clusters), style)


def _render_teams(summary: AuditSummary, style: Style) -> Iterator[str]:
    teams = list_teams_by_findings(summary)
    if not any(team for team, _ in teams):
        return  # no resource has a team, so the table would only repeat the headline
    rows: list[tuple[ClusterCell, ...]] = [
        (sanitize_for_terminal(team) or NO_TEAM, *_list_counts(found, summary))
        for team, found in teams[:_MAX_LINES]
    ]
    yield from _render_counts_table("TEAM", (), rows, summary, style)
    yield from _render_omission(len(teams), style)


def _render_counts_table(
    name: str,
    extra_columns: tuple[str, ...],
    rows: list[tuple[ClusterCell, ...]],
    summary: AuditSummary,
    style: Style,
) -> Iterator[str]:
    header = (name, *(kind.value.upper() for kind in list_shown_kinds(summary)), "TOTAL", *extra_columns)
    yield from (f"  {line}" for line in render_cluster_table(header, rows, style))


def _list_counts(counts: KindCounts, summary: AuditSummary) -> tuple[int, ...]:
    return *(counts.get(kind, 0) for kind in list_shown_kinds(summary)), count_findings(counts)


def _render_unused(audit: Audit, style: Style) -> Iterator[str]:
    unused, _ = select_unused(audit.rows)
    if not unused:
        return
    yield style.bold("Unused, largest first:")
    cells: list[tuple[ClusterCell, ...]] = [
        tuple(map(sanitize_for_terminal, build_unused_cells(row))) for row in unused[:_MAX_LINES]
    ]
    header = tuple(name.upper() for name in UNUSED_HEADER)
    yield from (f"  {line}" for line in render_cluster_table(header, cells, style))
    yield from _render_omission(len(unused), style)


def _render_findings(audit: Audit, style: Style) -> Iterator[str]:
    rows = sort_worst_first(select_unused(audit.rows)[1])
    if not rows:
        return
    yield style.bold("Findings, worst first:")
    shown_groups = group_equal_findings(rows)[:_MAX_LINES]
    yield from render_finding_lines(shown_groups, audit.summary.taken_at, style)
    omitted_count = len(rows) - sum(len(group.rows) for group in shown_groups) + audit.left_out
    if omitted_count:
        yield style.dim(f"  … and {format_count(omitted_count, 'more finding')}")


def _render_accepted(summary: AuditSummary, style: Style) -> Iterator[str]:
    accepted = format_accepted(summary)
    if accepted:
        yield style.bold("Accepted drift:")
        yield from _render_notes(accepted, style)


def _render_omission(count: int, style: Style) -> Iterator[str]:
    if count > _MAX_LINES:
        yield style.dim(f"  … and {count - _MAX_LINES:,} more")
