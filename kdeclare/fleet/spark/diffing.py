"""The diff of a fleet: declared joined with live, what is provably in order left out, the rest diffed."""

import functools

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf

from kdeclare.fleet.comparing import found
from kdeclare.fleet.finding import Found
from kdeclare.fleet.rows import CLUSTER, FOUND
from kdeclare.fleet.spark.schemas import as_spark

KEY = ("cluster", "kind", "name")
RESULT = ("taken_at", *KEY, *FOUND.names, "labels")
"""The columns of findings before they are compared with an earlier audit's."""

_PASSES = """
    d.name is null or l.name is null or d.desired is null or d.always or l.error is not null
    or (d.partitions is not null and not d.partitions <=> l.partitions)
    or (d.factor is not null and not d.factor <=> l.factor)
    or d.need is null or d.forbid is null or d.keys is null or d.mine is null
    or l.has is null or l.keys is null
    or size(array_except(d.need, l.has)) > 0
    or arrays_overlap(d.forbid, l.has)
    or size(array_except(l.keys, d.keys)) > 0
    or size(array_except(d.mine, d.need)) > 0
"""
"""The twin of `facts.proves_order`, negated. What comes out as null passes, too."""

_ARGUMENTS = ("kind", "name", "desired", "owned", "live", "error", "within")


def findings(declared: DataFrame, live: DataFrame) -> DataFrame:
    """What is found in the resources that can be diffed alone, with the columns `RESULT`.

    Tables as in `fleet.rows`. Of a cluster that is not whole in both, only that is found.
    """
    pairs = (
        declared.alias("d")
        .join(live.alias("l"), _same_key(), "full_outer")
        .where(f.expr("coalesce(d.alone, true)"))
        .where(f.expr(f"coalesce({_PASSES}, true)"))
        .selectExpr(
            *(f"coalesce(d.{column}, l.{column}) as {column}" for column in KEY),
            "d.desired",
            "d.owned",
            "l.body as live",
            "nullif(concat_ws(' ', l.error, d.error), '') as error",
            "d.labels",
        )
    )
    asked = pairs.join(f.broadcast(of_clusters(declared, live)), "cluster", "left").withColumn(
        "taken_at", f.coalesce("taken_at", f.current_timestamp())
    )
    # or Spark would call it twice, once to see which rows have an answer
    answers = arrow_udf(_found_in_batch, as_spark(pa.list_(FOUND)))  # type: ignore[call-overload]
    answers = answers.asNondeterministic()
    return (
        asked.select("taken_at", *KEY, "labels", answers(*_ARGUMENTS).alias("found"))
        .select("taken_at", *KEY, "labels", f.inline("found"))
        .select(*RESULT)
    )


def of_clusters(declared: DataFrame, live: DataFrame) -> DataFrame:
    """When each cluster was read, and ``within``, its body: null unless both of its rows are well."""
    is_well = (f.col("kind") == CLUSTER) & f.col("error").isNull()
    mine = declared.where(is_well).select("cluster", f.lit(True).alias("well"))
    theirs = live.where(f.col("kind") == CLUSTER).select("cluster", "taken_at", "body", "error")
    within = f.when(f.col("well") & f.col("error").isNull(), f.col("body")).alias("within")
    return theirs.join(mine, "cluster", "left").select("cluster", "taken_at", within)


def duplicates(table: DataFrame) -> DataFrame:
    """The keys that a table has more than once: there is none in a table that is right."""
    return table.groupBy(*KEY).count().where("count > 1")


def _same_key() -> Column:
    return functools.reduce(
        lambda a, b: a & b, (f.col(f"d.{column}") == f.col(f"l.{column}") for column in KEY)
    )


def _found_in_batch(*columns: pa.Array) -> pa.Array:
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([[_as_struct(item) for item in found(*row)] for row in rows], type=pa.list_(FOUND))


def _as_struct(item: Found) -> dict[str, object]:
    return {name: getattr(item, name) for name in FOUND.names}
