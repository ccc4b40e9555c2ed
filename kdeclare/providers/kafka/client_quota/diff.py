"""The three-way diff of the limits of one entity, by key, and what is remembered of them."""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Annotated

from kdeclare.core.diagnostics import Diagnostic, denied
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.operations.binding import EMPTY_UNSTATED
from kdeclare.core.resources.adoption import adopt_settings
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk, highest_risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired, Difference
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from kdeclare.providers.kafka.client_quota.collector import QuotaState
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity, describe_limit
from kdeclare.providers.kafka.client_quota.spec import ClientQuotaBody

Limits = Mapping[str, int | float | None]
"""Limits by key; None is "no limit"."""


@dataclass(frozen=True, slots=True)
class QuotaRecord(OwnedRecord):
    """The limits of one entity that are kdeclare's.

    entity: as `QuotaEntity.to_json` has it. labels: policies judge what happens to an orphan by them.
    """

    entity: Mapping[str, str | None]
    limits: Limits
    labels: Annotated[Mapping[str, str], EMPTY_UNSTATED] = field(default_factory=dict)

    @property
    def whose(self) -> QuotaEntity:
        """The entity."""
        return QuotaEntity.from_json(self.entity)


def find_entity(desired: Desired | None, owned: OwnedRecord | None) -> QuotaEntity | None:
    """Return the entity that is declared, or else the one that is owned."""
    if desired is not None:
        return desired.get_body(ClientQuotaBody).entity
    record = narrow_record(owned, QuotaRecord)
    return record.whose if record is not None else None


PREFIX = "limits."


def diff_quota(
    resource: ResourceId, desired: Desired | None, live: QuotaState, owned: QuotaRecord | None
) -> Difference:
    """Compare what is desired, live and owned of one entity."""
    entity = owned.whose if owned is not None else None
    applied: Limits = owned.limits if owned is not None else {}
    if desired is None:
        return _diff_undeclared(resource, live.of(entity) if entity is not None else {}, applied)
    body = desired.get_body(ClientQuotaBody)
    if entity is not None and entity != body.entity:
        return Difference(None, owned, diagnostics=(_other_entity(resource, desired, entity),))
    now = live.of(body.entity)
    fields = tuple(
        field
        for key in sorted({*body.limits, *applied, *now})
        for field in _diff_key(key, body, now.get(key), applied)
    )
    drifted = tuple(PREFIX + key for key in sorted(applied) if not _is_same(now.get(key), applied[key]))
    found: tuple[Diagnostic, ...] = ()
    change = None
    if fields:
        otherwise = Reason.DECLARED if owned is None else Reason.CHANGED
        reason = Reason.DRIFTED if drifted else otherwise
        change = Change(resource, Action.UPDATE, reason, highest_risk(fields), fields, desired.source)
        adopted = [field.path for field in fields if _is_adopted(field, body, now, owned)]
        if adopted:
            change, said = adopt_settings(change, desired, adopted, drifted, otherwise)
            found = (said,)
    others = now.keys() - body.limits.keys() - applied.keys()
    unmanaged = () if body.remove_unmanaged else tuple(sorted(others))
    record = QuotaRecord(body.entity.to_json(), dict(body.limits), dict(desired.labels))
    return Difference(change, record, unmanaged, found, drifted=drifted)


def assess_limit(field: FieldChange) -> FieldChange:
    """Return the field with its risk: a new or lower limit throttles clients that were not throttled."""
    before, after = field.before, field.after
    if after is None or _is_no_lower(before, after):
        return replace(field, risk=Risk.SAFE, cause="")
    limit = describe_limit(field.path.removeprefix(PREFIX), after)
    return replace(field, risk=Risk.DISRUPTIVE, cause=f"Clients above {limit} are throttled.")


def _diff_undeclared(resource: ResourceId, now: JsonObject, applied: Limits) -> Difference:
    """Take away what was applied; of what is gone anyway, nothing is left to say."""
    gone = (key for key in sorted(applied) if applied[key] is not None and key in now)
    fields = tuple(_field(key, FieldOp.DELETE, now[key], None) for key in gone)
    if not fields:
        return Difference(None)
    return Difference(Change(resource, Action.UPDATE, Reason.ORPHANED, highest_risk(fields), fields))


def _diff_key(key: str, body: ClientQuotaBody, now: JsonValue, applied: Limits) -> Iterator[FieldChange]:
    if key in body.limits:
        wanted = body.limits[key]
        if not _is_same(now, wanted):
            yield _field(key, FieldOp.DELETE if wanted is None else FieldOp.SET, now, wanted)
    elif now is not None and (applied.get(key) is not None or (body.remove_unmanaged and key not in applied)):
        yield _field(key, FieldOp.DELETE, now, None)


def _is_adopted(
    field: FieldChange, body: ClientQuotaBody, now: JsonObject, owned: QuotaRecord | None
) -> bool:
    """Whether a change takes over a limit that others have set.

    What unmanagedLimits: remove takes away, it takes away by what the manifest says once that was applied.
    """
    key = field.path.removeprefix(PREFIX)
    if key not in now or (owned is not None and key in owned.limits):
        return False
    return key in body.limits or owned is None


def _field(key: str, op: FieldOp, before: JsonValue, after: JsonValue) -> FieldChange:
    return assess_limit(FieldChange(PREFIX + key, op, before, after))


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two limits are the same number, or both are none."""
    return bool(one == other)


def _is_no_lower(before: JsonValue, after: JsonValue) -> bool:
    return isinstance(before, int | float) and isinstance(after, int | float) and after >= before


def _other_entity(resource: ResourceId, desired: Desired, entity: QuotaEntity) -> Diagnostic:
    return denied(
        "entity-changed",
        "Entity changed",
        f"{resource} was applied for {entity}, and its manifest now names "
        f"{desired.get_body(ClientQuotaBody).entity}. A ClientQuota stays with its entity, so nothing is "
        "changed.",
        hint="Give the manifest another metadata.name. The limits of the earlier entity are then deleted "
        f"with --allow-deletes or --delete {resource}, or released with --forget {resource}.",
        place=desired.source,
        resource=str(resource),
    )
