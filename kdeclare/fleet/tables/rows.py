"""The tables of snapshots and audits: schemas, format version, and checks for missing rows."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.documents import parse_document
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, as_object, parse_json
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.units import format_names

FORMAT_VERSION = "1.0"
"""The format version of snapshots and audits."""

_Shape = TypeVar("_Shape")
_Row = TypeVar("_Row", bound=Mapping[str, Any])

CLUSTER = "Cluster"
"""The kind of the row about a whole cluster. Other rows are about one or several objects of the cluster.

If the cluster could not be read, the row about the whole cluster contains the error.
"""

_TEXT = pa.string()
_TIME = pa.timestamp("us", tz="UTC")
_LABELS = pa.map_(pa.string(), pa.string())
_HASHES = pa.list_(pa.int64())

LIVE = pa.schema(
    [
        ("taken_at", _TIME),
        ("cluster", _TEXT),
        ("cluster_id", _TEXT),
        ("kind", _TEXT),
        ("name", _TEXT),
        ("body", _TEXT),  # canonical JSON; null if there is an error
        ("fingerprint", _TEXT),  # a hash of the body
        ("error", _TEXT),
        ("labels", _LABELS),  # the labels of the cluster
        ("has", _HASHES),  # the facts about the object, see `LiveFacts`; null if unknown
        ("keys", _HASHES),  # the hashes of the keys of the object, see `LiveFacts`; null if unknown
        ("group_name", _TEXT),  # the group in which an unmanaged object is counted; null if it is listed
        ("is_part", pa.bool_()),  # whether the row is about all objects whose names begin with ``name``
    ]
)
"""The table of live objects, with one row for each object and one row for each cluster.

Rows with an error can also be about several objects that could not be read: about all objects of a type, if
``name`` is empty and the whole system could not be read, or about a part of the system (`UnreadPart`), if
``is_part`` is true.

``kind`` and ``name`` are the type and the key of the object (`LiveKey`). If a snapshot by an earlier version
of kdeclare lacks a column or a fact, the object is compared in full.
"""

DECLARED = pa.schema(
    [
        ("cluster", _TEXT),
        ("kind", _TEXT),
        ("name", _TEXT),
        ("live_sort", _TEXT),  # the type of the live object; null if it equals ``kind``
        ("live_key", _TEXT),  # the key of the live object; null if it equals ``name``
        ("desired", _TEXT),  # the declared body as canonical JSON; null if the resource is not declared
        ("left_out", _TEXT),  # the declared body if the selector excludes the resource; else null
        ("owned", _TEXT),  # the ownership record as canonical JSON; for a cluster: the pending cleanup
        ("labels", _LABELS),  # the declared labels, or else the last applied labels
        ("source", _TEXT),  # the position of the manifest: file:line:column
        ("alone", pa.bool_()),  # whether the resource can be compared without the rows of other objects
        ("always", pa.bool_()),  # whether to always compare in full; for a cluster: whether it has policies
        ("need", _HASHES),  # the facts that the live object must have
        ("forbid", _HASHES),  # the facts that the live object must not have
        ("keys", _HASHES),  # the keys that the live object can have
        ("gone", _HASHES),  # the keys that the live object must not have; null for all keys not in ``keys``
        ("cluster_id", _TEXT),  # for a cluster: the id of the cluster to which the state belongs
        ("error", _TEXT),  # for a cluster: the reason why its project could not be read
        ("contradiction", _TEXT),  # how the resource contradicts another one of the project; else null
        (
            "row_hash",
            pa.int64(),
        ),  # a hash of the row, see `fleet.tables.fingerprints`; null to always compare the cluster
    ]
)
"""The table of declared and owned resources, with one row for each resource and one row for each cluster.

A resource that is a set of live objects also has a row for each element. The table is joined with `LIVE` on
the cluster, the type and the key of the live object.

If applying such a resource would delete the unmanaged objects of a group, the resource also has a row for the
group. In this row, ``live_sort`` is empty, ``live_key`` is the name of the group, and ``desired`` is the body
with which the unmanaged objects of the group are compared. In the row for the whole set, ``live_sort`` and
``live_key`` are empty.
"""

FINDING = pa.struct(
    [
        ("finding", _TEXT),
        ("path", _TEXT),
        ("op", _TEXT),
        ("before", _TEXT),  # JSON
        ("after", _TEXT),  # JSON
        ("message", _TEXT),
        ("severity", _TEXT),
        ("source", _TEXT),  # the position of the manifest: file:line:column; null if not declared
    ]
)
"""The columns that describe one finding about a resource or a live object."""

FINDINGS = pa.schema(
    [
        ("taken_at", _TIME),
        ("cluster", _TEXT),
        ("kind", _TEXT),
        ("name", _TEXT),
        *[(field.name, field.type) for field in FINDING],
        ("labels", _LABELS),
        ("first_seen", _TIME),
        ("status", _TEXT),  # new, or known from the audit to compare with
        ("id", _TEXT),  # stays the same in all audits while the finding is open
        ("accepted", _TEXT),  # the name of the AcceptedDrift that accepts the finding; null if there is none
    ]
)
"""The table of the findings of an audit.

