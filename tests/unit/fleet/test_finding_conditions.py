"""Conditions on findings: how they are written, and which findings meet them."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.fleet.audit_summary import AuditSummary, FindingGroup
from kdeclare.fleet.finding_conditions import FindingCondition, is_any_met, parse_conditions
from kdeclare.fleet.findings import FindingKind, FindingSeverity
from kdeclare.report.fleet.fleet_runs import compute_audit_exit

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
GROUPS = (
    FindingGroup(FindingKind.CHANGED, FindingSeverity.HIGH, 1, NOON - timedelta(hours=1)),
    FindingGroup(FindingKind.CHANGED, FindingSeverity.LOW, 30, NOON - timedelta(days=8)),
    FindingGroup(FindingKind.UNMANAGED, FindingSeverity.LOW, 3, NOON - timedelta(days=90)),
)
SUMMARY = AuditSummary("a", "fleet", NOON, 1.0, (), {}, groups=GROUPS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("changed", FindingCondition(FindingKind.CHANGED)),
        ("severity>=medium", FindingCondition(None, FindingSeverity.MEDIUM)),
        ("severity >= low", FindingCondition(None, FindingSeverity.LOW)),
        ("age>7d", FindingCondition(None, None, 7 * 86_400.0)),
        ("age > 1h30m", FindingCondition(None, None, 5_400.0)),
        (
            "changed and severity>=high and age>90m",
            FindingCondition(FindingKind.CHANGED, FindingSeverity.HIGH, 5_400.0),
        ),
    ],
)
def test_condition_is_parsed(text: str, expected: FindingCondition) -> None:
    assert parse_conditions(text) == (expected,)
    assert parse_conditions(f" missing ,  {text} ") == (FindingCondition(FindingKind.MISSING), expected)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is not a kind of finding. Use unreachable, missing, changed"),
        ("changd", "Did you mean 'changed'?"),
        ("changed,", "'' is not a kind of finding."),
        ("changed and", "'changed and' is not a kind of finding."),
        ("changed and missing", "has two conditions of the same type. Separate alternatives with commas."),
        ("age>1d and age>2d", "has two conditions of the same type."),
        ("severity>high", "Write severity>=high to select findings at least this urgent."),
        ("severity>=hihg", "'hihg' is not a severity. Did you mean 'high'?"),
        ("severity>=x", "Use high, medium or low."),
        ("age>=7d", "Write age>7d to select findings that have been open for longer."),
        ("age>7", "'7' is not a duration"),
        ("size>7", "'size>7' is not a condition. Only severity and age can be compared."),
    ],
)
def test_wrong_condition_is_explained(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        parse_conditions(text)


@pytest.mark.parametrize(
    ("text", "is_met"),
    [
        ("changed", True),
        ("missing", False),
        ("missing, changed", True),
        ("severity>=high", True),
        ("unmanaged and severity>=medium", False),
        ("age>7d", True),
        ("age>91d", False),
        ("changed and age>7d", True),
        ("changed and age>8d", False),
        ("changed and severity>=medium and age>30m", True),
        ("changed and severity>=medium and age>1d", False),
        (f"age>{'9' * 400}d", False),
    ],
)
def test_condition_is_met_by_at_least_one_finding(text: str, is_met: bool) -> None:
    conditions = parse_conditions(text)
    assert is_any_met(conditions, SUMMARY) is is_met
    assert compute_audit_exit(SUMMARY, fail_on=conditions) is (ExitCode.CHANGES if is_met else ExitCode.OK)
