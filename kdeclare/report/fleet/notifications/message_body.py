"""Render the body of a message in the format of its target."""

from kdeclare.core.clock import format_second
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.manifests.fleet.notification_template import MessageTemplate
from kdeclare.report.fleet.notifications.json_message import build_json_message
from kdeclare.report.fleet.notifications.message_json import dump_message
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


def render_message_body(notification: Notification, *, is_indented: bool = False) -> str:
    """Render the body of the request that sends a message. Secrets are removed from all values.

    is_indented: whether to indent JSON so that people can read it. Templates are never indented.
    """
    match notification.target.format:
        case "slack":
            return dump_message(render_slack_message(notification), is_indented=is_indented)
        case "teams":
            return dump_message(render_teams_message(notification), is_indented=is_indented)
        case "json":
            return dump_message(build_json_message(notification), is_indented=is_indented)
        case "template":
            assert notification.target.template is not None  # the fleet file was checked
            return _fill_template(notification.target.template, notification)


def _fill_template(template: MessageTemplate, notification: Notification) -> str:
    summary, since, new, fixed = (
        notification.summary,
        notification.since,
        notification.new,
        notification.fixed,
    )
    values = {
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
    return template.fill({name: SCRUBBER.scrub(value) for name, value in values.items()})


def _list_findings(notification: Notification, noun: str) -> str:
    is_new = noun == "new"
    rows, max_lines = (notification.new, MAX_NEW_LINES) if is_new else (notification.fixed, MAX_FIXED_LINES)
    lines, omitted = build_finding_lines(rows, notification, max_lines)
    texts = [line.text if line.url is None else f"{line.text} {line.url}" for line in lines]
    return "\n".join([*texts, *([format_omission(omitted, noun)] if omitted else [])])
