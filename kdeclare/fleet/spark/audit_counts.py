"""Count findings and live objects with Spark. Only the counts are collected on the driver."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kdeclare.fleet.audit_results import (
    MAX_HEAT_PATHS,
    build_audit_row,
    build_cluster_summary,
    build_counts,
    build_snapshot_cluster,
    order_counts,
)
from kdeclare.fleet.audit_summary import ClusterSummary, HeatCell, KindCounts
from kdeclare.fleet.findings import AuditRow, FindingCount, FindingKind, FindingSeverity
from kdeclare.fleet.object_counts import CountedSort, list_counted_sorts
from kdeclare.fleet.rows import CLUSTER, SUMMARY
from kdeclare.fleet.snapshots import SnapshotCluster
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from kdeclare.fleet.spark.tables import count_declared, count_rows, select_cluster_rows


def read_snapshot_clusters(live: DataFrame) -> tuple[SnapshotCluster, ...]:
    """Return a summary of each cluster of a snapshot, sorted by name. Raises KdeclareError."""
    sorts = list_counted_sorts()
    with translate_spark_errors():
        cluster_rows = select_cluster_rows(live).collect()
        count_rows = {row["cluster"]: row for row in _count_by_cluster(live, sorts).collect()}
    return tuple(
        build_snapshot_cluster(row, count_rows[row["cluster"]], sorts)
        for row in sorted(cluster_rows, key=lambda r: r["name"])
    )


def _count_by_cluster(live: DataFrame, sorts: Sequence[CountedSort]) -> DataFrame:
    is_resource = f.col("kind") != CLUSTER
    is_unread_sort = is_resource & (f.col("name") == "") & f.col("error").isNotNull()
    return live.groupBy("cluster").agg(
        f.count(f.when(is_resource, f.col("body"))).alias("resources"),
        f.count(f.when(is_resource, f.col("error"))).alias("failed"),
        f.sort_array(f.collect_list(f.when(is_unread_sort, f.struct("kind", "error")))).alias("unread"),
        *(
            column
            for number, sort in enumerate(sorts)
            for column in _build_count_columns(number, sort, is_unread_sort)
        ),
    )


def _build_count_columns(number: int, sort: CountedSort, is_unread_sort: Column) -> tuple[Column, Column]:
    """Build the columns that count all objects and the internal objects of a type.

    is_unread_sort: a condition for rows that represent an object type that could not be read. Such rows are
        not counted.
    """
    is_of_sort = (f.col("kind") == sort.sort) & ~is_unread_sort
    is_internal = f.lit(False)
    if sort.internal_marker is not None:
        is_internal = f.contains(f.col("body"), f.lit(sort.internal_marker))
    return (
        f.count(f.when(is_of_sort, f.lit(1))).alias(f"count_{number}"),
        f.count(f.when(is_of_sort & is_internal, f.lit(1))).alias(f"internal_{number}"),
    )


def count_declared_resources(declared: DataFrame) -> tuple[dict[str, int], bool]:
    """Return the number of declared resources by cluster, and whether any cluster needs the second pass.

    The second pass of an audit processes all rows of a cluster together. Raises KdeclareError.
    """
    with translate_spark_errors():
        rows = count_declared(declared).collect()
    return {row["cluster"]: row["resources"] for row in rows}, any(row["concerned"] for row in rows)


def build_cluster_summaries(
    declared: DataFrame,
    live: DataFrame,
    declared_counts: Mapping[str, int],
    counts_by_cluster: Mapping[str, KindCounts],
    notices: Mapping[str, str],
) -> tuple[ClusterSummary, ...]:
    """Return a summary of each cluster of an audit, sorted by name. Raises KdeclareError.

    declared_counts: the number of declared resources, by cluster name.
    counts_by_cluster: the number of findings by kind, by cluster name.
    notices: the notices about policies that could not be evaluated, by cluster name.
    """
    with translate_spark_errors():
        declared_clusters = select_cluster_rows(declared).select("cluster", "labels", "error").collect()
    live_clusters = {cluster.name: cluster for cluster in read_snapshot_clusters(live)}
    return tuple(
        build_cluster_summary(
            row,
            live_clusters[name],
            declared_counts[name],
            counts_by_cluster.get(name, {}),
            notices.get(name),
        )
        for name, row in sorted((row["cluster"], row) for row in declared_clusters)
    )


def build_summary_table(findings: DataFrame, taken_at: datetime) -> DataFrame:
    """Count findings by the columns of `rows.SUMMARY`, and return the counts as a table."""
    team = f.coalesce(f.col("labels")["team"], f.lit("")).alias("team")
    counts = findings.groupBy("cluster", "kind", "finding", "path", team, "severity").agg(
        f.count(f.lit(1)).alias("count"), f.min("first_seen").alias("oldest")
    )
    return counts.withColumn("taken_at", f.lit(taken_at)).select(*SUMMARY.names)


def count_by_finding(summary: DataFrame, column: str) -> dict[str, KindCounts]:
    """Return the number of findings by kind, for each value of a column of the summary table.

    Raises KdeclareError.
    """
    with translate_spark_errors():
        rows = summary.groupBy(column, "finding").agg(f.sum("count").alias("count")).collect()
    counts: dict[str, dict[FindingKind, int]] = {}
    for row in rows:
        counts.setdefault(row[column], {})[FindingKind(row["finding"])] = row["count"]
    return {name: order_counts(counts[name]) for name in sorted(counts)}


def count_by_urgency(summary: DataFrame) -> tuple[FindingCount, ...]:
    """Count findings by cluster, kind, severity and team. summary: the table `rows.SUMMARY`.

    Raises KdeclareError.
    """
    counts = summary.groupBy("cluster", "finding", "severity", "team").agg(
        f.sum("count").alias("count"), f.min("oldest").alias("oldest")
    )
    with translate_spark_errors():
        return build_counts(counts.collect())


def count_kinds(findings: DataFrame) -> KindCounts:
    """Return the number of findings by kind. Raises KdeclareError."""
    with translate_spark_errors():
        rows = findings.groupBy("finding").count().collect()
    return order_counts({FindingKind(row["finding"]): row["count"] for row in rows})


def build_heat_map(summary: DataFrame) -> tuple[HeatCell, ...]:
    """Count findings by cluster and path, for the most frequent paths. Raises KdeclareError."""
    by_path = summary.groupBy("path").agg(f.sum("count").alias("all")).orderBy(f.desc("all"), "path")
    top_paths = by_path.limit(MAX_HEAT_PATHS).select(f.col("path").alias("top"))
    cells = (
        summary.join(f.broadcast(top_paths), f.col("path").eqNullSafe(f.col("top")))
        .groupBy("cluster", "path")
        .agg(f.sum("count").alias("count"))
        .orderBy("cluster", "path")
    )
    with translate_spark_errors():
        return tuple(HeatCell(row["cluster"], row["path"], row["count"]) for row in cells.collect())


def select_worst(findings: DataFrame, count: int) -> tuple[AuditRow, ...]:
    """Return the ``count`` worst findings, in the order of reports. Raises KdeclareError."""
    is_known = f.col("status") != "new"
    severity = f.coalesce(_build_rank_column("severity", FindingSeverity), f.lit(len(FindingSeverity)))
    kind = _build_rank_column("finding", FindingKind)
    ordered = findings.orderBy(severity, kind, is_known, "cluster", "kind", "name", "path")
    with translate_spark_errors():
        rows = ordered.limit(count).collect()
    return tuple(map(build_audit_row, rows))


def _build_rank_column(column: str, members: Iterable[str]) -> Column:
    ranks = f.create_map(*(f.lit(x) for rank, member in enumerate(members) for x in (str(member), rank)))
    return ranks[f.col(column)]


def count_accepted(findings: DataFrame) -> dict[str, int]:
    """Return the number of accepted findings, by the name of the accepted drift. Raises KdeclareError."""
    with translate_spark_errors():
        rows = findings.where("accepted is not null").groupBy("accepted").count().collect()
    return {row["accepted"]: row["count"] for row in rows}


def count_known(findings: DataFrame) -> int:
    """Return the number of findings that the baseline already contained. Raises KdeclareError."""
    return count_rows(findings.where("status = 'known'"))


def count_rows_by_cluster(table: DataFrame) -> dict[str, int]:
    """Return the number of rows of each cluster. Raises KdeclareError."""
    with translate_spark_errors():
        return {row["cluster"]: row["count"] for row in table.groupBy("cluster").count().collect()}
