"""Remove old audits from the folder that a nightly job keeps, so that it does not grow without limit.

    python3 audits.py FOLDER

The time at which a finding was first seen is in the latest audit, so that removing older ones changes no age.

The records of messages about removed audits are removed, too. The latest record of each recipient is kept,
because `kdeclare fleet notify` compares with the audit of the latest message.
"""

import shutil
import sys
from pathlib import Path

KEPT = 60
"""The number of audits to keep, which is also the length of the trend in the report."""
_TABLES = ("findings", "unseen", "summary")


def remove_old_audits(folder: Path) -> None:
    """Remove all audits except the latest. The ids of audits sort by time."""
    for record in sorted((folder / "audits").glob("*.json"))[:-KEPT]:
        record.unlink()  # first, because an audit without a record is ignored
        for table in _TABLES:
            shutil.rmtree(folder / table / f"audit_id={record.stem}", ignore_errors=True)


def remove_old_notification_records(folder: Path) -> None:
    """Remove the records of messages that are older than all audits. Call it after `remove_old_audits`."""
    oldest = min((record.name for record in (folder / "audits").glob("*.json")), default="")
    for target in (folder / "notifications").glob("*/"):
        for record in sorted(target.glob("*.json"))[:-1]:
            if record.name < oldest:
                record.unlink()


if __name__ == "__main__":
    remove_old_audits(Path(sys.argv[1]))
    remove_old_notification_records(Path(sys.argv[1]))
