"""Build the version of one live object from the rows of a snapshot."""

from collections.abc import Sequence
from datetime import UTC

from kdeclare.core.jsontypes import as_object, parse_json
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.provider.registry import CODECS
from kdeclare.fleet.history.object_history import ObjectVersion
from kdeclare.fleet.live_state import explain_unread
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import CLUSTER, find_unread_row
from kdeclare.fleet.tables.snapshots import SnapshotCluster, SnapshotRecord


def build_version(record: SnapshotRecord, cluster: str, key: LiveKey, rows: Sequence[Row]) -> ObjectVersion:
    """Return the version of a live object in a snapshot.

    cluster: the name of the cluster.
    key: the type and key of the object.
    rows: the rows about the object, about the whole cluster, and about several objects of the same type
        that could not be read. Columns: ``kind``, ``name``, ``body``, ``error`` and ``is_part``.
    """
    cluster_record = get_cluster(record, cluster)
    bodies = {(row["kind"], row["name"]): row["body"] for row in rows}
    errors = {(row["kind"], row["name"]): row["error"] for row in rows}
    text = bodies.get(key)
    error = cluster_record.error or errors.get(key)
    if error is None:
        unread_row = find_unread_row((row for row in rows if row["error"] is not None), key)
        error = unread_row["error"] if unread_row is not None else None
    if error is not None:
        text = None  # the object may be incomplete
    elif text is None:
        error = _explain_unread(key, bodies.get((CLUSTER, cluster)))
    body = as_object(parse_json(text)) if text is not None else None
    return ObjectVersion(
        (cluster_record.taken_at or record.taken_at).astimezone(UTC), record.snapshot_id, body, error
    )


def _explain_unread(key: LiveKey, cluster: str | None) -> str | None:
    """Return the reason why a snapshot does not contain the objects of a system other than Kafka.

    Return None if the system was read.
    """
    codec = CODECS.get(key.sort)
    if cluster is None or codec is None or codec.identifies_system:
        return None
    return explain_unread(key, cluster)


def get_cluster(record: SnapshotRecord, cluster: str) -> SnapshotCluster:
    """Return the summary of a cluster from a snapshot's record. The snapshot must include the cluster."""
    return next(c for c in record.clusters if c.name == cluster)
