"""Add up the rows of the table `rows.SUMMARY`. Audits with and without Spark use these functions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kdeclare.fleet.audit_results import MAX_HEAT_PATHS, build_counts, order_counts
from kdeclare.fleet.audit_summary import HeatCell, KindCounts
from kdeclare.fleet.findings import FindingCount, FindingKind

Row = Mapping[str, Any]


def count_by_urgency(summary: Iterable[Row]) -> tuple[FindingCount, ...]:
    """Count findings by cluster, kind, severity and team. summary: the rows of the table `rows.SUMMARY`."""
    columns = ("cluster", "finding", "severity", "team")
    totals: dict[tuple[str, ...], Row] = {}
    for row in summary:
        key = tuple(row[column] for column in columns)
        earlier = totals.get(key, {**row, "count": 0})
        oldest = min(earlier["oldest"], row["oldest"])
        totals[key] = {**row, "count": earlier["count"] + row["count"], "oldest": oldest}
    return build_counts(totals.values())


def count_by_finding(summary: Iterable[Row], column: str) -> dict[str, KindCounts]:
    """Return the number of findings by kind, for each value of a column of the summary table."""
    counts: dict[str, Counter[FindingKind]] = {}
    for row in summary:
        counts.setdefault(row[column], Counter())[FindingKind(row["finding"])] += row["count"]
    return {name: order_counts(counts[name]) for name in sorted(counts)}


def count_kinds(findings: Iterable[Row]) -> KindCounts:
    """Return the number of findings by kind."""
    return order_counts(Counter(FindingKind(row["finding"]) for row in findings))


def build_heat_map(summary: Sequence[Row]) -> tuple[HeatCell, ...]:
    """Count findings by cluster and field path. Only the most frequent paths are included."""
    by_path: Counter[str | None] = Counter()
    cells: Counter[tuple[str, str | None]] = Counter()
    for row in summary:
        by_path[row["path"]] += row["count"]
        cells[row["cluster"], row["path"]] += row["count"]
    ranked = sorted(by_path.items(), key=lambda item: (-item[1], *place_null_first(item[0])))
    top_paths = {path for path, _ in ranked[:MAX_HEAT_PATHS]}
    ordered = sorted(cells.items(), key=lambda item: (item[0][0], *place_null_first(item[0][1])))
    return tuple(HeatCell(cluster, path, count) for (cluster, path), count in ordered if path in top_paths)


def place_null_first(text: str | None) -> tuple[bool, str]:
    """Return a sort key that places null before all strings, as Spark does."""
    return text is not None, text or ""
