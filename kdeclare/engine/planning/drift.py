"""Find what other clients have changed since the last apply, regardless of what the manifests now declare."""

from collections.abc import Mapping, Sequence

from kdeclare.core.diagnostics import ENDPOINT_UNREACHABLE, Diagnostic, Severity
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import LiveState
from kdeclare.core.plans.drift import DriftedField, DriftKind, DriftResult, ResourceDrift
from kdeclare.core.resources.changes import Action, Reason
from kdeclare.core.resources.fleet_capabilities import (
    encode_body,
    find_audit_rules,
    find_live_key,
    find_replaced_identity,
    is_fleet_comparable,
    is_present,
    is_set_like,
)
from kdeclare.core.resources.kind import ResourceComparison
from kdeclare.core.resources.record_binding import dump_record
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, is_secret
from kdeclare.engine.planning.compared_request import ComparedRequest
from kdeclare.engine.planning.comparison import check_names


def find_drift(comparison: ComparedRequest) -> DriftResult:
    """Return the drift of the owned resources, sorted by id.

    Resources that were never applied have no drift, because the state does not contain them.
    """
    drifts: list[ResourceDrift] = []
    diagnostics = [*check_names(comparison.request)]
    compared_count = 0
    for item in comparison.compared:
        if item.owned is None:
            continue
        problems = _find_reading_problems(comparison, item)
        if problems:
            diagnostics += problems
            continue
        compared_count += 1
        drift = _find_resource_drift(item, comparison.inputs.live)
        if drift is not None:
            drifts.append(drift)
    return DriftResult(tuple(drifts), compared_count, tuple(diagnostics))


def _find_reading_problems(comparison: ComparedRequest, item: ResourceComparison) -> Sequence[Diagnostic]:
    """Return the reasons why the live state of a resource is unknown; empty if it is known."""
    problems = item.difference.diagnostics
    if item.id in comparison.inputs.pending:
        return problems
    unread = [d for d in problems if d.code == ENDPOINT_UNREACHABLE]
    if unread or item.difference.change is not None:
        return unread
    # `PlanHooks.withhold` excludes a resource that the principal is not allowed to describe.
    is_withheld = item.desired is not None and item.difference.owned == item.owned
    return [d for d in problems if d.severity is Severity.DENIED] if is_withheld else ()


def _find_resource_drift(item: ResourceComparison, live: LiveState) -> ResourceDrift | None:
    body = None if item.desired is None else item.desired.body
    source = None if item.desired is None or item.desired.source is None else str(item.desired.source)
    if is_fleet_comparable(item.id.kind) and find_replaced_identity(item.id, body, item.owned, live):
        return ResourceDrift(str(item.id), DriftKind.RECREATED, (), source)
    if _is_missing(item, live):
        return ResourceDrift(str(item.id), DriftKind.MISSING, (), source)
    fields = _list_fields(item) if item.desired is not None else ()
    return ResourceDrift(str(item.id), DriftKind.CHANGED, fields, source) if fields else None


def _is_missing(item: ResourceComparison, live: LiveState) -> bool:
    change = item.change
    if item.desired is not None and change is not None and change.action is Action.CREATE:
        return change.reason is not Reason.CHANGED  # applied without any settings, so not missing
    if is_set_like(item.id.kind) or (item.desired is not None and not item.difference.drifted):
        return False
    body = None if item.desired is None else item.desired.body
    try:
        return not is_present(find_live_key(item.id, body, item.owned), live)
    except Fault:
        return False  # unknown, because the endpoint of the object does not respond


def _list_fields(item: ResourceComparison) -> tuple[DriftedField, ...]:
    if item.desired is None:
        return ()
    rules = find_audit_rules(item.id.kind)
    live_values = {field.path: field.before for field in reversed(item.change.fields)} if item.change else {}
    applied, declared = dump_record(item.owned), encode_body(item.desired)
    return tuple(
        DriftedField(
            path,
            _find_value(applied, path),
            # A field that needs no change has the declared value.
            _mask(live_values[path]) if path in live_values else _find_value(declared, path),
        )
        for path in item.difference.drifted
        if not rules.is_set_by_others(path, item.desired, item.owned)
    )


def _find_value(stated: JsonValue, path: str) -> JsonValue:
    """Return the value at a field path in an ownership record or a body; None if there is no such value."""
    if not isinstance(stated, Mapping):
        return None
    name, _, key = path.partition(".")
    value = _find_item(stated, name)
    if key:
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping) and set(value) == {"value"}:
        value = value["value"]
    return _mask(value)


def _find_item(stated: JsonObject, name: str) -> JsonValue:
    """Return the value of a key in an ownership record or a body, or of the key within its ``fields``."""
    if name in stated:
        return stated[name]
    fields = stated.get("fields")
    return fields.get(name) if isinstance(fields, Mapping) else None


def _mask(value: JsonValue) -> JsonValue:
    return SENSITIVE_MASK if is_secret(value) else value
