"""One table of a fleet, made by a task a cluster."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from kdeclare.app.fleet.job import FleetJob

if TYPE_CHECKING:
    from kdeclare.fleet.spark.tables import Workbench

Read = Callable[[str], Iterator[pa.RecordBatch]]
"""The rows of one cluster, by its name; runs where its task runs."""


@dataclass(frozen=True, slots=True)
class Collected:
    """A table on the workbench, with the words for its progress.

    by_cluster: whether it is partitioned so that a cluster can be read alone.
    """

    name: str
    schema: pa.Schema
    doing: str
    by_cluster: bool = True


def collect(job: FleetJob, bench: "Workbench", table: Collected, read: Read) -> None:
    """Write the table, with no more clusters at once than the fleet allows. Raises KdeclareError."""
    from kdeclare.fleet.spark.progress import watched
    from kdeclare.fleet.spark.tasks import each_cluster

    rows = each_cluster(job.spark, job.names, read, table.schema, at_once=job.fleet.max_concurrent)
    with watched(job.spark, job.progress, table.doing):
        bench.write(rows, table.name, ["cluster"] if table.by_cluster else [])
