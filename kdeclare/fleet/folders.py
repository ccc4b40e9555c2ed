"""Whose a folder of results is: records of two fleets in one would be taken for one fleet's."""

import json

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.fleet.storage import Storage

SNAPSHOTS, AUDITS = "snapshots", "audits"
"""Folders of records, one file each, called so that they sort by time."""


def records(storage: Storage, folder: str) -> tuple[str, ...]:
    """The ids of all records in one of these folders, oldest first."""
    return tuple(name.removesuffix(".json") for name in storage.names(folder) if name.endswith(".json"))


def refuse_other_fleet(storage: Storage, fleet: str) -> None:
    """Raise KdeclareError where the newest snapshot or audit of a folder is another fleet's.

    A record that cannot be read is told by whoever needs it.
    """
    for folder in (SNAPSHOTS, AUDITS):
        known = records(storage, folder)
        if not known:
            continue
        path = f"{folder}/{known[-1]}.json"
        found = _fleet_of(storage.read(path))
        if found not in (None, fleet):
            raise KdeclareError(
                error(
                    "other-fleet",
                    "The folder of another fleet",
                    f"{storage.uri}/{path} is of the fleet '{found}', and this is '{fleet}'.",
                    hint="Give each fleet a folder of its own, or the fleet its earlier name.",
                )
            )


def _fleet_of(text: str) -> str | None:
    try:
        found = json.loads(text)["fleet"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
