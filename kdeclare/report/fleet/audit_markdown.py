"""An audit as the text of an issue: what could not be read, where the findings are, the worst of them.

Markdown as GitHub and GitLab take it. What does not fit is counted instead.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from kdeclare.fleet.findings import Audit, AuditRow, ClusterSummary, Counts, FindingKind
from kdeclare.report.elements.markdown_escape import code, prose
from kdeclare.report.elements.values import duration, key_of, plural
from kdeclare.report.fleet.audit_words import (
    NO_TEAM,
    by_total,
    change,
    headline,
    since_line,
    teams_by_total,
    total,
    worst_first,
)
from kdeclare.report.plan.plan_markdown import LIMIT, fitting
from kdeclare.report.run.history_text import moment

_CLUSTERS = 50
_TEAMS = 50
_ROWS = 200


def audit_markdown(audit: Audit) -> str:
    """The whole report, at most ``LIMIT`` characters, ending in a new line."""
    head = _head(audit)
    foot = _foot(audit)
    sections: tuple[tuple[Callable[[Audit, int], str], float], ...] = (
        (_unread, 0.3),
        (_untold, 0.2),
        (_clusters, 0.4),
        (_teams, 0.4),
        (_findings, 1.0),
    )
    room = LIMIT - len(head) - len(foot) - len(sections) - 1  # and a line between each two
    blocks = [head]
    for section, share in sections:
        blocks.append(section(audit, int(room * share)))
        room -= len(blocks[-1])
    return "\n".join(block for block in (*blocks, foot) if block)


def _head(audit: Audit) -> str:
    since = since_line(audit.summary)
    return f"## {prose(headline(audit.summary))}\n" + (f"\n{prose(since)}\n" if since else "")


def _foot(audit: Audit) -> str:
    summary = audit.summary
    took = f"taken {moment(summary.taken_at)} in {duration(summary.seconds)}"
    return f"Audit {code(summary.audit_id)} · {took} · more in report.html, all in the tables beside it\n"


def _unread(audit: Audit, room: int) -> str:
    unread = audit.summary.incomplete
    title = "### Not read, or not all of it\n\n"
    lines = (_said(cluster, cluster.error) for cluster in unread)
    return _fitted(title, lines, len(unread), "cluster", room) if unread else ""


def _untold(audit: Audit, room: int) -> str:
    found = [cluster for cluster in audit.summary.clusters if cluster.notice is not None]
    lines = (_said(cluster, cluster.notice) for cluster in found)
    return _fitted("### Not told\n\n", lines, len(found), "cluster", room) if found else ""


def _said(cluster: ClusterSummary, text: str | None) -> str:
    return f"- {code(cluster.name)}: {prose(text or '', 300)}\n"


def _clusters(audit: Audit, room: int) -> str:
    found = by_total(audit.summary.clusters)
    return _table("Cluster", [(code(c.name), c.found) for c in found], _CLUSTERS, room) if found else ""


def _teams(audit: Audit, room: int) -> str:
    teams = teams_by_total(audit.summary)
    if not any(team for team, _ in teams):
        return ""
    rows = [(code(team) if team else prose(NO_TEAM), found) for team, found in teams]
    return _table("Team", rows, _TEAMS, room)


def _table(name: str, rows: Sequence[tuple[str, Counts]], most: int, room: int) -> str:
    kinds = [kind for kind in FindingKind if any(found.get(kind) for _, found in rows)]
    cells = " | ".join(kind.value for kind in kinds)
    title = f"### By {name.lower()}\n\n| {name} | {cells} | total |\n|---|{'---:|' * (len(kinds) + 1)}\n"
    lines = (
        f"| {cell} | {' | '.join(_count(found.get(kind, 0)) for kind in kinds)} | {total(found):,} |\n"
        for cell, found in islice(rows, most)
    )
    return _fitted(title, lines, len(rows), name.lower(), room)


def _count(count: int) -> str:
    return f"{count:,}" if count else ""


def _findings(audit: Audit, room: int) -> str:
    rows = worst_first(audit.rows)
    if not rows:
        return ""
    title = "### Findings, worst first\n\n"
    head = f"<details><summary>{plural(len(rows) + audit.left_out, 'finding')}</summary>\n\n"
    end = "\n</details>\n"
    lines = (_row(row) for row in islice(rows, _ROWS))
    return _fitted(title + head, lines, len(rows) + audit.left_out, "finding", room - len(end)) + end


def _row(row: AuditRow) -> str:
    new = " **new**" if row.status == "new" else ""
    where = f"{code(row.cluster)} {code(f'{row.kind}/{row.name}')}"
    values = change(row)
    field = f" {code(key_of(row.path))}" if row.path else ""
    field += f": {code(values, 120)}" if values else ""
    said = f"<br>{prose(row.message, 300)}" if row.message else ""
    return f"- **{row.finding.value}**{new} {where}{field}{said}\n"


def _fitted(title: str, lines: Iterable[str], count: int, what: str, room: int) -> str:
    """The lines there is room for, and how many there are beside them."""
    shown = fitting(lines, room - len(title) - 80)
    left = count - len(shown)
    more = f"\n… and {plural(left, f'more {what}')}, left out here\n" if left else ""
    return "".join([title, *shown, more])
