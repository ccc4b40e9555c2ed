"""Plan the request of an ad hoc command, and find conflicts with manifests."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, SourcePosition
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Plan
from kdeclare.core.progress import Progress
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.fleet_capabilities import (
    encode_body,
)
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.manifest_capabilities import (
    is_field_claimed,
)
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.record_binding import dump_record
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.request import PlanRequest

_ABOUT_MANIFESTS = "refused-by-cluster"
"""The code of a diagnostic whose hint mentions a manifest. Ad hoc commands remove this hint."""


@dataclass(frozen=True, slots=True)
class PartialPlan:
    """The plan for the requested resources that can be planned, and the errors about the others."""

    plan: Plan
    failed: Mapping[str, tuple[Diagnostic, ...]]


def plan_adhoc(
    request: PlanRequest, connections: Connections, secrets: SecretSource, progress: Progress
) -> PartialPlan:
    """Plan an ad hoc request. Leave out the resources that cannot be planned.

    Errors about the request as a whole are in the plan. Raises Fault if the cluster does not respond, and
    KdeclareError if the state belongs to a different cluster.
    """
    failed: dict[str, tuple[Diagnostic, ...]] = {}
    while True:
        plan = build_plan(_exclude_failed(request, failed), connections, secrets, progress)
        resource_errors = [
            d for d in plan.diagnostics if d.is_error and d.resource in _list_requested(request)
        ]
        if {
            d.resource for d in resource_errors
        } <= failed.keys():  # errors that remain without the failed resources belong to the plan itself
            return PartialPlan(plan, failed)
        for resource in {d.resource for d in resource_errors if d.resource}:
            failed[resource] = tuple(
                map(_drop_manifest_hint, (d for d in resource_errors if d.resource == resource))
            )


def _list_requested(request: PlanRequest) -> Collection[str]:
    return {str(desired.id) for desired in request.desired} | {str(id_) for id_ in request.scope.removals}


def _exclude_failed(request: PlanRequest, failed: Mapping[str, Sequence[Diagnostic]]) -> PlanRequest:
    if not failed:
        return request
    removals = frozenset(id_ for id_ in request.scope.removals if str(id_) not in failed)
    return replace(
        request,
        desired=tuple(desired for desired in request.desired if str(desired.id) not in failed),
        scope=replace(request.scope, removals=removals),
        diagnostics=tuple(d for d in request.diagnostics if d.resource not in failed),
    )


def _drop_manifest_hint(problem: Diagnostic) -> Diagnostic:
    return replace(problem, hint="") if problem.code == _ABOUT_MANIFESTS else problem


@dataclass(frozen=True, slots=True)
class ClaimedChange:
    """A change that conflicts with a manifest or an ownership record.

    fields: the declared or owned fields, as paths in the plan; empty if the change affects the resource as a
        whole.
    place: the position of the declaration; None if the resource is owned but no longer declared.
    """

    change: Change
    fields: tuple[str, ...]
    place: SourcePosition | None = None


def find_claimed_changes(
    changes: Sequence[Change], declared: Iterable[DesiredResource], owned: Mapping[str, OwnedRecord]
) -> tuple[ClaimedChange, ...]:
    """Return the changes that conflict with manifests or ownership records."""
    desired_by_id = {str(desired.id): desired for desired in declared}
    claimed_changes = []
    for change in changes:
        desired, record = desired_by_id.get(str(change.id)), _dump_record_object(owned.get(str(change.id)))
        stated_values = [
            item for item in (encode_body(desired) if desired else None, record) if item is not None
        ]
        if not stated_values:
            continue
        position = desired.source if desired else None
        if change.action is not Action.UPDATE:
            claimed_changes.append(ClaimedChange(change, (), position))
            continue
        paths = dict.fromkeys(
            f.path
            for f in change.fields
            if any(is_field_claimed(change.id.kind, f, item) for item in stated_values)
        )
        if paths:
            claimed_changes.append(ClaimedChange(change, tuple(paths), position))
    return tuple(claimed_changes)


def _dump_record_object(owned: OwnedRecord | None) -> JsonObject | None:
    if owned is None:
        return None
    record = dump_record(owned)
    return record if isinstance(record, Mapping) else {}
