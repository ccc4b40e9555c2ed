"""The kind `ClientQuota`, its export to manifests, and the fields of quotas for policies."""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.live_codec import DeclaredFacts, LiveKey
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.policies.policy_fields import PolicyField, PolicyWords
from kdeclare.core.resources.audit_rules import AuditRules
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import (
    DesiredResource,
    Difference,
    SpecPath,
    SpecProblem,
    narrow,
    narrow_optional,
)
from kdeclare.core.resources.manifest_capabilities import (
    DeclaredFields,
    Export,
    ExportRequest,
    ManifestEdits,
    OmittedObjects,
)
from kdeclare.core.resources.manifest_text import render_manifest, scalar
from kdeclare.core.resources.owned_record import OwnedRecord, merge_fields, narrow_record
from kdeclare.providers.kafka.client_quota.collector import (
    QuotaSelection,
    QuotaState,
    read_quotas,
    require_visible,
)
from kdeclare.providers.kafka.client_quota.diff import (
    QuotaRecord,
    assess_limit,
    build_absent_record,
    diff_quota,
    find_entity,
    ignore_limits,
)
from kdeclare.providers.kafka.client_quota.entity import (
    LIMITS,
    EntityType,
    LiveLimit,
    QuotaEntity,
    format_limit,
    list_shadowing_entities,
)
from kdeclare.providers.kafka.client_quota.fleet import (
    QuotaRules,
    find_listed_entity,
    find_quota_key,
    list_quota_facts,
)
from kdeclare.providers.kafka.client_quota.manifest_edits import (
    convert_limit,
    find_quota_edits,
    is_quota_as_changed,
    is_same_limit,
    report_unknown_entity,
)
from kdeclare.providers.kafka.client_quota.operations import AlterQuotaArgs, build_quota_operations
from kdeclare.providers.kafka.client_quota.spec import (
    ClientQuotaBody,
    ClientQuotaSpec,
    bind_quota,
    dump_quota,
    parse_quota,
)
from kdeclare.providers.kafka.error_names import UNSUPPORTED_VERSION
from kdeclare.providers.kafka.manifest_edits import is_setting_claimed

DEFAULT_NAME = ""
"""The name of a default entity in policies: an empty string, which no other entity has as its name."""


def _list_names() -> Mapping[str, type]:
    return {"user": str, "clientId": str, "ip": str}


def _list_limits() -> Mapping[str, type]:
    return dict.fromkeys(LIMITS, object)


QUOTA_WORDS = PolicyWords(
    {
        "entity": PolicyField(dict[str, str], keys=_list_names, elements="names"),
        "limits": PolicyField(dict[str, object], keys=_list_limits, elements="limits"),
    },
    subject="quota",
)


def describe_quota(entity: QuotaEntity, limits: JsonObject) -> Mapping[str, object]:
    """Return the fields of an entity and its limits for policies. The limit None means "no limit"."""
    return {
        "entity": {field: DEFAULT_NAME if name is None else name for field, name in entity.to_json().items()},
        "limits": {key: value for key, value in limits.items() if value is not None},
    }


_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{1,80}")
_WORDS = {EntityType.USER: "user", EntityType.CLIENT_ID: "client", EntityType.IP: "ip"}


def export_quotas(live: QuotaState, request: ExportRequest) -> Export:
    """Return a manifest for each entity with limits.

    The name of a manifest is derived from the entity. If the request contains names, only entities whose
    user, client id or IP address matches are selected.
    """
    if not live.is_visible:
        is_unsupported = live.fault is not None and live.fault.error == UNSUPPORTED_VERSION
        cause = (
            "the brokers do not support them"
            if is_unsupported
            else "the principal is not permitted to describe quotas"
        )
        reason = f"ClientQuota: {cause}"
        return Export({}, (OmittedObjects(1, "kind", "kinds", reason),))
    entities_by_name: dict[str, QuotaEntity] = {}
    for entity in sorted(live.limits, key=lambda entity: entity.key):
        name = make_manifest_name(entity)
        entities_by_name[name if name not in entities_by_name else f"{name}-{hash_entity(entity)}"] = entity
    requested = {
        name: entities_by_name[name]
        for name in sorted(entities_by_name)
        if _is_requested(entities_by_name[name], request)
    }
    permitted = {name: e for name, e in requested.items() if request.permits(ResourceId("ClientQuota", name))}
    out_of_scope_count = len(requested) - len(permitted)
    undeclarable_count = sum(
        not _is_declarable(k, v) for e in permitted.values() for k, v in live.of(e).items()
    )
    return Export(
        {name: _render_manifest(name, entity, live.of(entity)) for name, entity in permitted.items()},
        (
            OmittedObjects(out_of_scope_count, "quota", "quotas", "outside the scope of the project"),
            OmittedObjects(
                undeclarable_count, "limit", "limits", "not supported in manifests; see the comments"
            ),
        ),
    )


