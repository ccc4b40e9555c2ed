"""Generate the reference of the Parquet tables of fleets from their Arrow schemas."""

from collections.abc import Mapping

import pyarrow as pa

from kdeclare.fleet.tables.rows import FINDINGS, FORMAT_VERSION, LIVE, SUMMARY
from scripts.reference.markdown import code, fence, page, prose, table

FINDING_COLUMNS = {
    "taken_at": "The time at which the cluster was read.",
    "cluster": "The name of the cluster in the fleet file.",
    "kind": "The kind of the resource or of the live object; `Cluster` for the whole cluster.",
    "name": "The name of the resource or of the live object.",
    "finding": "The type of the finding. See [Audits](../fleet-audits.md).",
    "path": "The field, such as `configs.retention.ms`; null for findings about the whole resource.",
    "op": "What an apply would do with the field; null if an apply would not change it.",
    "before": "The live value as JSON.",
    "after": "The declared value as JSON.",
    "message": "An explanation for people. The wording can change.",
    "severity": "`high`, `medium` or `low`.",
    "source": "The position of the manifest, `file:line:column`, relative to the fleet file.",
    "labels": "The labels of the resource.",
    "first_seen": "The time of the first audit that reported the finding.",
    "status": "In `findings/`: `new` or `known`, compared with the earlier audit. In `unseen/`: `unseen`.",
    "id": "Stays the same in all audits while the finding is open.",
    "accepted": "The name of the `AcceptedDrift` that accepts the finding; null if there is none.",
}
SUMMARY_COLUMNS = {
    "taken_at": "The time at which the audit began.",
    "cluster": "The name of the cluster.",
    "kind": "The kind of the resources.",
    "finding": "The type of the findings.",
    "path": "The field; null for findings about whole resources.",
    "team": "The label `team` of the resources; empty if they do not have this label.",
    "count": "The number of findings. Accepted findings are not counted.",
    "severity": "The severity of the findings.",
    "oldest": "The time of the first audit that reported the oldest of the findings.",
}
LIVE_COLUMNS = {
    "taken_at": "The time at which the cluster was read.",
    "cluster": "The name of the cluster. This column is in the name of the folder, not in the files.",
    "cluster_id": "The id of the cluster.",
    "kind": "The type of the live object; `Cluster` for the row about the cluster itself.",
    "name": "The key of the live object; empty in a row about a type of objects that could not be read.",
    "body": "The object as canonical JSON; null if there is an error.",
    "fingerprint": "A hash of `body`. Equal bodies have equal hashes.",
    "error": "The reason why the cluster or the object could not be read; null if it was read.",
    "labels": "The labels of the cluster in the fleet file.",
    "has": "For kdeclare's internal use.",
    "keys": "For kdeclare's internal use.",
    "group_name": "For kdeclare's internal use.",
    "is_part": "True in a row about the objects whose names begin with `name` and that could not be read.",
}
READ_AUDITS = """\
import json
from pathlib import Path

import pyarrow.parquet as pq

audits = Path("audits")
for record in sorted(audits.glob("audits/*.json")):
    rows = pq.read_table(audits / f"findings/audit_id={record.stem}").num_rows
    assert rows == json.loads(record.read_text())["rows"]["findings"]
    print(record.stem, rows)"""


_PATHS = (
    ("data/day=DAY/snapshot=ID/cluster=CLUSTER/*.parquet", "the live objects of a cluster in a snapshot"),
    ("snapshots/ID.json", "the record of a snapshot, see [fleet-snapshot](documents.md#fleet-snapshot)"),
    ("findings/audit_id=ID/*.parquet", "the findings of an audit"),
    ("unseen/audit_id=ID/*.parquet", "earlier findings that the audit did not check again"),
    ("summary/audit_id=ID/*.parquet", "the numbers of findings of an audit"),
    ("audits/ID.json", "the record of an audit, see [fleet-audit](documents.md#fleet-audit)"),
    ("snapshots.json, audits.json", "the ids of all records; an id without a record has no meaning"),
)
_INTRODUCTION = f"""
    `fleet snapshot` and `fleet audit` write Parquet files. Both engines write the same columns and types.
    This page describes format version {FORMAT_VERSION}.
"""
_VALIDITY = """
    A table is valid if its record exists. kdeclare writes the record last, in one step. Read a table only
    after you have found its record: tables without a record belong to a command that is running or was
    killed. In object stores, a running command already writes to `findings/`, `unseen/`, `summary/` and
    `data/`, because moving files would copy them. Elsewhere, it writes to `_unfinished/`.

    The record of an audit contains the number of rows of each table (`rows`). For each cluster, a snapshot
    has `resources` + `failed` + 1 rows. If the numbers differ, files were lost or copied.
"""
_LEFTOVERS = """
    A killed command can leave files behind. To remove them, first make sure that no command is running. Then
    delete the folders in `_unfinished/` and the tables without a record.
"""
_PROMISES = (
    """Columns keep their names, types and meanings. New columns can be added. Files of earlier versions do
    not have them, so declare the schema when you read many files, or merge the schemas.""",
    "New kinds, types of findings and paths can be added. Ignore values that you do not know.",
    "Times are `TIMESTAMP(MICROS)`, adjusted to UTC. Version 0.1 wrote `INT96`.",
    "Any column can be null, unless its description rules this out.",
    "Files are never changed. The number and the names of the files of a table have no meaning.",
    """If readers have to be adapted to a change, the records get a new `format_version`. kdeclare refuses
    versions that it does not know.""",
    "`day`, `snapshot`, `cluster` and `audit_id` are in the names of folders. Read them as strings.",
)


def tables_page() -> str:
    """Render the folders, the columns and the compatibility of the tables."""
    return page(
        "Tables of fleets",
        prose(_INTRODUCTION),
        table(("path", "contents"), ((code(path), contents) for path, contents in _PATHS)),
        "## Which tables are valid",
        prose(_VALIDITY),
        fence(READ_AUDITS, "python"),
        prose(_LEFTOVERS),
        "## What readers can rely on",
        "\n".join(f"- {prose(promise)}" for promise in _PROMISES),
        "## findings, unseen",
        _columns(FINDINGS, FINDING_COLUMNS),
        "## summary",
        _columns(SUMMARY, SUMMARY_COLUMNS),
        "## data",
        "The live objects of snapshots.",
        _columns(LIVE, LIVE_COLUMNS),
    )


def _columns(schema: pa.Schema, meanings: Mapping[str, str]) -> str:
    if set(schema.names) != meanings.keys():
        raise ValueError(f"Describe these columns: {sorted(set(schema.names) ^ meanings.keys())}")
    rows = ((code(field.name), code(field.type), meanings[field.name]) for field in schema)
    return table(("column", "type", "meaning"), rows)
