"""A plan document as values again, the way back from ``plan_document.plan_body``."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kdeclare.core.diagnostics import Diagnostic, Place, Severity
from kdeclare.core.jsontypes import JsonObject, as_list, as_object, as_text
from kdeclare.core.operations.binding import bind_arguments
from kdeclare.core.operations.operation import Inverse, Operation
from kdeclare.core.plans.plan import (
    FORMAT_VERSION,
    Base,
    ClusterRef,
    Ownership,
    Plan,
    Summary,
    Verdict,
    VerdictOutcome,
)
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.engine.state.document import mark_unproven_parts

if TYPE_CHECKING:
    from kdeclare.engine.planning.planfile_schema import (
        ChangeDocument,
        DiagnosticDocument,
        FieldDocument,
        InverseDocument,
        OperationDocument,
        OwnershipDocument,
        PlaceDocument,
        PlanDocument,
        VerdictDocument,
    )


def plan_of(document: "PlanDocument") -> Plan:
    """The plan in a document that was checked against its schema."""
    cluster, base = document["cluster"], document["base"]
    return Plan(
        project=document["project"],
        env=document["env"],
        cluster=ClusterRef(cluster["id"], cluster["name"]),
        base=Base(base["lineage"], base["serial"]),
        summary=Summary(**document["summary"]),
        changes=tuple(_change(c) for c in document["changes"]),
        operations=tuple(_operation(o) for o in document["operations"]),
        ownership=tuple(_ownership(o) for o in document["ownership"]),
        verdicts=tuple(_verdict(v) for v in document["verdicts"]),
        diagnostics=tuple(_diagnostic(d) for d in document["diagnostics"]),
        unmanaged_configs={id_: tuple(keys) for id_, keys in document["unmanaged_configs"].items()},
        undoes=document["undoes"],
        max_deletes=document["max_deletes"],
        labels=document.get("labels", {}),
        racks={int(broker): rack for broker, rack in document.get("racks", {}).items()},
    )


def _ownership(o: "OwnershipDocument") -> Ownership:
    id_ = ResourceId.parse(o["id"])
    return Ownership(id_, bind_record(id_.kind, o["before"]), bind_record(id_.kind, o["after"]))


def _change(c: "ChangeDocument") -> Change:
    return Change(
        ResourceId.parse(c["id"]),
        Action(c["action"]),
        Reason(c["reason"]),
        Risk(c["risk"]),
        tuple(_field(f, c["reason"]) for f in c["fields"]),
        _place(c["source"]),
        c.get("blocked"),
    )


def _field(f: "FieldDocument", reason: str) -> FieldChange:
    own = None if f["reason"] == reason else Reason(f["reason"])
    risk = Risk(f["risk"])
    return FieldChange(
        f["path"], FieldOp(f["op"]), f["before"], f["after"], f["value"], risk, f["cause"], own
    )


def _operation(o: "OperationDocument") -> Operation:
    reasons = o.get("reasons", {})
    return Operation(
        o["id"],
        o["verb"],
        ResourceId.parse(o["resource"]),
        bind_arguments(o["verb"], o["args"]),
        o["expect"],
        {need: reasons.get(need, "") for need in o["needs"]},
        _inverse(o["inverse"]) if "inverse" in o else None,
        o.get("irreversible"),
        {id_: reasons.get(id_, "") for id_ in o.get("follows", ())},
    )


def _inverse(i: "InverseDocument") -> Inverse:
    return Inverse(i["verb"], bind_arguments(i["verb"], i["args"]))


def _verdict(v: "VerdictDocument") -> Verdict:
    return Verdict(
        v["policy"],
        v["resource"],
        VerdictOutcome(v["outcome"]),
        v["message"],
        v.get("topic"),
        v.get("override"),
    )


def _diagnostic(d: "DiagnosticDocument") -> Diagnostic:
    return Diagnostic(
        Severity(d["severity"]),
        d["code"],
        d["summary"],
        d["detail"],
        d["hint"],
        _place(d["place"]),
        d["resource"],
        d["subject"],
    )


def _place(document: "PlaceDocument | None") -> Place | None:
    return None if document is None else Place(document["file"], document["line"], document["column"])


def migrate_plan(document: JsonObject) -> JsonObject:
    """A document of a format in `STEPS` in the current format; its ``plan_id`` stays as it is.

    Expects what kdeclare wrote (the id was checked); raises KeyError, TypeError or AttributeError for
    another shape.
    """
    while (version := as_text(document["format_version"])) != FORMAT_VERSION:
        target, step = STEPS[version]
        document = {**step(document), "format_version": target}
    return document


def _tell_risks_apart(document: JsonObject) -> JsonObject:
    """2.0 has a risk per field, and says which list elements kdeclare added.

    1.0 knew only the highest risk of a whole change, so that is what each of its fields gets: too much
    rather than too little.
    """
    return {
        **document,
        "max_deletes": None,
        "changes": [_with_risks(as_object(change)) for change in as_list(document["changes"])],
        "ownership": [_with_unproven_parts(as_object(item)) for item in as_list(document["ownership"])],
    }


def _with_risks(change: JsonObject) -> JsonObject:
    inherited = {"risk": change["risk"], "cause": "", "reason": change["reason"]}
    fields = [{**as_object(item), **inherited} for item in as_list(change["fields"])]
    return {**change, "risks": [change["risk"]], "fields": fields}


def _with_unproven_parts(item: JsonObject) -> JsonObject:
    return {**item, **{side: mark_unproven_parts(item[side]) for side in ("before", "after")}}


STEPS: Mapping[str, tuple[str, Callable[[JsonObject], JsonObject]]] = {"1.0": ("2.0", _tell_risks_apart)}
