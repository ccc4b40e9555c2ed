"""Use Spark to compare resources with their live objects, and findings with those of earlier audits."""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.installed_providers import InstalledProvider, list_providers, use_providers
from kdeclare.core.provider.registry import load_codecs
from kdeclare.fleet.audit_results import IDENTITY
from kdeclare.fleet.drift import explain_other_cluster, explain_unmanaged_group, find_drift
from kdeclare.fleet.finding_status import KNOWN, NEW
from kdeclare.fleet.findings import UNDECLARED_KINDS, Finding, FindingKind, FindingSeverity
from kdeclare.fleet.spark.overview import FleetOverview
from kdeclare.fleet.spark.tables import IS_GROUP_ROW, quote_sql, to_spark_type
from kdeclare.fleet.tables.rows import CLUSTER, FINDING
from kdeclare.fleet.unused import UncheckedObjects
from kdeclare.manifests.fleet.accepted_drift import AcceptedDrift, find_acceptance

KEY = ("cluster", "kind", "name")
RESULT = ("taken_at", *KEY, *FINDING.names, "labels")
"""The columns of findings before they are compared with an earlier audit."""

_NEEDS_DIFF = """
    d.name is null or l.name is null or d.desired is null or d.always or l.error is not null
    or d.need is null or d.forbid is null or d.keys is null
    or l.has is null or l.keys is null
    or {keys}
    or not forall(d.need, fact -> array_contains(l.has, fact))
    or arrays_overlap(d.forbid, l.has)
"""
"""An SQL condition: the opposite of `in_process_audit.proves_no_drift`.

If the condition is true or null, the resource must be compared in full.
"""

_HAS_UNEXPECTED_KEYS = "not forall(l.keys, key -> array_contains(d.keys, key))"
"""The condition that replaces ``{keys}`` in `_NEEDS_DIFF` if unmanaged keys are reported."""

_HAS_KEYS_TO_REMOVE = "d.gone is null or arrays_overlap(d.gone, l.keys)"
"""The condition that replaces ``{keys}`` in `_NEEDS_DIFF` if unmanaged keys are not reported."""

_OTHER_CLUSTER_MESSAGE = (
    "if(d.cluster_id <> l.cluster_id, concat({}, d.cluster_id, {}, l.cluster_id, {}), null)".format(
        *map(quote_sql, explain_other_cluster("|", "|").split("|"))
    )
)
"""The message of `explain_other_cluster` as an SQL expression; null if the cluster ids are equal."""

_GROUP_MESSAGE = "concat({}, count, {}, group_name, {})".format(
    *map(quote_sql, explain_unmanaged_group("|", "|").split("|"))
)
"""The message of `explain_unmanaged_group` as an SQL expression."""

_REMOVING_COLUMNS = ("desired", "labels", "source")
"""The columns to read, besides the key, from rows of resources whose apply would delete unmanaged objects."""

_JOIN_COLUMNS = ("joined_sort", "joined_key")
_DIFF_COLUMNS = (
    "kind",
    "name",
    "desired",
    "owned",
    "live",
    "error",
    "within",
    "labels",
    "source",
    "removed_key",
)


