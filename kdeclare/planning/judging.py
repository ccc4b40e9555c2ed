"""What policies deny is taken out of a plan, and with it what needs it; nothing else is."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.cluster.port import Cluster
from kdeclare.kinds.base import Desired
from kdeclare.kinds.registry import KINDS
from kdeclare.kinds.verbs.registry import VERBS
from kdeclare.model.changes import Action, Change
from kdeclare.model.ids import ConfigScope, ResourceId
from kdeclare.model.jsontypes import Json
from kdeclare.model.operations import Operation
from kdeclare.model.plan import Plan, Summary, Verdict
from kdeclare.planning.order import part_of_move, without
from kdeclare.policy.configured import ConfiguredPolicy
from kdeclare.policy.facts import Facts
from kdeclare.policy.judge import Override, judge
from kdeclare.policy.requests import Labels

POLICY_VIOLATION = "policy-violation"
"""Why a change is blocked that a policy denies; the verdict says more."""


def declared_labels(desired: Iterable[Desired], owned: Mapping[str, Json]) -> Labels:
    """The labels of topics: as declared, else as they were when last applied."""
    stated = {d.id.name: d.labels for d in desired if _is_topic(d.id)}
    return {**owned_labels(owned), **stated}


def owned_labels(owned: Mapping[str, Json]) -> dict[str, Mapping[str, str]]:
    """The labels of topics as they were when last applied."""
    records = {ResourceId.parse(text): record or {} for text, record in owned.items()}
    return {id_.name: record.get("labels", {}) for id_, record in records.items() if _is_topic(id_)}


def _is_topic(id_: ResourceId) -> bool:
    return id_.kind in KINDS and KINDS[id_.kind].config_scope is ConfigScope.TOPIC


def judged(
    plan: Plan,
    cluster: Cluster,
    policies: Sequence[ConfiguredPolicy],
    owned: Mapping[str, Json],
    override: Override,
    left_out: Collection[str] = (),
) -> Plan:
    """A finished plan without what the policies deny on the cluster as it is now.

    owned: the records of the state. left_out: operations that are not going to be run, by id.
    Raises Fault when the cluster does not answer.
    """
    labels = {**owned_labels(owned), **owned_labels({str(o.id): o.after or o.before for o in plan.ownership})}
    acting = [op for op in plan.operations if op.id not in left_out]
    said = judge(policies, acting, lambda topics: Facts(cluster, topics), labels, override)
    verdicts = _merged(plan.verdicts, said.verdicts)
    if not said.denied:
        return plan if verdicts == plan.verdicts else replace(plan, verdicts=verdicts)
    operations, blocked = cut(plan.operations, said.denied)
    return replace(
        plan,
        operations=operations,
        verdicts=verdicts,
        changes=tuple(_blocked(change, blocked) for change in plan.changes),
        ownership=tuple(o for o in plan.ownership if str(o.id) not in blocked),
        summary=_recounted(plan, operations, blocked),
    )


def overridden(plan: Plan) -> Override:
    """What a plan says of denials that are not to be heeded: of those that it knows, and no others."""
    known = {(v.policy, v.resource, v.topic): v.override for v in plan.verdicts}
    return lambda verdict: known.get((verdict.policy, verdict.resource, verdict.topic))


def cut(
    operations: Sequence[Operation], denied: Mapping[ResourceId, Set[str]]
) -> tuple[tuple[Operation, ...], frozenset[str]]:
    """What is left of the operations, and the resources of which nothing is.

    denied: topics by resource. Of a move of several topics, the others stay.
    """
    left = {op.id: _part(op, denied.get(op.resource, frozenset())) for op in operations}
    gone = {id_ for id_, part in left.items() if part is None}
    kept = _needed(without([part for part in left.values() if part], gone), operations)
    acting = {op.resource for op in kept if VERBS[op.verb].effects(op)}
    blocked = denied.keys() - acting
    return tuple(op for op in kept if op.resource not in blocked), frozenset(map(str, blocked))


def _part(op: Operation, denied: Set[str]) -> Operation | None:
    topics = VERBS[op.verb].effects(op).keys()
    if denied.isdisjoint(topics):
        return op
    if topics <= denied:
        return None
    rest = [name for name in op.args["partitions"] if name.rpartition("-")[0] not in denied]
    return part_of_move(op, rest)


def _needed(kept: Sequence[Operation], planned: Sequence[Operation]) -> tuple[Operation, ...]:
    """Without what only served operations that are gone: their throttles, and waiting for them."""
    ids = {op.id for op in kept}
    served: dict[str, set[str]] = {}
    for op in planned:
        for before in op.needs:
            served.setdefault(before, set()).add(op.id)
    idle = {
        op.id
        for op in kept
        if (op.id in served and served[op.id].isdisjoint(ids) and not VERBS[op.verb].effects(op))
        or (VERBS[op.verb].tidies and op.follows and ids.isdisjoint(op.follows))
    }
    if not idle:
        return tuple(kept)
    return _needed(without(kept, idle), planned)


def _merged(planned: Sequence[Verdict], now: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """What was said when it was planned, and what is denied or warned of since."""
    said = {(v.policy, v.resource, v.topic) for v in planned}
    news = [v for v in now if v.denies or (v.policy, v.resource, v.topic) not in said]
    newer = {(v.policy, v.resource, v.topic) for v in news}
    return (*(v for v in planned if (v.policy, v.resource, v.topic) not in newer), *news)


def _blocked(change: Change, blocked: Set[str]) -> Change:
    return replace(change, blocked=POLICY_VIOLATION) if str(change.id) in blocked else change


def _recounted(plan: Plan, operations: Sequence[Operation], blocked: Set[str]) -> Summary:
    counts = dict.fromkeys(Action, 0)
    for change in plan.changes:
        if str(change.id) in blocked and not change.blocked:
            counts[change.action] += 1
    moves = sum(len(op.args["partitions"]) for op in operations if VERBS[op.verb].moves)
    s = plan.summary
    return replace(
        s,
        create=s.create - counts[Action.CREATE],
        update=s.update - counts[Action.UPDATE],
        delete=s.delete - counts[Action.DELETE],
        blocked=s.blocked + sum(counts.values()),
        reassign=moves,
    )
