"""Replace resources: delete their objects, and create them again as the manifests declare them."""

from collections.abc import Iterator
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, denied, error, warning
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.adoption import ADOPTION
from kdeclare.core.resources.changes import Action, Change, FieldChange, Reason, find_highest_risk
from kdeclare.core.resources.fleet_capabilities import find_replaced_identity
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.plan_capabilities import (
    PREVENT_DESTROY,
    assess_field,
    find_replaceable,
    forget_identity,
)
from kdeclare.core.resources.record_binding import protect_record
from kdeclare.core.suggestions import format_suggestion
from kdeclare.engine.planning.request import PlanRequest

_DELETED_FIRST = "the object with the same name is deleted first"


def check_replacements(request: PlanRequest) -> Iterator[Diagnostic]:
    """Yield an error for each resource that ``--replace`` names and that cannot be replaced."""
    declared = {item.id: item for item in request.desired}
    for id_ in sorted(request.scope.replacements):
        if find_replaceable(id_.kind) is None:
            yield error(
                "cannot-replace",
                "Resources of this kind cannot be replaced",
                f"--replace names {id_}, but kdeclare does not replace resources of kind {id_.kind}.",
                hint=f"Use --replace only for these kinds: {', '.join(_list_replaceable())}.",
            )
        elif id_ not in declared:
            yield error(
                "unknown-target",
                "No such resource",
                f"--replace names {id_}, which no manifest declares.",
                hint=format_suggestion(str(id_), map(str, sorted(declared)))
                or "Declare the resource, or delete it with kdeclare apply --delete.",
            )
        elif not request.scope.covers(declared[id_]):
            yield error(
                "contradicting-options",
                "Resource to replace is not in the plan",
                f"--replace names {id_}, but --target or --selector excludes it.",
                hint=f"Add --target {id_}, or leave out --replace {id_}.",
            )


def _list_replaceable() -> list[str]:
    return [name for name in KINDS if find_replaceable(name) is not None]


def resolve_replacement(
    desired: DesiredResource,
    live: LiveState,
    owned: OwnedRecord | None,
    context: PlanContext,
    difference: Difference,
) -> Difference:
    """Return the `Difference` for deleting the object of a resource and creating it again.

    Whatever prevents the deletion of a resource prevents its replacement, too.

    difference: the difference without a replacement. If the object does not exist, this difference is
        returned with a warning.
    """
    kind, replaceable = KINDS[desired.id.kind], find_replaceable(desired.id.kind)
    if replaceable is None:
        return difference  # check_replacements reports the error
    is_foreign = owned is None or find_replaced_identity(desired.id, desired.body, owned, live) is not None
    record = forget_identity(desired.id.kind, owned)
    if getattr(desired.body, "prevent_destroy", False):
        record = protect_record(desired.id.kind, record)
    deletion = kind.diff(desired.id, None, live, record, context)
    if deletion.change is None:
        missing = _report_nothing_to_replace(desired)
        return replace(difference, diagnostics=(*difference.diagnostics, missing))
    without_object = replaceable.remove_from_live(desired.id, live)
    creation = kind.diff(desired.id, desired, without_object, None, context)
    diagnostics = [_locate(d, desired) for d in deletion.diagnostics] + list(creation.diagnostics)
    if is_foreign and not getattr(desired.body, "adopt", False):
        diagnostics.append(_report_foreign(desired))
    if difference.unmanaged:
        diagnostics.append(_warn_unmanaged(desired, difference))
    blocked = next((d.code for d in diagnostics if d.is_blocking), None)
    fields = _merge_fields(deletion.change, difference.change, creation.change)
    risk = find_highest_risk(fields, minimum=deletion.change.risk)
    change = Change(desired.id, Action.REPLACE, Reason.REPLACED, risk, fields, desired.source, blocked)
    after = owned if blocked else creation.owned
    return Difference(change, after, diagnostics=tuple(diagnostics), drifted=difference.drifted)


def plan_replacement(
    change: Change,
    desired: DesiredResource,
    live: LiveState,
    owned: OwnedRecord | None,
    context: PlanContext,
) -> tuple[Operation, ...]:
    """Return the operations of a replacement: the deletion, and the creation that waits for it.

    Raises `CannotPlanError`.
    """
    kind, replaceable = KINDS[change.id.kind], find_replaceable(change.id.kind)
    assert replaceable is not None
    deletion = replace(change, action=Action.DELETE)
    deletions = kind.plan_operations(deletion, None, live, owned, context)
    without_object = replaceable.remove_from_live(change.id, live)
    creations = kind.plan_operations(build_creation(change), desired, without_object, None, context)
    needs = {op.id: _DELETED_FIRST for op in deletions}
    return (*deletions, *(replace(op, needs={**needs, **op.needs}) for op in creations))


def build_creation(change: Change) -> Change:
    """Return the second part of a replacement: the creation of the object, with its new values."""
    fields = tuple(replace(f, before=None) for f in change.fields if f.after is not None)
    return replace(change, action=Action.CREATE, fields=fields)


def _merge_fields(
    deletion: Change, update: Change | None, creation: Change | None
) -> tuple[FieldChange, ...]:
    """Return the fields of a replacement, each with the current and the new value.

    If an update would not change a field, its current value is the declared value.
    """
    current = {field.path: field.before for field in deletion.fields}
    if update is not None:
        current |= {field.path: field.before for field in reversed(update.fields)}
    created = {field.path: field for field in (creation.fields if creation is not None else ())}
    merged = [replace(field, before=current.get(path, field.after)) for path, field in created.items()]
    merged += [replace(field, after=None) for field in deletion.fields if field.path not in created]
    return tuple(assess_field(deletion.id.kind, Action.DELETE, field) for field in merged)


def _locate(problem: Diagnostic, desired: DesiredResource) -> Diagnostic:
    if problem.code != PREVENT_DESTROY:
        return replace(problem, place=problem.place or desired.source)
    hint = "To replace the resource, first apply its manifest with preventDestroy: false."
    return replace(problem, hint=hint, place=desired.source)


def _report_foreign(desired: DesiredResource) -> Diagnostic:
    return denied(
        ADOPTION,
        "Adoption not allowed",
        f"--replace names {desired.id}, but this project never applied the existing resource. kdeclare does "
        "not delete a resource that may belong to another team.",
        hint="To replace the resource, pass --adopt or set lifecycle.adopt: true.",
        place=desired.source,
        resource=str(desired.id),
    )


def _report_nothing_to_replace(desired: DesiredResource) -> Diagnostic:
    return warning(
        "nothing-to-replace",
        "Nothing to replace",
        f"--replace names {desired.id}, which does not exist. The plan creates it.",
        hint="Leave out --replace.",
        place=desired.source,
        resource=str(desired.id),
    )


def _warn_unmanaged(desired: DesiredResource, difference: Difference) -> Diagnostic:
    return warning(
        "unmanaged-removed",
        "Unmanaged settings are removed",
        f"{desired.id} has settings that the project neither declares nor owns. The replacement "
        f"removes these settings: {', '.join(difference.unmanaged)}.",
        hint="To keep a setting, declare it in the manifest.",
        place=desired.source,
        resource=str(desired.id),
    )
