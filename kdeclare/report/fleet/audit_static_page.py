"""The parts of an audit's HTML page that need no scripts.

All browsers show the table of unused resources. Browsers without JavaScript also show the counts, the severe
findings and all findings up to a limit.
"""

from collections.abc import Iterable, Sequence
from html import escape

from kdeclare.core.units import format_size
from kdeclare.fleet.audit_summary import Audit
from kdeclare.fleet.findings import AuditRow, FindingKind, FindingSeverity
from kdeclare.fleet.tables.rows import CLUSTER
from kdeclare.report.elements.values import (
    format_count,
    sanitize_for_terminal,
    strip_configs_prefix,
    truncate,
)
from kdeclare.report.fleet.audit_wording import (
    KIND_MEANINGS,
    EqualFindings,
    format_age,
    format_change,
    group_equal_findings,
)
from kdeclare.report.fleet.unused_table import (
    UNUSED_HEADER,
    build_unused_cells,
    select_unused,
    sum_unused_bytes,
)

MAX_STATIC_FINDINGS = 1_000
"""The maximum number of findings that are shown without JavaScript.

It is also the maximum number of rows in the table of unused resources.
"""
MAX_SEVERE_GROUPS = 20
"""The maximum number of lines in the list of severe findings."""
MAX_VALUE_LENGTH = 200
"""The maximum length of a value in lists of findings."""

_FINDING_HEADER = ("Finding", "Cluster", "Resource", "Field", "Live → declared", "Team", "Age")


def select_severe(rows: Iterable[AuditRow]) -> list[EqualFindings]:
    """Return the findings of high severity, in groups of findings that differ only in the resource.

    Clusters that could not be read are left out, because the page lists them separately.
    """
    return group_equal_findings(
        row
        for row in rows
        if row.severity is FindingSeverity.HIGH
        and not (row.finding is FindingKind.UNREACHABLE and row.kind == CLUSTER)
    )


def describe_severe(group: EqualFindings) -> tuple[str, ...]:
    """Return the lines about a group of findings that differ only in the resource.

    The lines show the field with its values, the names of the resources, and the message.
    """
    row = group.first
    values = truncate(format_change(row), MAX_VALUE_LENGTH)
    field = f"{strip_configs_prefix(row.path)} {values}".strip() if row.path else ""
    return tuple(sanitize_for_terminal(line) for line in (field, group.names, row.message) if line)


def render_unused_section(audit: Audit) -> str:
    """Render the table of unused resources as HTML, the largest resources first; empty if there are none."""
    unused, _ = select_unused(audit.rows)
    if not unused:
        return ""
    sizes = sum_unused_bytes(unused)
    total = f", {format_size(sizes)}" if sizes else ""
    return (
        '<section class="panel" id="unused" aria-labelledby="unused-title">\n<div class="panel-head">'
        '<h2 id="unused-title">Unused, largest first</h2>'
        f'<p class="note">{format_count(len(unused), "resource")}{total}</p></div>\n'
        '<div class="scroll listing" role="region" aria-labelledby="unused-title" tabindex="0">\n'
        f"{_render_table(UNUSED_HEADER, map(build_unused_cells, unused[:MAX_STATIC_FINDINGS]))}"
        f"</div>\n{_render_rest(len(unused) - MAX_STATIC_FINDINGS)}</section>\n"
    )


def render_static_page(
    audit: Audit, facts: Sequence[tuple[str, str]], rows: Sequence[AuditRow], severe: Sequence[EqualFindings]
) -> str:
    """Render the parts of the page that need no scripts: the overview, the counts and the findings.

    facts: the labels and values of the overview.
    rows: the findings, the worst first.
    severe: see `select_severe`.
    """
    items = "".join(f"<div><dt>{escape(name)}</dt> <dd>{escape(text)}</dd></div>" for name, text in facts)
    counts = "".join(
        f"<li><b>{count:,} {kind.value}</b><span>{KIND_MEANINGS[kind]}</span></li>"
        for kind, count in audit.summary.found.items()
        if count
    )
    return (
        f'<dl class="facts">{items}</dl>\n<section class="panel said static"><ul>{counts}</ul></section>\n'
        f"{_render_unread(audit)}{_render_severe(severe)}"
        '<section class="panel static listing" id="static-findings">\n<h2>Findings</h2>\n'
        f"{_render_table(_FINDING_HEADER, (_build_cells(audit, row) for row in rows[:MAX_STATIC_FINDINGS]))}"
        f"{_render_rest(len(rows) + audit.left_out - MAX_STATIC_FINDINGS)}</section>\n"
    )


def _render_unread(audit: Audit) -> str:
    clusters = audit.summary.incomplete
    if not clusters:
        return ""
    items = "".join(
        f"<li><b>{_escape(cluster.name)}</b><span>{_escape(cluster.error or '')}</span></li>"
        for cluster in clusters
    )
    title = f"{format_count(len(clusters), 'cluster')} not read, or only partially read"
    return f'<section class="panel said alarm static">\n<h2>{title}</h2>\n<ul>{items}</ul></section>\n'


def _render_severe(severe: Sequence[EqualFindings]) -> str:
    if not severe:
        return ""
    items = "".join(map(_render_severe_item, severe[:MAX_SEVERE_GROUPS]))
    rest = _render_rest(sum(len(group.rows) for group in severe[MAX_SEVERE_GROUPS:]))
    title = format_count(sum(len(group.rows) for group in severe), "severe finding")
    return (
        f'<section class="panel said alarm static">\n<h2>{title}</h2>\n'
        f'<ul id="static-severe">{items}</ul>\n{rest}</section>\n'
    )


def _render_severe_item(group: EqualFindings) -> str:
    lines = "".join(f'<span class="line">{escape(line)}</span>' for line in describe_severe(group))
    subject = _escape(f"{group.resources} in {group.where}")
    return f"<li><b>{group.first.finding.value}</b><span>{subject}{lines}</span></li>\n"


def _build_cells(audit: Audit, row: AuditRow) -> tuple[str, ...]:
    return (
        f"{row.finding.value}, {row.severity.value}",
        row.cluster,
        f"{row.kind}/{row.name}",
        strip_configs_prefix(row.path) if row.path else "whole",
        "" if row.finding is FindingKind.UNUSED else truncate(format_change(row), MAX_VALUE_LENGTH),
        row.labels.get("team", ""),
        format_age([row], audit.summary.taken_at),
    )


def _render_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table. On phones, each cell has the title of its column."""
    head = "".join(f'<th scope="col">{escape(name.capitalize())}</th>' for name in header)
    body = "".join(f"<tr>{''.join(map(_render_cell, header, row))}</tr>\n" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"


def _render_cell(name: str, text: str) -> str:
    return f'<td data-title="{escape(name.capitalize())}">{_escape(text)}</td>'


def _render_rest(count: int) -> str:
    return f'<p class="dim">and {count:,} more (see the Parquet tables)</p>\n' if count > 0 else ""


def _escape(text: str) -> str:
    return escape(sanitize_for_terminal(text))
