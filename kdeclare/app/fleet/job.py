"""Code that fleet commands share: open the fleet, its results and Spark, and collect tables.

A table is collected with one Spark task per cluster.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from kdeclare.app.fleet.archive import TaskNeeds, pack
from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, info
from kdeclare.core.extras import explain_missing_extra
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.progress import Progress
from kdeclare.core.provider.installed_providers import list_providers
from kdeclare.fleet.tables.record_ids import make_record_id
from kdeclare.fleet.tables.records import require_same_fleet
from kdeclare.fleet.tables.storage import Storage, find_local_storage
from kdeclare.manifests.fleet import Fleet, open_fleet, select_clusters, validate_fleet

if TYPE_CHECKING:
    from kdeclare.fleet.spark.session import SparkConf, SparkSession
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from kdeclare.fleet.tables.rows import require_complete_table

if TYPE_CHECKING:
    from kdeclare.fleet.spark.tables import Workbench


class Engine(StrEnum):
    """The engine that reads the clusters and compares the tables: this process (``local``), or Spark.

    ``auto`` begins in this process and continues on Spark if the fleet is too large; see `choose_engine`.
    """

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """The options that fleet commands share.

    clusters, selector: the names and the labels of the selected clusters; all clusters if both are empty.
    master: the Spark master. If None, it is the master in Spark's own settings or else this machine.
    conf: Spark settings.
    shared_folders: whether local folders are mounted on every Spark executor at the same path.
    """

    fleet: Path
    out: str
    clusters: tuple[str, ...] = ()
    selector: Mapping[str, str] = field(default_factory=dict)
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 10.0
    shared_folders: bool = False
    engine: Engine = Engine.AUTO


@dataclass(frozen=True, slots=True)
class FleetRun:
    """A fleet and the storage of its results, for work on Spark or in threads.

    locator: passed to the tasks or threads, which use it to open the clusters.
    """

    fleet: Fleet
    locator: ClusterLocator
    storage: Storage
    began: datetime
    identity: str
    progress: Progress

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the clusters."""
        return tuple(entry.name for entry in self.fleet.clusters)

    @property
    def seconds(self) -> float:
        """The seconds since the job began."""
        return round((datetime.now(UTC) - self.began).total_seconds(), 1)


@dataclass(frozen=True, slots=True)
class FleetJob(FleetRun):
    """A fleet and a Spark session."""

    spark: "SparkSession"


def open_selected_fleet(options: FleetOptions, environ: Mapping[str, str]) -> Fleet:
    """Return the fleet with the selected clusters only, and validate its projects. Raises KdeclareError."""
    fleet = select_clusters(open_fleet(options.fleet, environ), options.clusters, options.selector)
    validate_fleet(fleet, environ)
    return fleet


@contextmanager
def open_fleet_job(
    options: FleetOptions,
    environ: Mapping[str, str],
    progress: Progress,
    needs: TaskNeeds,
    snapshot_folder: str | None = None,
) -> Iterator[FleetJob]:
    """Open the fleet, start Spark, and yield a job with both.

    Raises KdeclareError for an invalid fleet before Spark is started.
    needs: which files are sent to tasks on other machines.
    snapshot_folder: the folder of the snapshot that the command also reads, or None.
    """
    from kdeclare.fleet.spark.hadoop import open_storage
    from kdeclare.fleet.spark.settings import has_local_tasks
    from kdeclare.fleet.spark.tasks import ship_package

    started_at = datetime.now(UTC)
    fleet = open_selected_fleet(options, environ)
    local_storage = find_local_storage(options.out)
    if local_storage is not None:
        local_storage.names("")  # if the path is a file, raises an error before Spark is started
        require_same_fleet(local_storage, fleet.name)
    locator = ClusterLocator(str(options.fleet), options.timeout_s, providers=list_providers())
    progress("Starting Spark", 0, 0)
    with _start_spark(options, snapshot_folder, ships_secrets=True) as spark:
        if not has_local_tasks(spark):
            ship_package(spark)
            locator = locator.with_archive(pack(fleet, environ, needs=needs))
        storage = open_storage(options.out, spark)
        if local_storage is None:
            require_same_fleet(storage, fleet.name)
        yield FleetJob(fleet, locator, storage, started_at, make_record_id(started_at), progress, spark)


@contextmanager
def open_continued_job(options: FleetOptions, run: FleetRun) -> Iterator[FleetJob]:
    """Start Spark on this machine for a command that began without Spark.

    Raises KdeclareError. If Spark cannot be started, the error also explains why the command needs Spark.
    """
    run.progress("Starting Spark", 0, 0)
    with ExitStack() as stack:
        try:
            spark = stack.enter_context(_start_spark(replace(options, master=LOCAL_MASTER)))
        except KdeclareError as problem:
            raise KdeclareError(*problem.diagnostics, _explain_spark()) from problem
        except ModuleNotFoundError as problem:
            missing_extra = explain_missing_extra(problem)
            if missing_extra is None:
                raise
            raise KdeclareError(missing_extra, _explain_spark()) from problem
        yield FleetJob(run.fleet, run.locator, run.storage, run.began, run.identity, run.progress, spark)


