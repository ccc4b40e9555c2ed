"""Read from a project's journals which objects its runs created, and what they changed in one object."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.object_resources import (
    ObjectResources,
    find_by_key,
    find_by_manifests,
    find_by_records,
    is_object_of,
    list_element_keys,
)
from kdeclare.app.state.summaries import parse_run_time
from kdeclare.core.clock import parse_time
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.state import State
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.fleet_capabilities import find_live_key, is_set_like
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.engine.executor.entries import RunRecord, read_run, read_run_plan
from kdeclare.engine.state.port import StateStore
from kdeclare.fleet.history.change_origins import RunWrite
from kdeclare.fleet.history.object_history import (
    ObjectVersion,
    has_paths_of_plans,
    list_element_fields,
)
from kdeclare.manifests.policies import TOPIC


@dataclass(frozen=True, slots=True)
class ObjectRuns:
    """The changes that the runs of a project made to an object, and the resources that manage the object.

    writes: the changes, oldest first.
    """

    writes: tuple[RunWrite, ...]
    resources: ObjectResources


def read_object_runs(
    fleet_file: Path, cluster: str, key: LiveKey, versions: Sequence[ObjectVersion]
) -> ObjectRuns:
    """Return the changes that the runs of a cluster's project made to an object.

    versions: the object in each snapshot. Runs that started after the last snapshot are left out.

    Raises KdeclareError if the fleet file, the project or a run cannot be read.
    """
    until = max(version.taken_at for version in versions)
    workspace = ClusterLocator(str(fleet_file)).workspace(cluster)
    runs = []
    try:
        state = workspace.store.read()
        for run_id in workspace.store.runs():
            started = parse_run_time(run_id)
            if started is None or started <= until:
                runs.append((read_run(workspace.store, run_id), read_run_plan(workspace.store, run_id)))
    finally:
        workspace.store.close()
    records = _collect_records(state, (plan for _, plan in runs))
    target = _Target(key, list_element_fields(key.sort, versions), records)
    writes = [write for record, plan in runs for write in _list_writes(record, plan, target)]
    resources = find_by_records(key, records).merge(find_by_manifests(workspace, key, state))
    names = resources.names | find_by_key(key).names
    return ObjectRuns(
        tuple(sorted(writes, key=lambda write: (write.ended_at, write.run_id))),
        ObjectResources(names, resources.is_complete),
    )


def find_created_objects(store: StateStore, keys: Collection[LiveKey], since: datetime) -> frozenset[LiveKey]:
    """Return the live objects in ``keys`` that runs of the project created after ``since``.

    Kafka does not record when a topic was created, but the journals of the project do. Runs that cannot be
    read are skipped.
    """
    if not keys:
        return frozenset()
    created: set[LiveKey] = set()
    for run_id in reversed(store.runs()):
        started_at = parse_run_time(run_id)
        if started_at is None or started_at < since:
            continue
        try:
            created.update(_list_created(store, run_id))
        except KdeclareError:
            continue
        if created.issuperset(keys):
            break
    return frozenset(created.intersection(keys))


def _list_created(store: StateStore, run_id: str) -> Iterator[LiveKey]:
    """Yield the live objects that a run created. Raises KdeclareError if the run cannot be read."""
    plan, record = read_run_plan(store, run_id), read_run(store, run_id)
    changed = {operation.resource for operation in plan.operations if _had_effect(record, operation.id)}
    records = {item.id: item.after for item in plan.ownership}
    for change in plan.changes:
        if change.action is Action.CREATE and change.id in changed:
            key = find_live_key(change.id, None, records.get(change.id))
            if key is not None:
                yield key


_Records = Mapping[ResourceId, Sequence[OwnedRecord]]


@dataclass(frozen=True, slots=True)
class _Target:
    """The object whose changes are looked up.

    fields: the values of the object by path, if it is an element of a set.
    records: all known ownership records of each resource, for use if a plan contains no record of it.
    """

    key: LiveKey
    fields: Mapping[str, Sequence[JsonValue]]
    records: _Records


def _collect_records(state: State | None, plans: Iterable[Plan]) -> _Records:
    records: dict[ResourceId, list[OwnedRecord]] = {}
    for text, record in (state.resources if state is not None else {}).items():
        records.setdefault(ResourceId.parse(text), []).append(record)
    for plan in plans:
        for item in plan.ownership:
            some = records.setdefault(item.id, [])
            some += [record for record in (item.before, item.after) if record is not None]
    return records


def _list_writes(record: RunRecord, plan: Plan, target: _Target) -> Iterator[RunWrite]:
    """Yield the changes that a run made to an object. Operations that had no effect are left out."""
    ownership = {item.id: (item.before, item.after) for item in plan.ownership}
    for change in plan.changes:
        action: Action | None = Action.UPDATE
        is_itself: bool | None = False
        if change.id.kind == target.key.sort:
            before, after = ownership.get(change.id, (None, None))
            if is_set_like(change.id.kind):
                action = _find_element_action(change, before, after, target)
                is_itself = action is not None
            else:
                action, is_itself = change.action, _is_about(change.id, before, after, target)
        values = dict(_list_values(change, target.key, is_itself=is_itself is True))
        if is_itself is False and not values:
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
                action or Action.UPDATE,
                values,
                is_about_object=is_itself is not None,
                has_all_paths=has_paths_of_plans(target.key.sort),
            )


def _is_about(
    resource: ResourceId, before: OwnedRecord | None, after: OwnedRecord | None, target: _Target
) -> bool | None:
    """Whether a changed resource manages the object; None if this is unknown.

    If the plan does not change the ownership of the resource, the result depends on the ownership records in
    the state and in all other runs.
    """
    planned = [record for record in (before, after) if record is not None]
    known: Sequence[OwnedRecord | None] = planned or target.records.get(resource) or (None,)
    answers = {is_object_of(resource, target.key, record) for record in known}
    if True in answers:
        return True if planned or answers == {True} else None
    return None if None in answers else False


def _find_element_action(
    change: Change, before: OwnedRecord | None, after: OwnedRecord | None, target: _Target
) -> Action | None:
    """Return whether a change to a set, such as an Acl, adds (CREATE) or removes (DELETE) the object."""
    was_owned, is_owned = (
        record is not None and target.key in list_element_keys(change.id, record)
        for record in (before, after)
    )
    if was_owned is not is_owned:
        return Action.CREATE if is_owned else Action.DELETE
    for field in change.fields:
        elements = target.fields.get(field.path, ())
        is_in = [
            isinstance(value, list | tuple) and any(element in value for element in elements)
            for value in (field.before, field.after)
        ]
        if is_in[0] is not is_in[1]:
            return Action.CREATE if is_in[1] else Action.DELETE
    return None


def _list_values(change: Change, key: LiveKey, *, is_itself: bool) -> Iterator[tuple[str, JsonValue]]:
    """Yield the fields that a change sets in the object, with their new values.

    is_itself: whether the changed resource manages the object. If not, the change is relevant only if
    it moves replicas of the object.
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
