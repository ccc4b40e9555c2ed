"""Audit a fleet with Spark, and write tables with the findings and the summary of the audit."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.installed_providers import InstalledProvider, list_providers, use_providers
from kdeclare.core.resources.ids import ResourceId
from kdeclare.fleet.audit_results import (
    MAX_FIXED_ROWS,
    MAX_ROWS,
    build_groups,
    build_trend,
    count_accepted,
    sum_counts,
)
from kdeclare.fleet.audit_summary import Audit, AuditRun, AuditSummary, EarlierAudits, Since
from kdeclare.fleet.cluster_pass import ClusterEvaluator, ClusterTables, find_in_cluster
from kdeclare.fleet.findings import AuditRow, Finding
from kdeclare.fleet.row_builder import Row
from kdeclare.fleet.rows import CLUSTER, FINDING, FINDINGS, SUMMARY
from kdeclare.fleet.snapshots import SnapshotCluster, require_all_rows
from kdeclare.fleet.spark import audit_counts, contested, diff
from kdeclare.fleet.spark.diff import (
    RESULT,
    AuditCoverage,
    drop_unmanaged_keys,
    find_drift_rows,
    find_duplicates,
)
from kdeclare.fleet.spark.settings import is_connect_session
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from kdeclare.fleet.spark.tables import (
    Workbench,
    build_cluster_context,
    count_declared,
    count_rows,
    select_cluster_rows,
    to_spark_schema,
)
from kdeclare.manifests.fleet.accepted_drift import AcceptedDrift, select_valid

MakeEvaluator = Callable[[str], ClusterEvaluator | None]
"""A function that returns the policy evaluator for a cluster; None if the cluster's project has no policies.

The executors call this function with the name of the cluster.
"""

CLUSTER_FINDINGS_SCHEMA = pa.schema([field for field in FINDINGS if field.name in RESULT])
"""The columns of findings and notices. In a notice, only the cluster and ``message`` have values."""

_COLUMNS = (
    "cluster",
    "side",
    "kind",
    "name",
    "live_sort",
    "live_key",
    "desired",
    "left_out",
    "owned",
    "labels",
    "source",
    "alone",
    "body",
    "error",
)
_MAX_BATCH_ROWS = 10_000
"""The maximum number of findings that a task sends to Spark at once."""
_ROW_ORIGINS = ("cluster", "declared", "live")
"""The possible values of the column ``side``. In sort order, the cluster's own row comes first."""


def find_in_whole_clusters(declared: DataFrame, live: DataFrame, make_evaluator: MakeEvaluator) -> DataFrame:
    """Return the findings that depend on several resources of a cluster, and the violations of policies.

    The result has the columns `CLUSTER_FINDINGS_SCHEMA`, and also contains notices (see `read_notices`).
    Clusters that have neither policies nor such resources are skipped (see `count_declared`).

    declared, live: the tables `rows.DECLARED` and `rows.LIVE`.
    """
    is_cluster_row = f.col("kind") == CLUSTER
    clusters = (
        build_cluster_context(declared, live)
        .where("within is not null")
        .join(count_declared(declared).where("concerned").select("cluster"), "cluster")
        .join(select_cluster_rows(declared).select("cluster", "owned"), "cluster")
    )
    cluster_side, declared_side, live_side = map(f.lit, _ROW_ORIGINS)
    resources = (
        declared.where(~is_cluster_row)
        .withColumn("side", declared_side)
        .unionByName(
            live.where(~is_cluster_row).drop("taken_at", "labels").withColumn("side", live_side),
            allowMissingColumns=True,
        )
        .join(f.broadcast(clusters.select("cluster")), "cluster")
    )
    cluster_rows = (
        resources.unionByName(
            clusters.withColumnRenamed("within", "body").withColumn("side", cluster_side),
            allowMissingColumns=True,
        )
        .select("taken_at", *_COLUMNS)
        .repartition(f.col("cluster"))
        .sortWithinPartitions("cluster", "side", "kind", "name")
    )
    providers = list_providers()
    if is_connect_session(declared.sparkSession):
        return _find_with_arrow(cluster_rows, make_evaluator, providers)
    findings = cluster_rows.rdd.mapPartitions(
        lambda part: _find_in_partition((row.asDict() for row in part), make_evaluator, providers)
    )
    return declared.sparkSession.createDataFrame(
        findings, to_spark_schema(CLUSTER_FINDINGS_SCHEMA), verifySchema=False
    )


def _find_with_arrow(
    cluster_rows: DataFrame, make_evaluator: MakeEvaluator, providers: Sequence[InstalledProvider]
) -> DataFrame:
    """Return the findings of all clusters, for Spark Connect, which has no RDDs.

    Other sessions use an RDD, because there ``mapInArrow`` would require pandas.

    cluster_rows: the rows of each cluster in one partition, sorted.
    """
    schema = to_spark_schema(CLUSTER_FINDINGS_SCHEMA)
    arrow_schema = to_arrow_schema(schema, timezone="UTC")

    def find_in_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict"))
        found = _find_in_partition(rows, make_evaluator, providers)
        while chunk := list(islice(found, _MAX_BATCH_ROWS)):
            columns = (
                pa.array(values, field.type)
                for values, field in zip(zip(*chunk, strict=True), arrow_schema, strict=True)
            )
            yield pa.RecordBatch.from_arrays(list(columns), schema=arrow_schema)

    return cluster_rows.mapInArrow(find_in_batches, schema)


