"""The diff of a fleet, and what the audit before it remembers: what is new, unseen or mended since."""

import functools
from collections.abc import Callable, Collection, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf

from kdeclare.core.frozen import dataclass
from kdeclare.core.provider.installed_providers import InstalledProvider, list_providers, use_providers
from kdeclare.core.provider.registry import load_codecs
from kdeclare.fleet.drift import found, other_cluster, unmanaged_group
from kdeclare.fleet.findings import FindingKind, Found
from kdeclare.fleet.rows import CLUSTER, FOUND
from kdeclare.fleet.spark.tables import as_spark, of_clusters

KEY = ("cluster", "kind", "name")
RESULT = ("taken_at", *KEY, *FOUND.names, "labels")
"""The columns of findings before they are compared with an earlier audit's."""

_PASSES = """
    d.name is null or l.name is null or d.desired is null or d.always or l.error is not null
    or d.need is null or d.forbid is null or d.keys is null
    or l.has is null or l.keys is null
    or {keys}
    or not forall(d.need, fact -> array_contains(l.has, fact))
    or arrays_overlap(d.forbid, l.has)
"""
"""The twin of `facts.proves_order`, negated. What comes out as null passes, too."""

_UNEXPECTED_KEYS = "not forall(l.keys, key -> array_contains(d.keys, key))"
_KEYS_TO_GO = "d.gone is null or arrays_overlap(d.gone, l.keys)"
"""What takes the place of ``keys``, with and without unmanaged ones."""

_OTHER_CLUSTER = "if(d.cluster_id <> l.cluster_id, {}, null)".format(
    "concat('{}', d.cluster_id, '{}', l.cluster_id, '{}')".format(*other_cluster("|", "|").split("|"))
)
"""What `comparing.other_cluster` says, where it is to be said."""

_GROUP = "concat('{}', count, '{}', group_name, '{}')".format(
    *(part.replace("'", "\\'") for part in unmanaged_group("|", "|").split("|"))
)
"""What `comparing.unmanaged_group` says."""

_JOINED_ON = ("joined_sort", "joined_key")
_ARGUMENTS = ("kind", "name", "desired", "owned", "live", "error", "within", "labels", "source")


def findings(declared: DataFrame, live: DataFrame, *, unmanaged_keys: bool = True) -> DataFrame:
    """What is found in the resources that can be diffed alone, with the columns `RESULT`.

    unmanaged_keys: whether keys that are neither declared nor owned are told; where many resources have
    some, that is most of the work. Tables as in `fleet.rows`. Of a cluster that is not whole in both of
    them, only that is found. Tasks use the providers that this process uses, or fail.
    """
    counts_groups = any(codec.groups for codec in load_codecs())
    passes = _PASSES.format(keys=_UNEXPECTED_KEYS if unmanaged_keys else _KEYS_TO_GO)
    joined = _joined(declared, live)
    pairs = (
        (joined.where("not (d.name is null and l.group_name is not null)") if counts_groups else joined)
        .where(f.expr("coalesce(d.alone, true)"))
        .where(f.expr(f"coalesce({passes}, true)"))
        .selectExpr(
            *(f"coalesce(d.{column}, l.{column}) as {column}" for column in KEY),
            "d.desired",
            "d.owned",
            "l.body as live",
            f"nullif(concat_ws(' ', l.error, d.error, {_OTHER_CLUSTER}), '') as error",
            "d.labels",
            "d.source",
        )
    )
    clusters = f.broadcast(of_clusters(declared, live))
    asked = pairs.join(clusters, "cluster", "left").withColumn(
        "taken_at", f.coalesce("taken_at", f.current_timestamp())
    )
    # or Spark would call it twice, once to see which rows have an answer
    answers = arrow_udf(_asking(list_providers()), as_spark(pa.list_(FOUND)))  # type: ignore[call-overload]
    answers = answers.asNondeterministic()
    found_rows = (
        asked.select("taken_at", *KEY, "labels", answers(*_ARGUMENTS).alias("found"))
        .select("taken_at", *KEY, "labels", f.inline("found"))
        .select(*RESULT)
    )
    if counts_groups:
        groups = joined.where("d.name is null and l.group_name is not null").select("l.*")
        found_rows = found_rows.unionByName(_counted(groups.join(clusters.drop("taken_at"), "cluster")))
    return found_rows if unmanaged_keys else without_unmanaged_keys(found_rows)


def without_unmanaged_keys(found_rows: DataFrame) -> DataFrame:
    """All but those of which `memory.is_unmanaged_key` is true."""
    return found_rows.where(~is_unmanaged_key())


def duplicates(table: DataFrame) -> DataFrame:
    """The keys that a table has more than once: there is none in a table that is right."""
    return table.groupBy(*KEY).count().where("count > 1")


def _joined(declared: DataFrame, live: DataFrame) -> DataFrame:
    """Both tables as ``d`` and ``l``, what is declared with the live object that it is."""
    own = ("coalesce(live_sort, kind)", "coalesce(live_key, name)")
    mine = declared.withColumns(dict(zip(_JOINED_ON, map(f.expr, own), strict=True)))
    same = (f.col(f"d.{a}") == f.col(f"l.{b}") for a, b in zip(("cluster", *_JOINED_ON), KEY, strict=True))
    return mine.alias("d").join(live.alias("l"), functools.reduce(lambda a, b: a & b, same), "full_outer")


def _counted(objects: DataFrame) -> DataFrame:
    """One finding for each group of objects that nobody declared, in clusters that are well."""
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
        f"{_GROUP} as message",
        "cast(null as map<string, string>) as labels",
    )


def _asking(providers: Sequence[InstalledProvider]) -> Callable[..., pa.Array]:
    """The function of tasks, which asks the providers of the driver."""

    def ask(*columns: pa.Array) -> pa.Array:
        use_providers(providers)
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return pa.array([[_as_struct(item) for item in found(*row)] for row in rows], type=pa.list_(FOUND))

    return ask


def _as_struct(item: Found) -> dict[str, object]:
    return {name: getattr(item, name) for name in FOUND.names}


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
