"""Use Spark to find contradictions and resources that several entries manage; see `fleet.contested`."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.registry import list_cluster_sorts
from kdeclare.core.resources.ids import ResourceId
from kdeclare.fleet.contested import (
    CONTRADICTION_PATH,
    CONTRADICTION_SEVERITY,
    Relation,
    Rival,
    Sharing,
    build_contested_finding,
)
from kdeclare.fleet.findings import FindingKind
from kdeclare.fleet.spark.diff import KEY, RESULT, to_struct
from kdeclare.fleet.spark.overview import FleetOverview
from kdeclare.fleet.spark.tables import create_table, to_spark_type
from kdeclare.fleet.tables.rows import CLUSTER, FINDING

_RELATION = f"""
    case when b.desired is null then '{Relation.OWNED}'
         when a.desired is null or a.desired = b.desired then '{Relation.DECLARED}'
         else '{Relation.DIFFERENT}' end
"""


@dataclass(frozen=True, slots=True)
class SharedObjects:
    """The declared and owned objects of the entries that share a cluster with other entries.

    objects: the rows of the table `DECLARED` that are about such an object, with its type and key in the
        columns ``object_sort`` and ``object_key``.
    pairs: the names of all pairs of entries that share a cluster, in the columns ``own`` and ``other``.
    """

    objects: DataFrame
    pairs: DataFrame


def select_shared_objects(declared: DataFrame, sharing: Sharing) -> SharedObjects | None:
    """Return the objects of shared clusters; None if no two entries share a cluster.

    declared: the table `rows.DECLARED`. sharing: the entries that share a cluster.
    """
    if not sharing:
        return None
    pair_rows = [{"own": own, "other": other} for own, others in sharing.items() for other in others]
    pairs = create_table(declared.sparkSession, pa.Table.from_pylist(pair_rows))
    keyed = declared.where((f.col("kind") != CLUSTER) & f.col("cluster").isin(list(sharing))).withColumns(
        {
            "object_sort": f.expr("coalesce(live_sort, kind)"),
            "object_key": f.expr("coalesce(live_key, name)"),
        }
    )
    return SharedObjects(
        keyed.where(f.col("object_sort").isin(list(list_cluster_sorts()))), f.broadcast(pairs)
    )


def find_claimed_elsewhere(shared: SharedObjects) -> DataFrame:
    """Return, for each entry, the objects that only other entries of the same cluster declare or own.

    The result has the columns `KEY`.
    """
    object_columns = ("object_sort as kind", "object_key as name")
    others = shared.objects.join(shared.pairs, f.col("cluster") == f.col("other"))
    own = shared.objects.selectExpr("cluster", *object_columns)
    return others.selectExpr("own as cluster", *object_columns).distinct().join(own, list(KEY), "left_anti")


def find_contested(shared: SharedObjects, overview: FleetOverview) -> DataFrame:
    """Return the findings about resources whose objects another entry declares or owns.

    The result has the columns `RESULT`.
    """
    claims = shared.objects.where("desired is not null or owned is not null")
    is_rival = f.expr("a.object_sort = b.object_sort and a.object_key = b.object_key and b.cluster = other")
    rivals = (
        claims.alias("a")
        .join(shared.pairs, f.expr("a.cluster = own"))
        .join(claims.alias("b"), is_rival)
        .selectExpr(
            "a.cluster",
            "a.kind",
            "a.name",
            "a.labels",
            "a.source",
            f"struct(b.cluster, b.kind, b.name, b.source, {_RELATION} as relation) as rival",
        )
        .groupBy(*KEY)
        .agg(
            f.first("labels").alias("labels"),
            f.max("source").alias("source"),
            f.collect_set("rival").alias("rivals"),
        )
    )
    compared = _select_compared(overview, shared.objects.sparkSession)
    build_findings = arrow_udf(_build_findings, to_spark_type(FINDING))  # type: ignore[call-overload]
    # Spark would call a deterministic function once for each column of its result.
    found = build_findings.asNondeterministic()("kind", "name", "source", "rivals").alias("found")
    return (
        rivals.join(f.broadcast(compared), "cluster")
        .select("taken_at", *KEY, "labels", found)
        .select("taken_at", *KEY, "labels", "found.*")
        .select(*RESULT)
    )


def find_contradictions(declared: DataFrame, overview: FleetOverview) -> DataFrame:
    """Return the findings about resources that contradict another resource of the same project.

    The result has the columns `RESULT`.
    """
    compared = _select_compared(overview, declared.sparkSession)
    values = {
        "finding": str(FindingKind.CONTESTED),
        "path": CONTRADICTION_PATH,
        "severity": str(CONTRADICTION_SEVERITY),
        **dict.fromkeys(("op", "before", "after")),
    }
    literals = {name: f.lit(value).cast("string") for name, value in values.items()}
    return (
        declared.where("contradiction is not null")
        .select(*KEY, "labels", "source", f.col("contradiction").alias("message"))
        .join(f.broadcast(compared), "cluster")
        .withColumns(literals)
        .select(*RESULT)
    )


def _select_compared(overview: FleetOverview, spark: SparkSession) -> DataFrame:
    """Return the clusters whose resources can be compared, with the time at which they were read."""
    return overview.build_context(spark).where("within is not null").drop("within")


def _build_findings(*columns: pa.Array) -> pa.Array:
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    findings = [
        build_contested_finding(ResourceId(kind, name), source, (Rival(**rival) for rival in rivals))
        for kind, name, source, rivals in rows
    ]
    return pa.array([to_struct(finding) for finding in findings], type=FINDING)
