"""The tables of a fleet and the JSON files beside them: schemas, format versions, completeness."""

import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

import pyarrow as pa

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.documents import parse_document
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, as_object, parse_json

FORMAT_VERSION = "1.0"
"""Of snapshots and audits; a consumer of another one would have to change."""

_Shape = TypeVar("_Shape")

CLUSTER = "Cluster"
"""The kind of the one row that every cluster has: itself, or why it could not be read."""

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
        ("body", _TEXT),  # canonical JSON; null where there is an error
        ("fingerprint", _TEXT),  # of the body
        ("error", _TEXT),
        ("labels", _LABELS),  # the cluster's
        ("has", _HASHES),  # what is so of it, see `LiveFacts`; null where nothing is known
        ("keys", _HASHES),
        ("group_name", _TEXT),  # what it is counted by where nobody declared it; null where it is listed
    ]
)
"""One row for each live object of a cluster, and one for the cluster.

``kind`` and ``name`` are the sort and the key of the object (`LiveKey`). A column or a fact
that an older snapshot does not have proves nothing: then the diff is asked.
"""

DECLARED = pa.schema(
    [
        ("cluster", _TEXT),
        ("kind", _TEXT),
        ("name", _TEXT),
        ("live_sort", _TEXT),  # of the live object that it is; null where that is ``kind``
        ("live_key", _TEXT),  # likewise; null where that is ``name``
        ("desired", _TEXT),  # canonical JSON of the body; null where it is owned only
        ("left_out", _TEXT),  # the same where a selector leaves it out; desired and owned are null then
        ("owned", _TEXT),  # canonical JSON of the record; of a cluster: what is pending to be removed
        ("labels", _LABELS),  # as declared, else as last applied
        ("source", _TEXT),  # file:line:column
        ("alone", pa.bool_()),  # its diff needs no other object's rows
        ("always", pa.bool_()),  # facts cannot tell: ask the diff; of a cluster: it has policies
        ("need", _HASHES),  # facts that live must have
        ("forbid", _HASHES),  # facts that it must not have
        ("keys", _HASHES),  # that live may have
        ("gone", _HASHES),  # keys that it must not have; null where that is all that are not in ``keys``
        ("cluster_id", _TEXT),  # of a cluster's own row: that which its state is about
        ("error", _TEXT),  # likewise: why its project could not be read
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
"""What the diff of one row says, once or several times."""

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
"""The rows of an audit; beside them stands ``audit_id``, by which they are partitioned."""

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
"""How often what was found, by cluster, kind, key and team; partitioned like the findings."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """What one sort of file is called, and what to say where something else stands in its place.

    code: of both errors. name: of the thing that it is about. broken, invalid_hint: summary and hint where
    it is none. command: the command that writes it. version_hint: the hint for another format version.
    """

    code: str
    name: str
    broken: str
    command: str
    invalid_hint: str
    version_hint: str

    def read(self, text: str, where: str) -> JsonObject:
        """What a text holds. Raises KdeclareError for another format version, and for what is none."""
        try:
            data = as_object(parse_json(text))
            version = data["format_version"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self.build_invalid_error(where) from None
        if version == FORMAT_VERSION:
            return data
        detail = f"{where} has format version {version}, and this kdeclare reads {FORMAT_VERSION}."
        raise KdeclareError(
            error(self.code, f"{self.name} of another format", detail, hint=self.version_hint)
        )

    def bind(self, shape: type[_Shape], text: str, where: str, absent: JsonObject | None = None) -> _Shape:
        """The value of a dataclass that a text holds. Raises KdeclareError as `read` does.

        absent: fields that earlier versions of kdeclare did not write, as they are meant.
        """
        data = self.read(text, where)
        try:
            return parse_document(shape, json.dumps({**absent, **data}) if absent else text)
        except ValueError:
            raise self.build_invalid_error(where) from None

    def build_invalid_error(self, source: str) -> KdeclareError:
        """What to raise for a file that is not what it should be."""
        return KdeclareError(
            error(
                self.code, self.broken, f"{source} is not what {self.command} writes.", hint=self.invalid_hint
            )
        )


_MAX_NAMED = 5


def require_complete_table(table: str, counts: Mapping[str, int], clusters: Sequence[str]) -> None:
    """Raise KdeclareError unless a table has exactly one row of its own for each of these clusters.

    counts: how many rows each cluster has of itself, by name.
    """
    missing_clusters = [name for name in clusters if not counts.get(name)]
    repeated_clusters = [name for name, count in counts.items() if count > 1]
    unknown_clusters = sorted(counts.keys() - set(clusters))
    if not (missing_clusters or repeated_clusters or unknown_clusters):
        return
    reasons = [
        f"{text} {_join_names(names)}"
        for text, names in (
            ("nothing about", missing_clusters),
            ("more than one result for", repeated_clusters),
            ("rows of other clusters:", unknown_clusters),
        )
        if names
    ]
    raise _build_incomplete_error(
        f"The table '{table}' has {'; '.join(reasons)} ({len(clusters) - len(missing_clusters)} "
        f"of {len(clusters)} "
        "clusters are there). Nothing was published."
    )


def require_written_rows(table: str, written_count: int, visible_count: int) -> None:
    """Raise KdeclareError unless the driver finds all rows that executors have written."""
    if visible_count != written_count:
        raise _build_incomplete_error(
            f"Executors wrote {written_count:,} rows of the table '{table}', and "
            f"{visible_count:,} are in the folder of "
            "this machine. Nothing was published."
        )


def _build_incomplete_error(detail: str) -> KdeclareError:
    return KdeclareError(
        error(
            "incomplete-table",
            "The result is not complete",
            detail,
            hint="Give an --out that the driver and all executors share: executors that write to disks of "
            "their own cause this.",
        )
    )


def _join_names(names: Sequence[str]) -> str:
    omitted_count = len(names) - _MAX_NAMED
    return f"{', '.join(names[:_MAX_NAMED])}{f' and {omitted_count:,} more' if omitted_count > 0 else ''}"
