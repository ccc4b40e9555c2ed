"""The record of a snapshot: a JSON file that lists the clusters, with counts and errors."""

from dataclasses import field
from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field, PlainSerializer, with_config

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.audit_summary import Labels, Seconds
from kdeclare.fleet.object_counts import ObjectCount
from kdeclare.fleet.tables.rows import FileFormat

_FILE_FORMAT = FileFormat(
    code="bad-snapshot",
    name="Snapshot",
    broken="Not a snapshot record",
    command="kdeclare fleet snapshot",
    invalid_hint="Take a new snapshot in a different folder.",
    version_hint="Take a new snapshot, or use the kdeclare version that wrote the file.",
)


_Time = Annotated[
    datetime, PlainSerializer(datetime.isoformat, return_type=str), Field(description="UTC, ISO 8601.")
]


@dataclass(frozen=True, slots=True)
class UnreadObjects:
    """An object type whose objects could not be read.

    is_part: whether only some objects of the type could not be read.
    """

    sort: str
    reason: str
    is_part: bool = False


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class SnapshotCluster:
    """One cluster of a snapshot.

    unread: the object types that could not be read, or not completely. Each counts as one resource in
        ``failed``. Not in the file.
    others: the counts of live objects other than topics, by object type. Not in the file.
    """

    name: str
    labels: Labels = field(default_factory=dict)
    cluster_id: str | None = None
    version: Annotated[str | None, Field(description="The Kafka version, if the cluster reports it.")] = None
    taken_at: _Time | None = None
    topics: Annotated[int, Field(description="The number of topics, including internal ones.")] = 0
    internal: int = 0
    resources: Annotated[int, Field(description="The number of live objects that were read.")] = 0
    failed: Annotated[int, Field(description="The number of resources that could not be read.")] = 0
    error: Annotated[str | None, Field(description="Why the cluster could not be read.")] = None
    unread: Annotated[tuple[UnreadObjects, ...], Field(exclude=True)] = ()
    others: Annotated[tuple[ObjectCount, ...], Field(exclude=True)] = ()

    @property
    def whole(self) -> bool:
        """Whether everything in the cluster could be read."""
        return self.error is None and not self.failed

    @property
    def rows(self) -> int:
        """The number of rows that were written for the cluster, including the row about the cluster."""
        return 1 + self.resources + self.failed


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """The record of a snapshot, also written to ``snapshots/ID.json``.

    The rows of the snapshot are in the folder ``path``, partitioned by cluster.
    """

    snapshot_id: str
    fleet: str
    taken_at: _Time
    seconds: Seconds
    path: Annotated[
        str, Field(description="The path of the snapshot's rows, relative to the folder of all snapshots.")
    ]
    clusters: tuple[SnapshotCluster, ...]

    @property
    def incomplete(self) -> tuple[SnapshotCluster, ...]:
        """The clusters that could not be read, or could be read only partially."""
        return tuple(cluster for cluster in self.clusters if not cluster.whole)


def format_snapshot_path(snapshot_id: str, taken_at: datetime) -> str:
    """Return the path of a snapshot's rows. The path contains the day, so that a single day can be read."""
    return f"data/day={taken_at:%Y-%m-%d}/snapshot={snapshot_id}"


def parse_record(text: str, source: str) -> SnapshotRecord:
    """Parse the record of a snapshot.

    source: the name of the file, for errors.

    Raises KdeclareError if the format version is not supported, or if the file is not a record.
    """
    return _FILE_FORMAT.bind(SnapshotRecord, text, source)


def require_all_rows(cluster: SnapshotCluster, count: int, source: str) -> None:
    """Raise KdeclareError if rows of a cluster are missing from a snapshot.

    Spark skips empty and missing files without an error.

    count: the number of rows that were read.
    source: the folder of the snapshot, for the error.
    """
    if count < cluster.rows:
        raise KdeclareError(
            error(
                "bad-snapshot",
                "Snapshot rows missing",
                f"{source} has {count:,} rows of {cluster.name}, but {cluster.rows:,} rows were written.",
                hint="Take a new snapshot. Files of this snapshot may have been deleted or truncated.",
            )
        )
