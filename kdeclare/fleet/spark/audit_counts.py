"""Count findings with Spark. Only the counts are collected on the driver."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.policies.policy_request import RULE_TOO_SLOW
from kdeclare.fleet.audit_results import build_audit_row
from kdeclare.fleet.finding_status import KNOWN, NEW
from kdeclare.fleet.findings import AuditRow, FindingKind, FindingSeverity
from kdeclare.fleet.spark.row_hashes import build_finding_hash, merge_hashes
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from kdeclare.fleet.spark.tables import parse_micros
from kdeclare.fleet.tables.fingerprints import RowsFingerprint
from kdeclare.fleet.tables.row_builder import Row

_GROUP = ("cluster", "kind", "finding", "path", "team", "severity")
"""The columns of the table `rows.SUMMARY` that identify a group of findings."""


@dataclass(frozen=True, slots=True)
class FindingGroups:
    """The findings of an audit, grouped by all columns that summaries use to count findings.

    rows: mappings with the columns `_GROUP`, ``status``, ``accepted``, ``count``, ``oldest``, ``combined``
        (the hash of the findings) and ``unrepeatable`` (see `fleet.tables.fingerprints.is_repeatable`).
    """

    rows: tuple[Row, ...]

    @property
    def count(self) -> int:
        """The number of all findings."""
        return sum(row["count"] for row in self.rows)

    @property
    def has_unreachable(self) -> bool:
        """Whether a cluster or a resource could not be read."""
        return any(row["finding"] == str(FindingKind.UNREACHABLE) for row in self.rows)

    def count_known(self) -> int:
        """Return the number of findings that the baseline already contained, without accepted findings."""
        return sum(r["count"] for r in self.rows if r["status"] == KNOWN and r["accepted"] is None)

    def count_accepted(self) -> dict[str, int]:
        """Return the number of accepted findings, by the name of the accepted drift."""
        counts: dict[str, int] = {}
        for row in self.rows:
            if row["accepted"] is not None:
                counts[row["accepted"]] = counts.get(row["accepted"], 0) + row["count"]
        return counts

    def build_summary_rows(self, taken_at: datetime) -> list[Row]:
        """Return the rows of the table `rows.SUMMARY`. Accepted findings are left out."""
        groups: dict[tuple[str | None, ...], Row] = {}
        for row in self.rows:
            if row["accepted"] is not None:
                continue
            key = tuple(row[column] for column in _GROUP)
            earlier = groups.get(key, {"count": 0, "oldest": row["oldest"]})
            groups[key] = {
                "taken_at": taken_at,
                **dict(zip(_GROUP, key, strict=True)),
                "count": earlier["count"] + row["count"],
                "oldest": min(earlier["oldest"], row["oldest"]),
            }
        return [groups[key] for key in sorted(groups, key=lambda key: [text or "" for text in key])]

    def compute_fingerprints(self) -> dict[str, RowsFingerprint | None]:
        """Return the number and the hash of the findings of each cluster.

        The value is None for a cluster with an unrepeatable finding (see `is_repeatable`).
        """
        results: dict[str, RowsFingerprint | None] = {}
        for row in self.rows:
            earlier = results.get(row["cluster"], RowsFingerprint(0, 0))
            if row["unrepeatable"] or earlier is None:
                results[row["cluster"]] = None
            else:
                results[row["cluster"]] = RowsFingerprint(
                    earlier.count + row["count"], (earlier.combined or 0) ^ row["combined"]
                )
        return results


def group_findings(findings: DataFrame) -> FindingGroups:
    """Count the findings of an audit in one query. Raises KdeclareError."""
    team = f.coalesce(f.col("labels")["team"], f.lit("")).alias("team")
    is_too_slow = (f.col("finding") == str(FindingKind.POLICY)) & f.contains(
        f.col("message"), f.lit(RULE_TOO_SLOW)
    )
    columns = [team if name == "team" else f.col(name) for name in _GROUP]
    groups = findings.groupBy(*columns, "status", "accepted").agg(
        f.count(f.lit(1)).alias("count"),
        f.unix_micros(f.min("first_seen")).alias("oldest"),
        merge_hashes(build_finding_hash()).alias("combined"),
        f.count(f.when(is_too_slow, f.lit(1))).alias("unrepeatable"),
    )
    with translate_spark_errors():
        rows = groups.collect()
    return FindingGroups(tuple(row.asDict() | {"oldest": parse_micros(row["oldest"])} for row in rows))


@dataclass(frozen=True, slots=True)
class CountedTable:
    """The number of rows of a table of findings, and the number and the hash of the rows of each cluster."""

    count: int
    by_cluster: Mapping[str, RowsFingerprint]


def count_tables(tables: Mapping[str, DataFrame]) -> dict[str, CountedTable]:
    """Count the rows of tables of findings, by name, in one query. Raises KdeclareError."""
    labeled = [table.withColumn("table", f.lit(name)) for name, table in tables.items()]
    every = reduce(DataFrame.unionByName, labeled)
    counts = every.groupBy("table", "cluster").agg(
        f.count(f.lit(1)).alias("count"), merge_hashes(build_finding_hash()).alias("combined")
    )
    with translate_spark_errors():
        rows = counts.collect()
    by_table: dict[str, dict[str, RowsFingerprint]] = {name: {} for name in tables}
    for row in rows:
        by_table[row["table"]][row["cluster"]] = RowsFingerprint(row["count"], row["combined"])
    return {
        name: CountedTable(sum(item.count for item in found.values()), found)
        for name, found in by_table.items()
    }


def count_unseen(unseen: DataFrame) -> tuple[int, dict[FindingKind, int]]:
    """Count the earlier findings that this audit did not check again.

    Return the number of all these findings, and the number by kind without accepted findings.

    Raises KdeclareError.
    """
    with translate_spark_errors():
        rows = unseen.groupBy("finding", f.col("accepted").isNull().alias("is_open")).count().collect()
    open_counts = {FindingKind(row["finding"]): row["count"] for row in rows if row["is_open"]}
    return sum(row["count"] for row in rows), open_counts


def select_worst(findings: DataFrame, count: int) -> tuple[AuditRow, ...]:
    """Return the ``count`` worst findings, in the order in which reports list them. Raises KdeclareError."""
    is_known = f.col("status") != NEW
    severity = f.coalesce(_build_rank_column("severity", FindingSeverity), f.lit(len(FindingSeverity)))
    kind = _build_rank_column("finding", FindingKind)
    ordered = findings.orderBy(severity, kind, is_known, "cluster", "kind", "name", "path")
    with translate_spark_errors():
        rows = ordered.limit(count).collect()
    return tuple(map(build_audit_row, rows))


def _build_rank_column(column: str, members: Iterable[str]) -> Column:
    ranks = f.create_map(*(f.lit(x) for rank, member in enumerate(members) for x in (str(member), rank)))
    return ranks[f.col(column)]


def count_rows_by_cluster(table: DataFrame) -> dict[str, int]:
    """Return the number of rows of each cluster. Raises KdeclareError."""
    with translate_spark_errors():
        return {row["cluster"]: row["count"] for row in table.groupBy("cluster").count().collect()}
