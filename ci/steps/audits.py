"""Remove old audits from the folder that a nightly job keeps, so that it does not grow without limit.

    python3 audits.py FOLDER

The time at which a finding was first seen is in the latest audit, so that removing older ones changes no age.
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


if __name__ == "__main__":
    remove_old_audits(Path(sys.argv[1]))