def _is_requested(entity: QuotaEntity, request: ExportRequest) -> bool:
    names = (name for _, name in entity.parts if name is not None)
    return not request.is_selective or any(map(request.matches, names))


def _is_declarable(key: str, value: LiveLimit) -> bool:
    return key in LIMITS and not isinstance(value, str) and value > 0


def _render_manifest(name: str, entity: QuotaEntity, limits: Mapping[str, LiveLimit]) -> str:
    lines = [line for key, value in sorted(limits.items()) for line in _render_limit(key, value)]
    has_limits = any(not line.lstrip().startswith("#") for line in lines)
    spec = ["entity:", *_render_entity(entity), "limits:" if has_limits else "limits: {}", *lines]
    return render_manifest("ClientQuota", name, spec, [f"Limits of {_escape(str(entity))}."])


def _render_entity(entity: QuotaEntity) -> Iterator[str]:
    for field, name in entity.to_json().items():
        yield f"  {field}: {'{default: true}' if name is None else scalar(name, text=True)}"


def _render_limit(key: str, value: LiveLimit) -> Iterator[str]:
    if not _is_declarable(key, value):
        yield f"  # {key} is {value}, which manifests do not support"
        return
    formatted_limit = format_limit(key, value)
    is_plain = formatted_limit == f"{value:,} {LIMITS[key].unit}" or formatted_limit.endswith(" bytes/s")
    yield f"  {key}: {value}" + ("" if is_plain else f"  # {formatted_limit}")


def make_manifest_name(entity: QuotaEntity) -> str:
    """Return a readable manifest name for an entity, with a hash if the name could be ambiguous."""
    words = [word for type_, name in entity.parts for word in (_WORDS[type_], name or "default")]
    is_plain = all(
        name is None or (name != "default" and _PLAIN_NAME.fullmatch(name)) for _, name in entity.parts
    )
    if is_plain:
        return "-".join(words)
    sanitized_words = (re.sub(r"[^A-Za-z0-9._-]+", "-", word).strip("-")[:40] for word in words)
    return "-".join([*filter(None, sanitized_words), hash_entity(entity)])


def hash_entity(entity: QuotaEntity) -> str:
    return hashlib.sha256(entity.key.encode()).hexdigest()[:8]


def _escape(text: str) -> str:
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


