"""In one query, read what an audit must know about each cluster before it compares the tables."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.audit_results import build_snapshot_cluster
from kdeclare.fleet.contested import Sharing, find_sharing, map_cluster_ids
from kdeclare.fleet.in_process_audit import get_cluster_body
from kdeclare.fleet.object_counts import CountedSort, list_counted_sorts
from kdeclare.fleet.spark.row_hashes import build_live_hash, merge_hashes
from kdeclare.fleet.spark.spark_errors import translate_spark_errors
from kdeclare.fleet.spark.tables import IS_GROUP_ROW, create_table, parse_micros, quote_sql
from kdeclare.fleet.tables.fingerprints import ClusterInputs, RowsFingerprint
from kdeclare.fleet.tables.rows import CLUSTER, require_complete_table
from kdeclare.fleet.tables.snapshots import SnapshotCluster
from kdeclare.fleet.unused import UncheckedObjects, has_unused_report, list_unchecked

_CONTEXT = pa.schema(
    [("cluster", pa.string()), ("taken_at", pa.timestamp("us", tz="UTC")), ("within", pa.string())]
)


@dataclass(frozen=True, slots=True)
class ClusterOverview:
    """The data that the Spark driver keeps in memory about one cluster of an audit.

    declared_row, live_row: the rows about the whole cluster, without the columns that an audit does not need.
    declared_rows, live_rows: the number and the hash of all rows of the cluster.
    declared: the number of declared resources.
    has_second_pass: whether the cluster has policies, resources that depend on each other, or unused objects.
    has_contradictions: whether resources of the project contradict each other.
    removes_groups: whether applying a resource would delete the unmanaged objects of a group.
    has_groups: whether live objects belong to groups. Audits count the unmanaged objects of a group, and do
        not list them.
    objects: the numbers of live objects.
    """

    declared_row: Mapping[str, Any]
    live_row: Mapping[str, Any]
    declared_rows: RowsFingerprint
    live_rows: RowsFingerprint
    declared: int
    has_second_pass: bool
    has_contradictions: bool
    removes_groups: bool
    has_groups: bool
    objects: SnapshotCluster

    @property
    def within(self) -> str | None:
        """The cluster-level live state as JSON; None if the resources of the cluster cannot be compared."""
        return get_cluster_body(self.declared_row, self.live_row)


@dataclass(frozen=True, slots=True)
class FleetOverview:
    """The data that the Spark driver keeps in memory about each cluster of an audit, by cluster name."""

    clusters: Mapping[str, ClusterOverview]

    @property
    def sharing(self) -> Sharing:
        """The entries that share a cluster with other entries."""
        return find_sharing(self.cluster_ids)

    @property
    def cluster_ids(self) -> Mapping[str, str | None]:
        """The id of the cluster of each entry; see `map_cluster_ids`."""
        declared = {name: item.declared_row for name, item in self.clusters.items()}
        return map_cluster_ids(declared, {name: item.live_row for name, item in self.clusters.items()})

    @property
    def unchecked_usage(self) -> Mapping[str, UncheckedObjects]:
        """The objects whose usage is unknown, by cluster."""
        unchecked = {name: list_unchecked(item.live_row["body"]) for name, item in self.clusters.items()}
        return {name: objects for name, objects in unchecked.items() if objects}

    @property
    def inputs(self) -> dict[str, ClusterInputs]:
        """The inputs that affect the findings of each cluster."""
        ids = self.cluster_ids
        return {
            name: ClusterInputs(
                ids[name],
                item.declared_rows,
                item.live_rows,
                is_read=item.within is not None
                and not item.objects.failed
                and not list_unchecked(item.live_row["body"]),
            )
            for name, item in self.clusters.items()
        }

    def select(self, names: Collection[str]) -> "FleetOverview":
        """Return an overview with only some of the clusters."""
        return FleetOverview({name: item for name, item in self.clusters.items() if name in names})

    def build_context(self, spark: SparkSession) -> DataFrame:
        """Return a table with the columns ``cluster``, ``taken_at`` and ``within``.

        ``taken_at`` is the time at which the cluster was read. For ``within``, see `ClusterOverview.within`.
        Spark does not need a job to read this table.
        """
        rows = [
            {"cluster": name, "taken_at": item.live_row["taken_at"], "within": item.within}
            for name, item in self.clusters.items()
        ]
        return create_table(spark, pa.Table.from_pylist(rows, _CONTEXT))


@dataclass(frozen=True, slots=True)
class TableCounts:
    """The counts from the tables `DECLARED` and `LIVE`, not yet checked for missing clusters.

    rows: the counts of each cluster, by cluster name. The row about the whole cluster can be missing from
        either table.
    """

    rows: Mapping[str, Mapping[str, Any]]
    sorts: Sequence[CountedSort]

    def count_live(self) -> dict[str, int]:
        """Return the number of live rows of each cluster."""
        return {name: row["live_count"] for name, row in self.rows.items()}

    def require_complete(self, clusters: Sequence[str]) -> FleetOverview:
        """Return the overview. Raises KdeclareError unless both tables contain exactly these clusters."""
        for table in ("declared", "live"):
            counts = {name: row[f"{table}_clusters"] for name, row in self.rows.items()}
            require_complete_table(table, {name: count for name, count in counts.items() if count}, clusters)
        return self.build_overview()

    def build_overview(self) -> FleetOverview:
        """Return the overview of the clusters for which both tables have a row about the whole cluster."""
        return FleetOverview(
            {
                name: _build_overview(row, self.sorts)
                for name, row in self.rows.items()
                if row["declared_clusters"] and row["live_clusters"]
            }
        )


def read_counts(declared: DataFrame, live: DataFrame) -> TableCounts:
    """Count the rows of the tables `DECLARED` and `LIVE` by cluster, in one query. Raises KdeclareError."""
    sorts = list_counted_sorts()
    both = _select_declared(declared).unionByName(_select_live(live, sorts), allowMissingColumns=True)
    counts = both.groupBy("cluster").agg(
        *_parse_columns(
            "first(declared_row, true) as declared_row",
            "first(live_row, true) as live_row",
            *(
                column
                for side in ("declared", "live")
                for column in (f"count({side}_row) as {side}_clusters", f"count({side}_side) as {side}_count")
            ),
            "count(declared_hash) as hashed",
            *(f"count_if({name}) as {name}" for name in _FLAGS),
            _UNREAD,
            *_list_counts(sorts),
        ),
        *(merge_hashes(f.col(f"{side}_hash")).alias(f"{side}_combined") for side in ("declared", "live")),
    )
    with translate_spark_errors():
        return TableCounts({row["cluster"]: row.asDict() for row in counts.collect()}, sorts)


_FLAGS = (
    "is_declared",
    "needs_second_pass",
    "contradicts",
    "removes_group",
    "is_grouped",
    "is_read",
    "is_failed",
)
"""The boolean columns whose true values `read_counts` counts."""


_IS_CLUSTER_ROW = f"kind = '{CLUSTER}'"
_IS_UNREAD = f"not {_IS_CLUSTER_ROW} and (name = '' or coalesce(is_part, false)) and error is not null"
"""The condition for rows that represent several objects that could not be read. They are not counted."""

_UNREAD = "sort_array(collect_list(unread)) as unread"


def _parse_columns(*expressions: str) -> Iterable[Column]:
    return map(f.expr, expressions)


def _list_counts(sorts: Sequence[CountedSort]) -> Iterable[str]:
    names = (name for number in range(len(sorts)) for name in (f"count_{number}", f"internal_{number}"))
    return (f"count_if({name}) as {name}" for name in names)


# The columns are SQL expressions, because each function of the Column API is a call to Java. With hundreds of
# such calls, building this query took a quarter of its run time for 40,000 topics.


def _select_declared(declared: DataFrame) -> DataFrame:
    is_interdependent = "(alone = false and desired is not null)"
    return declared.selectExpr(
        "cluster",
        f"if({_IS_CLUSTER_ROW}, struct(cluster, labels, error, cluster_id, owned), null) as declared_row",
        "1 as declared_side",
        "row_hash as declared_hash",
        # not a set of objects, and not a group of unmanaged objects
        "desired is not null and coalesce(live_sort <> '', true) as is_declared",
        f"{is_interdependent} or ({_IS_CLUSTER_ROW} and always) as needs_second_pass",
        "contradiction is not null as contradicts",
        f"{IS_GROUP_ROW} as removes_group",
    )


def _select_live(live: DataFrame, sorts: Sequence[CountedSort]) -> DataFrame:
    own_row = "struct(cluster, labels, error, cluster_id, body, unix_micros(taken_at) as micros)"
    return live.withColumn("live_hash", build_live_hash()).selectExpr(
        "cluster",
        f"if({_IS_CLUSTER_ROW}, {own_row}, null) as live_row",
        "1 as live_side",
        "live_hash",
        "group_name is not null as is_grouped",
        f"not {_IS_CLUSTER_ROW} and body is not null as is_read",
        f"not {_IS_CLUSTER_ROW} and error is not null as is_failed",
        f"if({_IS_UNREAD}, struct(kind, error, coalesce(is_part, false) as is_part), null) as unread",
        *(column for number, sort in enumerate(sorts) for column in _build_count_columns(number, sort)),
    )


def _build_count_columns(number: int, sort: CountedSort) -> tuple[str, str]:
    """Return two conditions: for rows about objects of a type, and for rows about its internal objects."""
    is_of_sort = f"(kind = {quote_sql(sort.sort)} and not ({_IS_UNREAD}))"
    marker = sort.internal_marker
    is_internal = "false" if marker is None else f"contains(body, {quote_sql(marker)})"
    return f"{is_of_sort} as count_{number}", f"{is_of_sort} and {is_internal} as internal_{number}"


def _build_overview(row: Mapping[str, Any], sorts: Sequence[CountedSort]) -> ClusterOverview:
    live_row = _get_live_row(row["live_row"])
    has_all_hashes = row["hashed"] == row["declared_count"]
    return ClusterOverview(
        row["declared_row"].asDict(),
        live_row,
        RowsFingerprint(row["declared_count"], row["declared_combined"] if has_all_hashes else None),
        RowsFingerprint(row["live_count"], row["live_combined"]),
        row["is_declared"],
        bool(row["needs_second_pass"]) or has_unused_report(live_row["body"]),
        bool(row["contradicts"]),
        bool(row["removes_group"]),
        bool(row["is_grouped"]),
        build_snapshot_cluster(
            live_row, {**row, "resources": row["is_read"], "failed": row["is_failed"]}, sorts
        ),
    )


def _get_live_row(selected: Row) -> dict[str, Any]:
    """Return the row about the whole cluster in the table `LIVE`.

    selected: the column ``live_row`` of `_select_live`.
    """
    live_row = selected.asDict()
    return live_row | {"taken_at": parse_micros(live_row.pop("micros"))}


def read_snapshot_clusters(live: DataFrame) -> tuple[SnapshotCluster, ...]:
    """Return a summary of each cluster of a snapshot, sorted by name. Raises KdeclareError."""
    sorts = list_counted_sorts()
    counts = (
        _select_live(live, sorts)
        .groupBy("cluster")
        .agg(
            *_parse_columns(
                "first(live_row, true) as live_row",
                "count_if(is_read) as resources",
                "count_if(is_failed) as failed",
                _UNREAD,
                *_list_counts(sorts),
            )
        )
    )
    with translate_spark_errors():
        rows = sorted(counts.collect(), key=lambda row: row["cluster"])
    return tuple(build_snapshot_cluster(_get_live_row(row["live_row"]), row, sorts) for row in rows)
