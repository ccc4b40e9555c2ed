"""The tables of a fleet and their JSON files: schemas, format versions, completeness checks."""

import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

import pyarrow as pa

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.documents import parse_document
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, as_object, parse_json

FORMAT_VERSION = "1.0"
"""The format version of snapshots and audits. If it changes, consumers must change, too."""

_Shape = TypeVar("_Shape")

CLUSTER = "Cluster"
"""The kind of the row about a cluster itself. If the cluster could not be read, it has the error."""

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
        ("fingerprint", _TEXT),  # of the body
        ("error", _TEXT),
        ("labels", _LABELS),  # the cluster's
        ("has", _HASHES),  # the facts about it, see `LiveFacts`; null if unknown
        ("keys", _HASHES),
        ("group_name", _TEXT),  # the group to count it in if it is unmanaged; null if it is listed by itself
    ]
)
"""One row for each live object of a cluster, and one for the cluster.

``kind`` and ``name`` are the sort and the key of the object (`LiveKey`). A column or a fact
that an older snapshot lacks proves nothing, so the diff decides.
"""

DECLARED = pa.schema(
    [
        ("cluster", _TEXT),
        ("kind", _TEXT),
        ("name", _TEXT),
        ("live_sort", _TEXT),  # the sort of its live object; null if that is ``kind``
        ("live_key", _TEXT),  # the key of its live object; null if that is ``name``
        ("desired", _TEXT),  # canonical JSON of the body; null if the resource is owned only
        ("left_out", _TEXT),  # the body if a selector leaves it out; desired and owned are null then
        ("owned", _TEXT),  # canonical JSON of the record; for a cluster: its pending cleanup
        ("labels", _LABELS),  # as declared, else as last applied
        ("source", _TEXT),  # file:line:column
        ("alone", pa.bool_()),  # its diff does not need the rows of other objects
        ("always", pa.bool_()),  # facts cannot decide, always diff; for a cluster: it has policies
        ("need", _HASHES),  # facts that the live object must have
        ("forbid", _HASHES),  # facts that it must not have
        ("keys", _HASHES),  # keys that it may have
        ("gone", _HASHES),  # keys that it must not have; null if these are all that are not in ``keys``
        ("cluster_id", _TEXT),  # for a cluster's own row: the cluster that its state belongs to
        ("error", _TEXT),  # for a cluster's own row: why its project could not be read
    ]
)
"""One row for each resource that is declared or owned (for each element of a set), and one for the cluster.

It is joined with the live table on cluster, sort and key.
"""

FINDING = pa.struct(
    [
        ("finding", _TEXT),
        ("path", _TEXT),
        ("op", _TEXT),
        ("before", _TEXT),  # JSON
        ("after", _TEXT),  # JSON
        ("message", _TEXT),
    ]
)
"""One finding of the diff of a row."""

FINDINGS = pa.schema(
    [
        ("taken_at", _TIME),
        ("cluster", _TEXT),
        ("kind", _TEXT),
        ("name", _TEXT),
        *[(field.name, field.type) for field in FINDING],
        ("labels", _LABELS),
        ("first_seen", _TIME),
        ("status", _TEXT),  # new, or known from the audit before
    ]
)
"""The rows of an audit; they are partitioned by the additional column ``audit_id``."""

SUMMARY = pa.schema(
    [
        ("taken_at", _TIME),
        ("cluster", _TEXT),
        ("kind", _TEXT),
        ("finding", _TEXT),
        ("path", _TEXT),
        ("team", _TEXT),
        ("count", pa.int64()),
    ]
)
"""The number of findings by cluster, kind, path and team; partitioned like the findings."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A file format, with the messages of its errors.

    code: the code of both errors. name: what the file describes. broken, invalid_hint: summary and hint for a
    file that does not have this format. command: the command that writes such files. version_hint: the hint
    for a different format version.
    """

    code: str
    name: str
    broken: str
    command: str
    invalid_hint: str
    version_hint: str

    def read(self, text: str, where: str) -> JsonObject:
        """Parse a text. Raises KdeclareError for a different format version and for invalid text."""
        try:
            data = as_object(parse_json(text))
            version = data["format_version"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self.build_invalid_error(where) from None
        if version == FORMAT_VERSION:
            return data
        detail = f"{where} has format version {version}, but this version of kdeclare reads {FORMAT_VERSION}."
        raise KdeclareError(error(self.code, "Unsupported format version", detail, hint=self.version_hint))

    def bind(self, shape: type[_Shape], text: str, where: str, absent: JsonObject | None = None) -> _Shape:
        """Parse a text into a dataclass. Raises KdeclareError as `read` does.

        absent: defaults for fields that earlier versions of kdeclare did not write.
        """
        data = self.read(text, where)
        try:
            return parse_document(shape, json.dumps({**absent, **data}) if absent else text)
        except ValueError:
            raise self.build_invalid_error(where) from None

    def build_invalid_error(self, source: str) -> KdeclareError:
        """Return the error for a file that does not have this format."""
        detail = f"{source} does not have the format that '{self.command}' writes."
        return KdeclareError(error(self.code, self.broken, detail, hint=self.invalid_hint))


_MAX_NAMED = 5


def require_complete_table(table: str, counts: Mapping[str, int], clusters: Sequence[str]) -> None:
    """Raise KdeclareError unless a table has exactly one row of its own for each of these clusters.

    counts: the number of a cluster's rows of itself, by cluster name.
    """
    missing_clusters = [name for name in clusters if not counts.get(name)]
    repeated_clusters = [name for name, count in counts.items() if count > 1]
    unknown_clusters = sorted(counts.keys() - set(clusters))
    if not (missing_clusters or repeated_clusters or unknown_clusters):
        return
    reasons = [
        f"{text} {_join_names(names)}"
        for text, names in (
            ("no row for", missing_clusters),
            ("more than one row for", repeated_clusters),
            ("rows of other clusters:", unknown_clusters),
        )
        if names
    ]
    raise _build_incomplete_error(
        f"The table '{table}' has {'; '.join(reasons)} ({len(clusters) - len(missing_clusters)} "
        f"of {len(clusters)} clusters are present). Nothing was published."
    )


def require_written_rows(table: str, written_count: int, visible_count: int) -> None:
    """Raise KdeclareError unless the driver sees exactly the rows that executors wrote."""
    if visible_count != written_count:
        raise _build_incomplete_error(
            f"Executors wrote {written_count:,} rows of the table '{table}', but "
            f"{visible_count:,} are in the folder on this machine. Nothing was published."
        )


def _build_incomplete_error(detail: str) -> KdeclareError:
    return KdeclareError(
        error(
            "incomplete-table",
            "Incomplete result",
            detail,
            hint="Pass an --out location that the driver and all executors share. This error occurs if "
            "executors write to their own disks.",
        )
    )


def _join_names(names: Sequence[str]) -> str:
    omitted_count = len(names) - _MAX_NAMED
    return f"{', '.join(names[:_MAX_NAMED])}{f' and {omitted_count:,} more' if omitted_count > 0 else ''}"
