"""Audit a fleet: find drift and its age, policy violations, and the owners of resources."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.cluster_rows import read_declared, read_live
from kdeclare.app.fleet.job import (
    ClusterTable,
    Engine,
    FleetJob,
    FleetOptions,
    FleetRun,
    collect_table,
    open_fleet_job,
)
from kdeclare.app.fleet.local_job import LocalJob, collect_locally, open_local_job, require_local_storage
from kdeclare.app.fleet.snapshot import LIVE_TABLE, collect_live_rows, read_snapshot_record
from kdeclare.app.policies import open_active_policies
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.provider.registry import CODECS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.policy_subjects import (
    Review,
    ReviewInputs,
    find_snapshot_subject,
)
from kdeclare.fleet.audit_results import AUDIT_TABLES, MEMORY_TABLES
from kdeclare.fleet.cluster_pass import (
    NO_KNOWN_RESOURCES,
    ClusterEvaluation,
    ClusterEvaluator,
    KnownResources,
    LabelsByResource,
)
from kdeclare.fleet.findings import Audit, AuditRun, AuditSummary, EarlierAudits, dump_summary, parse_summary
from kdeclare.fleet.row_builder import Row, build_unreachable_row
from kdeclare.fleet.rows import DECLARED, FINDINGS, LIVE, require_complete_table
from kdeclare.fleet.snapshots import SnapshotRecord
from kdeclare.fleet.storage import AUDITS, Storage, find_local_storage, list_record_ids, require_same_fleet
from kdeclare.policy.configured_policy import ConfiguredPolicy, group_by_kind
from kdeclare.policy.plain_requests import PlainSubjects
from kdeclare.policy.resource_checks import check_existing
from kdeclare.policy.subjects import get_policy_subjects
from kdeclare.report.fleet.audit_markdown import render_audit_markdown
from kdeclare.report.fleet.audit_page import render_audit_page

if TYPE_CHECKING:
    from kdeclare.fleet.local.tables import LocalWorkbench
    from kdeclare.fleet.spark.audit import ComparedTables
    from kdeclare.fleet.spark.tables import DataFrame, Workbench


_LATEST = "latest"


def list_audits(storage: Storage, since: str | None) -> tuple[str, ...]:
    """List the ids of all audits in a folder, oldest first.

    since: the id of an audit that must exist, ``latest`` or None. Raises KdeclareError if this audit does not
    exist.
    """
    audit_ids = list_record_ids(storage, AUDITS)
    if since not in (None, _LATEST, *audit_ids):
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
    if since == _LATEST and not audit_ids:
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
    newest = _read_summary(storage, audit_ids[-1])
    if since is None or since in (_LATEST, audit_ids[-1]):
        return EarlierAudits(newest, newest)
    return EarlierAudits(newest, _read_summary(storage, since))


def _read_summary(storage: Storage, audit_id: str) -> AuditSummary:
    path = f"{AUDITS}/{audit_id}.json"
    return parse_summary(storage.read(path), f"{storage.uri}/{path}")


def make_evaluator(locator: ClusterLocator, name: str) -> ClusterEvaluator | None:
    """Return the policy evaluator of one cluster, which `fleet.spark.audit` calls in the Spark task."""

    def evaluate(
        live: LiveState,
        objects: Sequence[ResourceId],
        labels: LabelsByResource,
        known_resources: KnownResources,
    ) -> ClusterEvaluation:
        with locator.files(), open_active_policies(locator.workspace(name)) as active_policies:
            return evaluate_objects(active_policies.policies, live, objects, labels, known_resources)

    return evaluate


def evaluate_objects(
    policies: Sequence[ConfiguredPolicy],
    live: LiveState,
    objects: Sequence[ResourceId],
    labels: LabelsByResource,
    known_resources: KnownResources = NO_KNOWN_RESOURCES,
) -> ClusterEvaluation:
    """Evaluate policies for live objects of a snapshot.

    objects: the live objects, by the ids of their resources.
    """
    results: list[ClusterEvaluation] = []
    for kind, kind_policies in group_by_kind(policies).items():
        labels_by_name = {item.name: mine for item, mine in labels.items() if item.kind == kind}
        names = [item.name for item in objects if item.kind == kind]
        snapshot_judge, subjects = find_snapshot_subject(kind), get_policy_subjects(kind)
        start_review: Callable[[], Review]
        if kind in known_resources.unread:
            results.append(ClusterEvaluation(unread=[policy.name for policy in kind_policies]))
            continue
        if snapshot_judge is not None:
            start_review = partial(snapshot_judge.start_snapshot_review, live, names, labels_by_name)
        elif isinstance(subjects, PlainSubjects) and kind in CODECS:
            desired, owned = known_resources.find_desired(kind), known_resources.find_owned(kind)
            names = subjects.find_existing(names, desired, live, owned)
            inputs = ReviewInputs(
                Connections(), live=live, labels=labels_by_name, desired=desired, owned=owned
            )
            start_review = partial(subjects.review_snapshot, inputs)
        else:
            results.append(ClusterEvaluation(open=[policy.name for policy in kind_policies]))
            continue
        if names:
            results.append(_evaluate_policies(kind_policies, kind, start_review, names))
    return _merge_results(results)


def _evaluate_policies(
    policies: Sequence[ConfiguredPolicy], kind: str, start_review: Callable[[], Review], names: Sequence[str]
) -> ClusterEvaluation:
    """Evaluate all policies together, or one by one if a policy needs data that snapshots lack."""
    try:
        verdict_groups = check_existing(policies, kind, names, start_review())
        return ClusterEvaluation([verdict for verdicts in verdict_groups for verdict in verdicts])
    except Fault:
        if len(policies) == 1:
            return ClusterEvaluation(open=[policies[0].name])
    return _merge_results([_evaluate_policies((policy,), kind, start_review, names) for policy in policies])


def _merge_results(results: Sequence[ClusterEvaluation]) -> ClusterEvaluation:
    return ClusterEvaluation(
        [verdict for found in results for verdict in found.verdicts],
        [policy for found in results for policy in found.open],
        [policy for found in results for policy in found.unread],
    )


_DECLARED = ClusterTable("declared", DECLARED, "Reading manifests", by_cluster=False)


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Options of an audit.

    snapshot: the folder and the id (or ``latest``) of the snapshot to use as live state. If None, the audit
    reads the clusters.
    since: the id of the audit to compare with; None is the latest audit in the folder.
    unmanaged_keys: whether undeclared config keys of declared resources are findings.
    """

    snapshot: tuple[str, str] | None = None
    since: str | None = None
    unmanaged_keys: bool = True


