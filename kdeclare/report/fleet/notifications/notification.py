"""The contents of a message about an audit, before they are formatted for a system such as Slack.

A message has a bounded length. It lists the most urgent findings, and counts the others.
"""

from collections import Counter
from collections.abc import Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.fleet.audit_summary import AuditSummary
from kdeclare.fleet.finding_status import FIXED
from kdeclare.fleet.findings import AuditRow, FindingSeverity
from kdeclare.fleet.messages.notified_changes import NotifiedChanges
from kdeclare.manifests.fleet.manifest_links import ManifestLinks
from kdeclare.manifests.fleet.notification_target import NotificationTarget
from kdeclare.report.elements.values import (
    format_count,
    join_nonempty,
    sanitize_for_terminal,
    strip_configs_prefix,
    truncate,
)
from kdeclare.report.fleet.audit_wording import (
    EqualFindings,
    format_change,
    format_open_time,
    group_equal_findings,
    sort_worst_first,
)
from kdeclare.report.run.history_text import format_time

MAX_NEW_LINES, MAX_FIXED_LINES = 10, 5
"""The maximum numbers of lines about new findings and about fixed findings in one message.

They apply to all message formats except ``json``.
"""
_MAX_NAME, _MAX_RESOURCES, _MAX_VALUES, _MAX_NOTE = 80, 160, 160, 300


@dataclass(frozen=True, slots=True)
class Notification:
    """The contents of a message.

    since: the earlier audit that the findings are compared with; None for the first audit.
    links: builds the URLs of manifests; None if the message has no links to manifests.
    report_url: the URL of the report; None if the message has no link to a report.
    """

    target: NotificationTarget
    summary: AuditSummary
    since: AuditSummary | None
    changes: NotifiedChanges
    links: ManifestLinks | None = None
    report_url: str | None = None

    @property
    def id(self) -> str:
        """The id of the message.

        It is the same for each attempt to send the message, so that the receiver can drop duplicates.
        """
        return f"{self.summary.audit_id}/{self.target.name}"

    @property
    def is_due(self) -> bool:
        """Whether to send the message: it has findings, or the target gets a message after every audit."""
        return "always" in self.target.events or bool(self.new or self.fixed)

    @property
    def new(self) -> list[AuditRow]:
        """The new findings for the target, the most urgent first; empty if ``events`` excludes them."""
        return sort_worst_first(self.changes.new) if self.target.events & {"new", "always"} else []

    @property
    def fixed(self) -> list[AuditRow]:
        """The fixed findings for the target, the most urgent first; empty if ``events`` excludes them."""
        return sort_worst_first(self.changes.fixed) if self.target.events & {"fixed", "always"} else []

    def find_url(self, row: AuditRow) -> str | None:
        """Return the URL of the manifest of a finding; None if there is no link."""
        return None if self.links is None or row.source is None else self.links.find_url(row.source)


@dataclass(frozen=True, slots=True)
class FindingLine:
    """A line of a message: one finding, or several that differ only in the resource.

    All strings are plain text, with limited lengths and without control characters.

    field: the field and its values; empty for findings about whole resources.
    note: the names of the resources if there are several, and the message of the finding; can be empty.
    url: the URL of the manifest; None if the line has no link.
    count: the number of findings.
    """

    severity: FindingSeverity
    kind: str
    age: str
    where: str
    resources: str
    field: str
    note: str
    url: str | None
    count: int

    @property
    def text(self) -> str:
        """The whole line as plain text."""
        age = f" ({self.age})" if self.age else ""
        field = f" {self.field}" if self.field else ""
        note = f". {self.note}" if self.note else ""
        return f"{self.severity.value} {self.kind}{age}: {self.where} {self.resources}{field}{note}"


def format_notification_headline(notification: Notification) -> str:
    """Format one sentence with the numbers of new and fixed findings."""
    new, fixed, target = notification.new, notification.fixed, notification.target
    subject = f"Fleet {notification.summary.fleet}"
    if target.team is not None:
        subject += f", team {target.team}"
    counts = join_nonempty(
        [
            f"{format_count(len(new), 'new finding')} ({_format_severities(new)})" if new else "",
            f"{len(fixed):,} fixed" if fixed else "",
        ]
    )
    return _clean(f"{subject}: {counts or 'nothing new'}.", 300)


def format_notification_context(notification: Notification) -> str:
    """Format sentences about the open findings, unread clusters, and the two compared audits."""
    summary, rows = notification.summary, notification.changes.rows
    severities = f" ({_format_severities(rows)})" if rows else ""
    sentences = [f"{format_count(len(rows), 'finding')} open{severities}."]
    if summary.incomplete:
        clusters = format_count(len(summary.incomplete), "cluster")
        sentences.append(f"{clusters} not read completely, so not all drift is known.")
    if notification.target.where is not None:
        sentences.append(f"Only findings with: {notification.target.where}.")
    since = notification.since
    period = f"compared with audit {since.audit_id}" if since is not None else "the first audit"
    sentences.append(f"Audit {summary.audit_id}, run at {format_time(summary.taken_at)}, {period}.")
    return _clean(" ".join(sentences), 800)


def build_finding_lines(
    rows: Sequence[AuditRow], notification: Notification, max_lines: int
) -> tuple[list[FindingLine], int]:
    """Return a line for each group of findings that differ only in the resource, up to ``max_lines``.

    The second value is the number of findings that are left out.
    """
    lines = [_build_line(group, notification) for group in group_equal_findings(rows)[:max_lines]]
    return lines, len(rows) - sum(line.count for line in lines)


def format_omission(count: int, noun: str) -> str:
    """Return the note about the number of findings that are left out; empty if ``count`` is 0."""
    return f"… and {format_count(count, f'more {noun} finding')}" if count else ""


def _build_line(group: EqualFindings, notification: Notification) -> FindingLine:
    row = group.first
    path = strip_configs_prefix(row.path) if row.path else ""
    change = format_change(row)
    # not the status: a finding that has become old or urgent is new for the recipient
    age = format_open_time(group.rows, notification.summary.taken_at)
    return FindingLine(
        row.severity,
        row.finding.value,
        f"was {age}" if age and row.status == FIXED else age,
        _clean(group.where, _MAX_NAME),
        _clean(group.resources, _MAX_RESOURCES),
        _clean(f"{path}: {change}" if path and change else path, _MAX_VALUES),
        _clean(". ".join(text for text in (group.names, row.message) if text), _MAX_NOTE),
        notification.find_url(row) if len(group.rows) == 1 else None,
        len(group.rows),
    )


def _clean(text: str, max_length: int) -> str:
    # secrets first: once they are cut or escaped, they are not recognized
    return sanitize_for_terminal(truncate(" ".join(SCRUBBER.scrub(text).split()), max_length))


def _format_severities(rows: Sequence[AuditRow]) -> str:
    counts = Counter(row.severity for row in rows)
    return join_nonempty(f"{counts[item]:,} {item.value}" for item in FindingSeverity if counts[item])
