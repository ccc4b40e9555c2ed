"""A plan document as values again, the way back from ``plan_document.plan_body``."""

from typing import TYPE_CHECKING

from kdeclare.core.arguments import Inverse
from kdeclare.core.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.diagnostics import Diagnostic, Place, Severity
from kdeclare.core.ids import ResourceId
from kdeclare.core.operation_arguments import bind_arguments
from kdeclare.core.operations import Operation
from kdeclare.core.plan import Base, ClusterRef, Ownership, Plan, Summary, Verdict, VerdictOutcome

if TYPE_CHECKING:
    from kdeclare.engine.planning.planfile_schema import (
        ChangeDocument,
        DiagnosticDocument,
        FieldDocument,
        InverseDocument,
        OperationDocument,
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
        ownership=tuple(
            Ownership(ResourceId.parse(o["id"]), o["before"], o["after"]) for o in document["ownership"]
        ),
        verdicts=tuple(_verdict(v) for v in document["verdicts"]),
        diagnostics=tuple(_diagnostic(d) for d in document["diagnostics"]),
        unmanaged_configs={id_: tuple(keys) for id_, keys in document["unmanaged_configs"].items()},
        undoes=document["undoes"],
        max_deletes=document["max_deletes"],
        labels=document.get("labels", {}),
        racks={int(broker): rack for broker, rack in document.get("racks", {}).items()},
    )


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