DEFAULT_AUDIT_OPTIONS = AuditOptions()
"""The default options: read the clusters, and compare with the latest audit in the folder."""


def audit_fleet(
    options: FleetOptions,
    audit_options: AuditOptions = DEFAULT_AUDIT_OPTIONS,
    environ: Mapping[str, str] = os.environ,
    progress: Progress = ignore_progress,
) -> Audit:
    """Compare every cluster with its manifests, and write tables and reports to ``options.out``.

    ``options.engine`` chooses what compares them: this process, or Spark, which needs Java. The results are
    written completely or not at all. An unreachable cluster is in the results with its error.
    Raises KdeclareError if the fleet file, a folder or an earlier audit is invalid, or if Spark fails.
    """
    _check_local_folders(options, audit_options)
    if options.engine is Engine.LOCAL:
        return _audit_locally(options, audit_options, environ, progress)
    return _audit_on_spark(options, audit_options, environ, progress)


def _audit_locally(
    options: FleetOptions, audit_options: AuditOptions, environ: Mapping[str, str], progress: Progress
) -> Audit:
    from kdeclare.fleet.local.audit import LocalTables, write_audit
    from kdeclare.fleet.local.tables import open_local_workbench, read_rows

    with (
        open_local_job(options, environ, progress) as job,
        open_local_workbench(job.storage, job.identity) as bench,
    ):
        run = AuditRun(job.identity, job.fleet.name, job.began)
        earlier = find_earlier_audits(job.storage, audit_options.since)
        tables = LocalTables(
            collect_locally(job, bench, _DECLARED, partial(read_declared, job.locator)),
            _read_live_rows(job, bench, audit_options),
            job.names,
            tuple(job.fleet.left_out),
            audit_options.unmanaged_keys,
        )
        if earlier is not None:
            newest, since = (
                [
                    row
                    for name in MEMORY_TABLES
                    for row in read_rows(job.storage, _build_table_path(name, summary.audit_id), FINDINGS)
                ]
                for summary in (earlier.newest, earlier.since)
            )
            tables = replace(tables, newest=newest, since=since)
        progress("Comparing", 0, 0)
        audit = write_audit(bench, tables, run, earlier, partial(make_evaluator, job.locator))
        audit = replace(audit, summary=replace(audit.summary, seconds=job.seconds))
        with bench.publish({name: _build_table_path(name, job.identity) for name in AUDIT_TABLES}):
            job.storage.write_all(_render_reports(audit))
        return audit


