"""The reports of teams: they have the findings of one team, and nothing is lost between them."""

from collections import Counter

from kdeclare.report.fleet.audit_text import render_audit_text
from kdeclare.report.fleet.team_audits import render_team_reports, select_team
from tests.browser.sample_audits import build_big_audit, build_quiet_audit, build_small_audit
from tests.unit.report.golden_files import check_golden


def test_team_audit_of_small_audit_matches_golden_file() -> None:
    check_golden("audit-team", render_audit_text(select_team(build_small_audit(), "payments")))


def test_teams_share_all_findings_without_overlap() -> None:
    audit = build_big_audit()
    teams = [select_team(audit, team) for team in audit.summary.teams]
    assert len(teams) > 5
    assert Counter(row.id for team in teams for row in team.rows) == Counter(row.id for row in audit.rows)
    found = sum((Counter(team.summary.found) for team in teams), Counter())
    assert found == Counter(audit.summary.found)
    groups: Counter[tuple[str, str]] = Counter()
    for team in teams:
        groups.update({(group.finding, group.severity): group.count for group in team.summary.groups})
    assert groups == {(group.finding, group.severity): group.count for group in audit.summary.groups}


def test_findings_beyond_the_limit_of_reports_are_counted() -> None:
    audit = build_big_audit()
    short = type(audit)(audit.summary, audit.rows[:100], len(audit.rows) - 100, (), audit.counts)
    for team in audit.summary.teams:
        reduced = select_team(short, team)
        assert reduced.left_out + len(reduced.rows) == sum(audit.summary.teams[team].values())


def test_unread_clusters_are_in_the_report_of_each_team() -> None:
    audit = build_small_audit()
    for team in audit.summary.teams:
        reduced = select_team(audit, team)
        assert "eu-3" in [cluster.name for cluster in reduced.summary.incomplete]


def test_report_files_are_named_after_teams() -> None:
    names = [path for path, _ in render_team_reports(build_small_audit())]
    assert names[:2] == ["teams/(no team).md", "teams/(no team).html"]
    assert names[2:] == [f"teams/{team}.{end}" for team in ("checkout", "payments") for end in ("md", "html")]
    assert not list(render_team_reports(build_quiet_audit()))
