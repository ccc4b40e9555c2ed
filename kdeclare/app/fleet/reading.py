"""What the tasks of Spark run: one cluster, or the project of one, to rows.

Whatever is wrong with it becomes the row of the cluster itself: other clusters have nothing to do with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa

from kdeclare.app.fleet.reach import Reach
from kdeclare.app.plan import loaded_well
from kdeclare.app.policies import policies_in_force
from kdeclare.app.secrets import hasher_of
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError, gist
from kdeclare.core.plans.state import State
from kdeclare.core.progress import quietly
from kdeclare.core.resources.adoption import allow_adoption
from kdeclare.core.resources.capabilities import is_fleet_comparable
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_hashes import refuse_missing_key
from kdeclare.engine.planning.request import Scope
from kdeclare.engine.planning.sealing import has_secrets, seal, stored_hashes
from kdeclare.fleet.encoding import (
    Row,
    declared_cluster_row,
    declared_rows,
    left_out_rows,
    live_rows,
    record_batches,
    unreachable_row,
)
from kdeclare.fleet.rows import DECLARED, LIVE
from kdeclare.manifests.fleet import ClusterEntry


def read_live(reach: Reach, name: str) -> Iterator[pa.RecordBatch]:
    """What one cluster has, as batches of `rows.LIVE`; of one that cannot be read, its row with the error."""
    return record_batches(_live(reach, name), LIVE)


def read_declared(reach: Reach, name: str) -> Iterator[pa.RecordBatch]:
    """What is declared or owned in one cluster, as batches of `rows.DECLARED`.

    Where a project or its state cannot be relied on, there is the cluster's own row alone, with the error.
    Else that row has ``always`` where the project has policies, which have to be asked about all of it.
    """
    return record_batches(_declared(reach, name), DECLARED)


def _live(reach: Reach, name: str) -> Iterator[Row]:
    now = datetime.now(UTC)
    labels: Mapping[str, str] = {}
    reach.load_providers()  # what is missing here is no matter of this cluster: it ends the job
    try:
        with reach.files():
            labels = reach.entry(name).labels
            with reach.workspace(name).connected() as connections:
                yield from live_rows(connections, name, labels, now)
    except KdeclareError as e:
        yield unreachable_row(name, labels, now, gist(e.diagnostics))


def _declared(reach: Reach, name: str) -> Iterator[Row]:
    labels: Mapping[str, str] = {}
    reach.load_providers()  # what is missing here is no matter of this cluster: it ends the job
    try:
        with reach.files():
            entry = reach.entry(name)
            labels = entry.labels
            workspace = reach.workspace(name)
            loaded, state = loaded_well(workspace, ()), workspace.store.read()
            with policies_in_force(workspace, loaded.rules) as in_force:  # errors are reported now
                has_policies = bool(in_force.policies)
            desired = _sealed(workspace, loaded.desired, state)
    except KdeclareError as e:
        yield declared_cluster_row(name, labels, gist(e.diagnostics))
    else:
        yield declared_cluster_row(
            name,
            labels,
            cluster_id=(state.cluster_id or None) if state is not None else None,
            cleanup=state.pending_cleanup if state is not None else None,
            policies=has_policies,
        )
        allow = allow_adoption if workspace.project.adopts else _unchanged
        yield from _rows(entry, [allow(item) for item in desired], _owned(state))


def _sealed(workspace: Workspace, desired: Sequence[Desired], state: State | None) -> Sequence[Desired]:
    """With hashes to compare; before there is a state, nothing has one that they would have to be like."""
    owned = state.resources if state is not None else {}
    refuse_missing_key(stored_hashes(owned))
    if not has_secrets(desired):
        return desired
    hasher = hasher_of(workspace, state, workspace.cluster_name)
    return seal(desired, owned, hasher, quietly, portable=True)


def _unchanged(desired: Desired) -> Desired:
    return desired


def _owned(state: State | None) -> Mapping[ResourceId, OwnedRecord]:
    """What the state says, of kinds that an audit can compare."""
    records = state.resources.items() if state is not None else ()
    owned = {ResourceId.parse(text): record for text, record in records}
    return {id_: record for id_, record in owned.items() if is_fleet_comparable(id_.kind)}


def _rows(
    entry: ClusterEntry, desired: Sequence[Desired], owned: Mapping[ResourceId, OwnedRecord]
) -> Iterator[Row]:
    scope = Scope(selector=entry.selector)
    for item in (item for item in desired if is_fleet_comparable(item.id.kind)):
        encoded = declared_rows if scope.covers(item) else left_out_rows
        yield from encoded(entry.name, item, item.id, owned.get(item.id))
    encoded = declared_rows if scope.whole else left_out_rows
    for id_ in sorted(owned.keys() - {item.id for item in desired}):
        yield from encoded(entry.name, None, id_, owned[id_])