class ClientQuotaKind:
    """The kind `ClientQuota`. Kafka lists a quota entity only while it has at least one limit."""

    name = "ClientQuota"
    spec: type[BaseModel] = ClientQuotaSpec
    record: type[OwnedRecord] = QuotaRecord
    policy_words: PolicyWords = QUOTA_WORDS
    individual_fields: frozenset[str] = frozenset({"entity"})
    audit_rules: AuditRules = QuotaRules()

    def parse(self, name: str, spec: BaseModel) -> tuple[ClientQuotaBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        return parse_quota(name, narrow(spec, ClientQuotaSpec))

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Select the declared and owned entities, and entities whose limits take precedence over theirs."""
        body = narrow_optional(body, ClientQuotaBody)
        record = narrow_record(owned, QuotaRecord)
        before = record.quota_entity if record is not None else None
        entity = body.entity if body is not None else before
        if entity is None:
            return ()
        return (QuotaSelection(frozenset({entity, before or entity, *list_shadowing_entities(entity)})),)

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        return diff_quota(resource, desired, live.get(QuotaState), narrow_record(owned, QuotaRecord))

    def ignore_fields(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> ClientQuotaBody:
        """See `IgnoresChanges`."""
        body = desired.get_body(ClientQuotaBody)
        return ignore_limits(body, live.get(QuotaState), narrow_record(owned, QuotaRecord))

    def build_absent_record(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> OwnedRecord | None:
        """See `DeletesByRecord`."""
        body = desired.get_body(ClientQuotaBody)
        return build_absent_record(body, live.get(QuotaState), narrow_record(owned, QuotaRecord))

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """Return the field change with its risk: disruptive for a new or lower limit."""
        return assess_limit(field)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """Plan one operation, which changes all limits of an entity atomically."""
        entity = find_entity(desired, owned)
        assert entity is not None
        return build_quota_operations(change, entity)

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
        keys = {item.key for op in done for item in get_arguments(op, AlterQuotaArgs).ops}
        old, new = narrow_record(before, QuotaRecord), narrow_record(after, QuotaRecord)
        limits = merge_fields(old.limits if old else {}, new.limits if new else {}, keys)
        base_record = new or old
        return (
            None
            if base_record is None or (new is None and not limits)
            else replace(base_record, limits=limits)
        )

    def list_exclusive_settings(self, name: str, body: object) -> JsonObject:
        """Return the entity as an exclusive setting: only one manifest can declare its limits."""
        entity = narrow(body, ClientQuotaBody).entity
        return {f"the manifest that declares the limits of {entity}": f"ClientQuota/{name}"}

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """Return the entity and its declared limits."""
        body = desired.get_body(ClientQuotaBody)
        return describe_quota(body.entity, body.limits)

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        """Return the entity and its live limits. An undeclared quota has the entity key as its name."""
        state = live.get(QuotaState)
        entity = find_entity(desired, owned)
        if entity is None:
            entity = find_listed_entity(resource.name, state)
        return None if entity is None else describe_quota(entity, state.of(entity))

    def select_every(self) -> Selections:
        """Return an empty selection, because listing the live quotas reads all entities."""
        return (QuotaSelection(),)

    def list_live(self, live: LiveState) -> Collection[str]:
        """Return the keys of all entities with limits. Raises Fault if quotas are not visible."""
        return [entity.key for entity in require_visible(live.get(QuotaState)).limits]

    def is_self_contained(self, name: str, body: object) -> bool:
        """Return True: the diff of a quota needs only the live limits of its entity."""
        return True

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey | None:
        """Return the key of the owned entity or, if the resource is not owned, of the declared entity."""
        return find_quota_key(narrow_optional(body, ClientQuotaBody), narrow_record(owned, QuotaRecord))

    def list_facts(self, body: object, owned: OwnedRecord | None) -> DeclaredFacts | None:
        """Return the facts about the declared limits."""
        return list_quota_facts(narrow(body, ClientQuotaBody), narrow_record(owned, QuotaRecord))

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """See `providers.kafka.client_quota.manifest_edits`."""
        return find_quota_edits(change)

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        """Raise KdeclareError, because a change to limits does not contain the entity for a new manifest."""
        raise KdeclareError(report_unknown_entity(change.id))

    def is_same_value(self, path: SpecPath, text: str, value: JsonValue) -> bool:
        """See `providers.kafka.client_quota.manifest_edits`."""
        return is_same_limit(path, text, value)

    def convert_value(self, path: SpecPath, text: str) -> str | None:
        """See `ConvertsValues`. Byte rates can be amounts, such as ``10MiB``."""
        return convert_limit(path, text)

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        """See `providers.kafka.client_quota.manifest_edits`."""
        body = narrow_optional(before, ClientQuotaBody)
        return is_quota_as_changed(body, narrow(after, ClientQuotaBody), change)

    def is_field_claimed(self, field: FieldChange, stated: JsonObject) -> bool:
        """See `providers.kafka.manifest_edits`."""
        return is_setting_claimed(field, stated)

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `BodyCodec`."""
        return dump_quota(narrow(body, ClientQuotaBody))

    def from_json(self, json: JsonObject) -> ClientQuotaBody:
        """See `BodyCodec`."""
        return bind_quota(json)

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """Return one manifest for each entity that has limits."""
        return export_quotas(read_quotas(connections), request)
