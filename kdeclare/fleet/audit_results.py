"""Build the results of snapshots and audits, both for commands with Spark and for those without Spark."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from kdeclare.fleet.audit_summary import (
    AcceptedFindings,
    AuditSummary,
    ClusterSummary,
    FindingGroup,
    KindCounts,
    TrendPoint,
)
from kdeclare.fleet.findings import AuditRow, FindingCount, FindingKind, FindingSeverity
from kdeclare.fleet.object_counts import CountedSort, ObjectCount
from kdeclare.fleet.tables.snapshots import SnapshotCluster, UnreadObjects
from kdeclare.manifests.fleet.accepted_drift import AcceptedDrift
from kdeclare.manifests.policies import TOPIC

IDENTITY = ("cluster", "kind", "name", "finding", "path")
"""The columns that identify a finding across audits."""

Identity = tuple[str, str, str, str, str | None]
"""The values of the columns `IDENTITY` of a finding. While the finding is open, they stay the same."""

MEMORY_TABLES = ("findings", "unseen")
"""The tables with which later audits are compared.

``unseen`` contains the earlier findings that the audit did not check again.
"""
AUDIT_TABLES = (*MEMORY_TABLES, "summary")
"""The tables that an audit writes."""

MAX_ROWS = 10_000
"""The maximum number of findings in reports. The tables contain all findings."""
MAX_FIXED_ROWS = 500
"""The maximum number of fixed findings in reports."""
MAX_HEAT_PATHS = 40
"""The maximum number of field paths in the heat map. It shows the paths with the most findings."""
_MAX_TREND_POINTS = 60
"""The maximum number of earlier audits in the trend."""


def get_identity(row: Mapping[str, Any]) -> Identity:
    """Return the values that identify the finding in a row of the table `rows.FINDINGS`."""
    return row["cluster"], row["kind"], row["name"], row["finding"], row["path"]


def build_snapshot_cluster(cluster_row: Any, count_row: Any, sorts: Sequence[CountedSort]) -> SnapshotCluster:
    """Return the summary of one cluster of a snapshot.

    cluster_row: the row about the whole cluster in the table `rows.LIVE`.
    count_row: the columns ``resources``, ``failed`` and ``unread``, and for each type in ``sorts`` the
        columns ``count_N`` and ``internal_N``, where N is the index of the type.

    Both rows are mappings by column name.
    """
    counts = {
        sort.sort: ObjectCount(
            sort.one, sort.many, count_row[f"count_{number}"], count_row[f"internal_{number}"]
        )
        for number, sort in enumerate(sorts)
    }
    topics = counts.pop(TOPIC, None)
    return SnapshotCluster(
        cluster_row["cluster"],
        dict(cluster_row["labels"] or {}),
        cluster_row["cluster_id"],
        _find_version(cluster_row["body"]),
        to_utc(cluster_row["taken_at"]),
        topics.count if topics is not None else 0,
        topics.internal if topics is not None else 0,
        count_row["resources"],
        count_row["failed"],
        cluster_row["error"],
        tuple(UnreadObjects(row["kind"], row["error"], bool(row["is_part"])) for row in count_row["unread"]),
        tuple(count for count in counts.values() if count.count),
    )


def build_cluster_summary(
    cluster_row: Any, live: SnapshotCluster, declared: int, kind_counts: KindCounts, notice: str | None
) -> ClusterSummary:
    """Return the summary of one cluster of an audit.

    cluster_row: the row about the whole cluster in the table `rows.DECLARED`, as a mapping by column name.
    declared: the number of declared resources.
    notice: the notice about checks that could not be completed, or None.
    """
    failed_count = live.failed - len(live.unread)
    partial_note = f"{failed_count:,} of its resources could not be read." if failed_count else None
    unread_notes = (
        f"{'Not all' if item.is_part else 'No'} {item.sort} objects were read: {item.reason}"
        for item in live.unread
    )
    problems = [text for text in (cluster_row["error"], live.error, partial_note, *unread_notes) if text]
    return ClusterSummary(
        cluster_row["cluster"],
        dict(cluster_row["labels"] or {}),
        live.cluster_id,
        live.version,
        live.taken_at,
        live.topics - live.internal,
        declared,
        kind_counts,
        " ".join(problems) or None,
        notice,
        read=live.resources,
        others=live.others,
    )


def sum_counts(counts: Mapping[str, KindCounts]) -> KindCounts:
    """Add up the numbers of findings in all clusters, by kind of finding."""
    sums: dict[FindingKind, int] = {}
    for cluster_counts in counts.values():
        for kind, count in cluster_counts.items():
            sums[kind] = sums.get(kind, 0) + count
    return order_counts(sums)


def order_counts(counts: Mapping[FindingKind, int]) -> KindCounts:
    """Sort the numbers of findings by kind, in the order of `FindingKind`."""
    return {kind: counts[kind] for kind in FindingKind if kind in counts}


def build_audit_row(row: Any) -> AuditRow:
    """Convert a row of the table `rows.FINDINGS` to a row of a report."""
    values: dict[str, Any] = {name: row[name] for name in AuditRow.__dataclass_fields__}
    return AuditRow(
        **{
            **values,
            "severity": FindingSeverity(row["severity"] or FindingSeverity.LOW),  # 0.1 wrote no severity
            "taken_at": to_utc(row["taken_at"]),
            "first_seen": to_utc(row["first_seen"]),
            "finding": FindingKind(row["finding"]),
            "labels": dict(row["labels"] or {}),
        }
    )


def build_counts(rows: Iterable[Any]) -> tuple[FindingCount, ...]:
    """Return counts of findings, sorted by cluster, urgency and team.

    rows: mappings with the fields of `FindingCount`.
    """
    counts = [
        FindingCount(
            row["cluster"],
            FindingKind(row["finding"]),
            FindingSeverity(row["severity"]),
            row["team"],
            row["count"],
            to_utc(row["oldest"]),
        )
        for row in rows
    ]
    return tuple(sorted(counts, key=lambda count: (count.cluster, *_get_urgency(count), count.team)))


def count_accepted(
    accepted: Iterable[AcceptedDrift], counts: Mapping[str, int], taken_at: datetime
) -> tuple[AcceptedFindings, ...]:
    """Return the accepted drift of a fleet.

    counts: the number of findings that each AcceptedDrift accepts, by its name.
    """
    return tuple(
        AcceptedFindings(
            item.name,
            item.reason,
            item.owner,
            item.expires.isoformat(),
            item.is_expired(taken_at),
            counts.get(item.name, 0),
        )
        for item in accepted
    )


def build_groups(counts: Iterable[FindingCount]) -> tuple[FindingGroup, ...]:
    """Add up the numbers of findings of all clusters and teams. The most urgent findings come first."""
    ordered = sorted(counts, key=_get_urgency)
    return tuple(_add_up(list(group)) for _, group in groupby(ordered, _get_urgency))


def _add_up(counts: Sequence[FindingCount]) -> FindingGroup:
    total, oldest = sum(item.count for item in counts), min(item.oldest for item in counts)
    return FindingGroup(counts[0].finding, counts[0].severity, total, oldest)


def _get_urgency(count: FindingCount) -> tuple[int, int]:
    return count.severity.rank, count.finding.rank


def build_trend(earlier: AuditSummary) -> tuple[TrendPoint, ...]:
    """Return the trend for a new audit: the trend of the previous audit, and a point for that audit."""
    current_point = TrendPoint(earlier.audit_id, earlier.taken_at, len(earlier.clusters), earlier.remembered)
    return (*earlier.trend[1 - _MAX_TREND_POINTS :], current_point)


def to_utc(time: datetime) -> datetime:
    """Convert a time to UTC. A time without a time zone, as Spark returns it, is a local time."""
    return time.astimezone(UTC)


def _find_version(body: str | None) -> str | None:
    return json.loads(body).get("version") if body else None