def find_drift_rows(
    declared: DataFrame,
    live: DataFrame,
    overview: FleetOverview,
    *,
    unmanaged_keys: bool = True,
    claimed_elsewhere: DataFrame | None = None,
) -> DataFrame:
    """Compare resources and undeclared live objects independently of each other, and return the findings.

    The result has the columns `RESULT`. If the row about a whole cluster has an error, the error is the only
    finding of the cluster. The executors must have the same providers as this process; otherwise, the Spark
    job fails.

    declared, live: the tables `rows.DECLARED` and `rows.LIVE`.
    overview: the clusters of both tables.
    unmanaged_keys: whether to report keys that are neither declared nor owned. If many resources have such
        keys, the audit takes much longer.
    claimed_elsewhere: the objects (cluster, kind, name) that another entry of the fleet declares or owns.
        They are not unmanaged.
    """
    has_groups = any(codec.groups for codec in load_codecs())
    removes_groups = any(item.removes_groups for item in overview.clusters.values())
    needs_diff = _NEEDS_DIFF.format(keys=_HAS_UNEXPECTED_KEYS if unmanaged_keys else _HAS_KEYS_TO_REMOVE)
    if claimed_elsewhere is not None:
        live = live.join(claimed_elsewhere.withColumn("elsewhere", f.lit(True)), list(KEY), "left")
    joined = _join_live(declared.where(f"not {IS_GROUP_ROW}"), live)
    if removes_groups:
        joined = _join_removals(joined, declared)
    removing = {name: f"r.{name}" if removes_groups else "null" for name in (*KEY, *_REMOVING_COLUMNS)}
    is_known = f"d.name is not null or {removing['name']} is not null"
    if claimed_elsewhere is not None:
        joined = joined.where(f"{is_known} or l.elsewhere is null")
    is_counted = f"not ({is_known}) and l.group_name is not null"
    pairs = (
        (joined.where(f"not ({is_counted})") if has_groups else joined)
        .where(f.expr("coalesce(d.alone, true)"))
        .where(f.expr(f"coalesce({needs_diff}, true)"))
        .selectExpr(
            *(f"coalesce(d.{column}, {removing[column]}, l.{column}) as {column}" for column in KEY),
            f"coalesce(d.desired, {removing['desired']}) as desired",
            "d.owned",
            "l.body as live",
            f"nullif(concat_ws(' ', l.error, d.error, {_OTHER_CLUSTER_MESSAGE}), '') as error",
            f"coalesce(d.labels, {removing['labels']}) as labels",
            f"coalesce(d.source, {removing['source']}) as source",
            f"if({removing['name']} is null, null, l.name) as removed_key",
        )
    )
    clusters = f.broadcast(overview.build_context(declared.sparkSession))
    diff_input = pairs.join(clusters, "cluster", "left").withColumn(
        "taken_at", f.coalesce("taken_at", f.current_timestamp())
    )
    # Spark would call a deterministic function twice: first to filter the rows, then for the findings.
    diff_rows = arrow_udf(_make_differ(list_providers()), to_spark_type(pa.list_(FINDING)))  # type: ignore[call-overload]
    diff_rows = diff_rows.asNondeterministic()
    findings = (
        diff_input.select("taken_at", *KEY, "labels", diff_rows(*_DIFF_COLUMNS).alias("found"))
        .select("taken_at", *KEY, "labels", f.inline("found"))
        .select(*RESULT)
    )
    if has_groups and any(item.has_groups for item in overview.clusters.values()):
        groups = joined.where(is_counted).select("l.*")
        findings = findings.unionByName(_count_groups(groups.join(clusters.drop("taken_at"), "cluster")))
    return findings if unmanaged_keys else drop_unmanaged_keys(findings)


def drop_unmanaged_keys(findings: DataFrame) -> DataFrame:
    """Remove the findings about undeclared keys of declared resources from a table."""
    return findings.where(~build_unmanaged_key_filter())


def find_duplicates(table: DataFrame) -> DataFrame:
    """Return the keys that occur in more than one row of a table. A valid table has no such keys."""
    return table.groupBy(*KEY).count().where("count > 1")


def _join_live(declared: DataFrame, live: DataFrame) -> DataFrame:
    """Join each declared resource (alias ``d``) with its live object (alias ``l``) in a full outer join."""
    join_expressions = ("coalesce(live_sort, kind)", "coalesce(live_key, name)")
    keyed_declared = declared.withColumns(
        dict(zip(_JOIN_COLUMNS, map(f.expr, join_expressions), strict=True))
    )
    join_conditions = (
        f.col(f"d.{a}") == f.col(f"l.{b}") for a, b in zip(("cluster", *_JOIN_COLUMNS), KEY, strict=True)
    )
    return keyed_declared.alias("d").join(
        live.alias("l"), functools.reduce(lambda a, b: a & b, join_conditions), "full_outer"
    )


def _join_removals(joined: DataFrame, declared: DataFrame) -> DataFrame:
    """Join each unmanaged object with the resource (alias ``r``) whose apply would delete the object's group.

    If this is true of several resources, the first one is joined, as in a plan.
    """
    group_rows = declared.where(IS_GROUP_ROW).withColumnRenamed("live_key", "removed_group")
    removals = group_rows.groupBy("cluster", "kind", "removed_group").agg(
        f.min("name").alias("name"),
        *(f.min_by(column, "name").alias(column) for column in _REMOVING_COLUMNS),
    )
    is_removed = f.expr(
        "d.name is null and l.cluster = r.cluster and l.kind = r.kind and l.group_name = r.removed_group"
    )
    return joined.join(f.broadcast(removals.alias("r")), is_removed, "left")


def _count_groups(objects: DataFrame) -> DataFrame:
    """Return one finding for each group of unmanaged objects. Clusters with an error are skipped."""
    counted = objects.where("within is not null").groupBy("taken_at", "cluster", "kind", "group_name").count()
    return counted.selectExpr(
        "taken_at",
        "cluster",
        "kind",
        "group_name as name",
        f"'{FindingKind.UNMANAGED}' as finding",
        "cast(null as string) as path",
        "cast(null as string) as op",
        "cast(count as string) as before",
        "cast(null as string) as after",
        f"{_GROUP_MESSAGE} as message",
        f"'{FindingSeverity.LOW}' as severity",
        "cast(null as string) as source",
        "cast(null as map<string, string>) as labels",
    )