def select_findings(cluster_findings: DataFrame) -> DataFrame:
    """Return the rows that are findings, without the notices."""
    return cluster_findings.where("finding is not null")


def read_notices(cluster_findings: DataFrame) -> dict[str, str]:
    """Return the notices about policies that could not be evaluated, by cluster name.

    Raises KdeclareError.
    """
    with translate_spark_errors():
        rows = cluster_findings.where("finding is null").select("cluster", "message").collect()
    return {row["cluster"]: row["message"] for row in rows}


def _find_in_partition(
    rows: Iterable[Row], make_evaluator: MakeEvaluator, providers: Sequence[InstalledProvider]
) -> Iterator[tuple[Any, ...]]:
    use_providers(providers)
    for name, group in groupby(rows, key=itemgetter("cluster")):
        # This is a separate function, so that only one cluster is in memory at a time.
        yield from _find_in_group(name, group, make_evaluator)


def _find_in_group(
    name: str, rows: Iterator[Row], make_evaluator: MakeEvaluator
) -> Iterator[tuple[Any, ...]]:
    cluster_row = next(rows)
    rows_by_side: dict[str, list[dict[str, Any]]] = {side: [] for side in _ROW_ORIGINS}
    for row in rows:
        rows_by_side[row["side"]].append(row)
    cluster = ClusterTables(
        name, cluster_row["owned"], cluster_row["body"], rows_by_side["declared"], rows_by_side["live"]
    )
    cluster_findings = find_in_cluster(cluster, make_evaluator(name))
    for resource, labels, finding in cluster_findings.found:
        yield _build_row(cluster_row["taken_at"], name, resource, labels, finding)
    if cluster_findings.notices:
        yield _build_row(
            cluster_row["taken_at"], name, ResourceId(CLUSTER, name), {}, " ".join(cluster_findings.notices)
        )


def _build_row(
    taken_at: Any,
    cluster: str,
    resource: ResourceId,
    labels: Mapping[str, str],
    finding_or_notice: Finding | str,
) -> tuple[Any, ...]:
    values: dict[str, Any] = {
        "taken_at": taken_at,
        "cluster": cluster,
        "kind": resource.kind,
        "name": resource.name,
    }
    if isinstance(finding_or_notice, str):
        values["message"] = finding_or_notice
    else:
        values |= {column: getattr(finding_or_notice, column) for column in FINDING.names}
        values["severity"] = str(finding_or_notice.severity)
        values["finding"] = str(finding_or_notice.finding)  # Spark accepts only plain strings
    values["labels"] = dict(labels)
    return tuple(map(values.get, CLUSTER_FINDINGS_SCHEMA.names))


@dataclass(frozen=True, slots=True)
class ComparedTables:
    """The input tables of an audit.

    declared, live: the tables `rows.DECLARED` and `rows.LIVE`.
    coverage: the scope of the audit.
    newest: the findings of the latest earlier audit, including findings that it did not check again. None if
        there is no earlier audit.
    since: the findings of the baseline, the earlier audit that determines which findings are new. Includes
        findings that the baseline did not check again.
    accepted: the accepted drift of the fleet.
    """

    declared: DataFrame
    live: DataFrame
    coverage: AuditCoverage
    newest: DataFrame | None = None
    since: DataFrame | None = None
    accepted: Sequence[AcceptedDrift] = ()


@dataclass(frozen=True, slots=True)
class ClusterNotes:
    """Results of `write_findings` that are not in the tables, by cluster name.

    declared: the number of declared resources.
    notices: the notices about policies that could not be evaluated.
    """

    declared: Mapping[str, int]
    notices: Mapping[str, str]


def require_unaltered(live: DataFrame, clusters: Sequence[SnapshotCluster], source: str) -> None:
    """Raise KdeclareError if rows of a snapshot are missing or duplicate.

    live: the rows of the snapshot.
    clusters: the clusters of the snapshot, with the numbers of rows that were written.
    source: the name of the snapshot, for the error.
    """
    counts = audit_counts.count_rows_by_cluster(live)
    for cluster in clusters:
        require_all_rows(cluster, counts.get(cluster.name, 0), source)
    clusters_with_extra_rows = [cluster.name for cluster in clusters if counts[cluster.name] > cluster.rows]
    if clusters_with_extra_rows:
        _reject_duplicates(live.where(live.cluster.isin(clusters_with_extra_rows)), source)


def _reject_duplicates(live: DataFrame, source: str) -> None:
    with translate_spark_errors():
        repeated = find_duplicates(live).limit(3).collect()
    names = ", ".join(f"{row['kind']}/{row['name']} of {row['cluster']}" for row in repeated)
    raise KdeclareError(
        error(
            "duplicate-resource",
            "Duplicate resource",
            f"{source} has more than one row for {names or 'some resources'}.",
            hint="Take a new snapshot. A file of this snapshot may have been copied.",
        )
    )


