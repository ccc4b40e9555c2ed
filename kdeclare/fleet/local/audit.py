"""Audit a small fleet in this process, and write the same tables as Spark."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.ids import ResourceId
from kdeclare.fleet import summary_counts
from kdeclare.fleet.audit_results import (
    MAX_FIXED_ROWS,
    MAX_ROWS,
    Identity,
    build_groups,
    build_trend,
    count_accepted,
    get_identity,
    sum_counts,
)
from kdeclare.fleet.audit_summary import (
    Audit,
    AuditRun,
    AuditSummary,
    ClusterSummary,
    EarlierAudits,
    KindCounts,
    Since,
)
from kdeclare.fleet.cluster_pass import ClusterEvaluator, ClusterTables, find_in_cluster
from kdeclare.fleet.contested import (
    find_claimed_elsewhere,
    find_contested,
    find_contradictions,
    find_sharing,
    map_cluster_ids,
)
from kdeclare.fleet.finding_status import KNOWN, UNSEEN, choose_status, select_fixed
from kdeclare.fleet.findings import UNDECLARED_KINDS, Finding, FindingKind, compute_finding_id
from kdeclare.fleet.in_process_audit import find_drift_in_rows, get_cluster_body
from kdeclare.fleet.local import counts
from kdeclare.fleet.local.tables import LocalWorkbench
from kdeclare.fleet.local.unchanged import build_fingerprints
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import CLUSTER, FINDING, FINDINGS, SUMMARY
from kdeclare.fleet.tables.snapshots import SnapshotCluster, require_all_rows
from kdeclare.fleet.unused import UncheckedObjects, has_unused_report
from kdeclare.manifests.fleet.accepted_drift import AcceptedDrift, find_acceptance, select_valid

_FOUND_COLUMNS = ("taken_at", "cluster", "kind", "name", *FINDING.names, "labels")
"""The columns of findings before they are compared with earlier audits."""

MakeEvaluator = Callable[[str], ClusterEvaluator | None]
"""A function that returns the policy evaluator for a cluster, or None if the project has no policies."""


@dataclass(frozen=True, slots=True)
class LocalTables:
    """The input rows of an audit; see `fleet.spark.audit.ComparedTables`.

    clusters, left_out: the names of the audited clusters, and of the other clusters of the fleet.
    unmanaged_keys: whether undeclared config keys of declared resources are findings.
    newest, since: the findings of the latest earlier audit and of the baseline; None without earlier audits.
    accepted: the accepted drift of the fleet.
    unchanged: the summaries of the clusters that are not compared, because nothing has changed since the
        latest earlier audit. Their rows are not in ``declared`` and ``live``.
    carried: the findings of these clusters in the latest earlier audit.
    fingerprints: see `fleet.tables.fingerprints.compute_fingerprints`.
    unchecked_usage: the objects whose usage is unknown, by cluster.
    """

    declared: Sequence[Row]
    live: Sequence[Row]
    clusters: Sequence[str]
    left_out: Sequence[str] = ()
    unmanaged_keys: bool = True
    newest: Sequence[Row] | None = None
    since: Sequence[Row] | None = None
    accepted: Sequence[AcceptedDrift] = ()
    unchanged: Sequence[ClusterSummary] = ()
    carried: Sequence[Row] = ()
    fingerprints: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unchecked_usage: Mapping[str, UncheckedObjects] = field(default_factory=dict)

    def is_checked(self, finding: Row) -> bool:
        """Whether this audit checks an earlier finding again.

        False for the finding that several entries manage a resource if the audit left out a part of the
        fleet, because an omitted entry might manage the resource, too. Also False for the finding that an
        object is unused if the usage of the object is unknown.
        """
        if finding["finding"] == str(FindingKind.UNUSED) and self._is_usage_unknown(finding):
            return False
        if finding["finding"] == str(FindingKind.CONTESTED) and finding["path"] is None and self.left_out:
            return False
        return finding["cluster"] in self.clusters and (self.unmanaged_keys or not _is_unmanaged_key(finding))

    def _is_usage_unknown(self, finding: Row) -> bool:
        unchecked = self.unchecked_usage.get(finding["cluster"], frozenset())
        return not unchecked.isdisjoint({(finding["kind"], finding["name"]), (finding["kind"], "")})


def require_unaltered(live: Iterable[Row], clusters: Sequence[SnapshotCluster], source: str) -> None:
    """Raise KdeclareError if rows of a snapshot are missing or duplicate.

    clusters: the clusters of the snapshot, with the numbers of rows that were written.
    source: the name of the snapshot, for the error.
    """
    keys = Counter((row["cluster"], row["kind"], row["name"]) for row in live)
    row_counts: Counter[str] = Counter()
    for key, count in keys.items():
        row_counts[key[0]] += count
    for cluster in clusters:
        require_all_rows(cluster, row_counts[cluster.name], source)
    if all(row_counts[cluster.name] <= cluster.rows for cluster in clusters):
        return
    repeated = [f"{kind}/{name} of {cluster}" for (cluster, kind, name), n in sorted(keys.items()) if n > 1]
    raise KdeclareError(
        error(
            "duplicate-resource",
            "Duplicate resource",
            f"{source} has more than one row for {', '.join(repeated[:3]) or 'some resources'}.",
            hint="Take a new snapshot. A file of this snapshot may have been duplicated.",
        )
    )


def find_all(tables: LocalTables, make_evaluator: MakeEvaluator) -> tuple[list[Row], dict[str, str]]:
    """Return the findings with the columns of `FINDINGS`, and the notices by cluster name.

    The notices are about checks that could not be completed. Raises KdeclareError.
    """
    live_clusters = {row["cluster"]: row for row in tables.live if row["kind"] == CLUSTER}
    declared_clusters = {row["cluster"]: row for row in tables.declared if row["kind"] == CLUSTER}
    taken_at = {name: row["taken_at"] for name, row in live_clusters.items()}
    sharing = find_sharing(map_cluster_ids(declared_clusters, live_clusters))
    drift = find_drift_in_rows(
        tables.declared,
        tables.live,
        unmanaged_keys=tables.unmanaged_keys,
        claimed_elsewhere=find_claimed_elsewhere(tables.declared, sharing),
        skip_proven=True,
    )
    compared_clusters = {
        name
        for name, row in live_clusters.items()
        if get_cluster_body(declared_clusters.get(name), row) is not None
    }
    drift += find_contested(tables.declared, sharing, compared_clusters)
    drift += find_contradictions(tables.declared, compared_clusters)
    rows = [
        _build_row(taken_at[key[0]], key[0], ResourceId(key[1], key[2]), labels, finding)
        for key, labels, finding in drift
    ]
    notices: dict[str, str] = {}
    for cluster in _select_second_pass(tables.declared, tables.live):
        cluster_findings = find_in_cluster(cluster, make_evaluator(cluster.name))
        rows += (
            _build_row(taken_at[cluster.name], cluster.name, resource, labels, finding)
            for resource, labels, finding in cluster_findings.found
        )
        if cluster_findings.notices:
            notices[cluster.name] = " ".join(cluster_findings.notices)
    rows += ({column: row[column] for column in _FOUND_COLUMNS} for row in tables.carried)
    if not tables.unmanaged_keys:
        rows = [row for row in rows if not _is_unmanaged_key(row)]
    return _add_first_seen(rows, tables.newest, tables.since), notices


def _select_second_pass(declared: Sequence[Row], live: Sequence[Row]) -> Iterator[ClusterTables]:
    live_groups = counts.group_by_cluster(live)
    for name, declared_rows in sorted(counts.group_by_cluster(declared).items()):
        declared_cluster = next((row for row in declared_rows if row["kind"] == CLUSTER), None)
        live_cluster = next((row for row in live_groups.get(name, ()) if row["kind"] == CLUSTER), None)
        if declared_cluster is None or live_cluster is None:
            continue
        body = get_cluster_body(declared_cluster, live_cluster)
        if body is not None and (counts.needs_second_pass(declared_rows) or has_unused_report(body)):
            yield ClusterTables(
                name,
                declared_cluster["owned"],
                body,
                _sort_resources(declared_rows),
                _sort_resources(live_groups[name]),
            )


def _sort_resources(rows: Iterable[Row]) -> list[Row]:
    return sorted((row for row in rows if row["kind"] != CLUSTER), key=lambda row: (row["kind"], row["name"]))


def _build_row(
    taken_at: object, cluster: str, resource: ResourceId, labels: Mapping[str, str] | None, finding: Finding
) -> Row:
    return {
        "taken_at": taken_at,
        "cluster": cluster,
        "kind": resource.kind,
        "name": resource.name,
        **{column: getattr(finding, column) for column in FINDING.names},
        "finding": str(finding.finding),
        "severity": str(finding.severity),
        "labels": labels,
    }


def _is_unmanaged_key(row: Row) -> bool:
    return row["finding"] == str(FindingKind.UNMANAGED) and row["path"] is not None


def _add_first_seen(
    findings: Iterable[Row], newest: Iterable[Row] | None, since: Iterable[Row] | None
) -> list[Row]:
    first_seen: dict[Identity, object] = {}
    for row in sorted(newest or (), key=lambda row: row["first_seen"], reverse=True):
        first_seen[get_identity(row)] = row["first_seen"]
    baseline = {get_identity(row) for row in since or ()}
    return [
        {
            **row,
            "first_seen": first_seen.get(get_identity(row), row["taken_at"]),
            "status": choose_status(get_identity(row), baseline),
            "id": compute_finding_id(*get_identity(row)),
        }
        for row in findings
    ]


def _mark_accepted(findings: Sequence[Row], accepted: Sequence[AcceptedDrift]) -> list[Row]:
    """Add the column ``accepted``: the name of the AcceptedDrift that accepts a finding, or None."""
    return [{**row, "accepted": find_acceptance(accepted, *get_identity(row))} for row in findings]


def find_fixed(findings: Sequence[Row], tables: LocalTables) -> list[Row]:
    """Return the findings that the baseline contains, and that this audit checked again but did not find."""
    is_unreadable, found = _make_unreadable_filter(findings, tables.live), set(map(get_identity, findings))
    baseline = {get_identity(row): row for row in tables.since or ()}
    return select_fixed(baseline, found, lambda row: tables.is_checked(row) and not is_unreadable(row))


def find_unchecked(findings: Sequence[Row], tables: LocalTables) -> list[Row]:
    """Return the findings that the latest earlier audit contains, and that this audit did not check again."""
    is_unreadable, found = _make_unreadable_filter(findings, tables.live), set(map(get_identity, findings))
    fleet = {*tables.clusters, *tables.left_out}
    return [
        {**row, "status": UNSEEN}
        for row in tables.newest or ()
        if row["cluster"] in fleet
        and (not tables.is_checked(row) or is_unreadable(row))
        and get_identity(row) not in found
    ]


def _make_unreadable_filter(findings: Iterable[Row], live: Iterable[Row]) -> Callable[[Row], bool]:
    """Return a function that returns whether the object of an earlier finding could not be read."""
    unreadable = [row for row in findings if row["finding"] == str(FindingKind.UNREACHABLE)]
    clusters = {row["cluster"] for row in unreadable if row["kind"] == CLUSTER}
    resources = {_get_object(row) for row in unreadable}
    unread_rows = [row for row in live if row["error"] is not None and row["kind"] != CLUSTER]
    # A row without a name represents all objects of a type that could not be listed.
    objects = {_get_object(row) for row in unread_rows if not row.get("is_part")}
    parts = [row for row in unread_rows if row.get("is_part")]

    def is_unreadable(row: Row) -> bool:
        if row["cluster"] in clusters or _get_object(row) in resources:
            return True
        if row["finding"] not in UNDECLARED_KINDS:
            return False
        if not objects.isdisjoint((_get_object(row), (row["cluster"], row["kind"], ""))):
            return True
        # Declared resources of an unread part are unreachable. All others were compared, even if their keys
        # do not show to which part they belong.
        return row["source"] is None and any(
            (part["cluster"], part["kind"]) == (row["cluster"], row["kind"])
            and row["name"].startswith(part["name"])
            for part in parts
        )

    return is_unreadable


def _get_object(row: Row) -> tuple[str, str, str]:
    return row["cluster"], row["kind"], row["name"]


def _complete_summaries(
    tables: LocalTables,
    findings: Sequence[Row],
    counts_by_cluster: Mapping[str, KindCounts],
    notices: Mapping[str, str],
) -> tuple[ClusterSummary, ...]:
    """Return the summaries of all clusters, sorted by name. findings: all findings, even accepted ones."""
    fingerprints = build_fingerprints(tables.fingerprints, findings)
    compared = counts.build_cluster_summaries(tables.declared, tables.live, counts_by_cluster, notices)
    unchanged = (replace(item, found=counts_by_cluster.get(item.name, {})) for item in tables.unchanged)
    return tuple(
        replace(item, fingerprints=fingerprints.get(item.name))
        for item in sorted((*compared, *unchanged), key=lambda item: item.name)
    )


def write_audit(
    bench: LocalWorkbench,
    tables: LocalTables,
    run: AuditRun,
    earlier_audits: EarlierAudits | None,
    make_evaluator: MakeEvaluator,
) -> Audit:
    """Compare the rows, write the tables of the audit, and return the audit. Raises KdeclareError."""
    all_findings, notices = find_all(tables, make_evaluator)
    all_findings = _mark_accepted(all_findings, select_valid(tables.accepted, run.began))
    unchecked = find_unchecked(all_findings, tables)
    bench.write("findings", all_findings, FINDINGS)
    findings = [row for row in all_findings if row["accepted"] is None]
    summary_rows = counts.build_summary_rows(findings, run.began)
    bench.write("unseen", unchecked, FINDINGS)
    bench.write("summary", summary_rows, SUMMARY)
    by_cluster = summary_counts.count_by_finding(summary_rows, "cluster")
    urgency_counts = summary_counts.count_by_urgency(summary_rows)
    comparison: Since | None = None
    fixed: list[Row] = []
    if tables.since is not None and earlier_audits is not None:
        fixed = find_fixed(all_findings, tables)
        known_count = sum(row["status"] == KNOWN for row in findings)
        baseline = earlier_audits.since
        comparison = Since(
            baseline.audit_id, baseline.taken_at, len(findings) - known_count, known_count, len(fixed)
        )
    summary = AuditSummary(
        audit_id=run.audit_id,
        fleet=run.fleet,
        taken_at=run.began,
        seconds=0.0,
        clusters=_complete_summaries(tables, all_findings, by_cluster, notices),
        found=sum_counts(by_cluster),
        teams=summary_counts.count_by_finding(summary_rows, "team"),
        heat=summary_counts.build_heat_map(summary_rows),
        since=comparison,
        unseen=summary_counts.count_kinds(row for row in unchecked if row["accepted"] is None),
        trend=build_trend(earlier_audits.newest) if earlier_audits is not None else (),
        groups=build_groups(urgency_counts),
        accepted=count_accepted(tables.accepted, Counter(row["accepted"] for row in all_findings), run.began),
        rows={"findings": len(all_findings), "unseen": len(unchecked), "summary": len(summary_rows)},
    )
    rows = counts.select_worst(findings, MAX_ROWS)
    fixed_rows = counts.select_worst(fixed, MAX_FIXED_ROWS)
    return Audit(summary, rows, len(findings) - len(rows), fixed_rows, urgency_counts)
