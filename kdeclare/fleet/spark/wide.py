"""The second pass: what is said of a cluster as a whole, a cluster at a time in one task."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kdeclare.fleet.finding import Found
from kdeclare.fleet.rows import CLUSTER, FINDINGS
from kdeclare.fleet.spark.diffing import RESULT, of_clusters
from kdeclare.fleet.spark.schemas import schema_of
from kdeclare.fleet.whole import Judge, WholeCluster, found_in_cluster
from kdeclare.model.ids import ResourceId

JudgeOf = Callable[[str], Judge | None]
"""The judge of a cluster, None where its project has no policies; called where the task runs."""

_COLUMNS = (
    "cluster",
    "taken_at",
    "within",
    "side",
    "kind",
    "name",
    "desired",
    "owned",
    "labels",
    "alone",
    "body",
    "error",
)


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
    readable = of_clusters(declared, live).where("within is not null")
    clusters = f.broadcast(readable.join(concerned(declared), "cluster"))
    mine = declared.where(f.col("kind") != CLUSTER).select(
        "cluster", f.lit("declared").alias("side"), "kind", "name", "desired", "owned", "labels", "alone"
    )
    theirs = live.where(f.col("kind") != CLUSTER).select(
        "cluster", f.lit("live").alias("side"), "kind", "name", "body", "error"
    )
    rows = mine.unionByName(theirs, allowMissingColumns=True).join(clusters, "cluster").select(*_COLUMNS)
    gathered = rows.repartition(f.col("cluster")).sortWithinPartitions("cluster", "side", "kind", "name")
    found = gathered.rdd.mapPartitions(lambda part: _found(part, judge_of))
    return declared.sparkSession.createDataFrame(found, _result_schema(), verifySchema=False)


def _result_schema() -> Any:
    fields = {field.name: field for field in FINDINGS}
    return schema_of(pa.schema([fields[name] for name in RESULT]))


def _found(rows: Iterable[Any], judge_of: JudgeOf) -> Iterator[tuple[Any, ...]]:
    for name, group in groupby(rows, key=itemgetter("cluster")):
        sides: dict[str, list[dict[str, Any]]] = {"declared": [], "live": []}
        taken_at, within = None, ""
        for row in group:
            taken_at, within = row["taken_at"], row["within"]
            sides[row["side"]].append(row.asDict())
        cluster = WholeCluster(name, within, sides["declared"], sides["live"])
        for resource, labels, found in found_in_cluster(cluster, judge_of(name)):
            yield _row(taken_at, name, resource, labels, found)


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
