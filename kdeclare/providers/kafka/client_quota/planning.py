"""What plans make of quotas beyond what the diff of one resource says."""

from collections.abc import Iterator, Mapping, Sequence

from kdeclare.core.diagnostics import Diagnostic, denied, info, warning
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.plans.planning import PlanInputs
from kdeclare.core.resources.changes import Action, Change, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Compared, Desired, Difference
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from kdeclare.providers.kafka.client_quota.collector import QuotaState
from kdeclare.providers.kafka.client_quota.diff import QuotaRecord, diff_quota, find_entity
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity, describe_limit, find_shadowing
from kdeclare.providers.kafka.client_quota.spec import ClientQuotaBody

_KIND = "ClientQuota"


class QuotaPlanning:
    """The quotas of one plan: which manifest each entity belongs to now, and belonged to before."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Serve one plan."""
        self._live = inputs.live.find(QuotaState)
        self._by_hand = inputs.by_hand
        self._declared: dict[QuotaEntity, Desired] = {
            item.get_body(ClientQuotaBody).entity: item for item in inputs.desired if item.id.kind == _KIND
        }
        self._resources = inputs.state.resources if inputs.state is not None else {}
        self._owned: dict[QuotaEntity, tuple[ResourceId, QuotaRecord]] = {}
        for text, record in self._resources.items():
            if isinstance(record, QuotaRecord):
                self._owned[record.whose] = ResourceId.parse(text), record
        self._names = {item.id for item in self._declared.values()}

    def withhold(
        self, resource: ResourceId, desired: Desired | None, owned: OwnedRecord | None
    ) -> Difference | None:
        """Leave quotas alone that the principal may not see: there may well be limits."""
        if resource.kind != _KIND or self._live is None or self._live.is_visible:
            return None
        return Difference(None, owned, diagnostics=(_hidden(resource, desired),))

    def review_difference(
        self, resource: ResourceId, desired: Desired | None, owned: OwnedRecord | None, difference: Difference
    ) -> Difference:
        """Let a manifest that was given another name keep what it owns: its entity is what counts."""
        if resource.kind != _KIND or self._by_hand or self._live is None:
            return difference
        if desired is not None:
            before = self._owned.get(desired.get_body(ClientQuotaBody).entity)
            if owned is not None or before is None or before[0] in self._names:
                return difference
            return diff_quota(resource, desired, self._live, before[1])
        record = narrow_record(owned, QuotaRecord)
        entity = record.whose if record is not None else None
        renamed = self._declared.get(entity) if entity is not None else None
        if renamed is None or renamed.id == resource:
            return difference
        known = (_renamed(resource, renamed, entity),)
        taken_over = str(renamed.id) in self._resources
        if taken_over or diff_quota(renamed.id, renamed, self._live, record).change is None:
            return Difference(Change(resource, Action.FORGET, Reason.FORGOTTEN, Risk.SAFE), diagnostics=known)
        # it also changes, which may be denied or fail: until then, the earlier record says what is owned
        orphan = Change(resource, Action.NO_OP, Reason.ORPHANED, Risk.SAFE)
        return Difference(orphan, owned, diagnostics=known)

    def find_shadowed(self, compared: Sequence[Compared]) -> Iterator[Diagnostic]:
        """Warn of declared limits that never hold, because those of another entity come first."""
        if self._live is None:
            return
        after = _limits_after(self._live, compared)
        for item in compared:
            if item.id.kind != _KIND or item.desired is None:
                continue
            body = item.desired.get_body(ClientQuotaBody)
            for key in sorted(key for key, value in body.limits.items() if value is not None):
                first = next((e for e in find_shadowing(body.entity) if key in after.get(e, {})), None)
                if first is not None:
                    yield _shadowed(item.desired, key, first, after[first][key])

    def count_unmanaged(self) -> int:
        """Count entities with limits that no manifest declares and kdeclare does not own."""
        if self._live is None:
            return 0
        return len(self._live.limits.keys() - self._declared.keys() - self._owned.keys())


def _limits_after(live: QuotaState, compared: Sequence[Compared]) -> Mapping[QuotaEntity, JsonObject]:
    """The limits as they will be once the plan is applied."""
    after: dict[QuotaEntity, dict[str, JsonValue]] = {
        entity: dict(limits) for entity, limits in live.limits.items()
    }
    for item in compared:
        entity = find_entity(item.desired, item.owned) if item.id.kind == _KIND else None
        change = item.change
        if entity is None or change is None or change.blocked or change.action is not Action.UPDATE:
            continue
        limits = after.setdefault(entity, {})
        for field in change.fields:
            key = field.path.partition(".")[2]
            if field.after is None:
                limits.pop(key, None)
            else:
                limits[key] = field.after
    return after


def _hidden(resource: ResourceId, desired: Desired | None) -> Diagnostic:
    say, left = (denied, "is left unchanged") if desired else (warning, "is left unchanged and stays owned")
    return say(
        "not-visible",
        "Quotas cannot be seen",
        f"{resource} {left}: without the right DescribeConfigs on the cluster, its limits are not known.",
        hint="Ask for DescribeConfigs on the cluster.",
        place=desired.source if desired else None,
        resource=str(resource),
    )


def _shadowed(desired: Desired, key: str, first: QuotaEntity, value: JsonValue) -> Diagnostic:
    return warning(
        "shadowed-limit",
        "Limit never applies",
        f"'{key}' of {desired.get_body(ClientQuotaBody).entity} has no effect: brokers take that of {first} "
        f"first, which is {describe_limit(key, value)}.",
        hint=f"Remove '{key}' of {first}, or declare it for a more specific entity.",
        place=desired.source,
        resource=str(desired.id),
        subject=key,
    )


def _renamed(resource: ResourceId, renamed: Desired, entity: QuotaEntity | None) -> Diagnostic:
    return info(
        "renamed",
        "Manifest renamed",
        f"{renamed.id} declares the limits of {entity}, which were applied as {resource}, and takes them "
        "over.",
        place=renamed.source,
        resource=str(resource),
    )
