"""Convert a plan to JSON-compatible data and compute its id. Scripts and plan files rely on this format."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from kdeclare.core.clock import format_second
from kdeclare.core.diagnostics import Diagnostic, SourcePosition
from kdeclare.core.jsontypes import JsonValue, hash_json
from kdeclare.core.operations.argument_binding import dump_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import FORMAT_VERSION, Plan, Summary, Verdict
from kdeclare.core.plans.unmanaged import UnmanagedListing
from kdeclare.core.resources.changes import Change, FieldChange, Reason
from kdeclare.core.resources.record_binding import dump_record
from kdeclare.version import VERSION

NOT_HASHED = frozenset({"plan_id", "created_at", "signature", "observations", "unmanaged"})
SUMMARY_FIELDS = tuple(Summary.__dataclass_fields__)


def build_plan_document(
    plan: Plan, created_at: datetime | None = None, kdeclare_version: str = VERSION
) -> dict[str, JsonValue]:
    """Return the plan as JSON-compatible data in the format of docs/schemas/plan.schema.json."""
    body = build_plan_body(plan, kdeclare_version)
    header = {
        "format_version": FORMAT_VERSION,
        "plan_id": hash_json(body),
        "created_at": format_second(created_at) if created_at else None,
    }
    observations: dict[str, JsonValue] = (
        {"observations": list(build_observation_documents(plan))} if plan.observations else {}
    )
    unmanaged: dict[str, JsonValue] = (
        {"unmanaged": build_unmanaged_document(plan.unmanaged)} if plan.unmanaged is not None else {}
    )
    return header | body | observations | unmanaged


def compute_plan_id(plan: Plan, kdeclare_version: str = VERSION) -> str:
    """Return the id of a plan: a hexadecimal SHA-256 hash.

    Within one version of kdeclare, equal plans have equal ids.
    """
    return hash_json(build_plan_body(plan, kdeclare_version))


def build_diagnostic_document(item: Diagnostic) -> dict[str, JsonValue]:
    """Return a diagnostic as JSON-compatible data. All outputs use this form."""
    return {
        "severity": item.severity.value,
        "code": item.code,
        "summary": item.summary,
        "detail": item.detail,
        "hint": item.hint,
        "place": _build_position_document(item.place),
        "resource": item.resource,
        "subject": item.subject,
    }


def build_observation_documents(plan: Plan) -> Iterator[dict[str, JsonValue]]:
    """Yield the observations of a plan as JSON-compatible data."""
    for item in plan.observations:
        yield {
            "resource": item.resource,
            "path": item.path,
            "code": item.code,
            "level": item.level.value,
            "text": item.text,
            "figures": dict(item.figures),
        }


def build_unmanaged_document(unmanaged: UnmanagedListing) -> dict[str, JsonValue]:
    """Return the unmanaged objects as JSON-compatible data."""
    return {
        "objects": [
            {"kind": item.kind, "name": item.name, "count": item.count} for item in unmanaged.objects
        ],
        "unread": list(unmanaged.unread),
    }


def build_verdict_document(verdict: Verdict) -> dict[str, JsonValue]:
    """Return a verdict as JSON-compatible data. ``topic`` and ``override`` are present only if set."""
    document: dict[str, JsonValue] = {
        "policy": verdict.policy,
        "resource": verdict.resource,
        "outcome": verdict.outcome.value,
        "message": verdict.message,
    }
    if verdict.topic is not None:
        document["topic"] = verdict.topic
    if verdict.override is not None:
        document["override"] = verdict.override
    return document


def build_summary_document(summary: Summary) -> dict[str, int]:
    """Return the counts in a plan's summary, each by the name of its field."""
    return {name: getattr(summary, name) for name in SUMMARY_FIELDS}


def build_plan_body(plan: Plan, kdeclare_version: str) -> dict[str, JsonValue]:
    """Return the content that the plan's id covers: the document without the fields in `NOT_HASHED`."""
    sections = build_plan_sections(plan, kdeclare_version)
    return {key: list(value) if isinstance(value, Iterator) else value for key, value in sections.items()}