def _make_differ(providers: Sequence[InstalledProvider]) -> Callable[..., pa.Array]:
    """Return a function that compares resources in Spark tasks, with the same providers as on the driver."""

    def diff_rows(*columns: pa.Array) -> pa.Array:
        use_providers(providers)
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return pa.array(
            [[to_struct(item) for item in find_drift(*row)] for row in rows], type=pa.list_(FINDING)
        )

    return diff_rows


def to_struct(finding: Finding) -> dict[str, object]:
    """Convert a finding to a value of the type `FINDING`."""
    values = {name: getattr(finding, name) for name in FINDING.names}
    return values | {"finding": str(finding.finding), "severity": str(finding.severity)}


@dataclass(frozen=True, slots=True)
class AuditCoverage:
    """The scope of an audit.

    clusters: the names of the audited clusters.
    left_out: the names of the other clusters of the fleet.
    unmanaged_keys: whether the audit reports undeclared keys that are set on declared resources.
    unchecked_usage: the objects whose usage is unknown, by cluster.
    """

    clusters: Collection[str]
    left_out: Collection[str] = ()
    unmanaged_keys: bool = True
    unchecked_usage: Mapping[str, UncheckedObjects] = field(default_factory=dict)

    @property
    def covers_all(self) -> bool:
        """Whether the audit checks all earlier findings of clusters that can be read."""
        return not self.left_out and self.unmanaged_keys and not self.unchecked_usage

    def build_coverage_filter(self) -> Column:
        """Return a condition that selects the earlier findings that this audit checks again.

        An audit of only some clusters of a fleet does not check again which resources several entries manage,
        because an entry that the audit left out might manage them, too.
        """
        condition = f.col("cluster").isin(list(self.clusters))
        if self.left_out:
            condition &= (f.col("finding") != str(FindingKind.CONTESTED)) | f.col("path").isNotNull()
        for cluster, unchecked in self.unchecked_usage.items():
            is_unknown = f.concat_ws("/", "kind", "name").isin(
                [f"{k}/{n}" for k, n in sorted(unchecked) if n]
            )
            is_unknown |= f.col("kind").isin([k for k, n in sorted(unchecked) if not n])
            is_unused = (f.col("cluster") == cluster) & (f.col("finding") == str(FindingKind.UNUSED))
            condition &= ~(is_unused & is_unknown)
        return condition if self.unmanaged_keys else condition & ~build_unmanaged_key_filter()

    def build_fleet_filter(self) -> Column:
        """Return a condition that selects earlier findings in clusters that are still in the fleet."""
        return f.col("cluster").isin([*self.clusters, *self.left_out])


def build_unmanaged_key_filter() -> Column:
    """Return a condition that selects findings about undeclared keys of declared resources."""
    return (f.col("finding") == str(FindingKind.UNMANAGED)) & f.col("path").isNotNull()


def add_first_seen(
    findings: DataFrame, newest_memory: DataFrame | None, baseline_memory: DataFrame | None
) -> DataFrame:
    """Add the columns ``id``, ``first_seen`` and ``status`` to findings.

    newest_memory: the findings of the latest earlier audit, including findings that it did not check again.
        They determine ``first_seen``. None if there is no earlier audit.
    baseline_memory: the findings of the baseline, an earlier audit. Findings that are in the baseline get the
        status ``known``; other findings get the status ``new``.
    """
    findings = findings.withColumn("id", _build_id_column())
    if newest_memory is None or baseline_memory is None:
        return findings.withColumn("first_seen", f.col("taken_at")).withColumn("status", f.lit(NEW))
    if baseline_memory is newest_memory:
        remembered = _select_first_seen(newest_memory, "first").withColumn("earlier", f.lit(True))
    else:
        baseline = baseline_memory.select(*IDENTITY).distinct().withColumn("earlier", f.lit(True))
        first_seen = _select_first_seen(newest_memory, "first")
        remembered = first_seen.alias("one").join(
            baseline.alias("two"), _build_identity_match("one", "two"), "full_outer"
        )
        remembered = remembered.selectExpr(
            *(f"coalesce(one.{column}, two.{column}) as {column}" for column in IDENTITY), "first", "earlier"
        )
    joined = findings.alias("now").join(remembered.alias("was"), _build_identity_match("now", "was"), "left")
    return joined.select(
        "now.*",
        f.coalesce("was.first", "now.taken_at").alias("first_seen"),
        f.when(f.col("was.earlier").isNull(), NEW).otherwise(KNOWN).alias("status"),
    )