def write_findings(
    bench: Workbench, tables: ComparedTables, run: AuditRun, make_evaluator: MakeEvaluator
) -> ClusterNotes:
    """Write the tables ``findings`` and ``unseen`` of an audit.

    ``unseen`` contains the findings of earlier audits that this audit did not check again. Raises
    KdeclareError.
    """
    coverage = tables.coverage
    shared = contested.select_shared_objects(tables.declared, tables.live)
    drift_rows = find_drift_rows(
        tables.declared,
        tables.live,
        unmanaged_keys=coverage.unmanaged_keys,
        claimed_elsewhere=contested.find_claimed_elsewhere(shared) if shared is not None else None,
    )
    drift_rows = drift_rows.unionByName(contested.find_contradictions(tables.declared, tables.live))
    if shared is not None:
        drift_rows = drift_rows.unionByName(contested.find_contested(shared, tables.declared, tables.live))
    undetermined: Mapping[str, str] = {}
    declared_counts, has_second_pass = audit_counts.count_declared_resources(tables.declared)
    if has_second_pass:
        bench.write(find_in_whole_clusters(tables.declared, tables.live, make_evaluator), "wide")
        cluster_findings = bench.read("wide", CLUSTER_FINDINGS_SCHEMA)
        undetermined = read_notices(cluster_findings)
        drift_rows = drift_rows.unionByName(
            select_findings(cluster_findings)
            if coverage.unmanaged_keys
            else drop_unmanaged_keys(select_findings(cluster_findings))
        )
    dated_findings = diff.add_first_seen(drift_rows, tables.newest, tables.since)
    marked_findings = diff.mark_accepted(dated_findings, select_valid(tables.accepted, run.began))
    bench.write(marked_findings.select(*FINDINGS.names), "findings")
    written_findings = bench.read("findings", FINDINGS)
    unchecked = written_findings.limit(0)
    if tables.newest is not None:
        unchecked = diff.find_unchecked(written_findings, tables.newest, tables.live, coverage).withColumn(
            "status", f.lit("unseen")
        )
    bench.write(unchecked.select(*FINDINGS.names), "unseen")
    return ClusterNotes(declared_counts, undetermined)


def summarize_audit(
    bench: Workbench,
    tables: ComparedTables,
    run: AuditRun,
    earlier_audits: EarlierAudits | None,
    cluster_notes: ClusterNotes,
) -> Audit:
    """Write the table ``summary``, and return the audit. Call `write_findings` first.

    earlier_audits: the earlier audits to compare this audit with; None if there are none.
    cluster_notes: the result of `write_findings`.

    Raises KdeclareError.
    """
    all_rows = bench.read("findings", FINDINGS)
    found_rows = all_rows.where("accepted is null")
    bench.write(audit_counts.build_summary_table(found_rows, run.began).coalesce(1), "summary")
    summary_counts = bench.read("summary", SUMMARY)
    by_cluster = audit_counts.count_by_finding(summary_counts, "cluster")
    counts = sum_counts(by_cluster)
    urgency_counts = audit_counts.count_by_urgency(summary_counts)
    accepted_counts = audit_counts.count_accepted(all_rows) if tables.accepted else {}
    unseen = bench.read("unseen", FINDINGS)
    rows = audit_counts.select_worst(found_rows, MAX_ROWS)
    count = sum(counts.values())
    comparison: Since | None = None
    fixed_rows: tuple[AuditRow, ...] = ()
    if tables.since is not None and earlier_audits is not None:
        fixed = diff.find_fixed(all_rows, tables.since, tables.live, tables.coverage)
        known_count = audit_counts.count_known(found_rows)
        baseline = earlier_audits.since
        comparison = Since(
            baseline.audit_id,
            baseline.taken_at,
            count - known_count,
            known_count,
            count_rows(fixed),
        )
        fixed_rows = audit_counts.select_worst(fixed, MAX_FIXED_ROWS)
    summary = AuditSummary(
        audit_id=run.audit_id,
        fleet=run.fleet,
        taken_at=run.began,
        seconds=0.0,
        clusters=audit_counts.build_cluster_summaries(
            tables.declared, tables.live, cluster_notes.declared, by_cluster, cluster_notes.notices
        ),
        found=counts,
        teams=audit_counts.count_by_finding(summary_counts, "team"),
        heat=audit_counts.build_heat_map(summary_counts),
        since=comparison,
        unseen=audit_counts.count_kinds(unseen.where("accepted is null"))
        if earlier_audits is not None
        else {},
        trend=build_trend(earlier_audits.newest) if earlier_audits is not None else (),
        groups=build_groups(urgency_counts),
        accepted=count_accepted(tables.accepted, accepted_counts, run.began),
        rows={
            "findings": count + sum(accepted_counts.values()),
            "unseen": count_rows(unseen) if earlier_audits is not None else 0,
            "summary": count_rows(summary_counts),
        },
    )
    return Audit(summary, rows, count - len(rows), fixed_rows, urgency_counts)
