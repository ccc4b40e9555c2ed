"""A plan before the policies: what they deny is taken out of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.collector import Selections
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plan import Ownership, Plan, Verdict
from kdeclare.engine.planning.request import PlanRequest
from kdeclare.engine.planning.trimming import block_changes, trimmed
from kdeclare.policy.configured import ConfiguredPolicy
from kdeclare.policy.judge import Judgement, Override, judge
from kdeclare.policy.requests.facts import Facts
from kdeclare.policy.requests.outlook import Labels
from kdeclare.providers.kafka.collector import CLUSTER, KafkaConnection
from kdeclare.providers.kafka.ids import is_topic
from kdeclare.providers.kafka.live import KafkaState

POLICY_VIOLATION = "policy-violation"
"""Why a change is blocked that a policy denies; the verdict says more."""


def declared_labels(desired: Iterable[Desired], owned: Mapping[str, Json]) -> Labels:
    """The labels of topics: as declared, else as they were when last applied."""
    stated = {d.id.name: d.labels for d in desired if is_topic(d.id)}
    return {**owned_labels(owned), **stated}


def labels_to_keep(
    labels: Labels, owned: Mapping[str, Json], ownership: Iterable[Ownership]
) -> dict[str, Mapping[str, str]]:
    """The labels that nobody could tell from the state and the records of a plan when it is applied."""
    told = _labels_told(owned, ownership)
    return {topic: dict(found) for topic, found in labels.items() if found != told.get(topic, {})}


def _labels_told(owned: Mapping[str, Json], ownership: Iterable[Ownership]) -> Labels:
    """The labels as the records of a plan have them, else those of the state."""
    return {**owned_labels(owned), **owned_labels({str(o.id): o.after or o.before for o in ownership})}


def owned_labels(owned: Mapping[str, Json]) -> dict[str, Mapping[str, str]]:
    """The labels of topics as they were when last applied."""
    records = {ResourceId.parse(text): record or {} for text, record in owned.items()}
    return {id_.name: record.get("labels", {}) for id_, record in records.items() if is_topic(id_)}


def judge_operations(
    request: PlanRequest,
    connections: Connections,
    selections: Selections,
    live: LiveState,
    operations: Sequence[Operation],
) -> Judgement:
    """Return what the policies say of the operations of a plan that is being made; they are in order.

    selections: what was read of ``live``. Raises Fault when the cluster does not answer.
    """
    cluster, known = connections.get(KafkaConnection).cluster, live.get(KafkaState)
    query = CLUSTER.merge(selections)
    return judge(
        request.policies,
        operations,
        lambda topics: Facts(cluster, topics, known, query),
        declared_labels(request.desired, request.owned),
        owned_labels(request.owned),
        lambda verdict: request.scope.overrides.get(verdict.policy),
    )


def judged(
    plan: Plan,
    connections: Connections,
    policies: Sequence[ConfiguredPolicy],
    owned: Mapping[str, Json],
    override: Override,
    left_out: Collection[str] = (),
) -> Plan:
    """A finished plan without what the policies deny on the cluster as it is now.

    owned: the records of the state. left_out: operations that are not going to be run, by id.
    Raises Fault when the cluster does not answer.
    """
    labels = {**_labels_told(owned, plan.ownership), **plan.labels}
    acting = [op for op in plan.operations if op.id not in left_out]
    applied = owned_labels(owned)
    cluster = connections.get(KafkaConnection).cluster
    said = judge(policies, acting, lambda topics: Facts(cluster, topics), labels, applied, override)
    verdicts = _merged(plan.verdicts, said.verdicts)
    if not said.denied:
        return plan if verdicts == plan.verdicts else replace(plan, verdicts=verdicts)
    operations, resources = trimmed(plan.operations, said.denied)
    blocked = frozenset(map(str, resources))
    return block_changes(replace(plan, verdicts=verdicts), operations, blocked, POLICY_VIOLATION)


def overridden(plan: Plan) -> Override:
    """What a plan says of denials that are not to be heeded: those that somebody has seen, and no others."""
    known = {(v.policy, v.resource, v.topic, v.message): v.override for v in plan.verdicts}
    return lambda now: known.get((now.policy, now.resource, now.topic, now.message))


def _merged(planned: Sequence[Verdict], now: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """What is said now, and of what is not asked about again, what was said when it was planned."""
    known = {(v.policy, v.resource, v.topic): v for v in planned}
    return tuple((known | {(v.policy, v.resource, v.topic): v for v in now}).values())