def mark_accepted(findings: DataFrame, accepted: Sequence[AcceptedDrift]) -> DataFrame:
    """Add the column ``accepted``: the name of the AcceptedDrift that accepts a finding, or null."""
    if not accepted:
        return findings.withColumn("accepted", f.lit(None).cast("string"))

    def find_names(*columns: pa.Array) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return pa.array([find_acceptance(accepted, *row) for row in rows], type=pa.string())

    mark = arrow_udf(find_names, "string")  # type: ignore[call-overload]
    return findings.withColumn("accepted", mark(*IDENTITY))


def _build_id_column() -> Column:
    """Return the Spark column with the result of `compute_finding_id`."""
    identity = (f.coalesce(f.col(column), f.lit("")) for column in IDENTITY)
    return f.substring(f.sha2(f.concat_ws("\0", *identity), 256), 1, 12)


def find_fixed(
    findings: DataFrame, baseline_memory: DataFrame, unread: DataFrame | None, coverage: AuditCoverage
) -> DataFrame:
    """Return the findings that the baseline contains, and that this audit checked again but did not find.

    baseline_memory: the findings of the baseline.
    unread: the live rows of objects that this audit could not read; None if there are none.
    """
    checked_again = _join_unreadable(
        baseline_memory.where(coverage.build_coverage_filter()), findings, unread, "left_anti"
    )
    return _exclude_found(checked_again, findings)


def find_unchecked(
    findings: DataFrame, newest_memory: DataFrame, unread: DataFrame | None, coverage: AuditCoverage
) -> DataFrame:
    """Return the earlier findings that this audit did not check again, so that their state is unknown.

    newest_memory: the findings of the latest earlier audit.
    unread: the live rows of objects that this audit could not read; None if there are none.
    """
    fleet_memory = newest_memory.where(coverage.build_fleet_filter())
    unreadable = _join_unreadable(
        fleet_memory.where(coverage.build_coverage_filter()), findings, unread, "left_semi"
    )
    return _exclude_found(
        fleet_memory.where(~coverage.build_coverage_filter()).unionByName(unreadable), findings
    )


def _select_first_seen(memory: DataFrame, name: str) -> DataFrame:
    return memory.groupBy(*IDENTITY).agg(f.min("first_seen").alias(name))


def _join_unreadable(
    memory: DataFrame, findings: DataFrame, unread: DataFrame | None, join_type: str
) -> DataFrame:
    """Return the earlier findings whose objects could not be read (semi join), or all others (anti join)."""
    columns = ("cluster", "kind", "name")
    resources = findings.where(f.col("finding") == str(FindingKind.UNREACHABLE)).select(*columns)
    unreadable = resources.withColumns({"is_object": f.lit(False), "is_part": f.lit(False)})
    if unread is not None:
        objects = unread.select(*columns, "is_part").withColumn("is_object", f.lit(True))
        unreadable = unreadable.unionByName(objects)
    unreadable = unreadable.alias("now")
    is_of_cluster = ~f.col("now.is_object") & (f.col("now.kind") == CLUSTER)
    same_kind = f.col("was.kind") == f.col("now.kind")
    same_name = f.col("was.name") == f.col("now.name")
    is_of_undeclared = f.col("was.finding").isin(*map(str, sorted(UNDECLARED_KINDS)))
    # A row without a name represents all objects of a type that could not be listed.
    is_of_object = same_name | (f.col("now.name") == "")
    # Declared resources of an unread part are unreachable. All others were compared, even if their keys do
    # not show to which part they belong.
    is_of_part = f.col("was.source").isNull() & f.startswith("was.name", "now.name")
    is_unread = f.when(f.coalesce("now.is_part", f.lit(False)), is_of_part).otherwise(is_of_object)
    is_same = same_kind & f.when(f.col("now.is_object"), is_of_undeclared & is_unread).otherwise(same_name)
    is_affected = (f.col("was.cluster") == f.col("now.cluster")) & (is_of_cluster | is_same)
    return memory.alias("was").join(unreadable, is_affected, join_type)


def _exclude_found(memory: DataFrame, findings: DataFrame) -> DataFrame:
    return memory.alias("was").join(findings.alias("now"), _build_identity_match("now", "was"), "left_anti")


def _build_identity_match(left_alias: str, right_alias: str) -> Column:
    condition = f.lit(True)
    for column in IDENTITY:
        condition = condition & f.col(f"{left_alias}.{column}").eqNullSafe(f.col(f"{right_alias}.{column}"))
    return condition
