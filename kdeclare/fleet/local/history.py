"""Read the versions of one live object from the snapshots in a local folder, without Spark."""

from collections.abc import Sequence

from kdeclare.core.live.live_codec import LiveKey
from kdeclare.fleet.history.object_history import ObjectVersion
from kdeclare.fleet.history.object_versions import build_version, get_cluster
from kdeclare.fleet.local.tables import read_rows
from kdeclare.fleet.tables.rows import CLUSTER, LIVE
from kdeclare.fleet.tables.snapshots import SnapshotRecord, require_all_rows
from kdeclare.fleet.tables.storage import LocalStorage


def read_local_versions(
    storage: LocalStorage, records: Sequence[SnapshotRecord], cluster: str, key: LiveKey
) -> tuple[ObjectVersion, ...]:
    """Read one live object from each snapshot in ``records``, in the same order. Raises KdeclareError.

    cluster: the name of the cluster. The files of other clusters are not read.
    key: the type and key of the object.
    """
    return tuple(_read_version(storage, record, cluster, key) for record in records)


def _read_version(storage: LocalStorage, record: SnapshotRecord, cluster: str, key: LiveKey) -> ObjectVersion:
    rows = read_rows(storage, record.path, LIVE, (cluster,))
    require_all_rows(get_cluster(record, cluster), len(rows), f"{storage.uri}/{record.path}")
    itself = [
        row
        for row in rows
        if row["kind"] == CLUSTER
        or (row["kind"] == key.sort and (row["name"] in (key.key, "") or row["is_part"]))
    ]
    return build_version(record, cluster, key, itself)
