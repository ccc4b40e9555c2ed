"""Send messages about a stored audit to the webhooks of a fleet."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from kdeclare.app.fleet.audit_records import LATEST, read_audit_summary, read_audit_table
from kdeclare.app.fleet.job import FleetOptions
from kdeclare.app.fleet.stored_findings import find_audit, find_baseline, open_audits
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, sort_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.suggestions import format_alternatives, format_suggestion
from kdeclare.fleet.audit_results import MEMORY_TABLES
from kdeclare.fleet.finding_conditions import parse_conditions
from kdeclare.fleet.messages.notification_records import (
    MessageState,
    NotificationRecord,
    find_previous_audit,
    read_notification_record,
    write_notification_record,
)
from kdeclare.fleet.messages.notified_changes import AuditTables, Recipient, find_changes
from kdeclare.fleet.tables.records import AUDITS, list_record_ids, require_same_fleet
from kdeclare.fleet.tables.storage import Storage
from kdeclare.http.target import HttpTarget
from kdeclare.http.webhook import (
    WebhookError,
    WebhookRequest,
    explain_webhook_problem,
    send_to_webhook,
)
from kdeclare.manifests.fleet.fleet_definition import Fleet
from kdeclare.manifests.fleet.fleet_file import open_fleet
from kdeclare.manifests.fleet.manifest_links import explain_bad_link
from kdeclare.manifests.fleet.notification_target import NotificationTarget
from kdeclare.manifests.syntax.substitution import resolve_reference
from kdeclare.report.fleet.notifications.message_body import render_message_body
from kdeclare.report.fleet.notifications.notification import Notification
from kdeclare.report.fleet.notifications.notify_output import Delivery, DeliveryStatus, FleetNotifications


@dataclass(frozen=True, slots=True)
class NotifyOptions:
    """Options of ``fleet notify``.

    audit: the id of the audit, or ``latest``.
    since: the audit to compare with, see `find_earlier_id`; None for the audit of the previous message.
    names: only these notifications; empty for all.
    dry_run: whether to return the messages instead of sending them.
    again: whether to send messages that were sent already.
    timeout_s: how long to wait for a response to each attempt, in seconds.
    """

    audit: str = LATEST
    since: str | None = None
    names: tuple[str, ...] = ()
    dry_run: bool = False
    again: bool = False
    timeout_s: float = 10.0


def notify_fleet(
    options: FleetOptions,
    notify_options: NotifyOptions,
    environ: Mapping[str, str],
    progress: Progress = ignore_progress,
    sleep: Callable[[float], None] = time.sleep,
) -> FleetNotifications:
    """Send a message about a stored audit to each webhook in the fleet file.

    A message is sent once, and reports what has changed since the previous message for the same target. If a
    message cannot be sent, the result contains the error, and messages for other targets are still sent. In
    this case, the next message for the same target also reports the changes from the failed message.

    options: ``fleet`` is the fleet file, and ``out`` the folder of audits. sleep: waits before a retry.

    Raises KdeclareError if the fleet file, an option or the audit is invalid.
    """
    fleet = open_fleet(options.fleet, environ)
    recipients = build_recipients(fleet)
    targets = _select_targets(fleet, notify_options.names)
    report_url = _resolve_report_url(fleet, environ)
    with open_audits(options, environ, progress) as (storage, read_table):
        require_same_fleet(storage, fleet.name)
        audit_ids = list_record_ids(storage, AUDITS)
        audit_id = find_audit(storage, audit_ids, notify_options.audit)
        since = find_baseline(notify_options.since, audit_ids, audit_id)
        loaded: dict[str, AuditTables] = {}

        def load_audit(wanted_id: str) -> AuditTables:
            if wanted_id not in loaded:
                progress("Reading findings", 0, 0)
                summary = read_audit_summary(storage, wanted_id)
                tables = [read_audit_table(storage, summary, name, read_table) for name in MEMORY_TABLES]
                loaded[wanted_id] = AuditTables(summary, tuple(tables[0]), tuple(tables[1]))
            return loaded[wanted_id]

        summary = read_audit_summary(storage, audit_id)
        default = summary.since.audit_id if summary.since is not None else None
        notifier = _Notifier(storage, fleet, notify_options, environ, sleep)

        def notify_target(target: NotificationTarget) -> Delivery:
            record = read_notification_record(storage, target.name, audit_id)
            if record is not None and record.state is MessageState.SENT and not notify_options.again:
                counts = record.since, record.new, record.fixed
                return Delivery(target.name, DeliveryStatus.ALREADY_SENT, *counts)
            previous = find_previous_audit(storage, target.name, audit_ids, audit_id, record, default)
            if record is None or record.state is MessageState.NOTHING:
                notifier.record(Delivery(target.name, DeliveryStatus.FAILED, previous, 0, 0), audit_id)
            baseline_id = previous if since is None else since
            baseline = None if baseline_id is None else load_audit(baseline_id)
            audit = load_audit(audit_id)
            notification = Notification(
                target,
                audit.summary,
                None if baseline is None else baseline.summary,
                find_changes(audit, baseline, recipients[target.name]),
                fleet.manifest_links,
                None if report_url is None else report_url.replace("{audit_id}", audit_id),
            )
            return notifier.deliver(notification)

        deliveries = []
        for number, target in enumerate(targets):
            progress("Sending messages", number, len(targets))
            try:
                deliveries.append(notify_target(target))
            except KdeclareError as problem:
                delivery = Delivery(target.name, DeliveryStatus.FAILED, None, 0, 0)
                deliveries.append(_add_error(delivery, problem))
    return FleetNotifications(audit_id, fleet.name, tuple(deliveries))


def require_notifications(fleet_file: Path, environ: Mapping[str, str]) -> None:
    """Raise KdeclareError if the fleet file or the environment prevents messages from being sent."""
    fleet = open_fleet(fleet_file, environ)
    build_recipients(fleet)
    _select_targets(fleet, ())
    _resolve_report_url(fleet, environ)


def build_recipients(fleet: Fleet) -> Mapping[str, Recipient]:
    """Return the `Recipient` of each notification, which determines the findings that its messages report.

    The keys are the names of the notifications. Raises KdeclareError if conditions are invalid.
    """
    recipients: dict[str, Recipient] = {}
    problems: list[Diagnostic] = []
    for target in fleet.notifications:
        try:
            conditions = () if target.where is None else parse_conditions(target.where)
        except ValueError as reason:
            problems.append(
                error(
                    "bad-value",
                    "Bad value",
                    f"'where' of '{target.name}' is not a list of conditions: {reason}",
                    hint="Write conditions such as 'severity>=high, changed and age>7d'.",
                    place=target.positions.get("where"),
                    subject="where",
                )
            )
        else:
            recipients[target.name] = Recipient(conditions, target.team)
    if problems:
        raise KdeclareError(*sort_diagnostics(problems))
    return recipients


class _Notifier:
    """Sends messages, and records whether each message was sent."""

    def __init__(
        self,
        storage: Storage,
        fleet: Fleet,
        options: NotifyOptions,
        environ: Mapping[str, str],
        sleep: Callable[[float], None],
    ) -> None:
        self._storage, self._fleet, self._options = storage, fleet, options
        self._environ, self._sleep = environ, sleep

    def deliver(self, notification: Notification) -> Delivery:
        """Send a message if there is something to report. Record the outcome."""
        since = notification.since
        delivery = Delivery(
            notification.target.name,
            DeliveryStatus.NOTHING,
            None if since is None else since.audit_id,
            len(notification.new),
            len(notification.fixed),
        )
        audit_id = notification.summary.audit_id
        if not notification.is_due:
            self.record(delivery, audit_id)
            return delivery
        if self._options.dry_run:
            body = render_message_body(notification, is_indented=True)
            return replace(delivery, status=DeliveryStatus.NOT_SENT, body=body)
        try:
            self._send(notification.target, render_message_body(notification))
        except KdeclareError as problem:
            return _add_error(replace(delivery, status=DeliveryStatus.FAILED), problem)
        sent = replace(delivery, status=DeliveryStatus.SENT)
        try:
            self.record(sent, audit_id)
        except KdeclareError as problem:
            return _add_error(sent, _build_record_error(sent.name, problem))
        return sent

    def record(self, delivery: Delivery, audit_id: str) -> None:
        """Record that a message was sent, that it failed, or that there was nothing to report.

        A message is recorded as failed before it is sent. Therefore, the changes that it reports are not lost
        if the process ends, and a message that could not be recorded is not sent again and again.

        Raises KdeclareError if the record cannot be written.
        """
        if self._options.dry_run:
            return
        record = NotificationRecord(
            delivery.name,
            audit_id,
            delivery.since,
            MessageState(delivery.status),
            datetime.now(UTC),
            delivery.new,
            delivery.fixed,
        )
        write_notification_record(self._storage, record)

    def _send(self, target: NotificationTarget, body: str) -> None:
        """Resolve the references of a target, and send a message. Raises KdeclareError."""
        folder, place = self._fleet.folder, target.positions.get("url")
        try:
            url = resolve_reference(target.url, folder, self._environ)
            headers = tuple(
                (name, resolve_reference(value, folder, self._environ))
                for name, value in target.headers.items()
            )
        except KdeclareError as problem:
            raise KdeclareError(*(replace(d, place=place) for d in problem.diagnostics)) from None
        SCRUBBER.register(url)
        reason = explain_webhook_problem(url, allow_http=target.allow_http)
        if reason is not None:
            raise KdeclareError(
                error(
                    "bad-webhook",
                    "Webhook cannot be used",
                    f"The URL of '{target.name}' cannot be used: {reason}.",
                    hint=f"Correct the value of {target.url}.",
                    place=place,
                )
            )
        ca_file = None if target.ca_file is None else str(target.ca_file.absolute())
        http_target = HttpTarget((url,), ca_file=ca_file, headers=headers)
        request = WebhookRequest(http_target, body, target.content_type, self._options.timeout_s)
        try:
            send_to_webhook(request, self._environ, self._sleep)
        except WebhookError as failure:
            raise KdeclareError(
                error(
                    "notification-failed",
                    "Message was not sent",
                    f"The webhook of '{target.name}' did not accept the message: {failure}.",
                    hint="Check the webhook, and run kdeclare fleet notify again. The audit is complete.",
                    place=place,
                )
            ) from None


def _add_error(delivery: Delivery, problem: KdeclareError) -> Delivery:
    diagnostic = replace(problem.diagnostics[0], subject=delivery.name)
    return replace(delivery, error=diagnostic.detail, diagnostic=diagnostic)


def _build_record_error(name: str, problem: KdeclareError) -> KdeclareError:
    return KdeclareError(
        error(
            "notification-not-recorded",
            "Message was not recorded",
            f"The message to '{name}' was sent, but not recorded. {problem.diagnostics[0].detail}",
            hint="Check the output folder. Without the record, kdeclare fleet notify sends the message "
            "again.",
        )
    )


def _select_targets(fleet: Fleet, names: Sequence[str]) -> Sequence[NotificationTarget]:
    known_names = [target.name for target in fleet.notifications]
    if not known_names:
        raise KdeclareError(
            error(
                "no-notifications",
                "No notifications",
                f"{fleet.file} has no 'spec.notifications'.",
                hint="Add the webhooks that should receive the messages. docs/fleet-audits.md has examples.",
            )
        )
    for name in names:
        if name not in known_names:
            suggestion = format_suggestion(name, known_names)
            raise KdeclareError(
                error(
                    "no-notifications",
                    "No such notification",
                    f"{fleet.file} has no notification '{name}'.",
                    hint=suggestion or f"Use {format_alternatives(known_names)}.",
                    subject=name,
                )
            )
    return [target for target in fleet.notifications if not names or target.name in names]


def _resolve_report_url(fleet: Fleet, environ: Mapping[str, str]) -> str | None:
    """Return the URL of the report, without secrets. Raises KdeclareError."""
    if fleet.report_url is None:
        return None
    url = resolve_reference(fleet.report_url, fleet.folder, environ)
    reason = explain_bad_link(url)
    if reason is not None:
        raise KdeclareError(
            error(
                "bad-value",
                "Bad value",
                f"'spec.reportUrl' is not the URL of a report: {reason}.",
                hint="Write a URL such as https://ci.acme.example/audits/{audit_id}/report.html.",
                subject="reportUrl",
            )
        )
    return url
