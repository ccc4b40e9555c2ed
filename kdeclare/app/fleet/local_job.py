"""Open a fleet for the local engine, and collect tables with threads instead of Spark tasks."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.job import (
    ClusterTable,
    Engine,
    FleetOptions,
    FleetRun,
    ReadCluster,
    open_selected_fleet,
)
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.progress import Progress
from kdeclare.core.provider.installed_providers import list_providers
from kdeclare.fleet.tables.record_ids import make_record_id
from kdeclare.fleet.tables.records import require_same_fleet
from kdeclare.fleet.tables.rows import CLUSTER, require_complete_table
from kdeclare.fleet.tables.storage import LocalStorage, find_local_storage

if TYPE_CHECKING:
    from kdeclare.fleet.local.tables import LocalWorkbench


@dataclass(frozen=True, slots=True)
class LocalJob(FleetRun):
    """A fleet whose results are in a local folder.

    bench: the temporary folder for the tables of the command.
    continues_on_spark: whether the command continues on Spark if the tables become too large.
    """

    storage: LocalStorage
    bench: "LocalWorkbench"
    continues_on_spark: bool


@contextmanager
def open_local_job(
    options: FleetOptions, environ: Mapping[str, str], progress: Progress
) -> Iterator[LocalJob]:
    """Open the fleet for the local engine. Raises KdeclareError, for example if an option requires Spark."""
    from kdeclare.fleet.local.tables import open_local_workbench

    started_at = datetime.now(UTC)
    _reject_spark_options(options)
    storage = require_local_storage("--out", options.out)
    fleet = open_selected_fleet(options, environ)
    storage.names("")  # if the path is a file, raises an error before the clusters are read
    require_same_fleet(storage, fleet.name)
    locator = ClusterLocator(str(options.fleet), options.timeout_s, providers=list_providers())
    locator.load_providers()
    identity = make_record_id(started_at)
    with open_local_workbench(storage, identity) as bench:
        is_limited = options.engine is Engine.AUTO
        yield LocalJob(fleet, locator, storage, started_at, identity, progress, bench, is_limited)


def require_local_storage(option: str, location: str) -> LocalStorage:
    """Return the storage for a local folder. Raises KdeclareError for any other location.

    option: the command-line option that sets the folder; the error names this option.
    """
    storage = find_local_storage(location)
    if storage is None:
        raise KdeclareError(
            error(
                "engine-mismatch",
                "Location requires Spark",
                f"The local engine cannot use {option} {location}, because it is not a local folder.",
                hint="Pass --engine spark, or a local folder.",
            )
        )
    return storage


def _reject_spark_options(options: FleetOptions) -> None:
    names = [name for name, value in (("--master", options.master), ("--conf", options.conf)) if value]
    if names:
        raise KdeclareError(
            error(
                "engine-mismatch",
                "Option requires Spark",
                f"The local engine does not support {' and '.join(names)}.",
                hint=f"Pass --engine spark, or leave out {' and '.join(names)}.",
            )
        )


@dataclass(frozen=True, slots=True)
class LocalTable:
    """A table that threads have written.

    size: the number of resources in the table.
    remaining: the names of the clusters that are not in the table, because the table became too large.
    """

    size: int
    remaining: tuple[str, ...] = ()


def collect_locally(job: LocalJob, table: ClusterTable, read_cluster: ReadCluster, limit: int) -> LocalTable:
    """Read the clusters in parallel threads, and write the table.

    The fleet file limits how many clusters are read at the same time. Raises KdeclareError, for example if
    the table lacks the row that describes a cluster as a whole, or has two of them.

    limit: the number of resources after which no further cluster is read, because Spark then reads the
        remaining clusters. Ignored if the command cannot continue on Spark.
    """
    from kdeclare.fleet.local.tables import read_in_threads

    def read_one(name: str) -> int:
        written = job.bench.write_cluster(table.name, name, read_cluster(name), table.schema)
        return written.num_rows if table.size_column is None else sum(written[table.size_column].to_pylist())

    job.progress(table.doing, 0, len(job.names))
    size, remaining = read_in_threads(
        job.names,
        read_one,
        job.fleet.max_concurrent,
        lambda done, total: job.progress(table.doing, done, total),
        limit if job.continues_on_spark else None,
    )
    counts = job.bench.count_rows(table.name, CLUSTER if table.of_resources else None)
    require_complete_table(table.name, counts, [name for name in job.names if name not in remaining])
    return LocalTable(size, remaining)
