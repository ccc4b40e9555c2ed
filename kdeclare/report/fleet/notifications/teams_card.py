"""Render a message for a webhook of Microsoft Teams (the Workflows app), with an adaptive card.

Limits:
https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook. All
text is in runs of rich text blocks, where Teams does not interpret Markdown, so that names and values can
contain neither links nor mentions.
"""

from collections.abc import Iterator, Sequence

from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.fleet.findings import AuditRow, FindingSeverity
from kdeclare.report.fleet.notifications.message_json import dump_message
from kdeclare.report.fleet.notifications.notification import (
    MAX_FIXED_LINES,
    MAX_NEW_LINES,
    FindingLine,
    Notification,
    build_finding_lines,
    format_notification_context,
    format_notification_headline,
    format_omission,
)

_MAX_BYTES = 28_000
"""The maximum size of a message in UTF-16. Teams refuses messages of more than 28 KB."""

_COLORS = {
    FindingSeverity.HIGH: "Attention",
    FindingSeverity.MEDIUM: "Warning",
    FindingSeverity.LOW: "Default",
}


def render_teams_message(notification: Notification) -> JsonObject:
    """Render the message, with as many findings as fit."""
    for max_new in range(MAX_NEW_LINES, -1, -1):
        message = _render_message(notification, max_new, min(max_new, MAX_FIXED_LINES))
        if len(dump_message(message).encode("utf-16-le")) <= _MAX_BYTES:
            break
    return message


def _render_message(notification: Notification, max_new: int, max_fixed: int) -> JsonObject:
    headline = format_notification_headline(notification)
    body: list[JsonValue] = [
        _build_block([_build_run(headline, size="Large", weight="Bolder")]),
        *_render_lines("New", notification.new, notification, max_new),
        *_render_lines("Fixed", notification.fixed, notification, max_fixed),
        _build_block([_build_run(format_notification_context(notification), size="Small", isSubtle=True)]),
    ]
    actions: list[JsonValue] = []
    if notification.report_url is not None:
        actions.append({"type": "Action.OpenUrl", "title": "Open the report", "url": notification.report_url})
    return {
        "type": "message",
        "summary": headline,
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "msteams": {"width": "Full"},
                    "body": body,
                    "actions": actions,
                },
            }
        ],
    }


def _render_lines(
    title: str, rows: Sequence[AuditRow], notification: Notification, max_lines: int
) -> Iterator[JsonObject]:
    if not rows:
        return
    yield _build_block([_build_run(title, weight="Bolder")])
    lines, omitted = build_finding_lines(rows, notification, max_lines)
    for line in lines:
        yield _build_block(list(_render_runs(line)))
    if omitted:
        yield _build_block([_build_run(format_omission(omitted, title.lower()), isSubtle=True)])


def _render_runs(line: FindingLine) -> Iterator[JsonValue]:
    age = f" ({line.age})" if line.age else ""
    yield _build_run(line.severity.value, color=_COLORS[line.severity], weight="Bolder")
    yield _build_run(f" {line.kind}{age} {line.where} ")
    yield _build_run(line.resources, fontType="Monospace")
    if line.field:
        yield _build_run(f" {line.field}", fontType="Monospace")
    if line.url is not None:
        yield _build_run(" ")
        yield _build_run("manifest", selectAction={"type": "Action.OpenUrl", "url": line.url})
    if line.note:
        yield _build_run(f". {line.note}", isSubtle=True)


def _build_block(runs: list[JsonValue]) -> JsonObject:
    return {"type": "RichTextBlock", "inlines": runs}


def _build_run(text: str, **style: JsonValue) -> JsonObject:
    return {"type": "TextRun", "text": text, **style}
