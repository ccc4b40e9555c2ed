"""An audit in Spark: its findings, the second pass over each cluster as a whole, and their summary."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.provider.installed_providers import InstalledProvider, list_providers, use_providers
from kdeclare.core.resources.ids import ResourceId
from kdeclare.fleet.cluster_pass import Judge, WholeCluster, found_in_cluster
from kdeclare.fleet.findings import Audit, AuditRow, AuditRun, AuditSummary, Earlier, Found, Since, TrendPoint
from kdeclare.fleet.rows import CLUSTER, FINDINGS, FOUND, SUMMARY
from kdeclare.fleet.snapshots import SnapshotCluster, refuse_lost_rows
from kdeclare.fleet.spark import counting, diff
from kdeclare.fleet.spark.diff import RESULT, Sight, duplicates, findings, without_unmanaged_keys
from kdeclare.fleet.spark.problems import explained
from kdeclare.fleet.spark.tables import Workbench, has_many, itself, of_clusters, schema_of

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


REMEMBERED = ("findings", "unseen")
"""What later audits are compared with: what was found, and what was found before and not seen again."""
TABLES = (*REMEMBERED, "summary")
"""What is written on the bench."""

_SHOWN = 10_000
"""How many findings reports have; the tables have all."""
_MENDED_SHOWN = 500
_TREND = 60
"""How many audits the trend goes back."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What is compared: what is declared with what is live, and both with what was found before.

    sight: what of it is to be seen. newest: what the latest audit remembers; since: what that remembers
    with which this one is compared; both are None, or neither.
    """

    declared: DataFrame
    live: DataFrame
    sight: Sight
    newest: DataFrame | None = None
    since: DataFrame | None = None


@dataclass(frozen=True, slots=True)
class ByTheWay:
    """What is known once findings are written, by cluster.

    declared: how many resources are. untold: what could not be told, in words.
    """

    declared: Mapping[str, int]
    untold: Mapping[str, str]


def refuse_altered(live: DataFrame, clusters: Sequence[SnapshotCluster], where: str) -> None:
    """Raise KdeclareError where a snapshot has fewer or more rows than were written.

    live: the rows of these ``clusters``. where: for the error.
    """
    counts = counting.rows_by_cluster(live)
    for cluster in clusters:
        refuse_lost_rows(cluster, counts.get(cluster.name, 0), where)
    more = [cluster.name for cluster in clusters if counts[cluster.name] > cluster.rows]
    if more:
        _refuse_duplicates(live.where(live.cluster.isin(more)), where)


def _refuse_duplicates(live: DataFrame, where: str) -> None:
    """A diff would depend on which of the rows is met."""
    with explained():
        twice = duplicates(live).limit(3).collect()
    named = ", ".join(f"{row['kind']}/{row['name']} of {row['cluster']}" for row in twice)
    raise KdeclareError(
        error(
            "duplicate-resource",
            "A resource is there twice",
            f"{where} has more than one row for {named or 'some resources'}.",
            hint="Was a file of the snapshot copied? Take a new one.",
        )
    )


def write_findings(bench: Workbench, tables: Compared, judge_of: JudgeOf) -> ByTheWay:
    """Write the tables ``findings`` and ``unseen``. Raises KdeclareError."""
    sight = tables.sight
    found = findings(tables.declared, tables.live, unmanaged_keys=sight.unmanaged_keys)
    untold: Mapping[str, str] = {}
    declared, is_wide = counting.declared_resources(tables.declared)
    if is_wide:
        bench.write(wide_findings(tables.declared, tables.live, judge_of), "wide")
        wide = bench.read("wide", WIDE)
        untold = notices(wide)
        found = found.unionByName(told(wide) if sight.unmanaged_keys else without_unmanaged_keys(told(wide)))
    dated = diff.dated(found, tables.newest, tables.since)
    bench.write(dated.select(*FINDINGS.names), "findings")
    found_rows = bench.read("findings", FINDINGS)
    unseen = found_rows.limit(0)
    if tables.newest is not None:
        unseen = diff.unseen(found_rows, tables.newest, sight).withColumn("status", f.lit("unseen"))
    bench.write(unseen.select(*FINDINGS.names), "unseen")
    return ByTheWay(declared, untold)


def summed_up(
    bench: Workbench, tables: Compared, run: AuditRun, before: Earlier | None, known: ByTheWay
) -> Audit:
    """Write the table ``summary``, and what reports are made of; ``findings`` has been written.

    before: the audits that came before, if there are any. known: as `write_findings` gives it.
    Raises KdeclareError.
    """
    found_rows = bench.read("findings", FINDINGS)
    bench.write(counting.summary_table(found_rows, run.began).coalesce(1), "summary")
    table = bench.read("summary", SUMMARY)
    by_cluster = counting.by_finding(table, "cluster")
    found = counting.total(by_cluster)
    rows = counting.worst(found_rows, _SHOWN)
    count = sum(found.values())
    since: Since | None = None
    mended: tuple[AuditRow, ...] = ()
    if tables.since is not None and before is not None:
        gone = diff.mended(found_rows, tables.since, tables.sight)
        seen = counting.known(found_rows)
        one = before.since
        since = Since(one.audit_id, one.taken_at, count - seen, seen, counting.rows_of(gone))
        mended = counting.worst(gone, _MENDED_SHOWN)
    summary = AuditSummary(
        audit_id=run.audit_id,
        fleet=run.fleet,
        taken_at=run.began,
        seconds=0.0,
        clusters=counting.cluster_summaries(
            tables.declared, tables.live, known.declared, by_cluster, known.untold
        ),
        found=found,
        teams=counting.by_finding(table, "team"),
        heat=counting.heat(table),
        since=since,
        unseen=counting.kinds(bench.read("unseen", FINDINGS)) if before is not None else {},
        trend=_trend(before.newest) if before is not None else (),
    )
    return Audit(summary, rows, count - len(rows), mended)


def _trend(earlier: AuditSummary) -> tuple[TrendPoint, ...]:
    """What an audit knows of those before it, and itself with what it took over from them."""
    own = TrendPoint(earlier.audit_id, earlier.taken_at, len(earlier.clusters), earlier.remembered)
    return (*earlier.trend[1 - _TREND :], own)
