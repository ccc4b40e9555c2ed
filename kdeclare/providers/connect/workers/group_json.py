"""Groups of workers as plain data: URLs, names of files and references, and nothing that is secret."""

from collections.abc import Mapping

from kdeclare.core.jsontypes import Json
from kdeclare.providers.connect.worker_state import WorkerGroup


def group_json(group: WorkerGroup) -> dict[str, Json]:
    """A group as operations and records hold it; what is not said is left out."""
    files = {"ca_file": group.ca_file, "cert_file": group.cert_file, "key_file": group.key_file}
    said: dict[str, Json] = {"urls": list(group.urls)}
    said |= {name: file for name, file in files.items() if file is not None}
    return said | ({"headers": [list(pair) for pair in group.headers]} if group.headers else {})


def group_from(said: Mapping[str, Json]) -> WorkerGroup:
    """The group again."""
    return WorkerGroup(
        tuple(said["urls"]),
        said.get("ca_file"),
        said.get("cert_file"),
        said.get("key_file"),
        tuple((name, reference) for name, reference in said.get("headers", ())),
    )
