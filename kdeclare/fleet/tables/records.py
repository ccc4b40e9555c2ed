"""The records of snapshots and audits in a folder: which ones exist, and to which fleet they belong.

A snapshot or an audit is valid if its record exists. The index of a folder lists the ids of all records. It
protects against file systems that list new files late: without the index, an audit would be compared with an
older audit than the latest one, and would report known findings as new.
"""

import json
from collections.abc import Mapping

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.fleet.tables.rows import FORMAT_VERSION
from kdeclare.fleet.tables.storage import Storage

SNAPSHOTS, AUDITS = "snapshots", "audits"
"""The folders with the records of snapshots and of audits. The names of the files sort by time."""


def build_record_path(folder: str, record_id: str) -> str:
    """Return the path of a record. folder: `SNAPSHOTS` or `AUDITS`."""
    return f"{folder}/{record_id}.json"


def list_record_ids(storage: Storage, folder: str) -> tuple[str, ...]:
    """Return the ids of all snapshots or audits, oldest first. folder: `SNAPSHOTS` or `AUDITS`.

    If the index contains a record that the file system does not list, the record is looked up by name.
    Deleted records are therefore left out. Raises KdeclareError.
    """
    record_ids = {name.removesuffix(".json") for name in storage.names(folder) if name.endswith(".json")}
    unlisted_ids = [record_id for record_id in _read_index(storage, folder) if record_id not in record_ids]
    record_ids.update(
        record_id for record_id in unlisted_ids if storage.exists(build_record_path(folder, record_id))
    )
    return tuple(sorted(record_ids))


def build_index(storage: Storage, folder: str, record_id: str) -> Mapping[str, str]:
    """Return the path of a folder's index, and the new contents with one more record. Raises KdeclareError.

    Write the index before the record: the record makes a snapshot or an audit valid, so it must come last.
    """
    record_ids = sorted({*list_record_ids(storage, folder), record_id})
    document = {"format_version": FORMAT_VERSION, folder: record_ids}
    return {_build_index_path(folder): json.dumps(document, indent=1) + "\n"}


def _build_index_path(folder: str) -> str:
    return f"{folder}.json"


def _read_index(storage: Storage, folder: str) -> tuple[str, ...]:
    """Return the ids in the index. Folders of earlier versions of kdeclare have no index."""
    path = _build_index_path(folder)
    if not storage.exists(path):
        return ()
    try:
        document = json.loads(storage.read(path))
        record_ids = document[folder] if document["format_version"] == FORMAT_VERSION else ()
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()  # the folder is listed as well
    return tuple(record_id for record_id in record_ids if isinstance(record_id, str) and "/" not in record_id)


def require_same_fleet(storage: Storage, fleet: str) -> None:
    """Raise KdeclareError if the newest snapshot or audit belongs to a different fleet.

    Damaged records are ignored.
    """
    for folder in (SNAPSHOTS, AUDITS):
        record_ids = list_record_ids(storage, folder)
        if not record_ids:
            continue
        path = build_record_path(folder, record_ids[-1])
        recorded_fleet = _find_fleet(storage.read(path))
        if recorded_fleet not in (None, fleet):
            raise KdeclareError(
                error(
                    "other-fleet",
                    "Folder belongs to a different fleet",
                    f"{storage.uri}/{path} belongs to the fleet '{recorded_fleet}', not to '{fleet}'.",
                    hint="Use a separate folder for each fleet. If you renamed the fleet, restore its old "
                    "name.",
                )
            )


def _find_fleet(text: str) -> str | None:
    try:
        fleet = json.loads(text)["fleet"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return fleet if isinstance(fleet, str) else None
