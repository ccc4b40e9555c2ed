"""Find the clusters that have not changed since the latest audit, without converting their tables to rows."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.audit_results import build_cluster_summary
from kdeclare.fleet.audit_summary import AuditSummary, ClusterFingerprints, ClusterSummary
from kdeclare.fleet.contested import find_sharing, map_cluster_ids
from kdeclare.fleet.in_process_audit import get_cluster_body
from kdeclare.fleet.local import counts
from kdeclare.fleet.local.tables import list_rows
from kdeclare.fleet.tables.fingerprints import (
    LIVE_COLUMNS,
    ClusterInputs,
    ComparisonOptions,
    RowsFingerprint,
    compute_fingerprints,
    find_unchanged,
    format_findings_fingerprint,
    hash_finding_row,
    hash_values,
    is_repeatable,
    merge_hashes,
)
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import CLUSTER
from kdeclare.fleet.unused import list_unchecked

ClusterTables = Mapping[str, pa.Table]
"""The rows of each cluster in the table `DECLARED` or `LIVE`."""

_COUNTED_COLUMNS = ("cluster", "kind", "name", "error", "body")


@dataclass(frozen=True, slots=True)
class EarlierFindings:
    """The latest earlier audit, and its table ``findings``."""

    summary: AuditSummary
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class ComparedClusters:
    """The rows to compare, and the results for the clusters that have not changed.

    declared, live: the rows of the clusters to compare.
    unchanged: the summaries of the other clusters, without the numbers of their findings.
    carried: the findings of the other clusters, with the time at which the clusters were read.
    fingerprints: the fingerprints of the declared and live rows of each cluster; clusters without
        fingerprints are omitted.
    """

    declared: Sequence[Row]
    live: Sequence[Row]
    unchanged: Sequence[ClusterSummary]
    carried: Sequence[Row]
    fingerprints: Mapping[str, tuple[str, str]]


def select_compared(
    declared: ClusterTables,
    live: ClusterTables,
    options: ComparisonOptions,
    earlier: EarlierFindings | None,
) -> ComparedClusters:
    """Select the clusters to compare. earlier: the latest earlier audit; None to compare all clusters.

    If the stored findings of a cluster are not those that the earlier audit wrote, the cluster is compared.
    """
    declared_clusters, live_clusters = map(_map_cluster_rows, (declared, live))
    cluster_ids = map_cluster_ids(declared_clusters, live_clusters)
    inputs = {
        name: ClusterInputs(
            cluster_ids[name],
            _measure_declared(declared[name]),
            _measure_live(live[name]),
            is_read=get_cluster_body(row, live_clusters[name]) is not None
            and not _has_errors(live[name])
            and not list_unchecked(live_clusters[name]["body"]),
        )
        for name, row in declared_clusters.items()
    }
    fingerprints = compute_fingerprints(inputs, options)
    sharing = find_sharing(cluster_ids)
    earlier_rows = {} if earlier is None else counts.group_by_cluster(earlier.rows)
    same = find_unchanged(
        {
            name: current
            for name, current in fingerprints.items()
            if earlier is not None and _is_intact(earlier.summary, name, earlier_rows.get(name, ()))
        },
        sharing,
        None if earlier is None else earlier.summary,
    )
    return ComparedClusters(
        _list_changed(declared, same),
        _list_changed(live, same),
        [
            _build_unchanged_summary(earlier.summary, declared_clusters[name], declared[name], live[name])
            for name in sorted(same)
            if earlier is not None
        ],
        [
            row | {"taken_at": live_clusters[name]["taken_at"]}
            for name in sorted(same)
            for row in earlier_rows.get(name, ())
        ],
        fingerprints,
    )


def _map_cluster_rows(tables: ClusterTables) -> dict[str, Row]:
    """Return the row about each whole cluster, of kind `CLUSTER`, by cluster name."""
    own_rows = {
        name: list_rows(table.filter(pc.equal(table["kind"], CLUSTER))) for name, table in tables.items()
    }
    return {name: rows[0] for name, rows in own_rows.items()}


def _measure_declared(table: pa.Table) -> RowsFingerprint:
    hashes = table["row_hash"].to_pylist()
    return RowsFingerprint(len(hashes), None if None in hashes else merge_hashes(hashes))


def _measure_live(table: pa.Table) -> RowsFingerprint:
    columns = [table[name].to_pylist() for name in LIVE_COLUMNS]
    fingerprints = table["fingerprint"]
    bodies = (table["body"] if fingerprints.null_count else fingerprints).to_pylist()
    contents = (
        fingerprint or body for fingerprint, body in zip(fingerprints.to_pylist(), bodies, strict=True)
    )
    hashes = map(hash_values, zip(*columns, contents, strict=True))
    return RowsFingerprint(table.num_rows, merge_hashes(hashes))


def _has_errors(table: pa.Table) -> bool:
    return bool(table["error"].null_count < table.num_rows)


def _list_changed(tables: ClusterTables, unchanged: Collection[str]) -> list[Row]:
    return [row for name, table in tables.items() if name not in unchanged for row in list_rows(table)]


def _is_intact(earlier: AuditSummary, cluster: str, rows: Iterable[Row]) -> bool:
    """Whether the stored findings of a cluster are those that the earlier audit wrote."""
    recorded = next((item.fingerprints for item in earlier.clusters if item.name == cluster), None)
    return recorded is not None and recorded.findings == _format_findings(rows)


def _format_findings(rows: Iterable[Row]) -> str:
    hashes = list(map(hash_finding_row, rows))
    return format_findings_fingerprint(RowsFingerprint(len(hashes), merge_hashes(hashes)))


def build_fingerprints(
    fingerprints: Mapping[str, tuple[str, str]], findings: Sequence[Row]
) -> dict[str, ClusterFingerprints]:
    """Return the fingerprints that this audit stores for the next audit.

    fingerprints: the fingerprints of the declared and live rows of each cluster.
    findings: all findings of this audit.
    """
    by_cluster = counts.group_by_cluster(findings)
    return {
        name: ClusterFingerprints(declared, live, _format_findings(by_cluster.get(name, ())))
        for name, (declared, live) in fingerprints.items()
        if all(map(is_repeatable, by_cluster.get(name, ())))
    }


def _build_unchanged_summary(
    earlier: AuditSummary, declared_cluster: Row, declared: pa.Table, live: pa.Table
) -> ClusterSummary:
    cluster_row = list_rows(live.filter(pc.equal(live["kind"], CLUSTER)))
    objects = list_rows(live.filter(pc.not_equal(live["kind"], CLUSTER)), _COUNTED_COLUMNS)
    (snapshot_cluster,) = counts.summarize_snapshot_clusters([*cluster_row, *objects])
    name = snapshot_cluster.name
    notice = next(item.notice for item in earlier.clusters if item.name == name)
    is_counted = pc.and_(
        pc.is_valid(declared["desired"]), pc.fill_null(pc.not_equal(declared["live_sort"], ""), True)
    )
    declared_count = pc.sum(is_counted).as_py() or 0
    return replace(
        build_cluster_summary(declared_cluster, snapshot_cluster, declared_count, {}, notice), unchanged=True
    )
