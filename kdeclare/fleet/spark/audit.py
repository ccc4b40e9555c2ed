"""Audit a fleet with Spark, and write tables with the findings and the summary of the audit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.installed_providers import InstalledProvider, list_providers, use_providers
from kdeclare.core.resources.ids import ResourceId
from kdeclare.fleet import summary_counts
from kdeclare.fleet.audit_results import (
    MAX_FIXED_ROWS,
    MAX_ROWS,
    build_cluster_summary,
    build_groups,
    build_trend,
    count_accepted,
    order_counts,
    sum_counts,
)
from kdeclare.fleet.audit_summary import (
    Audit,
    AuditRun,
    AuditSummary,
    ClusterFingerprints,
    ClusterSummary,
    EarlierAudits,
    KindCounts,
    Since,
)
from kdeclare.fleet.cluster_pass import ClusterEvaluator, ClusterTables, find_in_cluster
from kdeclare.fleet.finding_status import UNSEEN
from kdeclare.fleet.findings import AuditRow, Finding
from kdeclare.fleet.spark import audit_counts, contested, diff
from kdeclare.fleet.spark.audit_counts import FindingGroups
from kdeclare.fleet.spark.diff import (
    RESULT,
    AuditCoverage,
    drop_unmanaged_keys,
    find_drift_rows,
    find_duplicates,
)
from kdeclare.fleet.spark.overview import FleetOverview
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from kdeclare.fleet.spark.tables import Workbench, count_rows, create_table, to_spark_type
from kdeclare.fleet.tables.fingerprints import RowsFingerprint, format_findings_fingerprint
from kdeclare.fleet.tables.rows import CLUSTER, FINDINGS, SUMMARY
from kdeclare.fleet.tables.snapshots import SnapshotCluster, require_all_rows
from kdeclare.manifests.fleet.accepted_drift import AcceptedDrift, select_valid

MakeEvaluator = Callable[[str], ClusterEvaluator | None]
"""A function that returns the policy evaluator for a cluster, or None if the project has no policies.

The executors call this function with the name of the cluster.
"""

CLUSTER_FINDINGS_SCHEMA = pa.schema([field for field in FINDINGS if field.name in RESULT])
"""The columns of findings and notices. In a notice, only the cluster and ``message`` have values."""

_FOUND = pa.struct([field for field in CLUSTER_FINDINGS_SCHEMA if field.name not in ("taken_at", "cluster")])
"""The columns of findings and notices that a task returns."""

_COLUMNS = (
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
_DECLARED_SIDE, _LIVE_SIDE, _OWN_SIDE = "declared", "live", "own"
"""The values of the column ``side``: the table that a row comes from, or ``own`` for the whole cluster.

