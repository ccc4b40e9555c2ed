"""What every command about a fleet works with: the fleet, results, Spark, and a table by a task a cluster."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kdeclare.app.fleet.archive import pack
from kdeclare.app.fleet.reach import Reach
from kdeclare.core.frozen import dataclass
from kdeclare.core.progress import Progress
from kdeclare.core.provider.installed_providers import list_providers
from kdeclare.fleet.storage import Storage, folder_here, refuse_other_fleet
from kdeclare.manifests.fleet import Fleet, checked, chosen, open_fleet

if TYPE_CHECKING:
    from kdeclare.fleet.spark.session import SparkConf, SparkSession
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from kdeclare.fleet.rows import refuse_incomplete

if TYPE_CHECKING:
    from kdeclare.fleet.spark.tables import Workbench


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """What the commands about fleets share, as given.

    clusters, selector: which ones; all where both are empty. master: None is what Spark's own settings say,
    or this machine. conf: settings of Spark. shared_folders: whether folders of this machine are mounted on
    every executor at the same path.
    """

    fleet: Path
    out: str
    clusters: tuple[str, ...] = ()
    selector: Mapping[str, str] = field(default_factory=dict)
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 10.0
    shared_folders: bool = False


@dataclass(frozen=True, slots=True)
class FleetJob:
    """A fleet with Spark running. reach: what tasks are given to find its clusters."""

    fleet: Fleet
    reach: Reach
    spark: "SparkSession"
    storage: Storage
    began: datetime
    identity: str
    progress: Progress

    @property
    def names(self) -> tuple[str, ...]:
        """Of the clusters."""
        return tuple(entry.name for entry in self.fleet.clusters)

    @property
    def seconds(self) -> float:
        """Since it began."""
        return round((datetime.now(UTC) - self.began).total_seconds(), 1)


def the_fleet(options: FleetOptions, environ: Mapping[str, str]) -> Fleet:
    """The fleet, or what was chosen of it, with every project looked at. Raises KdeclareError."""
    fleet = chosen(open_fleet(options.fleet, environ), options.clusters, options.selector)
    checked(fleet, environ)
    return fleet


@contextmanager
def fleet_job(
    options: FleetOptions, environ: Mapping[str, str], progress: Progress, snapshots: str | None = None
) -> Iterator[FleetJob]:
    """A fleet with Spark running. Raises KdeclareError for a bad fleet before Spark is started.

    snapshots: the folder that is read besides ``options.out``, if any.
    """
    from kdeclare.fleet.spark.hadoop import open_storage
    from kdeclare.fleet.spark.settings import runs_tasks_here
    from kdeclare.fleet.spark.tasks import ship_package

    began = datetime.now(UTC)
    fleet = the_fleet(options, environ)
    here = folder_here(options.out)
    if here is not None:
        here.names("")  # a file in its place is told before Spark is started
        refuse_other_fleet(here, fleet.name)
    reach = Reach(str(options.fleet), options.timeout_s, providers=list_providers())
    progress("Starting Spark", 0, 0)
    with _spark(options, snapshots, ships_secrets=True) as spark:
        if not runs_tasks_here(spark):
            ship_package(spark)
            reach = reach.packed(pack(fleet, environ))
        storage = open_storage(options.out, spark)
        if here is None:
            refuse_other_fleet(storage, fleet.name)
        yield FleetJob(fleet, reach, spark, storage, began, new_identity(began), progress)


@contextmanager
def storage_of(options: FleetOptions) -> Iterator[Storage]:
    """The folder for results alone; Spark is started only where a folder of this machine will not do."""
    here = folder_here(options.out)
    if here is not None:
        yield here
        return
    with spark_storage(options) as (_, storage):
        yield storage


@contextmanager
def spark_storage(options: FleetOptions) -> "Iterator[tuple[SparkSession, Storage]]":
    """Spark and the folder, for what needs no fleet. Raises KdeclareError."""
    from kdeclare.fleet.spark.hadoop import open_storage

    with _spark(options) as spark:
        yield spark, open_storage(options.out, spark)


def _spark(
    options: FleetOptions, snapshots: str | None = None, *, ships_secrets: bool = False
) -> "AbstractContextManager[SparkSession]":
    from kdeclare.fleet.spark import session
    from kdeclare.fleet.spark.settings import refuse_local_folders, refuse_open_network

    folders = {"--out": options.out} | ({} if snapshots is None else {"--snapshot": snapshots})

    def check(settings: "SparkConf") -> None:
        if not options.shared_folders:
            refuse_local_folders(settings, folders)
        if ships_secrets:
            refuse_open_network(settings)

    return session.spark_session(options.master, options.conf, log=None, check=check)


def new_identity(at: datetime) -> str:
    """A name for a snapshot or an audit: sorts by time, and no two are alike."""
    return f"{at:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


Read = Callable[[str], Iterator[pa.RecordBatch]]
"""The rows of one cluster, by its name; runs where its task runs."""


@dataclass(frozen=True, slots=True)
class Collected:
    """A table on the workbench, with the words for its progress.

    by_cluster: whether it is partitioned so that a cluster can be read alone.
    of_resources: whether only the row of kind `CLUSTER` is the cluster's own; else every row is.
    """

    name: str
    schema: pa.Schema
    doing: str
    by_cluster: bool = True
    of_resources: bool = True


def collect(job: FleetJob, bench: "Workbench", table: Collected, read: Read) -> None:
    """Write the table, with no more clusters at once than the fleet allows.

    Raises KdeclareError, also where not every cluster has exactly one row of its own in what was written.
    """
    from kdeclare.fleet.spark.counting import rows_by_cluster
    from kdeclare.fleet.spark.progress import watched
    from kdeclare.fleet.spark.tables import itself
    from kdeclare.fleet.spark.tasks import each_cluster

    rows = each_cluster(job.spark, job.names, read, table.schema, at_once=job.fleet.max_concurrent)
    with watched(job.spark, job.progress, table.doing):
        bench.write(rows, table.name, ["cluster"] if table.by_cluster else [])
    written = bench.read(table.name, table.schema)
    own = itself(written) if table.of_resources else written
    refuse_incomplete(table.name, rows_by_cluster(own), job.names)