def build_plan_sections(
    plan: Plan, kdeclare_version: str
) -> dict[str, JsonValue | Iterator[dict[str, JsonValue]]]:
    """Return the same fields as `build_plan_body`, but with iterators instead of the long lists."""
    return {
        "format_version": FORMAT_VERSION,
        "kdeclare_version": kdeclare_version,
        "project": plan.project,
        "env": plan.env,
        "cluster": {"id": plan.cluster.id, "name": plan.cluster.name},
        "base": {"lineage": plan.base.lineage, "serial": plan.base.serial},
        "summary": build_summary_document(plan.summary),
        "changes": map(_build_change_document, plan.changes),
        "operations": map(_build_operation_document, plan.operations),
        "ownership": (
            {"id": str(o.id), "before": dump_record(o.before), "after": dump_record(o.after)}
            for o in plan.ownership
        ),
        "verdicts": [build_verdict_document(v) for v in plan.verdicts],
        "diagnostics": [build_diagnostic_document(d) for d in plan.diagnostics],
        "unmanaged_configs": {id_: list(keys) for id_, keys in plan.unmanaged_configs.items()},
        "undoes": plan.undoes,
        "max_deletes": plan.max_deletes,
        **({"labels": {topic: dict(found) for topic, found in plan.labels.items()}} if plan.labels else {}),
        **({"endpoints": dict(plan.endpoints)} if plan.endpoints else {}),
        **(
            {"blocked_operations": map(_build_blocked_operation_document, plan.blocked_operations)}
            if plan.blocked_operations
            else {}
        ),
        **({"racks": {str(broker): rack for broker, rack in plan.racks.items()}} if plan.racks else {}),
    }


def _build_change_document(change: Change) -> dict[str, JsonValue]:
    document: dict[str, JsonValue] = {
        "id": str(change.id),
        "action": change.action.value,
        "reason": change.reason.value,
        "risk": change.risk.value,
        "risks": [risk.value for risk in change.risks],
        "fields": [_build_field_document(item, change.reason) for item in change.fields],
        "source": _build_position_document(change.source),
    }
    if change.blocked is not None:
        document["blocked"] = change.blocked
    if change.owner is not None:
        document["owner"] = change.owner
    if change.description:
        document["description"] = change.description
    return document


def _build_field_document(item: FieldChange, reason: Reason) -> dict[str, JsonValue]:
    return {
        "path": item.path,
        "op": str(item.op),  # faster than ``value``, and a plan has thousands of fields
        "before": item.before,
        "after": item.after,
        "value": item.value,
        "risk": str(item.risk),
        "cause": item.cause,
        "reason": str(item.reason or reason),
    }


def _build_operation_document(operation: Operation) -> dict[str, JsonValue]:
    needs = sorted(operation.needs)  # equal plans need equal ids, and the order of a mapping is arbitrary
    document: dict[str, JsonValue] = {
        "id": operation.id,
        "verb": operation.verb,
        "resource": str(operation.resource),
        "needs": needs,
        "args": dict(dump_arguments(operation.args)),
        "expect": dict(operation.expect),
    }
    if operation.follows:
        document["follows"] = sorted(operation.follows)
    if operation.after:
        document["reasons"] = {id_: operation.after[id_] for id_ in sorted(operation.after)}
    if (operation.inverse is None) == (operation.irreversible is None):
        raise ValueError(f"operation '{operation.id}' needs an inverse or a reason why it has none")
    if operation.inverse is not None:
        inverse = operation.inverse
        document["inverse"] = {"verb": inverse.verb, "args": dict(dump_arguments(inverse.args))}
    else:
        document["irreversible"] = operation.irreversible
    return document


def _build_blocked_operation_document(operation: Operation) -> dict[str, JsonValue]:
    return {
        "id": operation.id,
        "verb": operation.verb,
        "resource": str(operation.resource),
        "args": dict(dump_arguments(operation.args)),
        "expect": dict(operation.expect),
    }


def _build_position_document(position: SourcePosition | None) -> dict[str, JsonValue] | None:
    return (
        None
        if position is None
        else {"file": position.file, "line": position.line, "column": position.column}
    )


def compute_document_id(document: Mapping[str, JsonValue]) -> str:
    """Return the id that matches the content of a plan document."""
    return hash_json({key: value for key, value in document.items() if key not in NOT_HASHED})
