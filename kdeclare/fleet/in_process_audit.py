"""Compare resources with their live objects in this process, without Spark.

Tests compare the findings with those of Spark.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.fleet.drift import explain_other_cluster, explain_unmanaged_group, find_drift
from kdeclare.fleet.findings import Finding, FindingKind
from kdeclare.fleet.tables.rows import CLUSTER, get_declared_live_key

Row = Mapping[str, Any]
RowKey = tuple[str, str, str]
"""The cluster, kind and name of a resource. For a live object: the cluster, type and key."""
LabeledFinding = tuple[RowKey, Mapping[str, str] | None, Finding]
"""A resource or live object, the labels of the resource, and the finding."""


def audit_rows(
    declared: Iterable[Row], live: Iterable[Row], *, unmanaged_keys: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the findings of resources that can be compared independently of others.

    A finding is a row with the columns cluster, kind, name and those of `FINDING`. The rows are sorted by
    cluster, kind and name. The resources of a cluster are compared only if both tables contain the row about
    the whole cluster, and neither of these rows has an error. Raises KdeclareError if a table contains a
    resource twice.

    declared, live: the rows of the tables `DECLARED` and `LIVE`.
    unmanaged_keys: whether to report keys that are neither declared nor owned.
    """
    for key, _, finding in find_drift_in_rows(declared, live, unmanaged_keys=unmanaged_keys):
        yield _build_finding_row(key, finding)


def find_drift_in_rows(
    declared: Iterable[Row],
    live: Iterable[Row],
    *,
    unmanaged_keys: bool = True,
    claimed_elsewhere: Collection[RowKey] = frozenset(),
    skip_proven: bool = False,
) -> list[LabeledFinding]:
    """Like `audit_rows`, but return each finding with the labels of its resource. Raises KdeclareError.

    claimed_elsewhere: the objects that another entry of the fleet declares or owns (`fleet.contested`). They
        are not unmanaged.
    skip_proven: whether to skip resources whose facts prove that nothing differs (see `proves_no_drift`).
        Skipping them is faster and does not change the result.
    """
    live_rows = dict(_index_unique(live, _get_row_key, "live"))
    declared_rows = [
        (_get_live_key(row), row) for _, row in _index_unique(declared, _get_element_key, "declared")
    ]
    cluster_rows = {key: row for key, row in declared_rows if key[1] == CLUSTER}
    bodies = {
        key[0]: get_cluster_body(cluster_rows.get(key), row)
        for key, row in live_rows.items()
        if key[1] == CLUSTER
    }
    row_pairs = [
        (_get_row_key(row), row, live_rows.get(key, {}))
        for key, row in declared_rows
        if not _is_group_row(row)
    ]
    declared_keys = {key for key, _ in declared_rows}
    removing_rows = _index_removing_rows(row for _, row in declared_rows if _is_group_row(row))
    group_counts: Counter[RowKey] = Counter()
    for key, row in live_rows.items():
        if key in declared_keys:
            continue
        group_key = key[0], key[1], row["group_name"]
        removing_row = removing_rows.get(group_key)
        if removing_row is not None:
            row_pairs.append((_get_row_key(removing_row), removing_row, row))
        elif key in claimed_elsewhere:
            continue
        elif row["group_name"] is None or bodies.get(key[0]) is None:
            row_pairs.append((key, {}, row))
        else:
            group_counts[group_key] += 1
    if skip_proven:
        row_pairs = [
            pair
            for pair in row_pairs
            if not (pair[1] and pair[2] and proves_no_drift(*pair[1:], unmanaged_keys=unmanaged_keys))
        ]
    findings = [
        *_compare_pairs(row_pairs, bodies, unmanaged_keys=unmanaged_keys),
        *_build_group_findings(group_counts),
    ]
    return sorted(findings, key=lambda item: item[0])


def _compare_pairs(
    pairs: Iterable[tuple[RowKey, Row, Row]], bodies: Mapping[str, str | None], *, unmanaged_keys: bool
) -> Iterator[LabeledFinding]:
    for key, declared_row, live_row in pairs:
        if declared_row and not declared_row["alone"]:
            continue
        cluster, kind, name = key
        for item in find_drift(
            kind,
            name,
            declared_row.get("desired"),
            declared_row.get("owned"),
            live_row.get("body"),
            _explain_unknown(declared_row, live_row),
            bodies.get(cluster),
            (declared_row.get("labels") or {}).items(),
            declared_row.get("source"),
            live_row.get("name") if declared_row and _is_group_row(declared_row) else None,
        ):
            if unmanaged_keys or not item.is_unmanaged_key:
                yield key, declared_row.get("labels"), item


