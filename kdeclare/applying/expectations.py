"""Compare-and-set: what an operation was planned on must still be so."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kdeclare.cluster.port import Cluster
from kdeclare.kinds.query import merge
from kdeclare.kinds.secrets import SecretSource, is_secret
from kdeclare.kinds.verbs.base import View, is_identity
from kdeclare.kinds.verbs.registry import VERBS
from kdeclare.model.diagnostics import KdeclareError
from kdeclare.model.jsontypes import Json, canonical_json
from kdeclare.model.operations import Operation
from kdeclare.model.plan import Plan
from kdeclare.planning.observe import observe
from kdeclare.planning.order import ancestors


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One element that is no longer as planned."""

    operation: str
    resource: str
    element: str
    planned: Json
    now: Json


def views(cluster: Cluster, operations: Sequence[Operation]) -> Mapping[str, View]:
    """What each operation touches, as it is now, read in one batch. Raises Fault."""
    if not operations:
        return {}
    live = observe(cluster, merge(VERBS[op.verb].query(op) for op in operations))
    return {op.id: VERBS[op.verb].view(op, live) for op in operations}


def stale_live(cluster: Cluster, operations: Sequence[Operation]) -> list[Mismatch]:
    """What is no longer as planned, leaving out what an earlier operation of the plan is to change."""
    now = views(cluster, operations)
    before = ancestors(operations)
    produced = {op.id: VERBS[op.verb].produces(op) for op in operations}
    found: list[Mismatch] = []
    for op in operations:
        made = frozenset[str]().union(*(produced[need] for need in before[op.id]))
        claims = VERBS[op.verb].claims(op)
        elements = [e for e in op.expect if claims.get(e, e) not in made]
        found += mismatches(op, now[op.id], elements)
    return found


def mismatches(op: Operation, now: View, elements: Iterable[str] | None = None) -> list[Mismatch]:
    """The elements of ``op`` that are not as it expects; of a topic that is gone, just that."""
    found = [
        Mismatch(op.id, str(op.resource), element, op.expect[element], now.get(element))
        for element in (op.expect if elements is None else elements)
        if now.get(element) != op.expect[element]
    ]
    return [m for m in found if is_identity(m.element)] or found


def shown(value: Json) -> str:
    """A value of a view, for people."""
    return "not set" if value is None else canonical_json(value)


def stale_owned(plan: Plan, resources: Mapping[str, Json]) -> list[Mismatch]:
    """Records of ownership that are no longer as planned."""
    return [
        Mismatch("", str(item.id), "ownership", item.before, resources.get(str(item.id)))
        for item in plan.ownership
        if resources.get(str(item.id)) != item.before
    ]


def changed_secrets(operations: Sequence[Operation], secrets: SecretSource) -> list[KdeclareError]:
    """Secrets that cannot be had again as they were when planned."""
    found: list[KdeclareError] = []
    for op in operations:
        for item in op.args.get("ops", ()):
            if is_secret(item["value"]):
                try:
                    secrets.reveal(item["value"])
                except KdeclareError as changed:
                    found.append(changed)
    return found
