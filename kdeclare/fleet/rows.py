"""The tables that a fleet is compared by: their columns, as Arrow has them."""

import pyarrow as pa

FORMAT_VERSION = "1.0"
"""Of snapshots and audits; a consumer of another one would have to change."""

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
        ("has", _HASHES),  # what is so of it, see `core.live_codec.LiveFacts`; null where nothing is known
        ("keys", _HASHES),
        ("group_name", _TEXT),  # what it is counted by where nobody declared it; null where it is listed
    ]
)
"""One row for each live object of a cluster, and one for the cluster.

``kind`` and ``name`` are the sort and the key of the object (`core.live_codec.LiveKey`). A column or a fact
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
        (
            "owned",
            _TEXT,
        ),  # canonical JSON of the record, if there is one; of a cluster: what is pending to be removed
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

FOUND = pa.struct(
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
        *[(field.name, field.type) for field in FOUND],
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
