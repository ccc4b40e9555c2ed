"""The three-way diff of the limits of one entity, by key."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kdeclare.core.adoption import adopt_settings
from kdeclare.core.changes import Action, Change, FieldChange, FieldOp, Reason, Risk, highest_risk
from kdeclare.core.diagnostics import Diagnostic, denied
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired, Difference
from kdeclare.providers.kafka.client_quota.collector import QuotaState
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.client_quota.limits import describe_limit
from kdeclare.providers.kafka.client_quota.spec import ClientQuotaBody

PREFIX = "limits."


def owned_entity(owned: Json) -> QuotaEntity | None:
    """Return the entity that a record of ownership is about."""
    return QuotaEntity.from_json(owned["entity"]) if owned is not None else None


def diff_quota(resource: ResourceId, desired: Desired | None, live: QuotaState, owned: Json) -> Difference:
    """Compare what is desired, live and owned of one entity."""
    entity = owned_entity(owned)
    applied: Mapping[str, Json] = owned["limits"] if owned is not None else {}
    if desired is None:
        return _diff_undeclared(resource, live.of(entity) if entity is not None else {}, applied)
    body: ClientQuotaBody = desired.body
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
    record: dict[str, Json] = {"entity": body.entity.to_json(), "limits": dict(body.limits)}
    if desired.labels:
        record["labels"] = dict(desired.labels)  # policies judge what happens to an orphan by them
    return Difference(change, record, unmanaged, found, drifted=drifted)


def assess_limit(field: FieldChange) -> FieldChange:
    """Return the field with its risk: a new or lower limit throttles clients that were not throttled."""
    before, after = field.before, field.after
    if after is None or (_is_number(before) and _is_number(after) and after >= before):
        return replace(field, risk=Risk.SAFE, cause="")
    limit = describe_limit(field.path.removeprefix(PREFIX), after)
    return replace(field, risk=Risk.DISRUPTIVE, cause=f"Clients above {limit} are throttled.")


def _diff_undeclared(
    resource: ResourceId, now: Mapping[str, Json], applied: Mapping[str, Json]
) -> Difference:
    """Take away what was applied; of what is gone anyway, nothing is left to say."""
    gone = (key for key in sorted(applied) if applied[key] is not None and key in now)
    fields = tuple(_field(key, FieldOp.DELETE, now[key], None) for key in gone)
    if not fields:
        return Difference(None)
    return Difference(Change(resource, Action.UPDATE, Reason.ORPHANED, highest_risk(fields), fields))


def _diff_key(
    key: str, body: ClientQuotaBody, now: Json, applied: Mapping[str, Json]
) -> Iterator[FieldChange]:
    if key in body.limits:
        wanted = body.limits[key]
        if not _is_same(now, wanted):
            yield _field(key, FieldOp.DELETE if wanted is None else FieldOp.SET, now, wanted)
    elif now is not None and (applied.get(key) is not None or (body.remove_unmanaged and key not in applied)):
        yield _field(key, FieldOp.DELETE, now, None)


def _is_adopted(field: FieldChange, body: ClientQuotaBody, now: Mapping[str, Json], owned: Json) -> bool:
    """Whether a change takes over a limit that others have set.

    What unmanagedLimits: remove takes away, it takes away by what the manifest says once that was applied.
    """
    key = field.path.removeprefix(PREFIX)
    if key not in now or (owned is not None and key in owned["limits"]):
        return False
    return key in body.limits or owned is None


def _field(key: str, op: FieldOp, before: Json, after: Json) -> FieldChange:
    return assess_limit(FieldChange(PREFIX + key, op, before, after))


def _is_same(one: Json, other: Json) -> bool:
    """Whether two limits are the same number, or both are none."""
    return bool(one == other)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float)


def _other_entity(resource: ResourceId, desired: Desired, entity: QuotaEntity) -> Diagnostic:
    return denied(
        "entity-changed",
        "Entity changed",
        f"{resource} was applied for {entity}, and its manifest now names {desired.body.entity}. A "
        "ClientQuota stays with its entity, so nothing is changed.",
        hint="Give the manifest another metadata.name. The limits of the earlier entity are then deleted "
        f"with --allow-deletes or --delete {resource}, or released with --forget {resource}.",
        place=desired.source,
        resource=str(resource),
    )
