"""Diff all resources in the scope of a plan, and delete, release or report undeclared resources."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, Severity, denied, error, warning
from kdeclare.core.live.collector import Selection
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.plans.plan_hooks import PlanHooks
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.adoption import ADOPTION, allow_adoption
from kdeclare.core.resources.changes import Action, Change, Reason, Risk
from kdeclare.core.resources.declared_absence import DeletesByRecord
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import (
    DesiredResource,
    Difference,
    ManifestExclusion,
    ResourceComparison,
)
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.plan_capabilities import PREVENT_DESTROY, forget_identity
from kdeclare.core.resources.record_binding import protect_record
from kdeclare.core.suggestions import format_suggestion
from kdeclare.engine.planning.replacement import check_replacements, resolve_replacement
from kdeclare.engine.planning.request import PlanRequest


def list_selections_to_observe(request: PlanRequest) -> tuple[Selection, ...]:
    """Return the selections of the live state that the resources in scope need."""
    absent = _index_absent(request)
    selections: list[Selection] = []
    for id_, desired, owned in _list_in_scope(request):
        declared = desired or absent.get(id_)
        selections += KINDS[id_.kind].select(id_.name, declared.body if declared else None, owned)
    return tuple(selections)


def compare_resources(
    request: PlanRequest, live: LiveState, context: PlanContext, hooks: Sequence[PlanHooks]
) -> list[ResourceComparison]:
    """Diff all resources in the scope of the plan, and return the results sorted by id."""
    comparisons = []
    absent = _index_absent(request)
    for id_, desired, owned in _list_in_scope(request):
        difference, absent_record = None, None
        if id_ not in request.scope.forget:
            # If the resource was never applied, only its manifest shows in which system it would be.
            declared = desired if owned is not None else desired or absent.get(id_)
            difference = next(filter(None, (h.withhold(id_, declared, owned) for h in hooks)), None)
        if difference is None:
            kind = KINDS[id_.kind]
            if id_ in absent and isinstance(kind, DeletesByRecord):
                absent_record = kind.build_absent_record(absent[id_], live, owned)
            record = owned if absent_record is None else absent_record
            difference = kind.diff(id_, desired, live, record, context)
            if id_ in absent:
                difference = _resolve_absent(absent[id_], owned, difference)
            elif desired is None:
                difference = _resolve_undeclared(request, id_, owned, difference)
            elif id_ in request.scope.replacements:
                difference = resolve_replacement(desired, live, owned, context, difference)
            if request.scope.by_hand:
                difference = _to_adhoc(difference)
            for hook in hooks:
                difference = hook.review_difference(id_, desired, record, difference)
        comparisons.append(ResourceComparison(id_, desired, owned, difference, absent_record))
    changing_ids = {str(item.id) for item in comparisons if item.desired and item.change}
    if not changing_ids:
        return comparisons
    return [_downgrade_diagnostics(changing_ids, item) for item in comparisons]


def check_names(request: PlanRequest) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each option that names an unknown or unsuitable resource."""
    declared = {d.id for d in (*request.desired, *request.absent)}
    owned = request.owned
    for target in sorted(request.scope.targets - declared):
        exclusion = request.exclusions.get(target)
        if str(target) in owned:
            reason = (
                f"{exclusion.field} excludes its manifest from this environment"
                if exclusion is not None
                else "no manifest declares it anymore"
            )
            yield error(
                "orphaned-target",
                "Not declared anymore",
                f"--target names {target}. kdeclare manages it, but {reason}.",
                hint=f"Pass --delete {target} to delete it, or --forget {target} to release it.",
                place=exclusion.place if exclusion is not None else None,
            )
            continue
        if exclusion is not None:
            yield error(
                "excluded-manifest",
                "Manifest is not present in this environment",
                f"--target names {target}, but {exclusion.field} excludes its manifest from the environment "
                f"'{request.env}'.",
                hint=exclusion.hint,
                place=exclusion.place,
            )
            continue
        yield error(
            "unknown-target",
            "No such resource",
            f"--target names {target}, which no manifest declares.",
            hint=format_suggestion(str(target), map(str, sorted(declared)))
            or "Run kdeclare plan to see the resource ids, which have the form Kind/name.",
        )
    selector = request.scope.selector
    all_declared = (*request.desired, *request.absent)
    if selector and all_declared and not any(map(request.scope.covers, all_declared)):
        labels = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
        yield warning(
            "nothing-selected",
            "No resource matches the selector",
            f"No declared resource has the labels {labels}.",
            hint="Check metadata.labels in the manifests.",
        )
    for option, ids in (("--forget", request.scope.forget), ("--delete", request.scope.deletes)):
        for id_ in sorted(ids):
            if str(id_) not in owned:
                detail = f"{option} names {id_}, which kdeclare does not own."
                hint = "Check the id of the resource and the value of --env."
                yield error("unknown-resource", "Resource is not owned", detail, hint=hint)
            elif id_ in declared:
                yield error(
                    "still-declared",
                    "Still declared",
                    f"{option} names {id_}, which a manifest still declares.",
                    hint="Remove the resource from the manifests first.",
                )
    yield from check_replacements(request)
    if request.scope.deletes and not request.scope.complete:
        yield error(
            "incomplete-project",
            "Only part of the project was loaded",
            "--delete requires that all manifests are loaded, to check that none of them declares the "
            "resource.",
            hint="Run the command without PATH, so that all manifests of the project are loaded.",
        )
    for id_ in sorted(request.scope.forget & request.scope.deletes):
        yield error(
            "contradicting-options",
            "Both deleted and released",
            f"--delete and --forget both name {id_}.",
            hint="Pass only one of the two options for this resource.",
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
    absent = {str(d.id): d for d in request.absent}
    named_ids = {str(id_) for id_ in request.scope.forget | request.scope.deletes}
    for text in sorted({*declared, *owned, *absent}):
        desired = declared.get(text)
        if desired is not None and request.scope.covers(desired):
            yield desired.id, desired, owned.get(text)
        elif text in absent:
            if request.scope.covers(absent[text]):
                yield absent[text].id, None, owned.get(text)
        elif desired is None and (request.scope.whole or text in named_ids):
            id_ = ResourceId.parse(text)
            if id_.kind in KINDS:
                yield id_, None, owned[text]


def _keep_unchanged(desired: DesiredResource) -> DesiredResource:
    return desired


def _list_requested(
    request: PlanRequest,
) -> Iterator[tuple[ResourceId, DesiredResource | None, OwnedRecord | None]]:
    """Yield the resources that an ad hoc command requests.

    The ownership record is included only if the command deletes the resource, because the record can forbid
    the deletion.
    """
    requested: dict[ResourceId, DesiredResource | None] = dict.fromkeys(request.scope.removals)
    requested |= {desired.id: allow_adoption(desired) for desired in request.desired}
    for id_ in sorted(requested):
        owned = request.owned.get(str(id_))
        if owned is not None:  # the command is about the current object, whatever its id
            owned = forget_identity(id_.kind, owned)
        if id_ in request.scope.protected:
            owned = protect_record(id_.kind, owned)
        yield id_, requested[id_], None if requested[id_] else owned


def _to_adhoc(difference: Difference) -> Difference:
    change = difference.change
    if change is None:
        return difference
    # An ad hoc command does not take ownership.
    diagnostics = tuple(d for d in difference.diagnostics if d.code != ADOPTION)
    blocked = next((d.code for d in diagnostics if d.is_blocking), None)
    fields = tuple(replace(field, reason=None) for field in change.fields)
    change = replace(change, reason=Reason.ASKED, fields=fields, blocked=blocked)
    return replace(difference, change=change, diagnostics=diagnostics, unmanaged=())


def _resolve_undeclared(
    request: PlanRequest, id_: ResourceId, owned: OwnedRecord | None, difference: Difference
) -> Difference:
    """Decide whether an undeclared resource is released, deleted, or reported as an orphan.

    The resource is deleted only if deletion is allowed. A resource that no longer exists is released.
    """
    change = difference.change
    if request.scope.by_hand:
        return difference
    if id_ in request.scope.forget:
        return Difference(Change(id_, Action.FORGET, Reason.FORGOTTEN, Risk.SAFE))
    if change is None:
        return Difference(None, diagnostics=difference.diagnostics)
    exclusion = request.exclusions.get(id_)
    if exclusion is not None:
        change = replace(change, source=exclusion.place)
    if request.scope.allow_deletes or id_ in request.scope.deletes:
        blocking_code = next((d.code for d in difference.diagnostics if d.is_blocking), None)
        return replace(
            difference,
            change=replace(change, blocked=blocking_code),
            owned=owned if blocking_code else None,
        )
    orphan = replace(change, action=Action.NO_OP, risk=Risk.SAFE, fields=())
    return Difference(orphan, owned, (), (_report_orphaned(id_, exclusion, request.env),))


def _index_absent(request: PlanRequest) -> Mapping[ResourceId, DesiredResource]:
    """Return the resources that a manifest declares as absent, by id. ``--adopt`` also applies to them."""
    transform = allow_adoption if request.scope.adopt else _keep_unchanged
    return {item.id: transform(item) for item in request.absent}


def _resolve_absent(
    declared: DesiredResource, owned: OwnedRecord | None, difference: Difference
) -> Difference:
    """Delete a resource that is declared as absent, if the project owns it or is allowed to adopt it."""
    change = difference.change
    if change is None:
        return Difference(None, diagnostics=difference.diagnostics)
    diagnostics = tuple(_relate_to_absence(d, declared) for d in difference.diagnostics)
    is_adoption = owned is None and not getattr(declared.body, "adopt", False)
    if is_adoption:
        diagnostics += (_report_unowned_deletion(declared),)
    blocking_code = next((d.code for d in diagnostics if d.is_blocking), None)
    change = replace(change, reason=Reason.ABSENT, source=declared.source, blocked=blocking_code)
    return Difference(change, owned if blocking_code else None, diagnostics=diagnostics)


def _relate_to_absence(problem: Diagnostic, declared: DesiredResource) -> Diagnostic:
    """Add the position of the manifest that declares the absence to a problem with the deletion."""
    if problem.code != PREVENT_DESTROY:
        return replace(problem, place=problem.place or declared.source)
    hint = (
        "To delete the resource, first apply its manifest with preventDestroy: false and state: present. "
        "Then declare it absent."
    )
    return replace(problem, hint=hint, place=declared.source)


def _report_unowned_deletion(declared: DesiredResource) -> Diagnostic:
    return denied(
        ADOPTION,
        "Adoption not allowed",
        f"{declared.id} is declared absent, but this project never applied it. kdeclare does not delete a "
        "resource that may belong to another team.",
        hint="To delete the resource, pass --adopt or set lifecycle.adopt: true. Otherwise, remove the "
        "manifest.",
        place=declared.source,
        resource=str(declared.id),
    )


def _report_orphaned(id_: ResourceId, exclusion: ManifestExclusion | None, env: str) -> Diagnostic:
    reason, remedy = "no manifest declares it anymore", "Declare it again"
    if exclusion is not None:
        reason = f"{exclusion.field} excludes its manifest from the environment '{env}'"
        remedy = f"Change {exclusion.field}"
    return warning(
        "orphaned",
        "No longer declared",
        f"kdeclare manages {id_}, but {reason}. It is left unchanged.",
        hint=f"{remedy}, delete it with --allow-deletes, or release it with --forget {id_}.",
        place=exclusion.place if exclusion is not None else None,
        resource=str(id_),
        subject=exclusion.field if exclusion is not None else None,
    )


def _downgrade_diagnostics(changing_ids: Set[str], comparison: ResourceComparison) -> ResourceComparison:
    """Lower the severity of diagnostics about resources that the plan changes.

    Applying the plan can resolve these problems.
    """
    difference = comparison.difference
    if not any(d.subject in changing_ids for d in difference.diagnostics if d.subject):
        return comparison
    diagnostics = tuple(
        replace(d, severity=Severity.WARNING, hint="Apply this plan, then plan again.")
        if d.subject in changing_ids
        else d
        for d in difference.diagnostics
    )
    return replace(comparison, difference=replace(difference.with_diagnostics(diagnostics), deferred=True))
