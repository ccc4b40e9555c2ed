"""Audit a fleet on Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kdeclare.app.fleet.archive import TaskNeeds
from kdeclare.app.fleet.audit_policies import make_evaluator
from kdeclare.app.fleet.audit_records import (
    DECLARED_TABLE,
    AuditOptions,
    build_missing_rows,
    build_table_path,
    build_table_paths,
    describe_comparison,
    find_earlier_audits,
    publish_audit,
)
from kdeclare.app.fleet.cluster_rows import read_declared, read_live
from kdeclare.app.fleet.job import FleetJob, FleetOptions, collect_rows, open_fleet_job
from kdeclare.app.fleet.snapshot import LIVE_TABLE, read_snapshot_record
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.progress import Progress
from kdeclare.fleet.audit_results import MEMORY_TABLES
from kdeclare.fleet.audit_summary import Audit, AuditRun, AuditSummary, EarlierAudits, require_all_rows
from kdeclare.fleet.tables.comparison_options import build_comparison_options
from kdeclare.fleet.tables.fingerprints import (
    NO_FINDINGS,
    compute_fingerprints,
    find_unchanged,
    format_findings_fingerprint,
)
from kdeclare.fleet.tables.records import require_same_fleet
from kdeclare.fleet.tables.rows import DECLARED, FINDINGS, LIVE

if TYPE_CHECKING:
    from kdeclare.fleet.spark.audit import ComparedTables
    from kdeclare.fleet.spark.overview import FleetOverview
    from kdeclare.fleet.spark.tables import DataFrame, Workbench


def audit_on_spark(
    options: FleetOptions, audit_options: AuditOptions, environ: Mapping[str, str], progress: Progress
) -> Audit:
    """Read the clusters with Spark tasks, and compare the tables on Spark. Raises KdeclareError."""
    snapshot_folder = audit_options.snapshot and audit_options.snapshot[0]
    with open_fleet_job(options, environ, progress, TaskNeeds.DECLARED, snapshot_folder) as job:
        return compare_on_spark(job, audit_options, find_earlier_audits(job.storage, audit_options.since))


def compare_on_spark(
    job: FleetJob,
    audit_options: AuditOptions,
    earlier: EarlierAudits | None,
    remaining_declared: Sequence[str] | None = None,
    remaining_live: Sequence[str] | None = None,
) -> Audit:
    """Collect the tables of an audit and compare them. Raises KdeclareError.

    remaining_declared, remaining_live: the names of the clusters to collect, if the temporary folder already
        has the tables with the other clusters; otherwise None.
    """
    from kdeclare.fleet.spark.audit import summarize_audit, write_findings
    from kdeclare.fleet.spark.progress import report_progress
    from kdeclare.fleet.spark.tables import open_workbench

    with open_workbench(job.spark, job.storage, job.identity, build_table_paths(job.identity)) as bench:
        run = AuditRun(job.identity, job.fleet.name, job.began)
        collect_rows(job, bench, DECLARED_TABLE, partial(read_declared, job.locator), remaining_declared)
        if audit_options.snapshot is None:
            collect_rows(job, bench, LIVE_TABLE, partial(read_live, job.locator), remaining_live)
        tables = _build_tables(job, bench, audit_options, earlier)
        doing = describe_comparison(len(tables.unchanged), len(job.names))
        with report_progress(job.spark, job.progress, doing):
            written = write_findings(bench, tables, run, partial(make_evaluator, job.locator))
        with report_progress(job.spark, job.progress, "Summing up"):
            audit = summarize_audit(bench, tables, run, earlier, written)
        return publish_audit(job, bench.tables, audit, by_team=audit_options.by_team)


def _build_tables(
    job: FleetJob, bench: "Workbench", audit_options: AuditOptions, earlier: EarlierAudits | None
) -> "ComparedTables":
    from kdeclare.fleet.spark.audit import ComparedTables
    from kdeclare.fleet.spark.diff import AuditCoverage

    declared = bench.read("declared", DECLARED)
    live, overview = _read_live_table(job, bench, declared, audit_options)
    options = build_comparison_options(unmanaged_keys=audit_options.unmanaged_keys)
    tables = ComparedTables(
        declared,
        live,
        overview,
        AuditCoverage(job.names, job.fleet.left_out, audit_options.unmanaged_keys, overview.unchecked_usage),
        accepted=audit_options.accepted,
        fingerprints=compute_fingerprints(overview.inputs, options),
    )
    if earlier is None:
        return tables
    newest = _read_remembered(job, earlier.newest)
    is_same = earlier.since.audit_id == earlier.newest.audit_id
    since = newest if is_same else _read_remembered(job, earlier.since)
    tables = replace(tables, newest=newest.every, since=since.every)
    return tables if audit_options.full else _carry_over(tables, earlier.newest, newest)


@dataclass(frozen=True, slots=True)
class _Remembered:
    """The findings of a stored audit.

    found: the table ``findings``. every: these findings, and the findings of earlier audits that the stored
        audit did not check again.
    fingerprints: the hash of each cluster's findings.
    """

    found: "DataFrame"
    every: "DataFrame"
    fingerprints: Mapping[str, str]


def _carry_over(tables: "ComparedTables", earlier: AuditSummary, remembered: _Remembered) -> "ComparedTables":
    """Add the findings of an earlier audit to ``tables``, for clusters that have not changed since then."""
    recorded = {item.name: item for item in earlier.clusters}
    intact = {
        name: current
        for name, current in tables.fingerprints.items()
        if (item := recorded.get(name)) is not None
        and item.fingerprints is not None
        and item.fingerprints.findings == remembered.fingerprints.get(name, NO_FINDINGS)
    }
    unchanged = find_unchanged(intact, tables.overview.sharing, earlier)
    if not unchanged:
        return tables
    return replace(
        tables,
        unchanged={name: recorded[name].notice for name in unchanged},
        carried=remembered.found.where(remembered.found.cluster.isin(list(unchanged))),
    )


def _read_remembered(job: FleetJob, summary: AuditSummary) -> _Remembered:
    """Read the findings of an audit. Raises KdeclareError if rows are missing or duplicate."""
    from kdeclare.fleet.spark.audit_counts import count_tables
    from kdeclare.fleet.spark.tables import read_table

    paths = {name: build_table_path(name, summary.audit_id) for name in MEMORY_TABLES}
    tables = {name: read_table(job.spark, job.storage, path, FINDINGS) for name, path in paths.items()}
    counts = count_tables(tables)
    for name, path in paths.items():
        require_all_rows(summary, name, counts[name].count, f"{job.storage.uri}/{path}")
    found_rows, unseen_rows = tables.values()
    fingerprints = {
        cluster: format_findings_fingerprint(rows) for cluster, rows in counts["findings"].by_cluster.items()
    }
    return _Remembered(found_rows, found_rows.unionByName(unseen_rows), fingerprints)


def _read_live_table(
    job: FleetJob, bench: "Workbench", declared: "DataFrame", audit_options: AuditOptions
) -> "tuple[DataFrame, FleetOverview]":
    """Return the live table, and data about each cluster. Raises KdeclareError if rows are missing."""
    from kdeclare.fleet.spark.audit import require_written_counts
    from kdeclare.fleet.spark.hadoop import open_storage
    from kdeclare.fleet.spark.overview import read_counts
    from kdeclare.fleet.spark.tables import append_unreachable, read_table

    if audit_options.snapshot is None:
        live = bench.read("live", LIVE)
        return live, read_counts(declared, live).require_complete(job.names)
    snapshot_folder, snapshot_id = audit_options.snapshot
    storage = open_storage(snapshot_folder, job.spark)
    require_same_fleet(storage, job.fleet.name)
    record = read_snapshot_record(storage, snapshot_id)
    live = read_table(job.spark, storage, record.path, LIVE)
    live = append_unreachable(live.where(live.cluster.isin(list(job.names))), build_missing_rows(job, record))
    counts = read_counts(declared, live)
    known_clusters = [cluster for cluster in record.clusters if cluster.name in job.names]
    require_written_counts(live, counts.count_live(), known_clusters, f"{storage.uri}/{record.path}")
    return live, counts.require_complete(job.names)
