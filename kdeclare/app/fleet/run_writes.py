"""Read from the journals of a cluster's project what its runs changed in one object."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.state.summaries import parse_run_time
from kdeclare.core.clock import parse_time
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.changes import Action, Change
from kdeclare.engine.executor.entries import RunRecord, read_run, read_run_plan
from kdeclare.fleet.history.change_origins import RunWrite
from kdeclare.manifests.policies import TOPIC


def read_run_writes(fleet_file: Path, cluster: str, key: LiveKey, until: datetime) -> tuple[RunWrite, ...]:
    """Return what the runs of a cluster's project changed in an object, oldest first.

    until: runs that started later are left out.

    Raises KdeclareError if the fleet file, the project or a run cannot be read.
    """
    workspace = ClusterLocator(str(fleet_file)).workspace(cluster)
    writes = []
    try:
        for run_id in workspace.store.runs():
            started = parse_run_time(run_id)
            if started is None or started <= until:
                record, plan = read_run(workspace.store, run_id), read_run_plan(workspace.store, run_id)
                writes += list(_list_writes(record, plan, key))
    finally:
        workspace.store.close()
    return tuple(sorted(writes, key=lambda write: (write.ended_at, write.run_id)))


def _list_writes(record: RunRecord, plan: Plan, key: LiveKey) -> Iterator[RunWrite]:
    """Yield what a run changed in an object. Operations that had no effect are left out."""
    for change in plan.changes:
        is_itself = (change.id.kind, change.id.name) == (key.sort, key.key)
        values = dict(_list_values(change, key, is_itself=is_itself))
        if not is_itself and not values:
            continue
        ids = [
            operation.id
            for operation in plan.operations
            if operation.resource == change.id and _had_effect(record, operation.id)
        ]
        if ids:
            yield RunWrite(
                record.run_id,
                record.start.who if record.start is not None else "",
                min(parse_time(record.sent_at.get(id_, record.ended_at[id_])) for id_ in ids),
                max(parse_time(record.ended_at[id_]) for id_ in ids),
                change.action if is_itself else Action.UPDATE,
                values,
            )


def _list_values(change: Change, key: LiveKey, *, is_itself: bool) -> Iterator[tuple[str, JsonValue]]:
    """Yield the fields of the object that a change sets, with their new values.

    is_itself: whether the change is about the object, and not about a resource that moves its replicas.
    """
    prefix = f"replicas.{key.key}-"
    for field in change.fields:
        if is_itself and not field.path.startswith("replicas."):
            yield field.path, field.after
        elif key.sort == TOPIC and field.path.startswith(prefix):
            yield f"assignments.{field.path.removeprefix(prefix)}", field.after


def _had_effect(record: RunRecord, operation_id: str) -> bool:
    result = record.results.get(operation_id)
    return result is not None and result.had_effect and operation_id in record.ended_at
