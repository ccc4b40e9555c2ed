"""The text of ``fleet report``."""

from dataclasses import replace
from datetime import timedelta

from kdeclare.fleet.finding_status import FIXED
from kdeclare.fleet.stored_findings import ComparedFindings
from kdeclare.report.fleet.findings_report import render_findings_text
from tests.browser.sample_audits import build_small_audit
from tests.unit.report.golden_files import check_golden

ESCAPES = "\x1b[31mred\x1b[0m\n\u202eabc"


def test_findings_match_golden_files() -> None:
    audit = build_small_audit()
    fixed = tuple(replace(row, status=FIXED) for row in audit.mended)
    compared = ComparedFindings(audit.rows, fixed, 3)
    check_golden("findings", render_findings_text(audit.summary, None, replace(compared, fixed=())))
    earlier = replace(
        audit.summary, audit_id="20261111T040000Z-abcd", taken_at=audit.summary.taken_at - timedelta(days=7)
    )
    check_golden("findings-since", render_findings_text(audit.summary, earlier, compared))
    nothing = ComparedFindings((), (), 0)
    check_golden("findings-none", render_findings_text(audit.summary, earlier, nothing))


def test_text_contains_no_control_characters() -> None:
    audit = build_small_audit()
    rows = tuple(replace(row, name=ESCAPES, cluster=ESCAPES, message=ESCAPES) for row in audit.rows)
    text = render_findings_text(audit.summary, None, ComparedFindings(rows, (), 0))
    assert "\x1b" not in text
