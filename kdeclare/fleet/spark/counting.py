"""What tables come to: numbers by cluster, kind, key and team. Only the numbers come to the driver."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f

from kdeclare.fleet.findings import AuditRow, ClusterSummary, Counts, FindingKind, HeatCell
from kdeclare.fleet.object_counts import CountedSort, ObjectCount, find_counted_sorts
from kdeclare.fleet.rows import CLUSTER, SUMMARY
from kdeclare.fleet.snapshots import SnapshotCluster
from kdeclare.fleet.spark.problems import explained
from kdeclare.fleet.spark.tables import has_many, itself
from kdeclare.manifests.policies import TOPIC

_KEYS_SHOWN = 40
"""How many paths a heat map can have, the most frequent first."""


def snapshot_clusters(live: DataFrame) -> tuple[SnapshotCluster, ...]:
    """Each cluster of a snapshot, by name. Raises KdeclareError."""
    sorts = find_counted_sorts()
    with explained():
        own = itself(live).collect()
        counted = {row["cluster"]: row for row in _counted(live, sorts).collect()}
    return tuple(
        _snapshot_cluster(row, counted[row["cluster"]], sorts) for row in sorted(own, key=lambda r: r["name"])
    )


def _counted(live: DataFrame, sorts: Sequence[CountedSort]) -> DataFrame:
    of_resource = f.col("kind") != CLUSTER
    of_sort = of_resource & (f.col("name") == "") & f.col("error").isNotNull()
    return live.groupBy("cluster").agg(
        f.count(f.when(of_resource, f.col("body"))).alias("resources"),
        f.count(f.when(of_resource, f.col("error"))).alias("failed"),
        f.sort_array(f.collect_list(f.when(of_sort, f.struct("kind", "error")))).alias("unread"),
        *(column for number, sort in enumerate(sorts) for column in _count_sort(number, sort, of_sort)),
    )


def _count_sort(number: int, sort: CountedSort, of_sort: Column) -> tuple[Column, Column]:
    """How many objects of a sort there are, and how many of them are internal; not whether it was read."""
    belongs = (f.col("kind") == sort.sort) & ~of_sort
    is_internal = f.lit(False)
    if sort.internal_marker is not None:
        is_internal = f.contains(f.col("body"), f.lit(sort.internal_marker))
    return (
        f.count(f.when(belongs, f.lit(1))).alias(f"count_{number}"),
        f.count(f.when(belongs & is_internal, f.lit(1))).alias(f"internal_{number}"),
    )


def _snapshot_cluster(own: Row, counted: Row, sorts: Sequence[CountedSort]) -> SnapshotCluster:
    counts = {
        sort.sort: ObjectCount(sort.one, sort.many, counted[f"count_{number}"], counted[f"internal_{number}"])
        for number, sort in enumerate(sorts)
    }
    topics = counts.pop(TOPIC, None)
    return SnapshotCluster(
        own["cluster"],
        dict(own["labels"] or {}),
        own["cluster_id"],
        _version(own["body"]),
        _utc(own["taken_at"]),
        topics.count if topics is not None else 0,
        topics.internal if topics is not None else 0,
        counted["resources"],
        counted["failed"],
        own["error"],
        tuple((row["kind"], row["error"]) for row in counted["unread"]),
        tuple(count for count in counts.values() if count.count),
    )


def declared_resources(declared: DataFrame) -> tuple[dict[str, int], bool]:
    """How many each cluster declares, and whether the second pass concerns any. Raises KdeclareError."""
    with explained():
        rows = has_many(declared).collect()
    return {row["cluster"]: row["resources"] for row in rows}, any(row["concerned"] for row in rows)


def cluster_summaries(
    declared: DataFrame,
    live: DataFrame,
    resources: Mapping[str, int],
    found: Mapping[str, Counts],
    notices: Mapping[str, str],
) -> tuple[ClusterSummary, ...]:
    """Each cluster of an audit, by name. Raises KdeclareError.

    resources: how many are declared; found, notices: all by cluster.
    """
    with explained():
        mine = itself(declared).select("cluster", "labels", "error").collect()
    theirs = {cluster.name: cluster for cluster in snapshot_clusters(live)}
    return tuple(
        _cluster_summary(
            row,
            theirs[name],
            resources[name],
            found.get(name, {}),
            notices.get(name),
        )
        for name, row in sorted((row["cluster"], row) for row in mine)
    )


def _cluster_summary(
    own: Row, live: SnapshotCluster, declared: int, found: Counts, notice: str | None
) -> ClusterSummary:
    failed = live.failed - len(live.unread)
    partly = f"{failed:,} of its resources could not be read." if failed else None
    sorts = (f"Nothing was read of {sort}: {reason}" for sort, reason in live.unread)
    told = [text for text in (own["error"], live.error, partly, *sorts) if text]
    return ClusterSummary(
        own["cluster"],
        dict(own["labels"] or {}),
        live.cluster_id,
        live.version,
        live.taken_at,
        live.topics - live.internal,
        declared,
        found,
        " ".join(told) or None,
        notice,
        live.resources,
        live.others,
    )


def summary_table(findings: DataFrame, taken_at: datetime) -> DataFrame:
    """How often what was found, as `rows.SUMMARY` has it."""
    counted = findings.groupBy(
        "cluster", "kind", "finding", "path", f.coalesce(f.col("labels")["team"], f.lit("")).alias("team")
    ).count()
    return counted.withColumn("taken_at", f.lit(taken_at)).select(*SUMMARY.names)


def by_finding(summary: DataFrame, column: str) -> dict[str, Counts]:
    """Findings by kind, for each value of a column of the summary. Raises KdeclareError."""
    with explained():
        rows = summary.groupBy(column, "finding").agg(f.sum("count").alias("count")).collect()
    counts: dict[str, dict[FindingKind, int]] = {}
    for row in rows:
        counts.setdefault(row[column], {})[FindingKind(row["finding"])] = row["count"]
    return {name: _in_order(counts[name]) for name in sorted(counts)}


def kinds(findings: DataFrame) -> Counts:
    """Findings by kind, without a summary. Raises KdeclareError."""
    with explained():
        rows = findings.groupBy("finding").count().collect()
    return _in_order({FindingKind(row["finding"]): row["count"] for row in rows})


def total(counts: Mapping[str, Counts]) -> Counts:
    """All of them together."""
    sums: dict[FindingKind, int] = {}
    for found in counts.values():
        for kind, count in found.items():
            sums[kind] = sums.get(kind, 0) + count
    return _in_order(sums)


def _in_order(counts: Mapping[FindingKind, int]) -> Counts:
    return {kind: counts[kind] for kind in FindingKind if kind in counts}


def heat(summary: DataFrame) -> tuple[HeatCell, ...]:
    """How often which path is found where, for the most frequent paths. Raises KdeclareError."""
    by_path = summary.groupBy("path").agg(f.sum("count").alias("all")).orderBy(f.desc("all"), "path")
    top = by_path.limit(_KEYS_SHOWN).select(f.col("path").alias("top"))
    cells = (
        summary.join(f.broadcast(top), f.col("path").eqNullSafe(f.col("top")))
        .groupBy("cluster", "path")
        .agg(f.sum("count").alias("count"))
        .orderBy("cluster", "path")
    )
    with explained():
        return tuple(HeatCell(row["cluster"], row["path"], row["count"]) for row in cells.collect())


def worst(findings: DataFrame, count: int) -> tuple[AuditRow, ...]:
    """The first findings in the order in which people want to read them. Raises KdeclareError."""
    is_known = f.col("status") != "new"
    in_order = findings.orderBy(_severity(), is_known, "cluster", "kind", "name", "path")
    with explained():
        rows = in_order.limit(count).collect()
    return tuple(map(_audit_row, rows))


def _severity() -> Column:
    ranks = f.create_map(*(f.lit(x) for rank, kind in enumerate(FindingKind) for x in (str(kind), rank)))
    return ranks[f.col("finding")]


def _audit_row(row: Row) -> AuditRow:
    values: dict[str, Any] = {name: row[name] for name in AuditRow.__dataclass_fields__}
    return AuditRow(
        **{
            **values,
            "taken_at": _utc(row["taken_at"]),
            "first_seen": _utc(row["first_seen"]),
            "finding": FindingKind(row["finding"]),
            "labels": dict(row["labels"] or {}),
        }
    )


def known(findings: DataFrame) -> int:
    """How many of the findings the earlier audit had, too. Raises KdeclareError."""
    return rows_of(findings.where("status = 'known'"))


def rows_of(table: DataFrame) -> int:
    """How many there are. Raises KdeclareError."""
    with explained():
        return table.count()


def rows_by_cluster(table: DataFrame) -> dict[str, int]:
    """How many each cluster has. Raises KdeclareError."""
    with explained():
        return {row["cluster"]: row["count"] for row in table.groupBy("cluster").count().collect()}


def _version(body: str | None) -> str | None:
    return json.loads(body).get("version") if body else None


def _utc(time: datetime) -> datetime:
    """Spark gives local times without a zone."""
    return time.astimezone(UTC)
