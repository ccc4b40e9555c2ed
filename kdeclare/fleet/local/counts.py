"""Count findings and live objects in this process."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kdeclare.fleet.audit_results import (
    build_audit_row,
    build_cluster_summary,
    build_snapshot_cluster,
)
from kdeclare.fleet.audit_summary import ClusterSummary, KindCounts
from kdeclare.fleet.finding_status import NEW
from kdeclare.fleet.findings import AuditRow, FindingKind, FindingSeverity
from kdeclare.fleet.object_counts import CountedSort, list_counted_sorts
from kdeclare.fleet.summary_counts import place_null_first
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import CLUSTER
from kdeclare.fleet.tables.snapshots import SnapshotCluster


def count_cluster_rows(rows: Iterable[Row]) -> Counter[str]:
    """Return the number of rows of kind `CLUSTER` for each cluster. A valid table has exactly one."""
    return Counter(row["cluster"] for row in rows if row["kind"] == CLUSTER)


def group_by_cluster(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group rows by cluster. The rows of a cluster keep their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["cluster"], []).append(row)
    return groups


def summarize_snapshot_clusters(live: Sequence[Row]) -> tuple[SnapshotCluster, ...]:
    """Return a summary of each cluster of a snapshot, sorted by name."""
    sorts = list_counted_sorts()
    return tuple(
        build_snapshot_cluster(
            next(row for row in rows if row["kind"] == CLUSTER), _count_objects(rows, sorts), sorts
        )
        for _, rows in sorted(group_by_cluster(live).items())
    )


def _count_objects(rows: Sequence[Row], sorts: Sequence[CountedSort]) -> dict[str, object]:
    resources = [row for row in rows if row["kind"] != CLUSTER]
    unread = [row for row in resources if _is_about_several(row)]
    objects = [row for row in resources if not _is_about_several(row)]
    counts: dict[str, object] = {
        "resources": sum(row["body"] is not None for row in resources),
        "failed": sum(row["error"] is not None for row in resources),
        "unread": sorted(unread, key=lambda row: (row["kind"], row["error"], _is_part(row))),
    }
    by_sort = Counter(row["kind"] for row in objects)
    for number, sort in enumerate(sorts):
        marker = sort.internal_marker
        counts[f"count_{number}"] = by_sort[sort.sort]
        counts[f"internal_{number}"] = (
            sum(row["kind"] == sort.sort and marker in (row["body"] or "") for row in objects)
            if marker is not None
            else 0
        )
    return counts


def _is_about_several(row: Row) -> bool:
    """Whether the row is about several unread objects: all objects of a type, or a part of a system."""
    return _is_part(row) or (row["name"] == "" and row["error"] is not None)


def _is_part(row: Row) -> bool:
    return bool(row.get("is_part"))


def count_declared_resources(declared: Iterable[Row]) -> dict[str, int]:
    """Return the number of declared resources by cluster."""
    counts: Counter[str] = Counter()
    for row in declared:
        # An empty type represents a group of unmanaged objects, or a set whose elements are counted.
        counts[row["cluster"]] += row["desired"] is not None and row["live_sort"] != ""
    return dict(counts)


def needs_second_pass(rows: Iterable[Row]) -> bool:
    """Whether a cluster has policies, or resources that cannot be compared independently of each other.

    rows: the cluster's rows in the table `rows.DECLARED`.
    """
    return any(
        (row["alone"] is False and row["desired"] is not None) or (row["kind"] == CLUSTER and row["always"])
        for row in rows
    )


def build_cluster_summaries(
    declared: Sequence[Row],
    live: Sequence[Row],
    counts_by_cluster: Mapping[str, KindCounts],
    notices: Mapping[str, str],
) -> tuple[ClusterSummary, ...]:
    """Return a summary of each cluster of an audit, sorted by name.

    counts_by_cluster: the number of findings by kind, by cluster name.
    notices: the notices about checks that could not be completed, by cluster name.
    """
    declared_counts = count_declared_resources(declared)
    live_clusters = {cluster.name: cluster for cluster in summarize_snapshot_clusters(live)}
    cluster_rows = {row["cluster"]: row for row in declared if row["kind"] == CLUSTER}
    return tuple(
        build_cluster_summary(
            row,
            live_clusters[name],
            declared_counts[name],
            counts_by_cluster.get(name, {}),
            notices.get(name),
        )
        for name, row in sorted(cluster_rows.items())
    )


def build_summary_rows(findings: Iterable[Row], taken_at: datetime) -> list[Row]:
    """Count findings, and return the rows of the table `rows.SUMMARY`."""
    times: dict[tuple[str | None, ...], list[datetime]] = {}
    for row in findings:
        team = (row["labels"] or {}).get("team") or ""
        group = (row["cluster"], row["kind"], row["finding"], row["path"], team, row["severity"])
        times.setdefault(group, []).append(row["first_seen"])
    columns = ("cluster", "kind", "finding", "path", "team", "severity")
    return [
        {
            "taken_at": taken_at,
            **dict(zip(columns, group, strict=True)),
            "count": len(group_times),
            "oldest": min(group_times),
        }
        for group, group_times in sorted(times.items(), key=lambda item: [text or "" for text in item[0]])
    ]


def select_worst(findings: Iterable[Row], count: int) -> tuple[AuditRow, ...]:
    """Return the ``count`` worst findings, in the order in which reports list them."""
    ordered = sorted(
        findings,
        key=lambda row: (
            FindingSeverity(row["severity"]).rank if row["severity"] else len(FindingSeverity),
            FindingKind(row["finding"]).rank,
            row["status"] != NEW,
            row["cluster"],
            row["kind"],
            row["name"],
            *place_null_first(row["path"]),
        ),
    )
    return tuple(map(build_audit_row, ordered[:count]))
