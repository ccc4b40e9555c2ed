"""The diff of a fleet: declared joined with live, what is provably in order left out, the rest diffed."""

import functools
from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf

from kdeclare.core.installed_providers import InstalledProvider, list_providers
from kdeclare.core.registry import load_codecs, use_providers
from kdeclare.fleet.comparing import found, other_cluster, unmanaged_group
from kdeclare.fleet.finding import FindingKind, Found
from kdeclare.fleet.rows import FOUND
from kdeclare.fleet.spark.clusters import of_clusters
from kdeclare.fleet.spark.memory import is_unmanaged_key
from kdeclare.fleet.spark.schemas import as_spark

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
