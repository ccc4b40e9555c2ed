"""One table of a fleet, made by a task a cluster."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from kdeclare.app.fleet.job import FleetJob
from kdeclare.fleet.completeness import refuse_incomplete

if TYPE_CHECKING:
    from kdeclare.fleet.spark.tables import Workbench

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
    from kdeclare.fleet.spark.clusters import itself
    from kdeclare.fleet.spark.counting import rows_by_cluster
    from kdeclare.fleet.spark.progress import watched
    from kdeclare.fleet.spark.tasks import each_cluster

    rows = each_cluster(job.spark, job.names, read, table.schema, at_once=job.fleet.max_concurrent)
    with watched(job.spark, job.progress, table.doing):
        bench.write(rows, table.name, ["cluster"] if table.by_cluster else [])
    written = bench.read(table.name, table.schema)
    own = itself(written) if table.of_resources else written
    refuse_incomplete(table.name, rows_by_cluster(own), job.names)