def _build_group_findings(groups: Mapping[RowKey, int]) -> Iterator[LabeledFinding]:
    for key, count in groups.items():
        message = explain_unmanaged_group(str(count), key[2])
        yield key, None, Finding(FindingKind.UNMANAGED, None, None, str(count), None, message)


def _build_finding_row(key: RowKey, finding: Finding) -> dict[str, Any]:
    cluster, kind, name = key
    return {
        "cluster": cluster,
        "kind": kind,
        "name": name,
        "finding": str(finding.finding),
        "path": finding.path,
        "op": finding.op,
        "before": finding.before,
        "after": finding.after,
        "message": finding.message,
        "severity": str(finding.severity),
        "source": finding.source,
    }


def _get_row_key(row: Row) -> RowKey:
    return row["cluster"], row["kind"], row["name"]


def _get_live_key(row: Row) -> RowKey:
    return row["cluster"], *get_declared_live_key(row)


def _get_element_key(row: Row) -> tuple[str, ...]:
    return (*_get_row_key(row), *_get_live_key(row))


def _is_group_row(row: Row) -> bool:
    """Whether the row represents a group of unmanaged objects that applying a resource would delete."""
    return bool(row["live_sort"] == "" and row["live_key"] != "")


def _index_removing_rows(rows: Iterable[Row]) -> Mapping[RowKey, Row]:
    """For each group of unmanaged objects, return the row of the resource whose apply would delete the group.

    If this is true of several resources, return the row of the first resource, as in a plan.
    """
    ordered = sorted(rows, key=_get_row_key, reverse=True)
    return {(row["cluster"], row["kind"], row["live_key"]): row for row in ordered}


_K = TypeVar("_K", bound=tuple[str, ...])


def _index_unique(rows: Iterable[Row], key_of: Callable[[Row], _K], side: str) -> Iterator[tuple[_K, Row]]:
    seen_keys: set[_K] = set()
    for row in rows:
        key = key_of(row)
        if key in seen_keys:
            raise _build_duplicate_error(_get_row_key(row), side)
        seen_keys.add(key)
        yield key, row


def get_cluster_body(declared: Row | None, live: Row) -> str | None:
    """Return the cluster-level live state as JSON; None if the resources of the cluster cannot be compared.

    declared, live: the rows about the whole cluster, of kind `CLUSTER`.
    """
    if declared is None or _explain_unknown(declared, live) is not None:
        return None
    body: str | None = live["body"]
    return body


def _explain_unknown(declared: Row, live: Row) -> str | None:
    """Return the reason why a resource cannot be compared; otherwise None.

    Possible reasons are an error while its declared or live data was read, and a state that belongs to a
    different cluster.
    """
    reasons = [row["error"] for row in (live, declared) if row and row["error"] is not None]
    if declared and live and None not in (cluster_ids := (declared["cluster_id"], live["cluster_id"])):
        reasons += [explain_other_cluster(*cluster_ids)] if cluster_ids[0] != cluster_ids[1] else []
    return " ".join(reasons) or None


def _build_duplicate_error(key: RowKey, side: str) -> KdeclareError:
    cluster, kind, name = key
    return KdeclareError(
        error(
            "duplicate-resource",
            "Duplicate resource",
            f"The {side} table contains {kind}/{name} of cluster '{cluster}' more than once.",
            hint="Declare the resource only once. If the duplicate is in a snapshot, take a new snapshot.",
        )
    )


def proves_no_drift(
    declared: Mapping[str, Any], live: Mapping[str, Any], *, unmanaged_keys: bool = True
) -> bool:
    """Whether the facts prove that a declared resource does not differ from its live object.

    If not, the resource must be compared in full. `fleet.spark.diff` implements the same rule in SQL, and a
    test checks that both implementations agree.

    declared, live: the rows of the resource and the live object. If a required fact is null, the result is
        False.
    unmanaged_keys: whether keys that are neither declared nor owned count as differences.
    """
    hashes = [
        declared["need"],
        declared["forbid"],
        declared["keys" if unmanaged_keys else "gone"],
        live["has"],
        live["keys"],
    ]
    if declared["alone"] is not True or declared["always"] is not False or live["error"] is not None:
        return False
    if any(column is None for column in hashes):
        return False
    required, forbidden, allowed_keys, live_facts, live_keys = map(frozenset, hashes)
    has_expected_keys = live_keys <= allowed_keys if unmanaged_keys else not live_keys & allowed_keys
    return required <= live_facts and not forbidden & live_facts and has_expected_keys
