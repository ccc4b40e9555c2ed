"""The options of an audit, the earlier audits in a folder, and the reports of an audit."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from kdeclare.app.fleet.job import ClusterTable, FleetRun
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.audit_results import AUDIT_TABLES
from kdeclare.fleet.audit_summary import (
    Audit,
    AuditSummary,
    EarlierAudits,
    dump_summary,
    parse_summary,
    require_all_rows,
)
from kdeclare.fleet.tables.records import AUDITS, build_index, build_record_path, list_record_ids
from kdeclare.fleet.tables.row_builder import Row, build_unreachable_row
from kdeclare.fleet.tables.rows import DECLARED
from kdeclare.fleet.tables.snapshots import SnapshotRecord
from kdeclare.fleet.tables.storage import Storage
from kdeclare.fleet.tables.unfinished_tables import UnfinishedTables, publish_tables
from kdeclare.manifests.fleet.accepted_drift import AcceptedDrift
from kdeclare.report.fleet.audit_markdown import render_audit_markdown
from kdeclare.report.fleet.audit_metrics import render_audit_metrics
from kdeclare.report.fleet.audit_page import render_audit_page
from kdeclare.report.fleet.team_audits import TEAMS, render_team_reports

DECLARED_TABLE = ClusterTable("declared", DECLARED, "Reading manifests", by_cluster=False)

LATEST = "latest"
"""The id that users can pass for the latest audit in a folder."""

ReadTable = Callable[[str], list[Row]]
"""Reads a table of an audit; the path is relative to the folder of audits."""


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Options of an audit.

    snapshot: the folder and the id (or ``latest``) of the snapshot to use as live state. If None, the audit
    reads the clusters.
    since: the id of the audit to compare with; None is the latest audit in the folder.
    unmanaged_keys: whether undeclared config keys of declared resources are findings.
    by_team: whether to write a report for each team, too.
    accepted: the accepted drift of the fleet. `audit_fleet` reads it from the files that the fleet file
    lists.
    full: whether to compare all clusters, including those that have not changed since the latest audit.
    """

    snapshot: tuple[str, str] | None = None
    since: str | None = None
    unmanaged_keys: bool = True
    by_team: bool = False
    accepted: tuple[AcceptedDrift, ...] = ()
    full: bool = False


DEFAULT_AUDIT_OPTIONS = AuditOptions()
"""The default options: read the clusters, and compare with the latest audit in the folder."""


def list_audits(storage: Storage, since: str | None) -> tuple[str, ...]:
    """List the ids of all audits in a folder, oldest first.

    since: the id of an audit that must exist, ``latest`` or None. Raises KdeclareError if this audit does not
    exist.
    """
    audit_ids = list_record_ids(storage, AUDITS)
    if since not in (None, LATEST, *audit_ids):
        raise KdeclareError(
            error(
                "no-audit",
                "No such audit",
                f"There is no audit '{since}' in {storage.uri}.",
                hint=f"Use the id of a recent audit: {', '.join(audit_ids[-5:])}."
                if audit_ids
                else "Leave out --since: the folder has no audits yet.",
            )
        )
    if since == LATEST and not audit_ids:
        raise KdeclareError(
            error(
                "no-audit",
                "No audit yet",
                f"There is no audit to compare with in {storage.uri}.",
                hint="Leave out --since for the first audit.",
            )
        )
    return audit_ids


def find_earlier_audits(storage: Storage, since: str | None) -> EarlierAudits | None:
    """Return the latest audit in a folder, and the audit to compare with. Return None if there are no audits.

    since: see `list_audits`. Raises KdeclareError.
    """
    audit_ids = list_audits(storage, since)
    if not audit_ids:
        return None
    newest = read_audit_summary(storage, audit_ids[-1])
    if since is None or since in (LATEST, audit_ids[-1]):
        return EarlierAudits(newest, newest)
    return EarlierAudits(newest, read_audit_summary(storage, since))


def read_audit_summary(storage: Storage, audit_id: str) -> AuditSummary:
    """Read the summary of an audit. Raises KdeclareError."""
    path = build_record_path(AUDITS, audit_id)
    return parse_summary(storage.read(path), f"{storage.uri}/{path}")


def build_table_path(table: str, audit_id: str) -> str:
    """Return the path of an audit's table, relative to the folder of results."""
    return f"{table}/audit_id={audit_id}"


def build_table_paths(audit_id: str) -> Mapping[str, str]:
    """Return the paths of all tables of an audit, by table name."""
    return {name: build_table_path(name, audit_id) for name in AUDIT_TABLES}


def read_audit_table(storage: Storage, summary: AuditSummary, name: str, read_table: ReadTable) -> list[Row]:
    """Read a table of a stored audit. Raises KdeclareError if rows are missing or duplicate."""
    path = build_table_path(name, summary.audit_id)
    rows = read_table(path)
    require_all_rows(summary, name, len(rows), f"{storage.uri}/{path}")
    return rows


def describe_comparison(unchanged: int, total: int) -> str:
    """Return the text of the progress display while clusters are compared.

    unchanged: the number of clusters that are not compared, because nothing has changed.
    """
    return f"Comparing {total - unchanged:,} of {total:,} clusters" if unchanged else "Comparing"


def build_missing_rows(job: FleetRun, record: SnapshotRecord) -> list[Row]:
    """Return one row for each cluster that the snapshot lacks. The row marks the cluster as unreachable."""
    known_names = {cluster.name for cluster in record.clusters}
    reason = f"Snapshot {record.snapshot_id} does not include this cluster."
    return [
        build_unreachable_row(entry.name, entry.labels, record.taken_at, reason)
        for entry in job.fleet.clusters
        if entry.name not in known_names
    ]


def publish_audit(job: FleetRun, tables: UnfinishedTables, audit: Audit, *, by_team: bool) -> Audit:
    """Publish the tables, the reports and the summary of an audit. Return the audit with its duration.

    by_team: see `AuditOptions`.
    """
    summary = replace(audit.summary, seconds=job.seconds)
    audit = replace(audit, summary=summary, links=job.fleet.manifest_links)
    team_reports = dict(render_team_reports(audit)) if by_team else {}
    record = build_record_path(AUDITS, job.identity)
    with publish_tables(tables, build_table_paths(job.identity), record):
        index = build_index(job.storage, AUDITS, job.identity)
        # The record comes last: it marks the audit as complete.
        job.storage.write_all(
            {**team_reports, **_render_reports(audit), **index, record: dump_summary(audit.summary)}
        )
    if by_team:
        _remove_other_team_reports(job.storage, team_reports)
    return audit


def _remove_other_team_reports(storage: Storage, team_reports: Collection[str]) -> None:
    """Remove the reports of teams that no longer have findings."""
    for name in storage.names(TEAMS):
        path = f"{TEAMS}/{name}"
        if path not in team_reports and name.endswith((".md", ".html")):
            storage.remove(path)


def _render_reports(audit: Audit) -> Mapping[str, str]:
    """Return the contents of the reports, by path."""
    return {
        "report.html": render_audit_page(audit),
        "report.md": render_audit_markdown(audit),
        "metrics.prom": render_audit_metrics(audit),
        "summary.json": dump_summary(audit.summary),
    }
