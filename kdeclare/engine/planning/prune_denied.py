"""Take out of a plan what must be left alone, such as what the policies deny, and what depends on it."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Plan, Summary, Verdict
from kdeclare.core.plans.policy_gate import Judge, Override
from kdeclare.core.provider.registry import type_of
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord

_Reasons = dict[str, str]


def prune_operations(
    operations: Sequence[Operation], denied: Mapping[ResourceId, Set[ResourceId]]
) -> tuple[tuple[Operation, ...], frozenset[ResourceId]]:
    """What is left of the operations, which are in order, and the resources of which nothing is.

    denied: by resource, the subjects that it must leave alone. Of an operation on several, the others stay.
    """
    if not denied:
        return tuple(operations), frozenset()
    kept = _drop_denied(operations, denied)
    idle = _worked_on(operations) - _worked_on(kept.values())
    for op in operations:
        rest = type_of(op).less(op, idle) if type_of(op).is_auxiliary else None
        if rest is not None:
            kept[op.id] = rest
    _drop_idle(kept, operations)
    left = _rewire(kept, operations)
    return left, _list_acting(operations) - _list_acting(left)


def _drop_denied(
    operations: Iterable[Operation], denied: Mapping[ResourceId, Set[ResourceId]]
) -> dict[str, Operation]:
    """The steps that change something, without what is denied and without what needs that."""
    left: dict[str, Operation] = {}
    gone: set[str] = set()
    for op in operations:
        if type_of(op).is_auxiliary:
            continue
        subjects = denied.get(op.resource, frozenset())
        own = op.resource in subjects
        rest = None if own else type_of(op).less(op, subjects) if subjects else op
        if rest is None or not gone.isdisjoint(op.needs):
            gone.add(op.id)
        else:
            left[op.id] = rest
    return left


def _worked_on(operations: Iterable[Operation]) -> set[ResourceId]:
    return {subject for op in operations for subject in type_of(op).ongoing_work(op)}


def _list_acting(operations: Iterable[Operation]) -> frozenset[ResourceId]:
    return frozenset(op.resource for op in operations if not type_of(op).is_auxiliary)


def _drop_idle(kept: dict[str, Operation], operations: Sequence[Operation]) -> None:
    """Take out what others were to wait for, and nobody does any more."""
    awaited = {need for op in operations for need in op.needs}
    needed: set[str] = set()
    for op in reversed(operations):
        if op.id not in kept:
            continue
        if type_of(op).is_auxiliary and op.id in awaited and op.id not in needed:
            del kept[op.id]
        else:
            needed |= op.needs.keys()


def _rewire(kept: Mapping[str, Operation], operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """In order, with edges among what is left: who came after a step that only waited comes after what
    that one waited for."""
    edges: dict[str, tuple[_Reasons, _Reasons]] = {}
    left = []
    for op in operations:
        needs: _Reasons = {}
        follows: _Reasons = {}
        for before, reason in op.needs.items():
            if before in kept:
                needs[before] = reason
            elif before in edges:
                needs |= edges[before][0]
                follows |= edges[before][1]
        for before, reason in op.follows.items():
            if before in kept:
                follows[before] = reason
            elif before in edges:
                follows |= {**edges[before][0], **edges[before][1]}
        if op.id in kept:
            same = needs == op.needs and follows == op.follows
            left.append(kept[op.id] if same else replace(kept[op.id], needs=needs, follows=follows))
        elif type_of(op).is_auxiliary:
            edges[op.id] = needs, follows
    return tuple(left)


def block_changes(plan: Plan, operations: tuple[Operation, ...], blocked: Set[str], code: str) -> Plan:
    """The plan with only these operations left. blocked: resources of which none is, and ``code`` why."""
    return replace(
        plan,
        operations=operations,
        changes=tuple(_block_change(change, blocked, code) for change in plan.changes),
        ownership=tuple(o for o in plan.ownership if str(o.id) not in blocked),
        summary=_recount(plan, operations, blocked),
    )


def _block_change(change: Change, blocked: Set[str], code: str) -> Change:
    return replace(change, blocked=code) if str(change.id) in blocked else change


def _recount(plan: Plan, operations: Sequence[Operation], blocked: Set[str]) -> Summary:
    counts = dict.fromkeys(Action, 0)
    for change in plan.changes:
        if str(change.id) in blocked and not change.blocked:
            counts[change.action] += 1
    s = plan.summary
    return replace(
        s,
        create=s.create - counts[Action.CREATE],
        update=s.update - counts[Action.UPDATE],
        delete=s.delete - counts[Action.DELETE],
        blocked=s.blocked + sum(counts.values()),
        reassign=count_ongoing_work(operations),
    )


def count_ongoing_work(operations: Iterable[Operation]) -> int:
    """Count the parts of work that go on after the requests of operations were answered."""
    return sum(sum(type_of(op).ongoing_work(op).values()) for op in operations)


def find_action(operations: Sequence[Operation]) -> Action:
    """Return what the operations of one resource do to it; deleting it counts for more than creating it."""
    if any(type_of(op).deletes for op in operations):
        return Action.DELETE
    creates = any(type_of(op).find_created(op) is not None for op in operations)
    return Action.CREATE if creates else Action.UPDATE


POLICY_VIOLATION = "policy-violation"
"""Why a change is blocked that a policy denies; the verdict says more."""


def judge_plan(
    plan: Plan,
    connections: Connections,
    judge: Judge,
    owned: Mapping[str, OwnedRecord],
    override: Override,
    left_out: Collection[str] = (),
) -> Plan:
    """Return a finished plan without what the policies deny on the systems as they are now.

    owned: the records of the state. left_out: operations that are not going to be run, by id.
    Raises Fault when a system does not answer.
    """
    acting = [op for op in plan.operations if op.id not in left_out]
    said = judge.judge_plan(acting, plan, connections, owned, override)
    verdicts = _merge_verdicts(plan.verdicts, said.verdicts)
    if not said.denied:
        return plan if verdicts == plan.verdicts else replace(plan, verdicts=verdicts)
    operations, resources = prune_operations(plan.operations, said.denied)
    blocked = frozenset(map(str, resources))
    return block_changes(replace(plan, verdicts=verdicts), operations, blocked, POLICY_VIOLATION)


def add_needs(
    operations: Sequence[Operation], needs: Mapping[str, Mapping[str, str]]
) -> tuple[Operation, ...]:
    """Return the operations with the edges that follow from a judgement."""
    if not needs:
        return tuple(operations)
    return tuple(
        replace(op, needs={**needs[op.id], **op.needs}) if op.id in needs else op for op in operations
    )


def replay_overrides(plan: Plan) -> Override:
    """What a plan says of denials that are not to be heeded: those that somebody has seen, and no others."""
    known = {(v.policy, v.resource, v.topic, v.message): v.override for v in plan.verdicts}
    return lambda now: known.get((now.policy, now.resource, now.topic, now.message))


def _merge_verdicts(planned: Sequence[Verdict], now: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """What is said now, and of what is not asked about again, what was said when it was planned."""
    known = {(v.policy, v.resource, v.topic): v for v in planned}
    return tuple((known | {(v.policy, v.resource, v.topic): v for v in now}).values())
