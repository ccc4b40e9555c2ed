"""Render a message for an incoming webhook of Slack, with Block Kit.

Limits and escapes: https://docs.slack.dev/reference/block-kit and
https://docs.slack.dev/messaging/formatting-message-text.
"""

from collections.abc import Iterator, Sequence

from kdeclare.core.jsontypes import JsonObject
from kdeclare.fleet.findings import AuditRow, FindingSeverity
from kdeclare.report.elements.values import truncate
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

_MAX_HEADER = 150
_MAX_SECTION = 3000
"""Slack's maximum number of characters in a section block. A message can contain up to 50 blocks."""

_ICONS = {
    FindingSeverity.HIGH: ":red_circle:",
    FindingSeverity.MEDIUM: ":large_orange_circle:",
    FindingSeverity.LOW: ":white_circle:",
}


def render_slack_message(notification: Notification) -> JsonObject:
    """Render the message. Names and values can contain neither links nor mentions such as ``<!channel>``."""
    headline = format_notification_headline(notification)
    return {
        "text": _escape(headline),  # for notifications on the desktop, and for screen readers
        "blocks": [
            {"type": "header", "text": _build_title(truncate(headline, _MAX_HEADER))},
            *_render_lines("New", notification.new, notification, MAX_NEW_LINES),
            *_render_lines("Fixed", notification.fixed, notification, MAX_FIXED_LINES),
            *_render_link(notification.report_url),
            {
                "type": "context",
                "elements": [_build_text(_escape(format_notification_context(notification)))],
            },
        ],
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _render_lines(
    title: str, rows: Sequence[AuditRow], notification: Notification, max_lines: int
) -> Iterator[JsonObject]:
    if not rows:
        return
    yield _build_section(f"*{title}*")
    lines, omitted = build_finding_lines(rows, notification, max_lines)
    for line in lines:
        yield _build_section(_format_line(line))
    if omitted:
        yield _build_section(format_omission(omitted, title.lower()))


def _format_line(line: FindingLine) -> str:
    age = f" ({_escape(line.age)})" if line.age else ""
    text = f"{_ICONS[line.severity]} *{line.severity.value}* {_escape(line.kind)}{age}"
    text += f" {_format_code(line.where)} {_format_code(line.resources)}"
    more = [
        f" {_format_code(line.field)}" if line.field else "",
        f" ({_format_link(line.url, 'manifest')})" if line.url is not None else "",
        f"\n{_escape(line.note)}" if line.note else "",
    ]
    for part in more:
        if len(text) + len(part) <= _MAX_SECTION:
            text += part
    return text


def _render_link(url: str | None) -> Iterator[JsonObject]:
    if url is not None:
        yield _build_section(_format_link(url, "Open the report"))


def _build_title(text: str) -> JsonObject:
    return {"type": "plain_text", "text": text, "emoji": False}


def _build_section(text: str) -> JsonObject:
    return {"type": "section", "text": _build_text(text)}


def _build_text(text: str) -> JsonObject:
    # verbatim: Slack does not turn addresses and names of channels in the text into links
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _format_code(text: str) -> str:
    return f"`{_escape(text.replace('`', 'ˋ'))}`"


def _format_link(url: str, text: str) -> str:
    """Format a link. The URL must contain neither angle brackets nor a vertical bar."""
    return f"<{_escape(url)}|{text}>"


def _escape(text: str) -> str:
    """Escape the characters with which links and mentions begin."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
