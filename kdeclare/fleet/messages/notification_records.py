"""Records of the messages about audits, so that each message is sent once.

The file ``notifications/TARGET/AUDIT.json`` says that a target was notified of an audit. It contains neither
the URL nor the message.
"""

import json
from typing import Annotated

from pydantic import Field

from kdeclare.core.documents import Time, dump_document
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.tables.rows import FileFormat
from kdeclare.fleet.tables.storage import Storage

NOTIFICATIONS = "notifications"
"""The folder with the records, beside the audits."""

_FILE_FORMAT = FileFormat(
    code="bad-notification",
    name="Record of a notification",
    broken="Not a record of a notification",
    command="kdeclare fleet notify",
    invalid_hint="Delete the file. The message can then be sent again.",
    version_hint="Use the kdeclare version that wrote the file.",
)


@dataclass(frozen=True, slots=True)
class NotificationRecord:
    """A message about one audit to one target.

    since: the id of the audit that the findings were compared with; None for the first audit.
    sent: False if there was nothing to report.
    """

    target: str
    audit_id: str
    since: Annotated[str | None, Field(description="null for the first audit.")]
    sent: Annotated[bool, Field(description="false if there was nothing to report.")]
    at: Time
    new: int
    fixed: int


def list_notified_audits(storage: Storage, target: str) -> tuple[str, ...]:
    """Return the ids of the audits of which a target was notified, oldest first."""
    names = storage.names(f"{NOTIFICATIONS}/{target}")
    return tuple(name.removesuffix(".json") for name in names if name.endswith(".json"))


def read_notification_record(storage: Storage, target: str, audit_id: str) -> NotificationRecord | None:
    """Return the record about a target and an audit; None if there is none. Raises KdeclareError."""
    path = _build_path(target, audit_id)
    if not storage.exists(path):
        return None
    return _FILE_FORMAT.bind(NotificationRecord, storage.read(path), f"{storage.uri}/{path}")


def write_notification_record(storage: Storage, record: NotificationRecord) -> None:
    """Write the record of a message. Raises KdeclareError."""
    document = json.dumps(dump_document(record), indent=1, ensure_ascii=False)
    storage.write(_build_path(record.target, record.audit_id), f"{document}\n")


def _build_path(target: str, audit_id: str) -> str:
    return f"{NOTIFICATIONS}/{target}/{audit_id}.json"
