"""Operations on what the project must not touch (``spec.scope``)."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, Severity
from kdeclare.core.ids import ResourceId
from kdeclare.core.name_scope import out_of_scope
from kdeclare.core.operations import Operation
from kdeclare.core.registry import type_of
from kdeclare.engine.planning.request import PlanRequest

_ORPHAN_OUT_OF_SCOPE = "Release it with --forget, or extend spec.scope in the project file."


def find_out_of_scope(request: PlanRequest, operations: Iterable[Operation]) -> Iterator[Diagnostic]:
    """Yield an error for each resource whose operations touch what the project must not touch."""
    if not request.names.entries:
        return
    changed: dict[ResourceId, set[ResourceId]] = {}
    for op in operations:
        changed.setdefault(op.resource, {op.resource}).update(type_of(op).find_changed(op))
    places = {desired.id: desired.source for desired in request.desired}
    for resource, touched in changed.items():
        forbidden = request.names.find_forbidden(touched)
        if forbidden:
            found = out_of_scope(resource, forbidden, request.names, places.get(resource))
            is_orphan = resource not in places and not request.scope.by_hand
            yield replace(found, severity=Severity.DENIED, hint=_ORPHAN_OUT_OF_SCOPE) if is_orphan else found
