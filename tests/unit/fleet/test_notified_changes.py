"""What is new and what is fixed for a recipient that sees only some findings."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from kdeclare.fleet.finding_conditions import parse_conditions
from kdeclare.fleet.findings import FindingKind, FindingSeverity
from kdeclare.fleet.messages.notified_changes import AuditTables, Recipient, find_changes
from kdeclare.fleet.stored_findings import compare_findings
from tests.browser.sample_audits import NOON, build_cluster, build_summary

DAY = timedelta(days=1)
EVERYTHING = Recipient()


def make_row(name: str, **more: Any) -> dict[str, Any]:
    return {
        "taken_at": NOON,
        "cluster": "eu-1",
        "kind": "Topic",
        "name": name,
        "finding": "changed",
        "path": "configs.retention.ms",
        "op": "SET",
        "before": '"1"',
        "after": '"2"',
        "message": "",
        "labels": {"team": "checkout"},
        "first_seen": NOON,
        "status": "known",
        "severity": "low",
        "source": None,
        "accepted": None,
        **more,
    }


def make_audit(
    rows: Sequence[dict[str, Any]], unseen: Sequence[dict[str, Any]] = (), days: int = 0
) -> AuditTables:
    summary = build_summary([], [build_cluster("eu-1")], taken_at=NOON + days * DAY)
    return AuditTables(summary, tuple(rows), tuple(unseen))


def find_names(
    audit: AuditTables, baseline: AuditTables | None, recipient: Recipient
) -> tuple[set[str], set[str]]:
    changes = find_changes(audit, baseline, recipient)
    return {row.name for row in changes.new}, {row.name for row in changes.fixed}


def test_all_findings_of_first_audit_are_new() -> None:
    assert find_names(make_audit([make_row("a"), make_row("b")]), None, EVERYTHING) == ({"a", "b"}, set())


def test_new_and_fixed_findings_are_found() -> None:
    before, after = make_audit([make_row("a"), make_row("b")]), make_audit([make_row("b"), make_row("c")])
    assert find_names(after, before, EVERYTHING) == ({"c"}, {"a"})


def test_unseen_findings_are_neither_new_nor_fixed() -> None:
    rows = [make_row("a")]
    for before, after in ((make_audit(rows), make_audit([], rows)), (make_audit([], rows), make_audit(rows))):
        assert find_names(after, before, EVERYTHING) == (set(), set())


def test_findings_of_removed_cluster_are_not_fixed() -> None:
    rows = [make_row("a"), make_row("b", cluster="eu-2")]
    assert find_names(make_audit([]), make_audit(rows), EVERYTHING) == (set(), {"a"})
    compared = compare_findings([], [], rows, {"eu-1"}, lambda _: True)
    assert [row.name for row in compared.fixed] == ["a"]


def test_finding_that_becomes_older_than_limit_is_new() -> None:
    recipient = Recipient(parse_conditions("age>7d"))
    rows = [make_row("a"), make_row("b", first_seen=NOON - 3 * DAY)]
    audits = [make_audit(rows, days=days) for days in (0, 5, 8)]
    assert find_names(audits[0], None, recipient) == (set(), set())
    assert find_names(audits[1], audits[0], recipient) == ({"b"}, set())
    assert find_names(audits[2], audits[1], recipient) == ({"a"}, set())


def test_finding_that_becomes_urgent_is_new() -> None:
    recipient = Recipient(parse_conditions("severity>=high"))
    before, after = make_audit([make_row("a")]), make_audit([make_row("a", severity="high")])
    assert find_names(after, before, recipient) == ({"a"}, set())
    assert find_names(after, before, EVERYTHING) == (set(), set())


def test_fixed_finding_that_recipient_never_saw_is_not_reported() -> None:
    recipient = Recipient(parse_conditions("severity>=high"))
    before = make_audit([make_row("a"), make_row("b", severity="high")])
    assert find_names(make_audit([]), before, recipient) == (set(), {"b"})


def test_acceptance_is_no_fix_and_its_end_is_new() -> None:
    open_audit, accepted = make_audit([make_row("a")]), make_audit([make_row("a", accepted="sale")])
    assert find_names(accepted, open_audit, EVERYTHING) == (set(), set())
    assert find_names(open_audit, accepted, EVERYTHING) == ({"a"}, set())
    assert find_names(make_audit([]), accepted, EVERYTHING) == (set(), set())


def test_recipient_sees_findings_of_its_team() -> None:
    rows = [make_row("a"), make_row("b", labels={"team": "search"}), make_row("c", labels=None)]
    assert find_names(make_audit(rows), None, Recipient(team="search")) == ({"b"}, set())


def test_rows_have_kinds_and_severities() -> None:
    (row,) = find_changes(make_audit([make_row("a", severity=None)]), None, EVERYTHING).rows
    assert (row.finding, row.severity, row.status) == (FindingKind.CHANGED, FindingSeverity.LOW, "new")