The row about the whole cluster sorts last.
"""


def find_in_whole_clusters(
    declared: DataFrame, live: DataFrame, overview: FleetOverview, make_evaluator: MakeEvaluator
) -> DataFrame:
    """Return policy violations, unused objects, and the findings that depend on several resources.

    The result has the columns `CLUSTER_FINDINGS_SCHEMA`, and also contains notices (see `read_notices`).
    Clusters that have no policies, no unused objects, and no interdependent resources are skipped.

    declared, live: the tables `rows.DECLARED` and `rows.LIVE`. overview: the clusters of both tables.
    """
    clusters = {
        name: item
        for name, item in overview.clusters.items()
        if item.has_second_pass and item.within is not None
    }
    own_rows = [
        {
            "taken_at": item.live_row["taken_at"],
            "cluster": name,
            "side": _OWN_SIDE,
            "owned": item.declared_row["owned"],
            "body": item.within,
        }
        for name, item in clusters.items()
    ]
    is_needed = (f.col("kind") != CLUSTER) & f.col("cluster").isin(list(clusters))
    rows = (
        declared.where(is_needed)
        .withColumn("side", f.lit(_DECLARED_SIDE))
        .unionByName(
            live.where(is_needed).drop("taken_at", "labels").withColumn("side", f.lit(_LIVE_SIDE)),
            allowMissingColumns=True,
        )
        .unionByName(
            create_table(declared.sparkSession, pa.Table.from_pylist(own_rows, _OWN_SCHEMA)),
            allowMissingColumns=True,
        )
        .select("taken_at", "cluster", *_COLUMNS)
        .repartition(f.col("cluster"))
        .sortWithinPartitions("cluster", "side", "kind", "name")
    )
    find = arrow_udf(_make_cluster_pass(make_evaluator, list_providers()), to_spark_type(pa.list_(_FOUND)))  # type: ignore[call-overload]
    # Spark could otherwise move the function below the sort.
    found = find.asNondeterministic()("cluster", *_COLUMNS)
    return (
        rows.select("taken_at", "cluster", found.alias("found"))
        .select("taken_at", "cluster", f.inline("found"))
        .select(*CLUSTER_FINDINGS_SCHEMA.names)
    )


_OWN_SCHEMA = pa.schema(
    [
        ("taken_at", pa.timestamp("us", tz="UTC")),
        *((name, pa.string()) for name in ("cluster", "side", "owned", "body")),
    ]
)


def select_findings(cluster_findings: DataFrame) -> DataFrame:
    """Return the rows that are findings, without the notices."""
    return cluster_findings.where("finding is not null")


def read_notices(cluster_findings: DataFrame) -> dict[str, str]:
    """Return the notices about checks that could not be completed, by cluster name.

    Raises KdeclareError.
    """
    with translate_spark_errors():
        rows = cluster_findings.where("finding is null").select("cluster", "message").collect()
    return {row["cluster"]: row["message"] for row in rows}


def _make_cluster_pass(
    make_evaluator: MakeEvaluator, providers: Sequence[InstalledProvider]
) -> Callable[[Iterator[tuple[pa.Array, ...]]], Iterator[pa.Array]]:
    """Return a function that processes the sorted rows of a partition, one cluster after the other.

    The last row of a cluster is the row about the whole cluster. The result for this row contains all
    findings of the cluster; the results for the other rows are empty. Therefore, a task holds the rows of
    only one cluster in memory.
    """

    def find_in_batches(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        use_providers(providers)
        rows_by_side: dict[str, list[dict[str, Any]]] = {_DECLARED_SIDE: [], _LIVE_SIDE: []}
        for columns in batches:
            results: list[list[dict[str, Any]]] = []
            for cluster, *values in zip(*(column.to_pylist() for column in columns), strict=True):
                row = dict(zip(_COLUMNS, values, strict=True))
                if row["side"] != _OWN_SIDE:
                    rows_by_side[row["side"]].append(row)
                    results.append([])
                    continue
                tables = ClusterTables(
                    cluster, row["owned"], row["body"], rows_by_side[_DECLARED_SIDE], rows_by_side[_LIVE_SIDE]
                )
                results.append(_find_in_tables(tables, make_evaluator))
                rows_by_side = {_DECLARED_SIDE: [], _LIVE_SIDE: []}
            yield pa.array(results, type=pa.list_(_FOUND))

    return find_in_batches


def _find_in_tables(tables: ClusterTables, make_evaluator: MakeEvaluator) -> list[dict[str, Any]]:
    cluster_findings = find_in_cluster(tables, make_evaluator(tables.name))
    rows = [_build_row(*item) for item in cluster_findings.found]
    if cluster_findings.notices:
        notice = " ".join(cluster_findings.notices)
        rows.append({"kind": CLUSTER, "name": tables.name, "labels": [], "message": notice})
    return rows


def _build_row(resource: ResourceId, labels: Mapping[str, str], finding: Finding) -> dict[str, Any]:
    return diff.to_struct(finding) | {
        "kind": resource.kind,
        "name": resource.name,
        "labels": list(labels.items()),
    }


@dataclass(frozen=True, slots=True)
class ComparedTables:
    """The input tables of an audit.

    declared, live: the tables `rows.DECLARED` and `rows.LIVE`.
    overview: the clusters of both tables.
    coverage: the scope of the audit.
    newest: the findings of the latest earlier audit, including findings that it did not check again. None if
        there is no earlier audit.
    since: the findings of the baseline, the earlier audit that determines which findings are new. Includes
        findings that the baseline did not check again.
    accepted: the accepted drift of the fleet.
    unchanged: the clusters that have not changed since the latest earlier audit, each with the notice of that
        audit. They are not compared.
    carried: the findings of the latest earlier audit in these clusters; None if there are no such clusters.
    fingerprints: see `fleet.tables.fingerprints.compute_fingerprints`.
    """

    declared: DataFrame
    live: DataFrame
    overview: FleetOverview
    coverage: AuditCoverage
    newest: DataFrame | None = None
    since: DataFrame | None = None
    accepted: Sequence[AcceptedDrift] = ()
    unchanged: Mapping[str, str | None] = field(default_factory=dict)
    carried: DataFrame | None = None
    fingerprints: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def find_unread_objects(self) -> DataFrame | None:
        """Return the live rows of objects that could not be read; None if there are none."""
        if not any(item.objects.failed for item in self.overview.clusters.values()):
            return None
        return self.live.where(f.col("error").isNotNull() & (f.col("kind") != CLUSTER))


@dataclass(frozen=True, slots=True)
class WrittenFindings:
    """Results of `write_findings` that are not in the tables.

    groups: the counts of all findings.
    notices: the notices about checks that could not be completed, by cluster name.
    unseen: the number of earlier findings that were not checked again.
    unseen_counts: the number of these findings by kind, without accepted findings.
    """

    groups: FindingGroups
    notices: Mapping[str, str]
    unseen: int = 0
    unseen_counts: KindCounts = field(default_factory=dict)


def require_unaltered(live: DataFrame, clusters: Sequence[SnapshotCluster], source: str) -> None:
    """Raise KdeclareError if rows of a snapshot are missing or duplicate.

    live: the rows of the snapshot.
    clusters: the clusters of the snapshot, with the numbers of rows that were written.
    source: the name of the snapshot, for the error.
    """
    require_written_counts(live, audit_counts.count_rows_by_cluster(live), clusters, source)


def require_written_counts(
    live: DataFrame, counts: Mapping[str, int], clusters: Sequence[SnapshotCluster], source: str
) -> None:
    """Raise KdeclareError if rows of a snapshot are missing or duplicate.

    counts: the number of rows that were read from each cluster. Other parameters: see `require_unaltered`.
    """
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
            hint="Take a new snapshot. A file of this snapshot may have been duplicated.",
        )
    )


def write_findings(
    bench: Workbench, tables: ComparedTables, run: AuditRun, make_evaluator: MakeEvaluator
) -> WrittenFindings:
    """Write the tables ``findings`` and ``unseen`` of an audit.

    ``unseen`` contains the findings of earlier audits that this audit did not check again. Raises
    KdeclareError.
    """
    found_rows, notices = _find_all(bench, tables, make_evaluator)
    if tables.carried is not None:
        carried = _date_carried(tables.carried, tables.overview)
        found_rows = carried if found_rows is None else found_rows.unionByName(carried)
    if found_rows is None:
        found_rows = create_table(bench.spark, CLUSTER_FINDINGS_SCHEMA.empty_table())
    dated_findings = diff.add_first_seen(found_rows, tables.newest, tables.since)
    marked_findings = diff.mark_accepted(dated_findings, select_valid(tables.accepted, run.began))
    bench.write(marked_findings.select(*FINDINGS.names), "findings")
    written_findings = bench.read("findings", FINDINGS)
    groups = audit_counts.group_findings(written_findings)
    unread = tables.find_unread_objects()
    is_all_read = unread is None and not groups.has_unreachable
    if tables.newest is None or (tables.coverage.covers_all and is_all_read):
        bench.write(create_table(bench.spark, FINDINGS.empty_table()), "unseen")
        return WrittenFindings(groups, notices)
    unchecked = diff.find_unchecked(written_findings, tables.newest, unread, tables.coverage)
    bench.write(unchecked.withColumn("status", f.lit(UNSEEN)).select(*FINDINGS.names), "unseen")
    unseen_count, unseen_counts = audit_counts.count_unseen(bench.read("unseen", FINDINGS))
    return WrittenFindings(groups, notices, unseen_count, order_counts(unseen_counts))


def _find_all(
    bench: Workbench, tables: ComparedTables, make_evaluator: MakeEvaluator
) -> tuple[DataFrame | None, Mapping[str, str]]:
    """Compare the clusters that have changed. Return their findings, and the notices of all clusters.

    Return None instead of findings if no cluster has changed.
    """
    unmanaged_keys, overview = tables.coverage.unmanaged_keys, tables.overview
    earlier_notices = {name: notice for name, notice in tables.unchanged.items() if notice is not None}
    declared, live = tables.declared, tables.live
    if tables.unchanged:
        overview = overview.select(overview.clusters.keys() - tables.unchanged.keys())
        is_changed = f.col("cluster").isin(list(overview.clusters))
        declared, live = declared.where(is_changed), live.where(is_changed)
    if not overview.clusters:
        return None, earlier_notices
    # Entries that share a cluster are either all changed or all unchanged, so none is missing here.
    shared = contested.select_shared_objects(declared, overview.sharing)
    found_rows = find_drift_rows(
        declared,
        live,
        overview,
        unmanaged_keys=unmanaged_keys,
        claimed_elsewhere=contested.find_claimed_elsewhere(shared) if shared is not None else None,
    )
    if any(item.has_contradictions for item in overview.clusters.values()):
        found_rows = found_rows.unionByName(contested.find_contradictions(declared, overview))
    if shared is not None:
        found_rows = found_rows.unionByName(contested.find_contested(shared, overview))
    if not any(item.has_second_pass for item in overview.clusters.values()):
        return found_rows, earlier_notices
    bench.write(find_in_whole_clusters(declared, live, overview, make_evaluator), "wide")
    cluster_findings = bench.read("wide", CLUSTER_FINDINGS_SCHEMA)
    found_in_clusters = select_findings(cluster_findings)
    if not unmanaged_keys:
        found_in_clusters = drop_unmanaged_keys(found_in_clusters)
    return found_rows.unionByName(found_in_clusters), {**earlier_notices, **read_notices(cluster_findings)}


def _date_carried(carried: DataFrame, overview: FleetOverview) -> DataFrame:
    """Set the time of findings from an earlier audit to the time at which this audit read the cluster."""
    times = f.broadcast(overview.build_context(carried.sparkSession).select("cluster", "taken_at"))
    return carried.drop("taken_at").join(times, "cluster").select(*RESULT)


def summarize_audit(
    bench: Workbench,
    tables: ComparedTables,
    run: AuditRun,
    earlier_audits: EarlierAudits | None,
    written: WrittenFindings,
) -> Audit:
    """Write the table ``summary``, and return the audit. Call `write_findings` first.

    earlier_audits: the earlier audits to compare this audit with; None if there are none.
    written: the result of `write_findings`.

    Raises KdeclareError.
    """
    groups = written.groups
    summary_rows = groups.build_summary_rows(run.began)
    summary_table = create_table(bench.spark, pa.Table.from_pylist(summary_rows, SUMMARY))
    bench.write(summary_table.coalesce(1), "summary")
    by_cluster = summary_counts.count_by_finding(summary_rows, "cluster")
    counts = sum_counts(by_cluster)
    urgency_counts = summary_counts.count_by_urgency(summary_rows)
    all_rows = bench.read("findings", FINDINGS)
    rows = audit_counts.select_worst(all_rows.where("accepted is null"), MAX_ROWS) if counts else ()
    count = sum(counts.values())
    comparison: Since | None = None
    fixed_rows: tuple[AuditRow, ...] = ()
    if tables.since is not None and earlier_audits is not None:
        known_count, baseline = groups.count_known(), earlier_audits.since
        fixed_rows, fixed_count = _find_fixed(
            diff.find_fixed(all_rows, tables.since, tables.find_unread_objects(), tables.coverage)
        )
        comparison = Since(
            baseline.audit_id, baseline.taken_at, count - known_count, known_count, fixed_count
        )
    summary = AuditSummary(
        audit_id=run.audit_id,
        fleet=run.fleet,
        taken_at=run.began,
        seconds=0.0,
        clusters=_summarize_clusters(tables, written, by_cluster),
        found=counts,
        teams=summary_counts.count_by_finding(summary_rows, "team"),
        heat=summary_counts.build_heat_map(summary_rows),
        since=comparison,
        unseen=written.unseen_counts,
        trend=build_trend(earlier_audits.newest) if earlier_audits is not None else (),
        groups=build_groups(urgency_counts),
        accepted=count_accepted(tables.accepted, groups.count_accepted(), run.began),
        rows={"findings": groups.count, "unseen": written.unseen, "summary": len(summary_rows)},
    )
    return Audit(summary, rows, count - len(rows), fixed_rows, urgency_counts)


def _find_fixed(fixed: DataFrame) -> tuple[tuple[AuditRow, ...], int]:
    """Return the worst fixed findings, and the number of all fixed findings."""
    rows = audit_counts.select_worst(fixed, MAX_FIXED_ROWS + 1)
    if len(rows) <= MAX_FIXED_ROWS:
        return rows, len(rows)
    return rows[:MAX_FIXED_ROWS], count_rows(fixed)


def _summarize_clusters(
    tables: ComparedTables, written: WrittenFindings, counts: Mapping[str, KindCounts]
) -> tuple[ClusterSummary, ...]:
    found_fingerprints = written.groups.compute_fingerprints()
    summaries = []
    for name, item in sorted(tables.overview.clusters.items()):
        summary = build_cluster_summary(
            item.declared_row, item.objects, item.declared, counts.get(name, {}), written.notices.get(name)
        )
        inputs, found = tables.fingerprints.get(name), found_fingerprints.get(name, RowsFingerprint(0, 0))
        if inputs is not None and found is not None:
            fingerprints = ClusterFingerprints(*inputs, format_findings_fingerprint(found))
            summary = replace(summary, fingerprints=fingerprints)
        summaries.append(replace(summary, unchanged=name in tables.unchanged))
    return tuple(summaries)
