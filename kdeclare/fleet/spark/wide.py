"""The second pass: what is said of a cluster as a whole, a cluster at a time in one task."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kdeclare.fleet.finding import FindingKind, Found
from kdeclare.fleet.rows import CLUSTER, FINDINGS
from kdeclare.fleet.spark.diffing import RESULT, of_clusters
from kdeclare.fleet.spark.schemas import schema_of
from kdeclare.fleet.whole import Judge, WholeCluster, found_in_cluster
from kdeclare.model.ids import ResourceId

JudgeOf = Callable[[str], Judge | None]
"""The judge of a cluster, None where its project has no policies; called where the task runs."""

_COLUMNS = (
    "cluster",
    "side",
    "kind",
    "name",
    "desired",
    "left_out",
    "owned",
    "labels",
    "alone",
    "body",
    "error",
)
_SIDES = ("cluster", "declared", "live")
"""What a row is of, in the order of their names: first the cluster itself, once."""


def concerned(declared: DataFrame) -> DataFrame:
    """The clusters that have policies (``always`` on their own row), or resources that are not alone."""
    return (
        declared.where(
            ((f.col("alone") == f.lit(False)) & f.col("desired").isNotNull())
            | ((f.col("kind") == CLUSTER) & f.col("always"))
        )
        .select("cluster")
        .distinct()
    )


def wide_findings(declared: DataFrame, live: DataFrame, judge_of: JudgeOf) -> DataFrame:
    """What is found by looking at whole clusters, those that are `concerned`; columns as `diffing.RESULT`."""
    of_itself = f.col("kind") == CLUSTER
    clusters = (
        of_clusters(declared, live)
        .where("within is not null")
        .join(concerned(declared), "cluster")
        .join(declared.where(of_itself).select("cluster", "owned"), "cluster")
    )
    own, mine, theirs = map(f.lit, _SIDES)
    resources = (
        declared.where(~of_itself)
        .withColumn("side", mine)
        .unionByName(
            live.where(~of_itself).drop("taken_at", "labels").withColumn("side", theirs),
            allowMissingColumns=True,
        )
        .join(f.broadcast(clusters.select("cluster")), "cluster")
    )
    gathered = (
        resources.unionByName(
            clusters.withColumnRenamed("within", "body").withColumn("side", own), allowMissingColumns=True
        )
        .select("taken_at", *_COLUMNS)
        .repartition(f.col("cluster"))
        .sortWithinPartitions("cluster", "side", "kind", "name")
    )
    found = gathered.rdd.mapPartitions(lambda part: _found(part, judge_of))
    return declared.sparkSession.createDataFrame(found, _result_schema(), verifySchema=False)


def _result_schema() -> Any:
    fields = {field.name: field for field in FINDINGS}
    return schema_of(pa.schema([fields[name] for name in RESULT]))


def _found(rows: Iterable[Any], judge_of: JudgeOf) -> Iterator[tuple[Any, ...]]:
    for name, group in groupby(rows, key=itemgetter("cluster")):
        yield from _found_in(name, group, judge_of)  # by itself, so that only one cluster is held at a time


def _found_in(name: str, rows: Iterator[Any], judge_of: JudgeOf) -> Iterator[tuple[Any, ...]]:
    itself = next(rows)
    sides: dict[str, list[dict[str, Any]]] = {side: [] for side in _SIDES}
    for row in rows:
        sides[row["side"]].append(row.asDict())
    cluster = WholeCluster(name, itself["owned"], itself["body"], sides["declared"], sides["live"])
    told = found_in_cluster(cluster, judge_of(name))
    for resource, labels, found in told.found:
        yield _row(itself["taken_at"], name, resource, labels, found)
    for notice in told.notices:
        open_ = Found(FindingKind.POLICY, None, None, None, None, notice)
        yield _row(itself["taken_at"], name, ResourceId(CLUSTER, name), {}, open_)


def _row(taken_at: Any, cluster: str, resource: ResourceId, labels: Any, found: Found) -> tuple[Any, ...]:
    values = {
        "taken_at": taken_at,
        "cluster": cluster,
        "kind": resource.kind,
        "name": resource.name,
        "finding": str(found.finding),
        "path": found.path,
        "op": found.op,
        "before": found.before,
        "after": found.after,
        "message": found.message,
        "labels": dict(labels),
    }
    return tuple(values[name] for name in RESULT)
