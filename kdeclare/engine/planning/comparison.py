"""Diffing every resource in scope, and deciding about those that are declared no longer."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, Severity, error, warning
from kdeclare.core.live.collector import Selection
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.plans.plan_hooks import PlanHooks
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.adoption import ADOPTION, allow_adoption
from kdeclare.core.resources.changes import Action, Change, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, ResourceComparison
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.plan_capabilities import (
    forget_identity,
)
from kdeclare.core.resources.record_binding import protect_record
from kdeclare.core.suggestions import format_suggestion
from kdeclare.engine.planning.request import PlanRequest


def list_selections_to_observe(request: PlanRequest) -> tuple[Selection, ...]:
    """All that the resources in scope need."""
    return tuple(
        selection
        for id_, desired, owned in _list_in_scope(request)
        for selection in KINDS[id_.kind].select(id_.name, desired.body if desired else None, owned)
    )


def compare_resources(
    request: PlanRequest, live: LiveState, context: PlanContext, hooks: Sequence[PlanHooks]
) -> list[ResourceComparison]:
    """Diff every resource in scope; return the results in the order of their ids."""
    comparisons = []
    for id_, desired, owned in _list_in_scope(request):
        difference = None
        if id_ not in request.scope.forget:
            difference = next(filter(None, (h.withhold(id_, desired, owned) for h in hooks)), None)
        if difference is None:
            difference = KINDS[id_.kind].diff(id_, desired, live, owned, context)
            if desired is None:
                difference = _resolve_undeclared(request, id_, owned, difference)
            if request.scope.by_hand:
                difference = _to_adhoc(difference)
            for hook in hooks:
                difference = hook.review_difference(id_, desired, owned, difference)
        comparisons.append(ResourceComparison(id_, desired, owned, difference))
    changing_ids = {str(item.id) for item in comparisons if item.desired and item.change}
    if not changing_ids:
        return comparisons
    return [_downgrade_diagnostics(changing_ids, item) for item in comparisons]


def check_names(request: PlanRequest) -> Iterator[Diagnostic]:
    """Targets and resources to forget that are nowhere."""
    declared = {d.id for d in request.desired}
    owned = request.owned
    for target in sorted(request.scope.targets - declared):
        if str(target) in owned:
            yield error(
                "orphaned-target",
                "Not declared anymore",
                f"--target names {target}, which kdeclare manages but no manifest declares anymore.",
                hint=f"Pass --delete {target} to delete it, or --forget {target} to release it.",
            )
            continue
        yield error(
            "unknown-target",
            "No such resource",
            f"--target names {target}, which no manifest declares.",
            hint=format_suggestion(str(target), map(str, sorted(declared)))
            or "See the ids that kdeclare plan shows, of the form Kind/name.",
        )
    selector = request.scope.selector
    if selector and declared and not any(map(request.scope.covers, request.desired)):
        labels = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
        yield warning(
            "nothing-selected",
            "Nothing is selected",
            f"No resource that is declared has the labels {labels}.",
            hint="Look at metadata.labels of the manifests.",
        )
    for option, ids in (("--forget", request.scope.forget), ("--delete", request.scope.deletes)):
        for id_ in sorted(ids):
            if str(id_) not in owned:
                detail = f"{option} names {id_}, which kdeclare does not own."
                yield error("unknown-resource", "Not owned", detail)
            elif id_ in declared:
                yield error(
                    "still-declared",
                    "Still declared",
                    f"{option} names {id_}, which a manifest still declares.",
                    hint="Take it out of the manifests first.",
                )
    if request.scope.deletes and not request.scope.complete:
        yield error(
            "incomplete-project",
            "Only part of the project was loaded",
            "--delete needs to know that no manifest declares the resource.",
            hint="Run the command without PATH, so that all manifests of the project are loaded.",
        )
    for id_ in sorted(request.scope.forget & request.scope.deletes):
        yield error(
            "contradicting-options", "Both deleted and released", f"--delete and --forget name {id_}."
        )


def _list_in_scope(
    request: PlanRequest,
) -> Iterator[tuple[ResourceId, DesiredResource | None, OwnedRecord | None]]:
    if request.scope.by_hand:
        yield from _list_requested(request)
        return
    owned = request.owned
    transform = allow_adoption if request.scope.adopt else _keep_unchanged
    declared = {str(d.id): transform(d) for d in request.desired}
    named_ids = {str(id_) for id_ in request.scope.forget | request.scope.deletes}
    for text in sorted({*declared, *owned}):
        desired = declared.get(text)
        if desired is not None and request.scope.covers(desired):
            yield desired.id, desired, owned.get(text)
        elif desired is None and (request.scope.whole or text in named_ids):
            id_ = ResourceId.parse(text)
            if id_.kind in KINDS:
                yield id_, None, owned[text]


def _keep_unchanged(desired: DesiredResource) -> DesiredResource:
    return desired


def _list_requested(
    request: PlanRequest,
) -> Iterator[tuple[ResourceId, DesiredResource | None, OwnedRecord | None]]:
    """What is owned says only what must not be deleted."""
    requested: dict[ResourceId, DesiredResource | None] = dict.fromkeys(request.scope.removals)
    requested |= {desired.id: allow_adoption(desired) for desired in request.desired}
    for id_ in sorted(requested):
        owned = request.owned.get(str(id_))
        if owned is not None:  # whoever names it means the one that is there
            owned = forget_identity(id_.kind, owned)
        if id_ in request.scope.protected:
            owned = protect_record(id_.kind, owned)
        yield id_, requested[id_], None if requested[id_] else owned


def _to_adhoc(difference: Difference) -> Difference:
    change = difference.change
    if change is None:
        return difference
    diagnostics = tuple(d for d in difference.diagnostics if d.code != ADOPTION)  # nothing is taken over
    blocked = next((d.code for d in diagnostics if d.is_blocking), None)
    fields = tuple(replace(field, reason=None) for field in change.fields)
    change = replace(change, reason=Reason.ASKED, fields=fields, blocked=blocked)
    return replace(difference, change=change, diagnostics=diagnostics, unmanaged=())


def _resolve_undeclared(
    request: PlanRequest, id_: ResourceId, owned: OwnedRecord | None, difference: Difference
) -> Difference:
    """Forgotten, deleted where that was allowed, else an orphan; what is gone anyway is just let go of."""
    change = difference.change
    if request.scope.by_hand:
        return difference
    if id_ in request.scope.forget:
        return Difference(Change(id_, Action.FORGET, Reason.FORGOTTEN, Risk.SAFE))
    if change is None:
        return Difference(None, diagnostics=difference.diagnostics)
    if request.scope.allow_deletes or id_ in request.scope.deletes:
        blocking_code = next((d.code for d in difference.diagnostics if d.is_blocking), None)
        return replace(
            difference,
            change=replace(change, blocked=blocking_code),
            owned=owned if blocking_code else None,
        )
    orphan = replace(change, action=Action.NO_OP, risk=Risk.SAFE, fields=())
    return Difference(orphan, owned, (), (_report_orphaned(id_),))


def _report_orphaned(id_: ResourceId) -> Diagnostic:
    return warning(
        "orphaned",
        "Declared no longer",
        f"{id_} is owned by kdeclare and no manifest declares it any more; it is left as it is.",
        hint=f"Declare it again, delete it with --allow-deletes, or release it with --forget {id_}.",
        resource=str(id_),
    )


def _downgrade_diagnostics(changing_ids: Set[str], comparison: ResourceComparison) -> ResourceComparison:
    """What is wrong with a resource that this very plan changes is only a matter of order."""
    difference = comparison.difference
    if not any(d.subject in changing_ids for d in difference.diagnostics if d.subject):
        return comparison
    diagnostics = tuple(
        replace(d, severity=Severity.WARNING, hint="Plan again once that has been applied.")
        if d.subject in changing_ids
        else d
        for d in difference.diagnostics
    )
    return replace(comparison, difference=replace(difference.with_diagnostics(diagnostics), deferred=True))
