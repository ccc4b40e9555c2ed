"""Leave out fields that manifests ignore after creation, and report how many of them differ."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, info
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.fleet_capabilities import find_audit_rules
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.ignored_changes import (
    IGNORED_CHANGES,
    has_ignored_fields,
    keep_all_fields,
    leave_out_ignored,
)
from kdeclare.core.resources.kind import DesiredResource, Difference, ResourceComparison
from kdeclare.engine.planning.request import PlanRequest

_MAX_NAMED = 3


def leave_out_ignored_fields(request: PlanRequest, live: LiveState) -> PlanRequest:
    """Return the request without ignored fields of existing resources.

    This step comes before all others, so that hooks and policies see the values that the resources keep.
    """
    if not any(map(has_ignored_fields, request.desired)):
        return request
    owned, covers = request.owned, request.scope.covers  # only resources in scope have been read
    replacements = request.scope.replacements  # they are created again, with all fields
    desired = (
        leave_out_ignored(item, live, owned.get(str(item.id)))
        if covers(item) and item.id not in replacements
        else item
        for item in request.desired
    )
    return replace(request, desired=tuple(desired))


def report_ignored_fields(
    declared: Sequence[DesiredResource],
    comparisons: Iterable[ResourceComparison],
    live: LiveState,
    context: PlanContext,
) -> list[Diagnostic]:
    """Return a diagnostic that counts the ignored differences; empty if there are none.

    declared: the resources with all fields of their manifests.
    """
    originals = {item.id: item for item in declared if has_ignored_fields(item)}
    if not originals:
        return []
    ignored: dict[ResourceId, list[str]] = {}
    for comparison in comparisons:
        original = originals.get(comparison.id)
        if original is None or any(d.is_error for d in comparison.difference.diagnostics):
            continue
        original = keep_all_fields(original)
        complete = KINDS[original.id.kind].diff(original.id, original, live, comparison.owned, context)
        paths = _list_paths(complete, original, live) - _list_paths(comparison.difference, original, live)
        if paths:
            ignored[original.id] = sorted(paths)
    return [_report_ignored(ignored)] if ignored else []


def _list_paths(difference: Difference, desired: DesiredResource, live: LiveState) -> frozenset[str]:
    """Return the paths of all fields that differ, including a field that no operation can change."""
    fields = difference.change.fields if difference.change is not None else ()
    paths = frozenset(field.path for field in fields)
    rules = find_audit_rules(desired.id.kind)
    is_impossible = any(d.code in rules.impossible for d in difference.diagnostics)
    impossible_field = rules.find_impossible(desired, live) if is_impossible else None
    return paths if impossible_field is None else paths | {impossible_field.path}


def _report_ignored(ignored: Mapping[ResourceId, Sequence[str]]) -> Diagnostic:
    count = sum(map(len, ignored.values()))
    named = [f"{id_} ({', '.join(paths)})" for id_, paths in sorted(ignored.items())]
    more_count = len(named) - _MAX_NAMED
    names = "; ".join(named[:_MAX_NAMED]) + (f"; and {more_count} more resources" if more_count > 0 else "")
    return info(
        IGNORED_CHANGES,
        "Differences ignored",
        f"{count} {'field differs' if count == 1 else 'fields differ'} from the manifests and "
        f"{'is' if count == 1 else 'are'} left unchanged, because lifecycle.ignoreChanges lists "
        f"{'it' if count == 1 else 'them'}: {names}.",
        hint="To change a field, remove it from ignoreChanges, or use one of the ad hoc commands that "
        "'kdeclare --help' lists.",
    )
