"""Convert a plan document to a plan. This is the inverse of `plan_document.build_plan_body`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kdeclare.core.diagnostics import Diagnostic, Severity, SourcePosition
from kdeclare.core.jsontypes import JsonObject, as_list, as_object, as_text
from kdeclare.core.operations.argument_binding import bind_arguments
from kdeclare.core.operations.operation import Inverse, Operation
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.plans.plan import (
    FORMAT_VERSION,
    ClusterRef,
    Ownership,
    Plan,
    PlanBase,
    Summary,
    Verdict,
    VerdictOutcome,
)
from kdeclare.core.plans.unmanaged import UnmanagedListing, UnmanagedObject
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.engine.state.document import mark_unproven_parts

if TYPE_CHECKING:
    from kdeclare.engine.planning.planfile_schema import (
        BlockedOperationDocument,
        ChangeDocument,
        DiagnosticDocument,
        FieldDocument,
        InverseDocument,
        ObservationDocument,
        OperationDocument,
        OwnershipDocument,
        PlaceDocument,
        PlanDocument,
        UnmanagedDocument,
        VerdictDocument,
    )


def bind_plan(document: "PlanDocument") -> Plan:
    """Convert a plan document to a plan. The document must already be validated against its schema."""
    cluster, base = document["cluster"], document["base"]
    return Plan(
        project=document["project"],
        env=document["env"],
        cluster=ClusterRef(cluster["id"], cluster["name"]),
        base=PlanBase(base["lineage"], base["serial"]),
        summary=Summary(**document["summary"]),
        changes=tuple(_bind_change(c) for c in document["changes"]),
        operations=tuple(_bind_operation(o) for o in document["operations"]),
        ownership=tuple(_bind_ownership(o) for o in document["ownership"]),
        verdicts=tuple(_bind_verdict(v) for v in document["verdicts"]),
        diagnostics=tuple(_bind_diagnostic(d) for d in document["diagnostics"]),
        unmanaged_configs={id_: tuple(keys) for id_, keys in document["unmanaged_configs"].items()},
        undoes=document["undoes"],
        max_deletes=document["max_deletes"],
        labels=document.get("labels", {}),
        endpoints=document.get("endpoints", {}),
        blocked_operations=tuple(map(_bind_blocked_operation, document.get("blocked_operations", ()))),
        racks={int(broker): rack for broker, rack in document.get("racks", {}).items()},
        observations=tuple(map(_bind_observation, document.get("observations", ()))),
        unmanaged=_bind_unmanaged(document["unmanaged"]) if "unmanaged" in document else None,
    )


def _bind_unmanaged(document: "UnmanagedDocument") -> UnmanagedListing:
    objects = (UnmanagedObject(item["kind"], item["name"], item["count"]) for item in document["objects"])
    return UnmanagedListing(tuple(objects), tuple(document["unread"]))


def _bind_observation(document: "ObservationDocument") -> Observation:
    return Observation(
        document["resource"],
        document["code"],
        ObservationLevel(document["level"]),
        document["text"],
        document["path"],
        document["figures"],
    )


def _bind_ownership(document: "OwnershipDocument") -> Ownership:
    id_ = ResourceId.parse(document["id"])
    return Ownership(id_, bind_record(id_.kind, document["before"]), bind_record(id_.kind, document["after"]))


def _bind_change(document: "ChangeDocument") -> Change:
    return Change(
        ResourceId.parse(document["id"]),
        Action(document["action"]),
        Reason(document["reason"]),
        Risk(document["risk"]),
        tuple(_bind_field(f, document["reason"]) for f in document["fields"]),
        _bind_position(document["source"]),
        document.get("blocked"),
        document.get("owner"),
        document.get("description", ""),
    )


def _bind_field(document: "FieldDocument", reason: str) -> FieldChange:
    own_reason = None if document["reason"] == reason else Reason(document["reason"])
    risk = Risk(document["risk"])
    return FieldChange(
        document["path"],
        FieldOp(document["op"]),
        document["before"],
        document["after"],
        document["value"],
        risk,
        document["cause"],
        own_reason,
    )


def _bind_operation(document: "OperationDocument") -> Operation:
    reasons = document.get("reasons", {})
    return Operation(
        document["id"],
        document["verb"],
        ResourceId.parse(document["resource"]),
        bind_arguments(document["verb"], document["args"]),
        document["expect"],
        {need: reasons.get(need, "") for need in document["needs"]},
        _bind_inverse(document["inverse"]) if "inverse" in document else None,
        document.get("irreversible"),
        {id_: reasons.get(id_, "") for id_ in document.get("follows", ())},
    )


def _bind_blocked_operation(document: "BlockedOperationDocument") -> Operation:
    return Operation(
        document["id"],
        document["verb"],
        ResourceId.parse(document["resource"]),
        bind_arguments(document["verb"], document["args"]),
        document["expect"],
    )


def _bind_inverse(document: "InverseDocument") -> Inverse:
    return Inverse(document["verb"], bind_arguments(document["verb"], document["args"]))


def _bind_verdict(document: "VerdictDocument") -> Verdict:
    return Verdict(
        document["policy"],
        document["resource"],
        VerdictOutcome(document["outcome"]),
        document["message"],
        document.get("topic"),
        document.get("override"),
    )


def _bind_diagnostic(document: "DiagnosticDocument") -> Diagnostic:
    return Diagnostic(
        Severity(document["severity"]),
        document["code"],
        document["summary"],
        document["detail"],
        document["hint"],
        _bind_position(document["place"]),
        document["resource"],
        document["subject"],
    )


def _bind_position(document: "PlaceDocument | None") -> SourcePosition | None:
    return (
        None if document is None else SourcePosition(document["file"], document["line"], document["column"])
    )


def migrate_plan(document: JsonObject) -> JsonObject:
    """Migrate a document in an earlier format to the current format. Its ``plan_id`` stays unchanged.

    The document must have been written by kdeclare, and its id must have been verified. Raises KeyError,
    TypeError or AttributeError for any other content.
    """
    while (version := as_text(document["format_version"])) != FORMAT_VERSION:
        target, migration = MIGRATIONS[version]
        document = {**migration(document), "format_version": target}
    return document


def _migrate_to_2_0(document: JsonObject) -> JsonObject:
    """Migrate a plan document to format 2.0.

    Format 2.0 also records the risk of each field, and which list elements kdeclare added. Format 1.0
    contains only the highest risk of a whole change. Each field gets this risk, which can be too high but not
    too low.
    """
    return {
        **document,
        "max_deletes": None,
        "changes": [_with_risks(as_object(change)) for change in as_list(document["changes"])],
        "ownership": [_with_unproven_parts(as_object(item)) for item in as_list(document["ownership"])],
    }


def _with_risks(change: JsonObject) -> JsonObject:
    inherited_values = {"risk": change["risk"], "cause": "", "reason": change["reason"]}
    fields = [{**as_object(item), **inherited_values} for item in as_list(change["fields"])]
    return {**change, "risks": [change["risk"]], "fields": fields}


def _with_unproven_parts(item: JsonObject) -> JsonObject:
    return {**item, **{side: mark_unproven_parts(item[side]) for side in ("before", "after")}}


MIGRATIONS: Mapping[str, tuple[str, Callable[[JsonObject], JsonObject]]] = {"1.0": ("2.0", _migrate_to_2_0)}