The table is partitioned by ``audit_id``. This column is not in the schema.
"""

SUMMARY = pa.schema(
    [
        ("taken_at", _TIME),
        ("cluster", _TEXT),
        ("kind", _TEXT),
        ("finding", _TEXT),
        ("path", _TEXT),
        ("team", _TEXT),
        ("count", pa.int64()),
        ("severity", _TEXT),
        ("oldest", _TIME),  # the time of the first audit that contains the oldest of these findings
    ]
)
"""The table with the number of findings by cluster, kind, finding, path, team and severity."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A file format, and the wording of errors about files that do not have the format.

    code: the code of all errors.
    name: what a file in this format describes, such as a snapshot.
    broken, invalid_hint: the summary and the hint of the error for invalid contents.
    command: the command that writes the files.
    version_hint: the hint of the error for an unsupported format version.
    """

    code: str
    name: str
    broken: str
    command: str
    invalid_hint: str
    version_hint: str

    def read(self, text: str, where: str) -> JsonObject:
        """Parse the contents of a file. where: the name of the file, for errors.

        Raises KdeclareError if the format version is not supported, or if the contents are invalid.
        """
        try:
            data = as_object(parse_json(text))
            version = data["format_version"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self.build_invalid_error(where) from None
        if version == FORMAT_VERSION:
            return data
        detail = f"{where} has format version {version}, but this kdeclare reads only {FORMAT_VERSION}."
        raise KdeclareError(error(self.code, "Unsupported format version", detail, hint=self.version_hint))

    def bind(self, shape: type[_Shape], text: str, where: str, absent: JsonObject | None = None) -> _Shape:
        """Parse the contents of a file into a dataclass. where: the name of the file, for errors.

        absent: defaults for fields that earlier versions of kdeclare did not write.

        Raises KdeclareError if the format version is not supported, or if the contents are invalid.
        """
        data = self.read(text, where)
        try:
            return parse_document(shape, json.dumps({**absent, **data}) if absent else text)
        except ValueError:
            raise self.build_invalid_error(where) from None

    def build_invalid_error(self, source: str) -> KdeclareError:
        """Return the error about a file with invalid contents."""
        detail = f"{source} was not written by '{self.command}', or is damaged."
        return KdeclareError(error(self.code, self.broken, detail, hint=self.invalid_hint))


def find_unread_row(rows: Iterable[_Row], key: LiveKey) -> _Row | None:
    """Return the row about several unread objects that include the object with this key, or None.

    rows: the rows of one cluster in the table `LIVE` that have an error.
    """
    return next((row for row in rows if row["kind"] == key.sort and _covers(row, key.key)), None)


def _covers(row: Mapping[str, Any], name: str) -> bool:
    return name.startswith(row["name"]) if row.get("is_part") else row["name"] == ""


def get_declared_live_key(declared: Mapping[str, Any]) -> LiveKey:
    """Return the type and key of the live object to which a row of the table `DECLARED` refers."""
    sort, key = declared["live_sort"], declared["live_key"]
    return LiveKey(declared["kind"] if sort is None else sort, declared["name"] if key is None else key)


def require_complete_table(table: str, counts: Mapping[str, int], clusters: Sequence[str]) -> None:
    """Raise KdeclareError unless a table has exactly one row of kind `CLUSTER` for each cluster.

    counts: the number of rows of kind `CLUSTER`, by cluster name.
    clusters: the expected names.
    """
    missing_clusters = [name for name in clusters if not counts.get(name)]
    repeated_clusters = [name for name, count in counts.items() if count > 1]
    unknown_clusters = sorted(counts.keys() - set(clusters))
    if not (missing_clusters or repeated_clusters or unknown_clusters):
        return
    reasons = [
        f"{text} {format_names(names)}"
        for text, names in (
            ("no row for", missing_clusters),
            ("more than one row for", repeated_clusters),
            ("rows of other clusters:", unknown_clusters),
        )
        if names
    ]
    raise build_incomplete_error(
        f"The table '{table}' has {'; '.join(reasons)} ({len(clusters) - len(missing_clusters)} "
        f"of {len(clusters)} clusters are present)."
    )


def require_written_rows(table: str, written_count: int, visible_count: int) -> None:
    """Raise KdeclareError unless this process sees as many rows of a table as were written."""
    if visible_count != written_count:
        raise build_incomplete_error(
            f"{written_count:,} rows of the table '{table}' were written, but this machine sees "
            f"{visible_count:,} rows."
        )


def build_incomplete_error(detail: str) -> KdeclareError:
    """Return the error about a table that does not have all of its rows or files."""
    return KdeclareError(
        error(
            "incomplete-table",
            "Table incomplete",
            f"{detail} The result was discarded.",
            hint="Pass an --out location that the Spark driver and all executors share, so that executors do "
            "not write to their own disks. Do not delete files in this location while a command runs.",
        )
    )
