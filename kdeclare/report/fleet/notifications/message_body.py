"""Render the body of a message in the format of its target."""

import json

from kdeclare.core.clock import format_second
from kdeclare.core.jsontypes import JsonValue
from kdeclare.manifests.fleet.notification_template import MessageTemplate
from kdeclare.report.fleet.notifications.json_message import build_json_message
from kdeclare.report.fleet.notifications.notification import (
    MAX_FIXED_LINES,
    MAX_NEW_LINES,
    Notification,
    build_finding_lines,
    format_notification_headline,
    format_omission,
)
from kdeclare.report.fleet.notifications.slack_message import render_slack_message
from kdeclare.report.fleet.notifications.teams_card import render_teams_message


def render_message_body(notification: Notification) -> str:
    """Render the body of the request that sends a message."""
    match notification.target.format:
        case "slack":
            return _dump(render_slack_message(notification))
        case "teams":
            return _dump(render_teams_message(notification))
        case "json":
            return _dump(build_json_message(notification))
        case "template":
            assert notification.target.template is not None  # the fleet file was checked
            return _fill_template(notification.target.template, notification)


def _dump(message: JsonValue) -> str:
    return json.dumps(message, ensure_ascii=False, indent=1) + "\n"


def _fill_template(template: MessageTemplate, notification: Notification) -> str:
    summary, since, new, fixed = (
        notification.summary,
        notification.since,
        notification.new,
        notification.fixed,
    )
    return template.fill(
        {
            "headline": format_notification_headline(notification),
            "fleet": summary.fleet,
            "target": notification.target.name,
            "team": notification.target.team or "",
            "audit_id": summary.audit_id,
            "taken_at": format_second(summary.taken_at),
            "since": since.audit_id if since is not None else "",
            "severity": new[0].severity.value if new else "",
            "new_count": str(len(new)),
            "fixed_count": str(len(fixed)),
            "open_count": str(len(notification.changes.rows)),
            "unread_count": str(len(summary.incomplete)),
            "new": _list_findings(notification, "new"),
            "fixed": _list_findings(notification, "fixed"),
            "report_url": notification.report_url or "",
        }
    )


def _list_findings(notification: Notification, noun: str) -> str:
    is_new = noun == "new"
    rows, max_lines = (notification.new, MAX_NEW_LINES) if is_new else (notification.fixed, MAX_FIXED_LINES)
    lines, omitted = build_finding_lines(rows, notification, max_lines)
    texts = [line.text if line.url is None else f"{line.text} {line.url}" for line in lines]
    return "\n".join([*texts, *([format_omission(omitted, noun)] if omitted else [])])