def _read_live_rows(job: LocalJob, bench: "LocalWorkbench", audit_options: AuditOptions) -> list[Row]:
    from kdeclare.fleet.local.audit import require_unaltered
    from kdeclare.fleet.local.counts import count_cluster_rows
    from kdeclare.fleet.local.tables import read_rows

    if audit_options.snapshot is None:
        return collect_locally(job, bench, LIVE_TABLE, partial(read_live, job.locator))
    snapshot_folder, snapshot_id = audit_options.snapshot
    storage = require_local_storage("--snapshot", snapshot_folder)
    require_same_fleet(storage, job.fleet.name)
    record = read_snapshot_record(storage, snapshot_id)
    live = read_rows(storage, record.path, LIVE, job.names)
    known_clusters = [cluster for cluster in record.clusters if cluster.name in job.names]
    require_unaltered(live, known_clusters, f"{storage.uri}/{record.path}")
    live += _build_missing_rows(job, record)
    require_complete_table("live", count_cluster_rows(live), job.names)
    return live


def _audit_on_spark(
    options: FleetOptions, audit_options: AuditOptions, environ: Mapping[str, str], progress: Progress
) -> Audit:
    from kdeclare.fleet.spark.audit import summarize_audit, write_findings
    from kdeclare.fleet.spark.progress import report_progress
    from kdeclare.fleet.spark.tables import open_workbench

    with (
        open_fleet_job(
            options, environ, progress, audit_options.snapshot and audit_options.snapshot[0]
        ) as job,
        open_workbench(job.spark, job.storage, job.identity) as bench,
    ):
        run = AuditRun(job.identity, job.fleet.name, job.began)
        earlier = find_earlier_audits(job.storage, audit_options.since)
        collect_table(job, bench, _DECLARED, partial(read_declared, job.locator))
        tables = _build_tables(job, bench, audit_options, earlier)
        with report_progress(job.spark, progress, "Comparing"):
            side_results = write_findings(bench, tables, partial(make_evaluator, job.locator))
        with report_progress(job.spark, progress, "Summing up"):
            audit = summarize_audit(bench, tables, run, earlier, side_results)
        audit = replace(audit, summary=replace(audit.summary, seconds=job.seconds))
        with bench.publish({name: _build_table_path(name, job.identity) for name in AUDIT_TABLES}):
            job.storage.write_all(_render_reports(audit))
        return audit


