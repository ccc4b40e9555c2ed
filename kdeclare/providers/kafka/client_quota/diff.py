"""The three-way diff of the limits of one quota entity, and the record of the owned limits."""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Annotated

from kdeclare.core.diagnostics import Diagnostic, denied
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.operations.argument_binding import OMIT_EMPTY
from kdeclare.core.resources.adoption import adopt_settings
from kdeclare.core.resources.changes import (
    Action,
    Change,
    FieldChange,
    FieldOp,
    Reason,
    Risk,
    find_highest_risk,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from kdeclare.providers.kafka.client_quota.collector import QuotaState
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity, format_limit
from kdeclare.providers.kafka.client_quota.spec import LIMIT_FIELD_PREFIX, ClientQuotaBody
from kdeclare.providers.kafka.settings_action import find_settings_action

Limits = Mapping[str, int | float | None]
"""Limits by key. None means no limit."""


@dataclass(frozen=True, slots=True)
class QuotaRecord(OwnedRecord):
    """The owned limits of one entity.

    entity: the entity in the format of `QuotaEntity.to_json`.
    labels: the labels of the manifest. Policies use the labels even after the resource becomes an orphan.
    """

    entity: Mapping[str, str | None]
    limits: Limits
    labels: Annotated[Mapping[str, str], OMIT_EMPTY] = field(default_factory=dict)

    @property
    def quota_entity(self) -> QuotaEntity:
        """The entity that has these limits."""
        return QuotaEntity.from_json(self.entity)


def find_entity(desired: DesiredResource | None, owned: OwnedRecord | None) -> QuotaEntity | None:
    """Return the declared entity or, if the resource is not declared, the owned entity."""
    if desired is not None:
        return desired.get_body(ClientQuotaBody).entity
    record = narrow_record(owned, QuotaRecord)
    return record.quota_entity if record is not None else None


def ignore_limits(body: ClientQuotaBody, live: QuotaState, owned: QuotaRecord | None) -> ClientQuotaBody:
    """Return the body without the ignored limits that are already set or that kdeclare has applied before.

    An ignored field is normally set when kdeclare creates the resource. kdeclare never creates quota
    entities, so it sets an ignored limit once, if the limit is not set yet. The same applies to ignored
    configs of brokers.
    """
    if not body.ignored:
        return body
    settled = body.ignored_keys & {*live.of(body.entity), *(owned.limits if owned is not None else ())}
    return replace(body, limits={key: v for key, v in body.limits.items() if key not in settled})


def build_absent_record(
    body: ClientQuotaBody, live: QuotaState, owned: QuotaRecord | None
) -> QuotaRecord | None:
    """Return a record of everything to delete; see `DeletesByRecord`.

    An entity is absent if it has no limits.
    """
    if owned is not None and (owned.quota_entity != body.entity or not body.adopt):
        return owned
    deleted_limits: Limits = dict.fromkeys(live.of(body.entity), 0)  # the diff uses only the keys
    if owned is not None:
        return replace(owned, limits={**owned.limits, **deleted_limits})
    return QuotaRecord(body.entity.to_json(), deleted_limits) if deleted_limits else None


def diff_quota(
    resource: ResourceId, desired: DesiredResource | None, live: QuotaState, owned: QuotaRecord | None
) -> Difference:
    """Compare the desired, live and owned limits of one entity."""
    entity = owned.quota_entity if owned is not None else None
    applied: Limits = owned.limits if owned is not None else {}
    if desired is None:
        return _diff_undeclared(resource, live.of(entity) if entity is not None else {}, applied)
    body = ignore_limits(desired.get_body(ClientQuotaBody), live, owned)
    if entity is not None and entity != body.entity:
        return Difference(None, owned, diagnostics=(_report_entity_changed(resource, desired, entity),))
    live_limits = live.of(body.entity)
    # The limits that stay as they are. Their ownership does not change either.
    kept_keys = body.ignored_keys - body.limits.keys()
    kept_limits = {key: limit for key, limit in applied.items() if key in kept_keys}
    applied = {key: limit for key, limit in applied.items() if key not in kept_keys}
    fields = tuple(
        field
        for key in sorted({*body.limits, *applied, *live_limits} - kept_keys)
        for field in _diff_key(key, body, live_limits.get(key), applied)
    )
    drifted = tuple(
        LIMIT_FIELD_PREFIX + key
        for key in sorted(applied)
        if not _is_same(live_limits.get(key), applied[key])
    )
    diagnostics: tuple[Diagnostic, ...] = ()
    change = None
    if fields:
        live_paths = [LIMIT_FIELD_PREFIX + key for key in live_limits]
        is_partial = body.is_partial
        action = Action.UPDATE if is_partial else find_settings_action(fields, live_paths, is_declared=True)
        undrifted_reason = Reason.DECLARED if owned is None else Reason.CHANGED
        drift_reason = Reason.MISSING if action is Action.CREATE else Reason.DRIFTED
        reason = drift_reason if drifted else undrifted_reason
        change = Change(resource, action, reason, find_highest_risk(fields), fields, desired.source)
        adopted_paths = [field.path for field in fields if _is_adopted(field, body, live_limits, owned)]
        if adopted_paths:
            change, diagnostic = adopt_settings(change, desired, adopted_paths, drifted, undrifted_reason)
            diagnostics = (diagnostic,)
    other_keys = live_limits.keys() - body.limits.keys() - applied.keys() - kept_keys
    unmanaged = () if body.remove_unmanaged else tuple(sorted(other_keys))
    record = QuotaRecord(body.entity.to_json(), {**kept_limits, **body.limits}, dict(desired.labels))
    return Difference(change, record, unmanaged, diagnostics, drifted=drifted)


def assess_limit(field: FieldChange) -> FieldChange:
    """Return the field change with its risk.

    A new or lower limit throttles more clients, so it is disruptive.
    """
    before, after = field.before, field.after
    if after is None or _is_not_lowered(before, after):
        return replace(field, risk=Risk.SAFE, cause="")
    limit = format_limit(field.path.removeprefix(LIMIT_FIELD_PREFIX), after)
    return replace(field, risk=Risk.DISRUPTIVE, cause=f"Clients that exceed {limit} are throttled.")


def _diff_undeclared(resource: ResourceId, live_limits: JsonObject, applied: Limits) -> Difference:
    """Return the difference for an orphan: the deletion of the owned limits that still exist."""
    removed_keys = (key for key in sorted(applied) if applied[key] is not None and key in live_limits)
    fields = tuple(_build_field(key, FieldOp.DELETE, live_limits[key], None) for key in removed_keys)
    if not fields:
        return Difference(None)
    action = find_settings_action(
        fields, [LIMIT_FIELD_PREFIX + key for key in live_limits], is_declared=False
    )
    return Difference(Change(resource, action, Reason.ORPHANED, find_highest_risk(fields), fields))


def _diff_key(
    key: str, body: ClientQuotaBody, live_limit: JsonValue, applied: Limits
) -> Iterator[FieldChange]:
    if key in body.limits:
        declared_limit = body.limits[key]
        if not _is_same(live_limit, declared_limit):
            yield _build_field(
                key, FieldOp.DELETE if declared_limit is None else FieldOp.SET, live_limit, declared_limit
            )
    elif live_limit is not None and (
        applied.get(key) is not None or (body.remove_unmanaged and key not in applied)
    ):
        yield _build_field(key, FieldOp.DELETE, live_limit, None)


def _is_adopted(
    field: FieldChange, body: ClientQuotaBody, live_limits: JsonObject, owned: QuotaRecord | None
) -> bool:
    """Return whether a field change adopts a limit that another client set.

    Deleting an unmanaged limit (``unmanagedLimits: remove``) is an adoption only before the first apply.
    """
    key = field.path.removeprefix(LIMIT_FIELD_PREFIX)
    if key not in live_limits or (owned is not None and key in owned.limits):
        return False
    return key in body.limits or owned is None


def _build_field(key: str, op: FieldOp, before: JsonValue, after: JsonValue) -> FieldChange:
    return assess_limit(FieldChange(LIMIT_FIELD_PREFIX + key, op, before, after))


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    return bool(one == other)


def _is_not_lowered(before: JsonValue, after: JsonValue) -> bool:
    return isinstance(before, int | float) and isinstance(after, int | float) and after >= before


def _report_entity_changed(resource: ResourceId, desired: DesiredResource, entity: QuotaEntity) -> Diagnostic:
    return denied(
        "entity-changed",
        "Entity changed",
        f"{resource} was applied to {entity}, but the manifest now names "
        f"{desired.get_body(ClientQuotaBody).entity}. The entity of a ClientQuota cannot change, so kdeclare "
        "leaves all limits unchanged.",
        hint="Give the manifest a different metadata.name. To delete the limits of the earlier entity, pass "
        f"--allow-deletes or --delete {resource}; to keep the limits but stop managing them, pass --forget "
        f"{resource}.",
        place=desired.source,
        resource=str(resource),
    )
