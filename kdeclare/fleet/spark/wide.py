"""The second pass: what is said of a cluster as a whole, a cluster at a time in one task."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kdeclare.core.ids import ResourceId
from kdeclare.core.installed_providers import InstalledProvider, list_providers
from kdeclare.core.registry import use_providers
from kdeclare.fleet.finding import Found
from kdeclare.fleet.rows import CLUSTER, FINDINGS, FOUND
from kdeclare.fleet.spark.clusters import has_many, itself, of_clusters
from kdeclare.fleet.spark.diffing import RESULT
from kdeclare.fleet.spark.problems import explained
from kdeclare.fleet.spark.schemas import schema_of
from kdeclare.fleet.whole import Judge, WholeCluster, found_in_cluster

JudgeOf = Callable[[str], Judge | None]
"""The judge of a cluster, None where its project has no policies; called where the task runs."""

WIDE = pa.schema([field for field in FINDINGS if field.name in RESULT])
"""The columns of what is found; those of a notice are null but for the cluster's own and ``message``."""

_COLUMNS = (
    "cluster",
    "side",
    "kind",
    "name",
    "live_sort",
    "live_key",
    "desired",
    "left_out",
    "owned",
    "labels",
    "source",
    "alone",
    "body",
    "error",
)
_SIDES = ("cluster", "declared", "live")
"""What a row is of, in the order of their names: first the cluster itself, once."""


def wide_findings(declared: DataFrame, live: DataFrame, judge_of: JudgeOf) -> DataFrame:
    """What is found by looking at whole clusters, those that are concerned; columns as `WIDE`.

    Which are, `clusters.has_many` says. What could not be told is among it, see `notices`.
    """
    of_itself = f.col("kind") == CLUSTER
    clusters = (
        of_clusters(declared, live)
        .where("within is not null")
        .join(has_many(declared).where("concerned").select("cluster"), "cluster")
        .join(itself(declared).select("cluster", "owned"), "cluster")
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
    providers = list_providers()
    found = gathered.rdd.mapPartitions(lambda part: _found(part, judge_of, providers))
    return declared.sparkSession.createDataFrame(found, schema_of(WIDE), verifySchema=False)


def told(wide: DataFrame) -> DataFrame:
    """The findings alone."""
    return wide.where("finding is not null")


def notices(wide: DataFrame) -> dict[str, str]:
    """What could not be told, in words, by cluster. Raises KdeclareError."""
    with explained():
        rows = wide.where("finding is null").select("cluster", "message").collect()
    return {row["cluster"]: row["message"] for row in rows}


def _found(
    rows: Iterable[Any], judge_of: JudgeOf, providers: Sequence[InstalledProvider]
) -> Iterator[tuple[Any, ...]]:
    use_providers(providers)
    for name, group in groupby(rows, key=itemgetter("cluster")):
        yield from _found_in(name, group, judge_of)  # by itself, so that only one cluster is held at a time


def _found_in(name: str, rows: Iterator[Any], judge_of: JudgeOf) -> Iterator[tuple[Any, ...]]:
    itself = next(rows)
    sides: dict[str, list[dict[str, Any]]] = {side: [] for side in _SIDES}
    for row in rows:
        sides[row["side"]].append(row.asDict())
    cluster = WholeCluster(name, itself["owned"], itself["body"], sides["declared"], sides["live"])
    whole = found_in_cluster(cluster, judge_of(name))
    for resource, labels, found in whole.found:
        yield _row(itself["taken_at"], name, resource, labels, found)
    if whole.notices:
        yield _row(itself["taken_at"], name, ResourceId(CLUSTER, name), {}, " ".join(whole.notices))


def _row(
    taken_at: Any, cluster: str, resource: ResourceId, labels: Mapping[str, str], said: Found | str
) -> tuple[Any, ...]:
    """One finding, or a notice."""
    values: dict[str, Any] = {
        "taken_at": taken_at,
        "cluster": cluster,
        "kind": resource.kind,
        "name": resource.name,
    }
    if isinstance(said, str):
        values["message"] = said
    else:
        values |= {column: getattr(said, column) for column in FOUND.names}
        values["finding"] = str(said.finding)  # as Spark knows texts alone
    values["labels"] = dict(labels)
    return tuple(map(values.get, WIDE.names))