def _explain_spark() -> Diagnostic:
    return info(
        "large-fleet",
        "Fleet is large",
        "The fleet has so many resources that kdeclare continues on Spark to limit its memory use.",
        hint="Pass --engine local to process the fleet without Spark.",
    )


@contextmanager
def open_results_storage(options: FleetOptions) -> Iterator[Storage]:
    """Yield the results folder. Spark is started only if the folder is not local."""
    local_storage = find_local_storage(options.out)
    if local_storage is not None:
        yield local_storage
        return
    with open_spark_storage(options) as (_, storage):
        yield storage


@contextmanager
def open_spark_storage(options: FleetOptions) -> "Iterator[tuple[SparkSession, Storage]]":
    """Yield a Spark session and the results folder, for commands without a fleet. Raises KdeclareError."""
    from kdeclare.fleet.spark.hadoop import open_storage

    with _start_spark(options) as spark:
        yield spark, open_storage(options.out, spark)


def _start_spark(
    options: FleetOptions, snapshot_folder: str | None = None, *, ships_secrets: bool = False
) -> "AbstractContextManager[SparkSession]":
    from kdeclare.fleet.spark import session
    from kdeclare.fleet.spark.settings import (
        reject_local_folders,
        reject_remote_folders,
        reject_unsecured_network,
    )

    folders = {"--out": options.out} | ({} if snapshot_folder is None else {"--snapshot": snapshot_folder})

    def check_settings(settings: "SparkConf") -> None:
        reject_remote_folders(settings, folders)
        if not options.shared_folders:
            reject_local_folders(settings, folders)
        if ships_secrets:
            reject_unsecured_network(settings)

    return session.spark_session(options.master, options.conf, log=None, check_settings=check_settings)


LOCAL_MASTER = "local[*]"
"""The Spark master that uses all cores of this machine."""

ReadCluster = Callable[[str], Iterator[pa.RecordBatch]]
"""Returns the rows of the cluster with the given name. Runs in a Spark task or a thread of this process."""


@dataclass(frozen=True, slots=True)
class ClusterTable:
    """A table that is collected with one Spark task or thread per cluster.

    doing: the label of the progress display.
    by_cluster: whether the table is partitioned by cluster, so that one cluster can be read alone.
    of_resources: whether the table has rows for resources, in addition to the rows of kind `CLUSTER`, which
    describe whole clusters.
    size_column: the column with the number of resources that a row describes; None if each row describes one.
    """

    name: str
    schema: pa.Schema
    doing: str
    by_cluster: bool = True
    of_resources: bool = True
    size_column: str | None = None


def collect_table(
    job: FleetJob,
    bench: "Workbench",
    table: ClusterTable,
    read_cluster: ReadCluster,
    remaining: Sequence[str] | None = None,
) -> None:
    """Write the table. The fleet file limits how many clusters are read at the same time.

    remaining: the names of the clusters to add to a table that already has the other clusters of the fleet;
        None to write a new table with all clusters.
    Raises KdeclareError, for example if the table lacks the row that describes a cluster as a whole, or has
    two of them.
    """
    from kdeclare.fleet.spark.audit_counts import count_rows_by_cluster
    from kdeclare.fleet.spark.tables import select_cluster_rows

    collect_rows(job, bench, table, read_cluster, remaining)
    written_table = bench.read(table.name, table.schema)
    cluster_rows = select_cluster_rows(written_table) if table.of_resources else written_table
    require_complete_table(table.name, count_rows_by_cluster(cluster_rows), job.names)


def collect_rows(
    job: FleetJob,
    bench: "Workbench",
    table: ClusterTable,
    read_cluster: ReadCluster,
    remaining: Sequence[str] | None = None,
) -> None:
    """Like `collect_table`, but skip the check for completeness, which requires another Spark job."""
    from kdeclare.fleet.spark.progress import report_progress
    from kdeclare.fleet.spark.tasks import read_clusters

    names = job.names if remaining is None else remaining
    if names:
        rows = read_clusters(
            job.spark, names, read_cluster, table.schema, max_concurrency=job.fleet.max_concurrent
        )
        partitioned_by = ["cluster"] if table.by_cluster or remaining is not None else []
        with report_progress(job.spark, job.progress, table.doing):
            bench.write(rows, table.name, partitioned_by, append=remaining is not None)
