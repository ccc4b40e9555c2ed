"""The rows that clusters have of themselves, in both tables: few, and asked for again and again."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kdeclare.fleet.collecting import record_batches
from kdeclare.fleet.encoding import Row
from kdeclare.fleet.rows import CLUSTER, LIVE
from kdeclare.fleet.spark.schemas import schema_of


def itself(table: DataFrame) -> DataFrame:
    """The row of each cluster."""
    return table.where(f.col("kind") == CLUSTER)


def with_unreachable(live: DataFrame, rows: Sequence[Row]) -> DataFrame:
    """The table of live rows, and rows of clusters that it has nothing about."""
    if not rows:
        return live
    items = [row for batch in record_batches(rows) for row in batch.to_pylist(maps_as_pydicts="strict")]
    more = live.sparkSession.createDataFrame(items, schema_of(LIVE))
    return live.unionByName(more)


def of_clusters(declared: DataFrame, live: DataFrame) -> DataFrame:
    """When each cluster was read, and ``within``, its body: null unless both of its rows are well."""
    mine = (
        itself(declared)
        .where(f.col("error").isNull())
        .select("cluster", f.lit(True).alias("well"), f.col("cluster_id").alias("planned_id"))
    )
    theirs = itself(live).select("cluster", "cluster_id", "taken_at", "body", "error")
    is_same = f.col("planned_id").isNull() | (f.col("planned_id") == f.col("cluster_id"))
    within = f.when(f.col("well") & f.col("error").isNull() & is_same, f.col("body")).alias("within")
    return theirs.join(mine, "cluster", "left").select("cluster", "taken_at", within)


def has_many(declared: DataFrame) -> DataFrame:
    """How many ``resources`` each cluster declares, and whether it is ``concerned`` by the second pass.

    That is where it has policies (``always`` on its own row), or resources that are not alone.
    """
    is_wide = (f.col("alone") == f.lit(False)) & f.col("desired").isNotNull()
    has_policies = (f.col("kind") == CLUSTER) & f.col("always")
    return declared.groupBy("cluster").agg(
        f.count("desired").alias("resources"),
        (f.count(f.when(is_wide | has_policies, f.lit(1))) > 0).alias("concerned"),
    )
