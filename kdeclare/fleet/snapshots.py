"""The record of a snapshot: what makes it exist, and what can be told of it without reading its rows."""

from dataclasses import field
from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field, PlainSerializer, with_config

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.findings import Labels, Seconds
from kdeclare.fleet.object_counts import ObjectCount
from kdeclare.fleet.rows import FileFormat

_FILE_FORMAT = FileFormat(
    code="bad-snapshot",
    name="Snapshot",
    broken="Not a snapshot's record",
    command="kdeclare fleet snapshot",
    invalid_hint="Take a new snapshot into another folder.",
    version_hint="Take a new snapshot, or read it with the kdeclare that wrote it.",
)


_Time = Annotated[
    datetime, PlainSerializer(datetime.isoformat, return_type=str), Field(description="UTC, ISO 8601.")
]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class SnapshotCluster:
    """One cluster of a snapshot.

    unread: sorts of which nothing could be read, with the reasons; each is one of ``failed``.
    others: how many objects of other sorts than topics it has. No record has these two.
    """

    name: str
    labels: Labels = field(default_factory=dict)
    cluster_id: str | None = None
    version: Annotated[str | None, Field(description="Kafka's, as far as the cluster tells.")] = None
    taken_at: _Time | None = None
    topics: Annotated[int, Field(description="With the internal ones.")] = 0
    internal: int = 0
    resources: Annotated[int, Field(description="Rows with a body.")] = 0
    failed: Annotated[int, Field(description="Resources that could not be read.")] = 0
    error: Annotated[str | None, Field(description="Why nothing is known of the cluster.")] = None
    unread: Annotated[tuple[tuple[str, str], ...], Field(exclude=True)] = ()
    others: Annotated[tuple[ObjectCount, ...], Field(exclude=True)] = ()

    @property
    def whole(self) -> bool:
        """Whether all of it was read."""
        return self.error is None and not self.failed

    @property
    def rows(self) -> int:
        """How many the snapshot has of it, its own included."""
        return 1 + self.resources + self.failed


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """The record of a snapshot, also in snapshots/ID.json of its folder.

    Its rows are in ``path``, partitioned by cluster.
    """

    snapshot_id: str
    fleet: str
    taken_at: _Time
    seconds: Seconds
    path: Annotated[str, Field(description="Where in the folder its rows are.")]
    clusters: tuple[SnapshotCluster, ...]

    @property
    def incomplete(self) -> tuple[SnapshotCluster, ...]:
        """The clusters of which not all was read."""
        return tuple(cluster for cluster in self.clusters if not cluster.whole)


def format_snapshot_path(snapshot_id: str, taken_at: datetime) -> str:
    """Where the rows of a snapshot are: by day, so that a day can be read alone."""
    return f"data/day={taken_at:%Y-%m-%d}/snapshot={snapshot_id}"


def parse_record(text: str, source: str) -> SnapshotRecord:
    """The record of a text. Raises KdeclareError for another format version, or for what is no record."""
    return _FILE_FORMAT.bind(SnapshotRecord, text, source)


def require_all_rows(cluster: SnapshotCluster, count: int, source: str) -> None:
    """Raise KdeclareError where fewer rows of a cluster are left than were written.

    Spark passes over files that are empty or gone. source: the snapshot's folder.
    """
    if count < cluster.rows:
        raise KdeclareError(
            error(
                "bad-snapshot",
                "A snapshot has lost rows",
                f"{source} has {count:,} rows of {cluster.name}, and was written with {cluster.rows:,}.",
                hint="Were files of it deleted or cut short? Take a new one.",
            )
        )
