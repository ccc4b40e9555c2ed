"""Kind `ConnectWorkerConfig`: dynamic overrides that the workers of a Connect cluster share (KIP-1185)."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from pydantic import BaseModel

from kdeclare.core.jsontypes import JsonObject, as_text
from kdeclare.core.live.collector import Selections
from kdeclare.core.operations.binding import get_arguments
from kdeclare.core.operations.operation import Inverse, Operation
from kdeclare.core.operations.operation_type import with_inverse
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.resources.capabilities import Evidence
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired, Difference, Path, Problem, narrow, narrow_optional
from kdeclare.core.resources.owned_record import OwnedRecord, merge_fields, narrow_record
from kdeclare.core.resources.policy_subjects import PolicyField, PolicyWords
from kdeclare.core.secrets.secret_refs import SHOWN, Secret, SecretRef, is_secret, read_secret_ref
from kdeclare.providers.connect.connection import WorkerSelection, WorkerState
from kdeclare.providers.connect.operations import (
    REFUSED,
    WORKERS,
    PatchWorkers,
    PatchWorkersArgs,
    WorkerConfigOpArgs,
)
from kdeclare.providers.connect.worker_config.diff import (
    Applied,
    WorkerConfigRecord,
    body_from,
    body_json,
    diff_worker_config,
    group_for,
    record_of,
)
from kdeclare.providers.connect.worker_config.spec import (
    ConnectWorkerConfigSpec,
    WorkerConfigBody,
    parse_worker_config,
)
from kdeclare.providers.connect.worker_state import show_value
from kdeclare.providers.kafka.config.config_ops import config_fields, key_of
from kdeclare.providers.kafka.config.wishes import Unset, Whole, Wish
from kdeclare.providers.kafka.risks import assess_worker_field


class ConnectWorkerConfigKind:
    """Workers exist, so every change is an update; it owns the keys that it declares."""

    name = "ConnectWorkerConfig"
    spec: type[BaseModel] = ConnectWorkerConfigSpec
    record: type[OwnedRecord] = WorkerConfigRecord
    policy_words = PolicyWords({"configs": PolicyField(dict[str, str]), "workers": PolicyField(list[str])})

    def parse(self, name: str, spec: BaseModel) -> tuple[WorkerConfigBody, tuple[Problem, ...]]:
        """See `Kind`."""
        return parse_worker_config(name, narrow(spec, ConnectWorkerConfigSpec))

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Its workers."""
        return (
            WorkerSelection(frozenset({group_for(narrow_optional(body, WorkerConfigBody), _narrow(owned))})),
        )

    def diff(
        self,
        resource: ResourceId,
        desired: Desired | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        return diff_worker_config(resource, desired, live.get(WorkerState), _narrow(owned))

    def describe_declared(self, desired: Desired) -> Mapping[str, object]:
        """Its configs and its workers."""
        body = desired.get_body(WorkerConfigBody)
        stated = {key: wish for key, wish in body.configs.items() if not isinstance(wish, Unset)}
        configs = {k: SHOWN if isinstance(w, Secret) else record_of(w)["value"] for k, w in stated.items()}
        return {"configs": configs, "workers": list(body.group.urls)}

    def describe_live(
        self, resource: ResourceId, desired: Desired | None, live: LiveState, owned: OwnedRecord | None
    ) -> Mapping[str, object] | None:
        """The overrides that its workers share; none where no worker says them."""
        group = group_for(desired.get_body(WorkerConfigBody) if desired is not None else None, _narrow(owned))
        seen = live.get(WorkerState).groups[group]
        if seen.overrides is None:
            return None
        configs = {key: show_value(key, value) for key, value in seen.overrides.items()}
        return {"configs": configs, "workers": list(group.urls)}

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """See `providers.kafka.risks`."""
        return assess_worker_field(field)

    def normalize_field(self, resource: ResourceId, field: FieldChange) -> FieldChange:
        """The field; what a worker that has to be told again is before, is said in words only."""
        return replace(field, before=REFUSED) if field.path.startswith(WORKERS) else field

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """None: operations say all of it."""
        return frozenset()

    def list_exclusive_settings(self, name: str, body: object) -> JsonObject:
        """Its keys at each of its workers; of secrets nobody can tell whether they are the same."""
        body = narrow(body, WorkerConfigBody)
        return {
            f"{key} at {url}": record_of(wish)["value"]
            for key, wish in body.configs.items()
            for url in body.group.urls
            if not isinstance(wish, Secret)
        }

    def plan_operations(
        self,
        change: Change,
        desired: Desired | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """One PATCH; none where nothing of what is declared no longer is left."""
        return (
            (worker_operation(change, desired, live.get(WorkerState), _narrow(owned)),)
            if change.fields
            else ()
        )

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        """See `Kind`."""
        if all_done:
            return after
        if not done:
            return before
        keys = keys_of(done)
        old, new = _narrow(before), _narrow(after)
        configs = merge_fields(old.configs if old else {}, new.configs if new else {}, keys)
        return WorkerConfigRecord(group_for(None, new or old), configs)

    def locate_secret(self, path: Path) -> Path | None:
        """See `LocatesSecrets`."""
        return ("config", *path[1:])  # below `WorkerConfigBody.configs`

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `Kind`."""
        return body_json(narrow(body, WorkerConfigBody))

    def from_json(self, json: JsonObject) -> WorkerConfigBody:
        """See `Kind`."""
        return body_from(json)


def _narrow(owned: OwnedRecord | None) -> WorkerConfigRecord | None:
    return narrow_record(owned, WorkerConfigRecord)


_PATCH = PatchWorkers()


def worker_operation(
    change: Change, desired: Desired | None, live: WorkerState, owned: WorkerConfigRecord | None
) -> Operation:
    """The operation of a change.

    Where the overrides are as declared and workers have refused them, they are sent once more as they are.
    """
    body = desired.get_body(WorkerConfigBody) if desired else None
    records: Mapping[str, Applied] = owned.configs if owned is not None else {}
    fields = config_fields(change.fields)
    again = [] if fields else [f.path.removeprefix(WORKERS) for f in change.fields if _is_worker(f)]
    wishes: Mapping[str, Wish] = body.configs if body else {}
    ops = [_repeat_key(key, wish) for key, wish in sorted(wishes.items()) if not isinstance(wish, Unset)]
    args = PatchWorkersArgs(
        group_for(body, owned),
        tuple(ops if again else (_key_operation(field, records) for field in fields)),
        tuple(again),
    )
    bare = Operation(f"{_PATCH.name}:{change.id}", _PATCH.name, change.id, args, {})
    op = replace(bare, expect=_PATCH.view(bare, LiveState(live)))
    return replace(op, inverse=Inverse(_PATCH.name, args)) if again else with_inverse(_PATCH, op)


def keys_of(operations: Sequence[Operation]) -> frozenset[str]:
    """The keys that operations are about."""
    return frozenset(item.key for op in operations for item in get_arguments(op, PatchWorkersArgs).ops)


def _is_worker(field: FieldChange) -> bool:
    return field.path.startswith(WORKERS)


def _repeat_key(key: str, wish: Wish) -> WorkerConfigOpArgs:
    if isinstance(wish, Secret):
        return WorkerConfigOpArgs(key, "SET", wish.ref)
    value = wish.value if isinstance(wish, Whole) else None
    return WorkerConfigOpArgs(key, "SET", value if isinstance(value, str) else None)


def _key_operation(field: FieldChange, records: Mapping[str, Applied]) -> WorkerConfigOpArgs:
    key = key_of(field)
    value = field.value if field.value is not None else field.after
    return WorkerConfigOpArgs(
        key,
        "DELETE" if field.op is FieldOp.DELETE else "SET",
        read_secret_ref(value) if is_secret(value) else None if value is None else as_text(value),
        earlier if isinstance(earlier := records.get(key), SecretRef) else None,
    )
