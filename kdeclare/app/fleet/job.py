"""What every command about a fleet works with: the fleet, a folder for results, and Spark."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kdeclare.app.fleet.packing import pack
from kdeclare.app.fleet.reach import Reach
from kdeclare.core.installed_providers import list_providers
from kdeclare.core.progress import Progress
from kdeclare.fleet.folders import refuse_other_fleet
from kdeclare.fleet.local_storage import folder_here
from kdeclare.fleet.storage import Storage
from kdeclare.manifests.fleet import Fleet, checked, chosen, open_fleet

if TYPE_CHECKING:
    from kdeclare.fleet.spark.session import SparkConf, SparkSession


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


@dataclass(frozen=True)
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
    from kdeclare.fleet.spark.remote import runs_tasks_here
    from kdeclare.fleet.spark.shipping import ship_package

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
    from kdeclare.fleet.spark.remote import refuse_local_folders, refuse_open_network

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
