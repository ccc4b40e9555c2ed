"""What a folder of audits remembers: which findings were there before, since when, and which are mended.

An audit remembers what it found, and of what it did not look at, what the audit before it remembered.
"""

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kdeclare.fleet.finding import FindingKind
from kdeclare.fleet.rows import CLUSTER

IDENTITY = ("cluster", "kind", "name", "finding", "path")
"""By which a finding is known again in a later audit."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What an audit was to look at.

    clusters: names; left_out: of those that the fleet has besides. unmanaged_keys: whether keys of
    declared resources that nobody declared were looked for.
    """

    clusters: Collection[str]
    left_out: Collection[str] = ()
    unmanaged_keys: bool = True

    def asked_for(self) -> Column:
        """Of an earlier finding: whether this audit was to see it, were it there still."""
        chosen = f.col("cluster").isin(list(self.clusters))
        return chosen if self.unmanaged_keys else chosen & ~is_unmanaged_key()

    def of_fleet(self) -> Column:
        """Of an earlier finding: whether its cluster is in the fleet still."""
        return f.col("cluster").isin([*self.clusters, *self.left_out])


def is_unmanaged_key() -> Column:
    """See `Found.is_unmanaged_key`."""
    return (f.col("finding") == str(FindingKind.UNMANAGED)) & f.col("path").isNotNull()


def dated(findings: DataFrame, newest: DataFrame | None, since: DataFrame | None) -> DataFrame:
    """Findings with the time when each was seen first, and whether it is new.

    newest: what the latest audit remembers, which says since when; None where there is none. since: what
    that audit remembers with which this one is compared.
    """
    if newest is None or since is None:
        return findings.withColumn("first_seen", f.col("taken_at")).withColumn("status", f.lit("new"))
    if since is newest:
        before = _first(newest, "first").withColumn("earlier", f.lit(True))
    else:
        known = since.select(*IDENTITY).distinct().withColumn("earlier", f.lit(True))
        first = _first(newest, "first")
        before = first.alias("one").join(known.alias("two"), _same("one", "two"), "full_outer")
        before = before.selectExpr(
            *(f"coalesce(one.{column}, two.{column}) as {column}" for column in IDENTITY), "first", "earlier"
        )
    joined = findings.alias("now").join(before.alias("was"), _same("now", "was"), "left")
    return joined.select(
        "now.*",
        f.coalesce("was.first", "now.taken_at").alias("first_seen"),
        f.when(f.col("was.earlier").isNull(), "new").otherwise("known").alias("status"),
    )


def mended(findings: DataFrame, since: DataFrame, sight: Sight) -> DataFrame:
    """What was remembered, was looked at again, and is not found any more."""
    seen = _blind(since.where(sight.asked_for()), findings, "left_anti")
    return _not_found(seen, findings)


def unseen(findings: DataFrame, newest: DataFrame, sight: Sight) -> DataFrame:
    """What was remembered and could not be looked at again, so that nobody knows."""
    theirs = newest.where(sight.of_fleet())
    unread = _blind(theirs.where(sight.asked_for()), findings, "left_semi")
    return _not_found(theirs.where(~sight.asked_for()).unionByName(unread), findings)


def _first(memory: DataFrame, name: str) -> DataFrame:
    return memory.groupBy(*IDENTITY).agg(f.min("first_seen").alias(name))


def _blind(memory: DataFrame, findings: DataFrame, how: str) -> DataFrame:
    """Semi or anti: the resources that, or whose clusters, could not be read."""
    unread = findings.where(f.col("finding") == str(FindingKind.UNREACHABLE)).alias("now")
    of_cluster = f.col("now.kind") == CLUSTER
    same = (f.col("was.kind") == f.col("now.kind")) & (f.col("was.name") == f.col("now.name"))
    about = (f.col("was.cluster") == f.col("now.cluster")) & (of_cluster | same)
    return memory.alias("was").join(unread, about, how)


def _not_found(memory: DataFrame, findings: DataFrame) -> DataFrame:
    return memory.alias("was").join(findings.alias("now"), _same("now", "was"), "left_anti")


def _same(one: str, other: str) -> Column:
    same = f.lit(True)
    for column in IDENTITY:
        same = same & f.col(f"{one}.{column}").eqNullSafe(f.col(f"{other}.{column}"))
    return same
