"""Kind `ClientQuota`: limits of users, client ids and IP addresses, by key."""

from collections.abc import Mapping

from pydantic import BaseModel

from kdeclare.core.capabilities import Export, ExportRequest
from kdeclare.core.changes import Action, Change, FieldChange
from kdeclare.core.collector import Selections
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired, Difference, Problem
from kdeclare.core.operation_arguments import get_arguments
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.policy_subjects import PolicyWords
from kdeclare.providers.kafka.client_quota.arguments import AlterQuotaArgs
from kdeclare.providers.kafka.client_quota.collector import QuotaSelection, QuotaState, read_quotas
from kdeclare.providers.kafka.client_quota.diff import assess_limit, diff_quota, owned_entity
from kdeclare.providers.kafka.client_quota.entity import find_shadowing
from kdeclare.providers.kafka.client_quota.export import export_quotas
from kdeclare.providers.kafka.client_quota.operations import plan_quota
from kdeclare.providers.kafka.client_quota.policies import QUOTA_WORDS, describe_quota
from kdeclare.providers.kafka.client_quota.spec import (
    ClientQuotaBody,
    ClientQuotaSpec,
    decode_quota,
    encode_quota,
    parse_quota,
)


class ClientQuotaKind:
    """Quotas of clients. Every user, client id and address exists, so every change is an update."""

    name = "ClientQuota"
    spec: type[BaseModel] = ClientQuotaSpec
    policy_words: PolicyWords = QUOTA_WORDS

    def parse(self, name: str, spec: ClientQuotaSpec) -> tuple[ClientQuotaBody, tuple[Problem, ...]]:
        """See `core.kind.Kind`."""
        return parse_quota(name, spec)

    def select(self, name: str, body: ClientQuotaBody | None, owned: Json) -> Selections:
        """The entity that is declared, the one that is owned, and those whose limits hold in their place."""
        entity = body.entity if body is not None else owned_entity(owned)
        if entity is None:
            return ()
        before = owned_entity(owned) or entity
        return (QuotaSelection(frozenset({entity, before, *find_shadowing(entity)})),)

    def diff(
        self,
        resource: ResourceId,
        desired: Desired | None,
        live: LiveState,
        owned: Json,
        context: PlanContext,
    ) -> Difference:
        """See `core.kind.Kind`."""
        return diff_quota(resource, desired, live.get(QuotaState), owned)

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """A new or lower limit is disruptive."""
        return assess_limit(field)

    def plan_operations(
        self, change: Change, desired: Desired | None, live: LiveState, owned: Json, context: PlanContext
    ) -> tuple[Operation, ...]:
        """One atomic operation."""
        entity = desired.body.entity if desired is not None else owned_entity(owned)
        assert entity is not None
        return plan_quota(change, entity)

    def merge_ownership(self, before: Json, after: Json, done: tuple[Operation, ...], all_done: bool) -> Json:
        """See `core.kind.Kind`."""
        if all_done:
            return after
        if not done:
            return before
        keys = {item.key for op in done for item in get_arguments(op, AlterQuotaArgs).ops}
        old, new = (before or {}).get("limits", {}), (after or {}).get("limits", {})
        limits = {key: value for key, value in old.items() if key not in keys}
        limits |= {key: value for key, value in new.items() if key in keys}
        if after is None and not limits:
            return None
        return {**(after or before), "limits": limits}

    def list_exclusive_settings(self, name: str, body: ClientQuotaBody) -> Mapping[str, Json]:
        """The entity: only one manifest may state limits of it."""
        return {f"the limits of {body.entity}": f"those of ClientQuota/{name}"}

    def describe_declared(self, desired: Desired) -> Mapping[str, object]:
        """The entity, and its declared limits."""
        return describe_quota(desired.body.entity, desired.body.limits)

    def describe_live(
        self, resource: ResourceId, desired: Desired | None, live: LiveState, owned: Json
    ) -> Mapping[str, object] | None:
        """The entity, and all limits that it has."""
        entity = desired.body.entity if desired is not None else owned_entity(owned)
        return None if entity is None else describe_quota(entity, live.get(QuotaState).of(entity))

    def to_json(self, name: str, body: ClientQuotaBody) -> Json:
        """See `core.capabilities.BodyCodec`."""
        return encode_quota(body)

    def from_json(self, json: Json) -> ClientQuotaBody:
        """See `core.capabilities.BodyCodec`."""
        return decode_quota(json)

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """One manifest for each entity that has limits."""
        return export_quotas(read_quotas(connections), request)
