"""Record which messages about audits were sent, so that each is sent only once and no change is left out.

The file ``notifications/TARGET/AUDIT.json`` shows whether a target was notified of an audit. It contains
neither the URL nor the message.
"""

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kdeclare.core.documents import Time, dump_document
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.tables.rows import FileFormat
from kdeclare.fleet.tables.storage import Storage

NOTIFICATIONS = "notifications"
"""The folder with the records of sent messages, next to the audits."""

_FILE_FORMAT = FileFormat(
    code="bad-notification",
    name="Notification record",
    broken="Not a notification record",
    command="kdeclare fleet notify",
    invalid_hint="Delete the file. The message can then be sent again.",
    version_hint="Use the kdeclare version that wrote the file.",
)


class MessageState(StrEnum):
    """Whether a target was notified of an audit."""

    SENT = "sent"
    NOTHING = "nothing-to-report"
    FAILED = "failed"  # or unknown: kdeclare records this state before it sends a message


@dataclass(frozen=True, slots=True)
class NotificationRecord:
    """A message about one audit to one target.

    since: the id of the audit that the findings were compared with; None for the first audit. If the message
        failed, the next message is compared with the same audit.
    """

    target: str
    audit_id: str
    since: Annotated[str | None, Field(description="null for the first audit.")]
    state: MessageState
    at: Time
    new: Annotated[int, Field(description="0 if sending the message failed.")]
    fixed: Annotated[int, Field(description="0 if sending the message failed.")]


def read_notification_record(storage: Storage, target: str, audit_id: str) -> NotificationRecord | None:
    """Return the record of the message to a target about an audit; None if there is none.

    Raises KdeclareError.
    """
    path = _build_path(target, audit_id)
    if not storage.exists(path):
        return None
    return _FILE_FORMAT.bind(NotificationRecord, storage.read(path), f"{storage.uri}/{path}")


def find_previous_audit(
    storage: Storage,
    target: str,
    audit_ids: Sequence[str],
    audit_id: str,
    record: NotificationRecord | None,
    default: str | None,
) -> str | None:
    """Return the id of the audit that a message is compared with; None to report all findings.

    This is the audit of the previous message to the target. If later messages failed, it is the audit that
    the first failed message was compared with. If the audit was deleted, return the latest earlier one, so
    that no change is left out.

    audit_ids: the ids of all audits, oldest first. audit_id: the audit that the message is about.
    record: the record about this target and audit, if there is one.
    default: the audit with which the audit itself was compared, for targets without records.

    Raises KdeclareError if the records cannot be read.
    """
    previous = record.since if record is not None else _find_unreported(storage, target, audit_id, default)
    if previous is None:
        return None
    return next((id_ for id_ in reversed(audit_ids) if id_ < audit_id and id_ <= previous), None)


def _find_unreported(storage: Storage, target: str, audit_id: str, default: str | None) -> str | None:
    """Return the id of the audit with which the next message to a target is compared."""
    failed: NotificationRecord | None = None
    names = (name.removesuffix(".json") for name in storage.names(f"{NOTIFICATIONS}/{target}"))
    for recorded_id in sorted((name for name in names if name < audit_id), reverse=True):
        record = read_notification_record(storage, target, recorded_id)
        if record is None:
            continue  # deleted in the meantime
        if record.state is not MessageState.FAILED:
            return recorded_id if failed is None else failed.since
        failed = record
    return default if failed is None else failed.since


def write_notification_record(storage: Storage, record: NotificationRecord) -> None:
    """Write the record of a message. Raises KdeclareError."""
    document = json.dumps(dump_document(record), indent=1, ensure_ascii=False)
    storage.write(_build_path(record.target, record.audit_id), f"{document}\n")


def _build_path(target: str, audit_id: str) -> str:
    return f"{NOTIFICATIONS}/{target}/{audit_id}.json"