def _build_tables(
    job: FleetJob, bench: "Workbench", audit_options: AuditOptions, earlier: EarlierAudits | None
) -> "ComparedTables":
    from kdeclare.fleet.spark.audit import ComparedTables
    from kdeclare.fleet.spark.diff import AuditCoverage

    sight = AuditCoverage(job.names, job.fleet.left_out, audit_options.unmanaged_keys)
    tables = ComparedTables(
        bench.read("declared", DECLARED), _read_live_table(job, bench, audit_options), sight
    )
    if earlier is None:
        return tables
    newest_id, since_id = earlier.newest.audit_id, earlier.since.audit_id
    remembered_tables = {name: _read_remembered(job, name) for name in {newest_id, since_id}}
    return replace(tables, newest=remembered_tables[newest_id], since=remembered_tables[since_id])


def _read_remembered(job: FleetJob, audit_id: str) -> "DataFrame":
    """Read the findings of an audit, including earlier findings that the audit did not check again."""
    from kdeclare.fleet.spark.tables import read_table

    found_rows, unseen_rows = (
        read_table(job.spark, job.storage, _build_table_path(name, audit_id), FINDINGS)
        for name in MEMORY_TABLES
    )
    return found_rows.unionByName(unseen_rows)


def _build_table_path(table: str, audit_id: str) -> str:
    return f"{table}/audit_id={audit_id}"


def _check_local_folders(options: FleetOptions, audit_options: AuditOptions) -> None:
    """Check local folders before Spark starts, because starting Spark is slow. Raises KdeclareError."""
    results_storage = find_local_storage(options.out)
    if results_storage is not None:
        list_audits(results_storage, audit_options.since)
    snapshot_folder, snapshot_id = audit_options.snapshot or (None, "")
    snapshot_storage = find_local_storage(snapshot_folder) if snapshot_folder is not None else None
    if snapshot_storage is not None:
        read_snapshot_record(snapshot_storage, snapshot_id)


def _read_live_table(job: FleetJob, bench: "Workbench", audit_options: AuditOptions) -> "DataFrame":
    from kdeclare.fleet.spark.audit import require_unaltered
    from kdeclare.fleet.spark.audit_counts import count_rows_by_cluster
    from kdeclare.fleet.spark.hadoop import open_storage
    from kdeclare.fleet.spark.tables import append_unreachable, read_table, select_cluster_rows

    if audit_options.snapshot is None:
        collect_live_rows(job, bench)
        return bench.read("live", LIVE)
    snapshot_folder, snapshot_id = audit_options.snapshot
    storage = open_storage(snapshot_folder, job.spark)
    require_same_fleet(storage, job.fleet.name)
    record = read_snapshot_record(storage, snapshot_id)
    live = read_table(job.spark, storage, record.path, LIVE)
    live = live.where(live.cluster.isin(list(job.names)))
    known_clusters = [cluster for cluster in record.clusters if cluster.name in job.names]
    require_unaltered(live, known_clusters, f"{storage.uri}/{record.path}")
    live = append_unreachable(live, _build_missing_rows(job, record))
    require_complete_table("live", count_rows_by_cluster(select_cluster_rows(live)), job.names)
    return live


def _build_missing_rows(job: FleetRun, record: SnapshotRecord) -> list[Row]:
    """Return rows that mark clusters as unreachable, one for each cluster that the snapshot omits."""
    known_names = {cluster.name for cluster in record.clusters}
    reason = f"Snapshot {record.snapshot_id} does not include this cluster."
    return [
        build_unreachable_row(entry.name, entry.labels, record.taken_at, reason)
        for entry in job.fleet.clusters
        if entry.name not in known_names
    ]


def _render_reports(audit: Audit) -> Mapping[str, str]:
    """Return the contents of the reports by path. The record comes last: it marks the audit as complete."""
    document = dump_summary(audit.summary)
    return {
        "report.html": render_audit_page(audit),
        "report.md": render_audit_markdown(audit),
        "summary.json": document,
        f"{AUDITS}/{audit.summary.audit_id}.json": document,
    }
