"""Kind `ConnectWorkerConfig`: dynamic overrides that the workers of a Connect cluster share (KIP-1185)."""

from collections.abc import Mapping, Set
from dataclasses import replace

from pydantic import BaseModel

from kdeclare.core.capabilities import Evidence
from kdeclare.core.changes import Action, Change, FieldChange
from kdeclare.core.collector import Selections
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired, Difference, Problem
from kdeclare.core.operations import Operation
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.policy_subjects import PolicyField, PolicyWords
from kdeclare.core.secrets import SHOWN, Secret
from kdeclare.providers.connect.collector import WorkerSelection, WorkerState
from kdeclare.providers.connect.operations import REFUSED, WORKERS
from kdeclare.providers.connect.worker_config.body_json import body_from, body_json, record_of
from kdeclare.providers.connect.worker_config.diff import diff_worker_config, group_for
from kdeclare.providers.connect.worker_config.operations import keys_of, worker_operation
from kdeclare.providers.connect.worker_config.spec import (
    ConnectWorkerConfigSpec,
    WorkerConfigBody,
    parse_worker_config,
)
from kdeclare.providers.connect.workers.values import shown
from kdeclare.providers.kafka.config.wishes import Unset
from kdeclare.providers.kafka.risks import assess_worker_field


class ConnectWorkerConfigKind:
    """Workers exist, so every change is an update; it owns the keys that it declares."""

    name = "ConnectWorkerConfig"
    spec: type[BaseModel] = ConnectWorkerConfigSpec
    policy_words = PolicyWords({"configs": PolicyField(dict[str, str]), "workers": PolicyField(list[str])})

    def parse(self, name: str, spec: ConnectWorkerConfigSpec) -> tuple[WorkerConfigBody, tuple[Problem, ...]]:
        """See `core.kind.Kind`."""
        return parse_worker_config(name, spec)

    def select(self, name: str, body: WorkerConfigBody | None, owned: Json) -> Selections:
        """Its workers."""
        return (WorkerSelection(frozenset({group_for(body, owned)})),)

    def diff(
        self,
        resource: ResourceId,
        desired: Desired | None,
        live: LiveState,
        owned: Json,
        context: PlanContext,
    ) -> Difference:
        """See `core.kind.Kind`."""
        return diff_worker_config(resource, desired, live.get(WorkerState), owned)

    def describe_declared(self, desired: Desired) -> Mapping[str, object]:
        """Its configs and its workers."""
        body: WorkerConfigBody = desired.body
        stated = {key: wish for key, wish in body.configs.items() if not isinstance(wish, Unset)}
        configs = {k: SHOWN if isinstance(w, Secret) else record_of(w)["value"] for k, w in stated.items()}
        return {"configs": configs, "workers": list(body.group.urls)}

    def describe_live(
        self, resource: ResourceId, desired: Desired | None, live: LiveState, owned: Json
    ) -> Mapping[str, object] | None:
        """The overrides that its workers share; none where no worker says them."""
        group = group_for(desired.body if desired is not None else None, owned)
        seen = live.get(WorkerState).groups[group]
        if seen.overrides is None:
            return None
        configs = {key: shown(key, value) for key, value in seen.overrides.items()}
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

    def list_exclusive_settings(self, name: str, body: WorkerConfigBody) -> Mapping[str, Json]:
        """Its keys at each of its workers; of secrets nobody can tell whether they are the same."""
        return {
            f"{key} at {url}": record_of(wish)["value"]
            for key, wish in body.configs.items()
            for url in body.group.urls
            if not isinstance(wish, Secret)
        }

    def plan_operations(
        self, change: Change, desired: Desired | None, live: LiveState, owned: Json, context: PlanContext
    ) -> tuple[Operation, ...]:
        """One PATCH; none where nothing of what is declared no longer is left."""
        return (worker_operation(change, desired, live.get(WorkerState), owned),) if change.fields else ()

    def merge_ownership(self, before: Json, after: Json, done: tuple[Operation, ...], all_done: bool) -> Json:
        """See `core.kind.Kind`."""
        if all_done:
            return after
        if not done:
            return before
        keys = keys_of(done)
        old, new = (before or {}).get("configs", {}), (after or {}).get("configs", {})
        kept = {key: record for key, record in old.items() if key not in keys}
        configs = kept | {key: record for key, record in new.items() if key in keys}
        return {"workers": (after or before)["workers"], "configs": configs}

    def to_json(self, name: str, body: WorkerConfigBody) -> Json:
        """See `core.kind.Kind`."""
        return body_json(body)

    def from_json(self, json: Json) -> WorkerConfigBody:
        """See `core.kind.Kind`."""
        return body_from(json)
