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
    find_earlier_audits,
    publish_audit,
)
from kdeclare.app.fleet.cluster_rows import read_declared, read_live
from kdeclare.app.fleet.job import FleetJob, FleetOptions, collect_table, open_fleet_job
from kdeclare.app.fleet.snapshot import LIVE_TABLE, read_snapshot_record
from kdeclare.core.progress import Progress
from kdeclare.fleet.audit_results import MEMORY_TABLES
from kdeclare.fleet.audit_summary import Audit, AuditRun, AuditSummary, EarlierAudits, require_all_rows
from kdeclare.fleet.records import require_same_fleet
from kdeclare.fleet.rows import DECLARED, FINDINGS, LIVE, require_complete_table

if TYPE_CHECKING:
    from kdeclare.fleet.spark.audit import ComparedTables
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
        collect_table(job, bench, DECLARED_TABLE, partial(read_declared, job.locator), remaining_declared)
        if audit_options.snapshot is None:
            collect_table(job, bench, LIVE_TABLE, partial(read_live, job.locator), remaining_live)
        tables = _build_tables(job, bench, audit_options, earlier)
        with report_progress(job.spark, job.progress, "Comparing"):
            side_results = write_findings(bench, tables, run, partial(make_evaluator, job.locator))
        with report_progress(job.spark, job.progress, "Summing up"):
            audit = summarize_audit(bench, tables, run, earlier, side_results)
        return publish_audit(job, bench.tables, audit, by_team=audit_options.by_team)


def _build_tables(
    job: FleetJob, bench: "Workbench", audit_options: AuditOptions, earlier: EarlierAudits | None
) -> "ComparedTables":
    from kdeclare.fleet.spark.audit import ComparedTables
    from kdeclare.fleet.spark.diff import AuditCoverage

    sight = AuditCoverage(job.names, job.fleet.left_out, audit_options.unmanaged_keys)
    tables = ComparedTables(
        bench.read("declared", DECLARED),
        _read_live_table(job, bench, audit_options),
        sight,
        accepted=audit_options.accepted,
    )
    if earlier is None:
        return tables
    newest = _read_remembered(job, earlier.newest)
    is_same = earlier.since.audit_id == earlier.newest.audit_id
    return replace(tables, newest=newest, since=newest if is_same else _read_remembered(job, earlier.since))


def _read_remembered(job: FleetJob, summary: AuditSummary) -> "DataFrame":
    """Read the findings of an audit, including earlier findings that the audit did not check again."""
    from kdeclare.fleet.spark.tables import count_rows, read_table

    def read_complete_table(name: str) -> "DataFrame":
        path = build_table_path(name, summary.audit_id)
        table = read_table(job.spark, job.storage, path, FINDINGS)
        require_all_rows(summary, name, count_rows(table), f"{job.storage.uri}/{path}")
        return table

    found_rows, unseen_rows = map(read_complete_table, MEMORY_TABLES)
    return found_rows.unionByName(unseen_rows)


def _read_live_table(job: FleetJob, bench: "Workbench", audit_options: AuditOptions) -> "DataFrame":
    from kdeclare.fleet.spark.audit import require_unaltered
    from kdeclare.fleet.spark.audit_counts import count_rows_by_cluster
    from kdeclare.fleet.spark.hadoop import open_storage
    from kdeclare.fleet.spark.tables import append_unreachable, read_table, select_cluster_rows

    if audit_options.snapshot is None:
        return bench.read("live", LIVE)
    snapshot_folder, snapshot_id = audit_options.snapshot
    storage = open_storage(snapshot_folder, job.spark)
    require_same_fleet(storage, job.fleet.name)
    record = read_snapshot_record(storage, snapshot_id)
    live = read_table(job.spark, storage, record.path, LIVE)
    live = live.where(live.cluster.isin(list(job.names)))
    known_clusters = [cluster for cluster in record.clusters if cluster.name in job.names]
    require_unaltered(live, known_clusters, f"{storage.uri}/{record.path}")
    live = append_unreachable(live, build_missing_rows(job, record))
    require_complete_table("live", count_rows_by_cluster(select_cluster_rows(live)), job.names)
    return live
