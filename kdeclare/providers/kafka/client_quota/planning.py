"""Planning hooks for client quotas: hidden quotas, renamed manifests, and limits without effect."""

from collections.abc import Iterator, Mapping, Sequence, Set

from kdeclare.core.diagnostics import Diagnostic, denied, info, warning
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanStep
from kdeclare.core.resources.changes import Action, Change, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, ResourceComparison
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from kdeclare.providers.kafka.client_quota.collector import QuotaState
from kdeclare.providers.kafka.client_quota.diff import QuotaRecord, diff_quota, find_entity
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity, format_limit, list_shadowing_entities
from kdeclare.providers.kafka.client_quota.spec import ClientQuotaBody
from kdeclare.providers.kafka.collector import report_unsupported
from kdeclare.providers.kafka.error_names import UNSUPPORTED_VERSION

_KIND = "ClientQuota"
_ACTING = (Action.CREATE, Action.UPDATE, Action.DELETE)


class QuotaPlanning(PlanHooks):
    """The planning hooks for client quotas."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Find the declared and owned quota entities of the plan."""
        self._live = inputs.live.find(QuotaState)
        # Detect renamed manifests only if all manifests were read.
        self._follows_renames = inputs.is_complete and not inputs.by_hand
        self._declared: dict[QuotaEntity, DesiredResource] = {
            item.get_body(ClientQuotaBody).entity: item for item in inputs.desired if item.id.kind == _KIND
        }
        self._resources = inputs.state.resources if inputs.state is not None else {}
        self._owned: dict[QuotaEntity, tuple[ResourceId, QuotaRecord]] = {}
        for text, record in self._resources.items():
            if isinstance(record, QuotaRecord):
                self._owned[record.quota_entity] = ResourceId.parse(text), record
        self._names = {item.id for item in self._declared.values()}

    def withhold(
        self, resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> Difference | None:
        """Return a difference without changes if the limits cannot be read; otherwise None."""
        if resource.kind != _KIND or self._live is None or self._live.is_visible:
            return None
        is_unsupported = self._live.fault is not None and self._live.fault.error == UNSUPPORTED_VERSION
        problem = (
            report_unsupported(resource, desired, "client quotas")
            if is_unsupported
            else _report_hidden(resource, desired)
        )
        return Difference(None, owned, diagnostics=(problem,))

    def review_difference(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        owned: OwnedRecord | None,
        difference: Difference,
    ) -> Difference:
        """If a manifest was renamed, transfer the owned limits of the entity to the new resource."""
        if resource.kind != _KIND or not self._follows_renames or self._live is None:
            return difference
        if desired is not None:
            earlier = self._owned.get(desired.get_body(ClientQuotaBody).entity)
            if owned is not None or earlier is None or earlier[0] in self._names:
                return difference
            return diff_quota(resource, desired, self._live, earlier[1])
        record = narrow_record(owned, QuotaRecord)
        entity = record.quota_entity if record is not None else None
        successor = self._declared.get(entity) if entity is not None else None
        if successor is None or successor.id == resource:
            return difference
        diagnostics = (_report_renamed(resource, successor, entity),)
        is_taken_over = str(successor.id) in self._resources
        if is_taken_over or diff_quota(successor.id, successor, self._live, record).change is None:
            return Difference(
                Change(resource, Action.FORGET, Reason.FORGOTTEN, Risk.SAFE), diagnostics=diagnostics
            )
        # The changes of the renamed manifest can be denied or fail. Keep the old record until they succeed.
        orphan = Change(resource, Action.NO_OP, Reason.ORPHANED, Risk.SAFE)
        return Difference(orphan, owned, diagnostics=diagnostics)

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Warn about limits that never apply."""
        return PlanStep(operations, tuple(self._check_shadowed_limits(compared)))

    def _check_shadowed_limits(self, compared: Sequence[ResourceComparison]) -> Iterator[Diagnostic]:
        """Warn about declared limits that never apply because another limit takes precedence."""
        if self._live is None:
            return
        planned_limits = _compute_planned_limits(self._live, compared)
        for item in compared:
            if item.id.kind != _KIND or item.desired is None:
                continue
            body = item.desired.get_body(ClientQuotaBody)
            for key in sorted(key for key, value in body.limits.items() if value is not None):
                shadowing_entity = next(
                    (e for e in list_shadowing_entities(body.entity) if key in planned_limits.get(e, {})),
                    None,
                )
                if shadowing_entity is not None:
                    yield _warn_shadowed(
                        item.desired, key, shadowing_entity, planned_limits[shadowing_entity][key]
                    )

    def count_unmanaged(self, known: Set[str]) -> int:
        """Count the entities with live limits that are neither declared nor owned."""
        if self._live is None:
            return 0
        return len(self._live.limits.keys() - self._declared.keys() - self._owned.keys())


def _compute_planned_limits(
    live: QuotaState, compared: Sequence[ResourceComparison]
) -> Mapping[QuotaEntity, JsonObject]:
    """Return the limits of each entity after the plan is applied."""
    planned_limits: dict[QuotaEntity, dict[str, JsonValue]] = {
        entity: dict(limits) for entity, limits in live.limits.items()
    }
    for item in compared:
        entity = find_entity(item.desired, item.compared_record) if item.id.kind == _KIND else None
        change = item.change
        if entity is None or change is None or change.blocked or change.action not in _ACTING:
            continue
        limits = planned_limits.setdefault(entity, {})
        for field in change.fields:
            key = field.path.partition(".")[2]
            if field.after is None:
                limits.pop(key, None)
            else:
                limits[key] = field.after
    return planned_limits


def _report_hidden(resource: ResourceId, desired: DesiredResource | None) -> Diagnostic:
    make_diagnostic, outcome = (
        (denied, "is left unchanged") if desired else (warning, "is left unchanged and stays owned")
    )
    return make_diagnostic(
        "not-visible",
        "Quotas not visible",
        f"{resource} {outcome}: without the DescribeConfigs permission on the cluster, kdeclare cannot read "
        "the limits of quotas.",
        hint="Grant kdeclare the DescribeConfigs permission on the cluster.",
        place=desired.source if desired else None,
        resource=str(resource),
    )


def _warn_shadowed(
    desired: DesiredResource, key: str, shadowing_entity: QuotaEntity, value: JsonValue
) -> Diagnostic:
    return warning(
        "shadowed-limit",
        "Limit never applies",
        f"'{key}' of {desired.get_body(ClientQuotaBody).entity} has no effect, because the limit of "
        f"{shadowing_entity} ({format_limit(key, value)}) takes precedence.",
        hint=f"Remove '{key}' from {shadowing_entity}, or declare '{key}' for a more specific entity.",
        place=desired.source,
        resource=str(desired.id),
        subject=key,
    )


def _report_renamed(
    resource: ResourceId, successor: DesiredResource, entity: QuotaEntity | None
) -> Diagnostic:
    return info(
        "renamed",
        "Manifest renamed",
        f"The limits of {entity} were declared by {resource} and are now declared by {successor.id}. The "
        f"ownership record moves to {successor.id}.",
        place=successor.source,
        resource=str(resource),
    )
