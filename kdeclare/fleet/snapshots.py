"""The record of a snapshot: what makes it exist, and what can be told of it without reading its rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.jsontypes import Json
from kdeclare.fleet.documents import Document
from kdeclare.fleet.rows import FORMAT_VERSION

_DOCUMENT = Document(
    code="bad-snapshot",
    name="Snapshot",
    broken="Not a snapshot's record",
    writer="kdeclare fleet snapshot",
    renew="Take a new snapshot into another folder.",
    other="Take a new snapshot, or read it with the kdeclare that wrote it.",
)


@dataclass(frozen=True, slots=True)
class SnapshotCluster:
    """One cluster of a snapshot.

    topics: with the ``internal`` ones. resources: rows with a body. failed: resources that could not be
    read. error: why nothing is known of the cluster.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    cluster_id: str | None = None
    version: str | None = None
    taken_at: datetime | None = None
    topics: int = 0
    resources: int = 0
    failed: int = 0
    error: str | None = None
    internal: int = 0

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
    """One snapshot of a fleet; its rows are in ``path`` of its folder, partitioned by cluster."""

    snapshot_id: str
    fleet: str
    taken_at: datetime
    seconds: float
    path: str
    clusters: tuple[SnapshotCluster, ...]

    @property
    def incomplete(self) -> tuple[SnapshotCluster, ...]:
        """The clusters of which not all was read."""
        return tuple(cluster for cluster in self.clusters if not cluster.whole)


def snapshot_path(snapshot_id: str, taken_at: datetime) -> str:
    """Where the rows of a snapshot are: by day, so that a day can be read alone."""
    return f"data/day={taken_at:%Y-%m-%d}/snapshot={snapshot_id}"


def record_document(record: SnapshotRecord) -> dict[str, Json]:
    """As `snapshots/<id>.json` has it."""
    return {
        "format_version": FORMAT_VERSION,
        "snapshot_id": record.snapshot_id,
        "fleet": record.fleet,
        "taken_at": record.taken_at.isoformat(),
        "seconds": record.seconds,
        "path": record.path,
        "clusters": [
            {
                "name": cluster.name,
                "labels": dict(cluster.labels),
                "cluster_id": cluster.cluster_id,
                "version": cluster.version,
                "taken_at": cluster.taken_at.isoformat() if cluster.taken_at else None,
                "topics": cluster.topics,
                "internal": cluster.internal,
                "resources": cluster.resources,
                "failed": cluster.failed,
                "error": cluster.error,
            }
            for cluster in record.clusters
        ],
    }


def read_record(text: str, where: str) -> SnapshotRecord:
    """The record of a text. Raises KdeclareError for another format version, or for what is no record."""
    data = _DOCUMENT.read(text, where)
    try:
        return SnapshotRecord(
            data["snapshot_id"],
            data["fleet"],
            datetime.fromisoformat(data["taken_at"]),
            data["seconds"],
            data["path"],
            tuple(map(_cluster, data["clusters"])),
        )
    except (ValueError, KeyError, TypeError):
        raise _DOCUMENT.unreadable(where) from None


def refuse_lost_rows(cluster: SnapshotCluster, count: int, where: str) -> None:
    """Raise KdeclareError where fewer rows of a cluster are left than were written.

    Spark passes over files that are empty or gone. where: the snapshot's folder.
    """
    if count < cluster.rows:
        raise KdeclareError(
            error(
                "bad-snapshot",
                "A snapshot has lost rows",
                f"{where} has {count:,} rows of {cluster.name}, and was written with {cluster.rows:,}.",
                hint="Were files of it deleted or cut short? Take a new one.",
            )
        )


def _cluster(data: dict[str, Json]) -> SnapshotCluster:
    taken = data["taken_at"]
    return SnapshotCluster(**{**data, "taken_at": datetime.fromisoformat(taken) if taken else None})
