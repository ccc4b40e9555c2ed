"""Reduce an audit to the findings of one team, so that each team gets a report of its own."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from kdeclare.fleet.audit_results import build_groups, sum_counts
from kdeclare.fleet.audit_summary import Audit, ClusterSummary, HeatCell, KindCounts
from kdeclare.fleet.findings import FindingCount, FindingKind
from kdeclare.report.fleet.audit_markdown import render_audit_markdown
from kdeclare.report.fleet.audit_page import render_audit_page
from kdeclare.report.fleet.audit_wording import NO_TEAM

TEAMS = "teams"
"""The name of the folder that contains the reports for all teams."""


def render_team_reports(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield the path and the content of two reports for each team: a Markdown file and an HTML page.

    Teams without findings get no reports.
    """
    for team in sorted(audit.summary.teams):
        team_audit = select_team(audit, team)
        # '(' is escaped in the names of teams, so the file of the resources without a team is unique
        name = quote(team, safe="") or NO_TEAM
        yield f"{TEAMS}/{name}.md", render_audit_markdown(team_audit)
        yield f"{TEAMS}/{name}.html", render_audit_page(team_audit)


def select_team(audit: Audit, team: str) -> Audit:
    """Return the audit with the findings of one team only.

    Clusters that could not be read are kept, because the drift of the team's resources there is unknown. The
    comparison with earlier audits and the trend are left out, because they count the findings of all teams.

    team: the value of the label ``team``; empty for resources without this label.
    """
    counts = tuple(count for count in audit.counts if count.team == team)
    rows = tuple(row for row in audit.rows if row.labels.get("team", "") == team)
    by_cluster = {cluster.name: _count_kinds(counts, cluster.name) for cluster in audit.summary.clusters}
    cells = Counter((row.cluster, row.path) for row in rows)
    summary = replace(
        audit.summary,
        fleet=f"{audit.summary.fleet} (team {team or NO_TEAM})",
        clusters=tuple(
            replace(cluster, found=by_cluster[cluster.name])
            for cluster in audit.summary.clusters
            if _concerns_team(cluster, by_cluster[cluster.name])
        ),
        found=sum_counts(by_cluster),
        teams={team: sum_counts(by_cluster)},
        heat=tuple(HeatCell(cluster, path, count) for (cluster, path), count in cells.items()),
        since=None,
        unseen={},
        trend=(),
        groups=build_groups(counts),
        accepted=(),
    )
    fixed = tuple(row for row in audit.mended if row.labels.get("team", "") == team)
    left_out = sum(count.count for count in counts) - len(rows)
    return Audit(summary, rows, left_out, fixed, counts, audit.links)


def _count_kinds(counts: tuple[FindingCount, ...], cluster: str) -> KindCounts:
    totals: Counter[FindingKind] = Counter()
    for count in counts:
        if count.cluster == cluster:
            totals[count.finding] += count.count
    return dict(totals)


def _concerns_team(cluster: ClusterSummary, found: KindCounts) -> bool:
    return bool(found) or cluster.error is not None
