"""An audit as one HTML page."""

from kdeclare.fleet.summary import Audit
from kdeclare.report.audit_page_data import page_data
from kdeclare.report.audit_words import headline
from kdeclare.report.html_page import html_page
from kdeclare.report.values import clean

_SCRIPTS = ("audit_data.js", "audit_charts.js", "audit_rows.js", "audit.js")


def audit_html(audit: Audit) -> str:
    """The whole page; some 0.3 kB a finding. What secrets left as hashes is not in it."""
    summary = audit.summary
    title = clean(f"{summary.fleet}: audit {summary.audit_id}")
    return html_page("audit", _SCRIPTS, title, headline(summary, tallied=False), page_data(audit))
