"""Audit a fleet without Spark, or begin without Spark and continue on Spark if the fleet is too large."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import chain

import pyarrow as pa

from kdeclare.app.fleet.audit_policies import make_evaluator
from kdeclare.app.fleet.audit_records import (
    DECLARED_TABLE,
    AuditOptions,
    build_missing_rows,
    describe_comparison,
    find_earlier_audits,
    publish_audit,
    read_audit_table,
)
from kdeclare.app.fleet.cluster_rows import read_declared, read_live
from kdeclare.app.fleet.engine_choice import MAX_LOCAL_ROWS
from kdeclare.app.fleet.job import FleetOptions, open_continued_job
from kdeclare.app.fleet.local_job import (
    LocalJob,
    LocalTable,
    collect_locally,
    open_local_job,
    require_local_storage,
)
from kdeclare.app.fleet.snapshot import LIVE_TABLE, read_snapshot_record
from kdeclare.app.fleet.spark_audit import compare_on_spark
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.progress import Progress
from kdeclare.fleet.audit_results import MEMORY_TABLES
from kdeclare.fleet.audit_summary import Audit, AuditRun, AuditSummary, EarlierAudits
from kdeclare.fleet.tables.comparison_options import build_comparison_options
from kdeclare.fleet.tables.records import require_same_fleet
from kdeclare.fleet.tables.row_builder import Row, batch_rows
from kdeclare.fleet.tables.rows import CLUSTER, DECLARED, FINDINGS, LIVE, require_complete_table
from kdeclare.fleet.tables.snapshots import SnapshotRecord
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.fleet.unused import list_unchecked


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The snapshot that an audit compares with the manifests."""

    storage: LocalStorage
    record: SnapshotRecord


def audit_locally(
    options: FleetOptions, audit_options: AuditOptions, environ: Mapping[str, str], progress: Progress
) -> Audit:
    """Audit a fleet whose folders are local. Raises KdeclareError.

    If the engine is ``auto`` and the tables become too large, Spark collects the remaining rows and compares
    the tables.
    """
    with open_local_job(options, environ, progress) as job:
        earlier = find_earlier_audits(job.storage, audit_options.since)
        snapshot = _open_snapshot(job, audit_options)
        declared = collect_locally(job, DECLARED_TABLE, partial(read_declared, job.locator), MAX_LOCAL_ROWS)
        live = _collect_live(job, snapshot, declared)
        if job.continues_on_spark and declared.size + live.size > MAX_LOCAL_ROWS:
            with open_continued_job(options, job) as spark_job:
                return compare_on_spark(spark_job, audit_options, earlier, declared.remaining, live.remaining)
        return _compare_locally(job, audit_options, earlier, snapshot)


def _open_snapshot(job: LocalJob, audit_options: AuditOptions) -> _Snapshot | None:
    if audit_options.snapshot is None:
        return None
    snapshot_folder, snapshot_id = audit_options.snapshot
    storage = require_local_storage("--snapshot", snapshot_folder)
    require_same_fleet(storage, job.fleet.name)
    return _Snapshot(storage, read_snapshot_record(storage, snapshot_id))


def _collect_live(job: LocalJob, snapshot: _Snapshot | None, declared: LocalTable) -> LocalTable:
    """Read the live state of the clusters, unless the audit uses a snapshot or needs Spark."""
    if snapshot is not None:
        return LocalTable(sum(c.rows for c in snapshot.record.clusters if c.name in job.names))
    limit = MAX_LOCAL_ROWS - declared.size
    if job.continues_on_spark and limit < 0:
        return LocalTable(0, job.names)
    return collect_locally(job, LIVE_TABLE, partial(read_live, job.locator), limit)


def _compare_locally(
    job: LocalJob, audit_options: AuditOptions, earlier: EarlierAudits | None, snapshot: _Snapshot | None
) -> Audit:
    from kdeclare.fleet.local.audit import LocalTables, write_audit
    from kdeclare.fleet.local.unchanged import EarlierFindings, select_compared

    live = job.bench.read_tables("live", LIVE) if snapshot is None else _read_snapshot_tables(job, snapshot)
    newest = _read_memory(job, earlier.newest) if earlier is not None else None
    compared = select_compared(
        job.bench.read_tables("declared", DECLARED),
        live,
        build_comparison_options(unmanaged_keys=audit_options.unmanaged_keys),
        EarlierFindings(earlier.newest, newest[0])
        if earlier is not None and newest is not None and not audit_options.full
        else None,
    )
    tables = LocalTables(
        compared.declared,
        compared.live,
        job.names,
        tuple(job.fleet.left_out),
        audit_options.unmanaged_keys,
        accepted=audit_options.accepted,
        unchanged=compared.unchanged,
        carried=compared.carried,
        fingerprints=compared.fingerprints,
        unchecked_usage={
            row["cluster"]: list_unchecked(row["body"]) for row in compared.live if row["kind"] == CLUSTER
        },
    )
    if earlier is not None and newest is not None:
        is_same = earlier.since.audit_id == earlier.newest.audit_id
        since = newest if is_same else _read_memory(job, earlier.since)
        tables = replace(tables, newest=[*chain(*newest)], since=[*chain(*since)])
    job.progress(describe_comparison(len(compared.unchanged), len(job.names)), 0, 0)
    run = AuditRun(job.identity, job.fleet.name, job.began)
    audit = write_audit(job.bench, tables, run, earlier, partial(make_evaluator, job.locator))
    return publish_audit(job, job.bench.tables, audit, by_team=audit_options.by_team)


def _read_memory(job: LocalJob, summary: AuditSummary) -> list[list[Row]]:
    """Read those tables of an earlier audit that a new audit is compared with; see `MEMORY_TABLES`."""
    from kdeclare.fleet.local.tables import read_rows

    def read_table(path: str) -> list[Row]:
        return read_rows(job.storage, path, FINDINGS)

    return [read_audit_table(job.storage, summary, name, read_table) for name in MEMORY_TABLES]


def _read_snapshot_tables(job: LocalJob, snapshot: _Snapshot) -> "dict[str, pa.Table]":
    from kdeclare.fleet.local.audit import require_unaltered
    from kdeclare.fleet.local.counts import count_cluster_rows
    from kdeclare.fleet.local.tables import list_rows, read_cluster_tables

    storage, record = snapshot.storage, snapshot.record
    tables = read_cluster_tables(storage, record.path, LIVE, job.names)
    keys = [row for table in tables.values() for row in list_rows(table, ("cluster", "kind", "name"))]
    known_clusters = [cluster for cluster in record.clusters if cluster.name in job.names]
    require_unaltered(keys, known_clusters, f"{storage.uri}/{record.path}")
    missing_rows = build_missing_rows(job, record)
    tables |= {row["cluster"]: pa.Table.from_batches(batch_rows([row])) for row in missing_rows}
    require_complete_table("live", count_cluster_rows([*keys, *missing_rows]), job.names)
    return tables
