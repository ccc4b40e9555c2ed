"""A finished plan before the policies: what they deny is taken out of it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.jsontypes import Json
from kdeclare.core.judging import Judge, Override
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plan import Plan, Verdict
from kdeclare.engine.planning.trimming import block_changes, trimmed

POLICY_VIOLATION = "policy-violation"
"""Why a change is blocked that a policy denies; the verdict says more."""


def judge_plan(
    plan: Plan,
    connections: Connections,
    judge: Judge,
    owned: Mapping[str, Json],
    override: Override,
    left_out: Collection[str] = (),
) -> Plan:
    """Return a finished plan without what the policies deny on the systems as they are now.

    owned: the records of the state. left_out: operations that are not going to be run, by id.
    Raises Fault when a system does not answer.
    """
    acting = [op for op in plan.operations if op.id not in left_out]
    said = judge.judge_plan(acting, plan, connections, owned, override)
    verdicts = _merge(plan.verdicts, said.verdicts)
    if not said.denied:
        return plan if verdicts == plan.verdicts else replace(plan, verdicts=verdicts)
    operations, resources = trimmed(plan.operations, said.denied)
    blocked = frozenset(map(str, resources))
    return block_changes(replace(plan, verdicts=verdicts), operations, blocked, POLICY_VIOLATION)


def add_needs(
    operations: Sequence[Operation], needs: Mapping[str, Mapping[str, str]]
) -> tuple[Operation, ...]:
    """Return the operations with the edges that follow from a judgement."""
    return tuple(
        replace(op, needs={**needs[op.id], **op.needs}) if op.id in needs else op for op in operations
    )


def overridden(plan: Plan) -> Override:
    """What a plan says of denials that are not to be heeded: those that somebody has seen, and no others."""
    known = {(v.policy, v.resource, v.topic, v.message): v.override for v in plan.verdicts}
    return lambda now: known.get((now.policy, now.resource, now.topic, now.message))


def _merge(planned: Sequence[Verdict], now: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """What is said now, and of what is not asked about again, what was said when it was planned."""
    known = {(v.policy, v.resource, v.topic): v for v in planned}
    return tuple((known | {(v.policy, v.resource, v.topic): v for v in now}).values())
