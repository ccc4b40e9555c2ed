"""The kind `ConnectWorkerConfig`: overrides that the workers of a Connect cluster share (KIP-1185)."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from pydantic import BaseModel

from kdeclare.core.jsontypes import JsonObject, as_text
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Inverse, Operation
from kdeclare.core.operations.operation_type import with_inverse
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.policies.policy_fields import PolicyField, PolicyWords
from kdeclare.core.resources.audit_rules import AuditRules
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import (
    DesiredResource,
    Difference,
    SpecPath,
    SpecProblem,
    narrow,
    narrow_optional,
)
from kdeclare.core.resources.owned_record import OwnedRecord, merge_fields, narrow_record
from kdeclare.core.resources.plan_capabilities import Evidence
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, Secret, SecretRef, bind_secret_ref, is_secret
from kdeclare.providers.connect.operations import (
    REFUSED,
    WORKER_PATH_PREFIX,
    PatchWorkers,
    PatchWorkersArgs,
    WorkerConfigOpArgs,
)
from kdeclare.providers.connect.worker_config.collector import WorkerSelection, WorkerState
from kdeclare.providers.connect.worker_config.diff import (
    AppliedRecord,
    WorkerConfigRecord,
    bind_body,
    diff_worker_config,
    dump_body,
    dump_config_value,
    ignore_overrides,
    resolve_group,
)
from kdeclare.providers.connect.worker_config.fleet import WorkerConfigRules, make_live_key
from kdeclare.providers.connect.worker_config.spec import (
    ConnectWorkerConfigSpec,
    WorkerConfigBody,
    parse_worker_config,
)
from kdeclare.providers.connect.worker_state import redact_value
from kdeclare.providers.kafka.config.config_ops import filter_config_fields, get_config_key
from kdeclare.providers.kafka.config.config_value import ConfigValue, Unset, Value
from kdeclare.providers.kafka.risks import assess_worker_field


class ConnectWorkerConfigKind:
    """The kind of worker overrides. Workers always exist, so every change is an update."""

    name = "ConnectWorkerConfig"
    spec: type[BaseModel] = ConnectWorkerConfigSpec
    record: type[OwnedRecord] = WorkerConfigRecord
    audit_rules: AuditRules = WorkerConfigRules()
    policy_words = PolicyWords({"configs": PolicyField(dict[str, str]), "workers": PolicyField(list[str])})

    def parse(self, name: str, spec: BaseModel) -> tuple[WorkerConfigBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        return parse_worker_config(name, narrow(spec, ConnectWorkerConfigSpec))

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Select the workers of the resource."""
        return (
            WorkerSelection(
                frozenset({resolve_group(narrow_optional(body, WorkerConfigBody), _narrow_owned(owned))})
            ),
        )

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        return diff_worker_config(resource, desired, live.get(WorkerState), _narrow_owned(owned))

    def ignore_fields(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> WorkerConfigBody:
        """See `IgnoresChanges`."""
        return ignore_overrides(
            desired.get_body(WorkerConfigBody), live.get(WorkerState), _narrow_owned(owned)
        )

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """Return the declared configs and the names of the workers. Secrets are masked."""
        body = desired.get_body(WorkerConfigBody)
        set_values = {key: wish for key, wish in body.configs.items() if not isinstance(wish, Unset)}
        configs = {
            k: SENSITIVE_MASK if isinstance(w, Secret) else dump_config_value(w)["value"]
            for k, w in set_values.items()
        }
        return {"configs": configs, "workers": list(body.group.names)}

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        """Return the overrides that the workers share; None if no worker reports the overrides."""
        group = resolve_group(
            desired.get_body(WorkerConfigBody) if desired is not None else None, _narrow_owned(owned)
        )
        snapshot = live.get(WorkerState).get_snapshot(group)
        if snapshot.overrides is None:
            return None
        configs = {key: redact_value(key, value) for key, value in snapshot.overrides.items()}
        return {"configs": configs, "workers": list(group.names)}

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """See `providers.kafka.risks`."""
        return assess_worker_field(field)

    def normalize_field(self, resource: ResourceId, field: FieldChange) -> FieldChange:
        """Remove from a field change the reason why a worker refused the overrides. The reason can vary."""
        return replace(field, before=REFUSED) if field.path.startswith(WORKER_PATH_PREFIX) else field

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """Return no paths: the operations contain all fields of a change, so every field must match them."""
        return frozenset()

    def list_exclusive_settings(self, name: str, body: object) -> JsonObject:
        """Return the declared value of each key at each worker, except secrets, which cannot be compared."""
        body = narrow(body, WorkerConfigBody)
        return {
            f"{key} at {url}": dump_config_value(wish)["value"]
            for key, wish in body.configs.items()
            for url in body.group.names
            if not isinstance(wish, Secret)
        }

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """Return one PATCH operation.

        If an undeclared resource has no overrides left, return no operation.
        """
        return (
            (build_worker_operation(change, desired, live.get(WorkerState), _narrow_owned(owned)),)
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
        keys = collect_keys(done)
        old_record, new_record = _narrow_owned(before), _narrow_owned(after)
        configs = merge_fields(
            old_record.configs if old_record else {}, new_record.configs if new_record else {}, keys
        )
        return WorkerConfigRecord(resolve_group(None, new_record or old_record), configs)

    def locate_secret(self, path: SpecPath) -> SpecPath | None:
        """See `LocatesSecrets`."""
        return ("config", *path[1:])  # the path below `WorkerConfigBody.configs`

    def is_self_contained(self, name: str, body: object) -> bool:
        """Return True, because the diff needs only the overrides of the resource's own workers."""
        return True

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey | None:
        """Return the key of the declared or owned workers; None if both arguments are None."""
        if body is None and owned is None:
            return None
        return make_live_key(resolve_group(narrow_optional(body, WorkerConfigBody), _narrow_owned(owned)))

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `Kind`."""
        return dump_body(narrow(body, WorkerConfigBody))

    def from_json(self, json: JsonObject) -> WorkerConfigBody:
        """See `Kind`."""
        return bind_body(json)


def _narrow_owned(owned: OwnedRecord | None) -> WorkerConfigRecord | None:
    return narrow_record(owned, WorkerConfigRecord)


_PATCH = PatchWorkers()


def build_worker_operation(
    change: Change, desired: DesiredResource | None, live: WorkerState, owned: WorkerConfigRecord | None
) -> Operation:
    """Return the operation of a change.

    If workers refused the declared overrides, the operation sends the same overrides again.
    """
    body = desired.get_body(WorkerConfigBody) if desired else None
    records: Mapping[str, AppliedRecord] = owned.configs if owned is not None else {}
    key_fields = filter_config_fields(change.fields)
    retried_workers = (
        []
        if key_fields
        else [f.path.removeprefix(WORKER_PATH_PREFIX) for f in change.fields if _is_worker_field(f)]
    )
    config_values: Mapping[str, ConfigValue] = body.configs if body else {}
    ops = [
        _build_repeat_op(key, wish)
        for key, wish in sorted(config_values.items())
        if not isinstance(wish, Unset)
    ]
    args = PatchWorkersArgs(
        resolve_group(body, owned),
        tuple(ops if retried_workers else (_build_key_op(field, records) for field in key_fields)),
        tuple(retried_workers),
    )
    draft_operation = Operation(f"{_PATCH.name}:{change.id}", _PATCH.name, change.id, args, {})
    op = replace(draft_operation, expect=_PATCH.compute_view(draft_operation, LiveState(live)))
    return replace(op, inverse=Inverse(_PATCH.name, args)) if retried_workers else with_inverse(_PATCH, op)


def collect_keys(operations: Sequence[Operation]) -> frozenset[str]:
    """Return the keys of the overrides that the operations change."""
    return frozenset(item.key for op in operations for item in get_arguments(op, PatchWorkersArgs).ops)


def _is_worker_field(field: FieldChange) -> bool:
    return field.path.startswith(WORKER_PATH_PREFIX)


def _build_repeat_op(key: str, config_value: ConfigValue) -> WorkerConfigOpArgs:
    if isinstance(config_value, Secret):
        return WorkerConfigOpArgs(key, "SET", config_value.ref)
    value = config_value.value if isinstance(config_value, Value) else None
    return WorkerConfigOpArgs(key, "SET", value if isinstance(value, str) else None)


def _build_key_op(field: FieldChange, records: Mapping[str, AppliedRecord]) -> WorkerConfigOpArgs:
    key = get_config_key(field)
    value = field.value if field.value is not None else field.after
    return WorkerConfigOpArgs(
        key,
        "DELETE" if field.op is FieldOp.DELETE else "SET",
        bind_secret_ref(value) if is_secret(value) else None if value is None else as_text(value),
        earlier_ref if isinstance(earlier_ref := records.get(key), SecretRef) else None,
    )
