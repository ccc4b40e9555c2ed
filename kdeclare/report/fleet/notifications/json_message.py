"""The message in the format ``json``: the new and the fixed findings, with counts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Annotated

from pydantic import Field

from kdeclare.core.documents import Time, dump_document
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject
from kdeclare.fleet.findings import AuditRow, FindingSeverity
from kdeclare.report.fleet.findings_report import BaselineAudit, ReportedFinding, build_reported_finding
from kdeclare.report.fleet.notifications.message_json import dump_message
from kdeclare.report.fleet.notifications.notification import Notification, format_notification_headline

MAX_FINDINGS = 100
"""The maximum number of new findings in a message, and also the maximum number of fixed findings."""
_MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class NotifiedFinding(ReportedFinding):
    """One finding in a message about an audit."""

    schema_name = "NotifiedFindingDocument"

    url: Annotated[
        str | None, Field(description="The URL of the manifest, if the fleet file has manifestUrl.")
    ]


@dataclass(frozen=True, slots=True)
class NotificationDocument:
    """A message about an audit, in the format ``json``."""

    schema_name = "NotificationDocument"

    id: Annotated[
        str, Field(description="The id of the message. It stays the same if the message is sent again.")
    ]
    headline: str
    target: Annotated[str, Field(description="The name of the notification in the fleet file.")]
    fleet: str
    audit_id: str
    taken_at: Time
    since: Annotated[
        BaselineAudit | None,
        Field(description="The audit of the previous message; null for the first audit."),
    ]
    team: Annotated[str | None, Field(description="The team of the findings; null for all teams.")]
    where: Annotated[str | None, Field(description="The conditions on findings; null without conditions.")]
    report_url: str | None
    new_count: int
    fixed_count: int
    open_count: int
    open: Annotated[Mapping[FindingSeverity, int], Field(description="The open findings by severity.")]
    unread_clusters: Annotated[
        tuple[str, ...],
        Field(description="Clusters that were not read, or only partially read (at most 100)."),
    ]
    new: Annotated[
        tuple[NotifiedFinding, ...],
        Field(description="The most urgent new findings. new_count counts all of them."),
    ]
    fixed: Annotated[
        tuple[NotifiedFinding, ...],
        Field(description="The most urgent fixed findings. fixed_count counts all of them."),
    ]


def build_json_message(notification: Notification) -> JsonObject:
    """Build the message. If it is too large, reduce the number of findings until it fits."""
    document = _build_document(notification)
    message = dump_document(document)
    while len(dump_message(message).encode()) > _MAX_BYTES and (document.new or document.fixed):
        document = replace(document, new=_halve(document.new), fixed=_halve(document.fixed))
        message = dump_document(document)
    return message


def _halve(findings: Sequence[NotifiedFinding]) -> tuple[NotifiedFinding, ...]:
    return tuple(findings[: len(findings) // 2])


def _build_document(notification: Notification) -> NotificationDocument:
    target, summary, since = notification.target, notification.summary, notification.since
    rows = notification.changes.rows
    counts = {item: sum(row.severity is item for row in rows) for item in FindingSeverity}
    return NotificationDocument(
        notification.id,
        format_notification_headline(notification),
        target.name,
        summary.fleet,
        summary.audit_id,
        summary.taken_at,
        None if since is None else BaselineAudit(since.audit_id, since.taken_at),
        target.team,
        target.where,
        notification.report_url,
        len(notification.new),
        len(notification.fixed),
        len(rows),
        {item: count for item, count in counts.items() if count},
        tuple(cluster.name for cluster in summary.incomplete[:MAX_FINDINGS]),
        _build_findings(notification.new, notification),
        _build_findings(notification.fixed, notification),
    )


def _build_findings(rows: Iterable[AuditRow], notification: Notification) -> tuple[NotifiedFinding, ...]:
    findings = []
    for row in [*rows][:MAX_FINDINGS]:
        reported = build_reported_finding(row)
        values = {field.name: getattr(reported, field.name) for field in fields(reported)}
        findings.append(NotifiedFinding(**values, url=notification.find_url(row)))
    return tuple(findings)
