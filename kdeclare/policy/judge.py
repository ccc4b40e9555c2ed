"""The policies of a project judge what operations make of topics, topic by topic (KIP-201)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kdeclare.core.collector import Selections
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.judging import Judge, Judgement, Labels, Override
from kdeclare.core.kind import Desired
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plan import Ownership, Plan, Verdict, VerdictOutcome
from kdeclare.core.planning import PlanInputs
from kdeclare.policy.asking import Asking
from kdeclare.policy.configured import ConfiguredPolicy, Group
from kdeclare.policy.interface import Action, PolicyViolation, TopicActionsPolicy
from kdeclare.policy.labels import find_declared_labels, find_owned_labels, find_planned_labels
from kdeclare.policy.requests.facts import Facts
from kdeclare.policy.requests.outlook import Outlook
from kdeclare.policy.requests.planned import TopicRequest, action_of, effects_of
from kdeclare.providers.kafka.collector import CLUSTER
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import is_topic
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.topic_effects import find_effects

_REASON = "was allowed on what this makes of the topic"


def judge(
    policies: Sequence[ConfiguredPolicy],
    operations: Sequence[Operation],
    facts: Callable[[Sequence[str]], Facts],
    labels: Labels,
    applied: Labels,
    override: Override = lambda verdict: None,
) -> Judgement:
    """Ask every policy about every topic that the operations, which are in order, make something of.

    labels: of topics, as they will be; applied: as they were when last applied. Where several resources
    are about one topic, each is judged on what those before it will have made of it; what was denied does
    not count. Raises Fault when the cluster does not answer.
    """
    requested = effects_of(operations) if policies else {}
    if not requested:
        return Judgement()
    doing: dict[Action, list[str]] = {action: [] for action in Action}
    for (_, topic), effects in requested.items():
        doing[action_of(effects)].append(topic)
    outlook = Outlook(facts(sorted({t for topics in doing.values() for t in topics})), labels, applied, doing)
    verdicts: list[Verdict] = []
    denied: dict[ResourceId, frozenset[str]] = {}
    stands_on: dict[tuple[ResourceId, str], tuple[ResourceId, ...]] = {}
    makers: dict[str, tuple[ResourceId, ...]] = {}
    with Asking(busy=lambda: outlook.facts.busy) as asking:
        for (resource, topic), effects in requested.items():
            request = TopicRequest(topic, effects, outlook.accepted(topic), outlook)
            found, objections = _verdicts(policies, request, resource, asking)
            if objections:
                found = [_overridden(v, override) if v.denies else v for v in found]
            verdicts += found
            if objections and any(verdict.denies for verdict in found):
                denied[resource] = denied.get(resource, frozenset()) | {topic}
                continue
            outlook.accept(topic, effects)
            if topic in makers:
                stands_on[resource, topic] = makers[topic]
            makers[topic] = (*makers.get(topic, ()), resource)
    return Judgement(tuple(verdicts), denied, _find_needs(operations, stands_on))


def _verdicts(
    policies: Sequence[ConfiguredPolicy], request: TopicRequest, resource: ResourceId, asking: Asking
) -> tuple[list[Verdict], bool]:
    """What each policy says, and whether one has something against it."""
    name, topic = str(resource), None if is_topic(resource) else request.topic
    facts = request.facts
    verdicts, objections = [], False
    asked = [item for item in policies if item.covers(request)]
    passing = _passing(asked, request)
    for item in asked:
        message = None if item.group in passing else asking.ask(item, request)
        if facts.fault is not None:
            raise facts.fault  # also where the policy has made nothing of it
        if message is None:
            verdicts.append(Verdict(item.name, name, VerdictOutcome.ALLOW, "", topic))
        else:
            verdicts.append(Verdict(item.name, name, item.outcome, message, topic))
            objections = True
    return verdicts, objections


def _passing(asked: Sequence[ConfiguredPolicy], request: TopicRequest) -> list[Group]:
    """The groups of which nobody has anything against a request."""
    groups: dict[Group, list[TopicActionsPolicy]] = {}
    for item in asked:
        if item.group is not None:
            groups.setdefault(item.group, []).append(item.policy)
    try:
        return [group for group, policies in groups.items() if group.passes(policies, request)]
    except PolicyViolation:
        return []  # of what is not there any more, each has something to say


def _overridden(verdict: Verdict, override: Override) -> Verdict:
    reason = override(verdict)
    return verdict if reason is None else replace(verdict, outcome=VerdictOutcome.WARN, override=reason)


def _find_needs(
    operations: Sequence[Operation], stands_on: Mapping[tuple[ResourceId, str], Sequence[ResourceId]]
) -> Mapping[str, Mapping[str, str]]:
    """What was allowed on what another resource makes of a topic needs that.

    stands_on: of a resource and a topic, the resources without which it might have been denied.
    """
    if not stands_on:
        return {}
    made: dict[tuple[ResourceId, str], list[str]] = {}
    found: dict[str, Mapping[str, str]] = {}
    for op in operations:
        topics = find_effects(op)
        others = [(other, t) for t in topics for other in stands_on.get((op.resource, t), ())]
        needs = dict.fromkeys((id_ for key in others for id_ in made.get(key, ())), _REASON)
        if needs:
            found[op.id] = needs
        for topic in topics:
            made.setdefault((op.resource, topic), []).append(op.id)
    return found


@dataclass(frozen=True, slots=True)
class PolicyJudge(Judge):
    """A `core.judging.Judge` of what operations make of topics (KIP-201)."""

    policies: tuple[ConfiguredPolicy, ...] = ()

    def judge_draft(
        self,
        operations: Sequence[Operation],
        inputs: PlanInputs,
        selections: Selections,
        override: Override,
    ) -> Judgement:
        """Policies see what was read for the plan, and read the rest when they ask for it."""
        owned = inputs.state.resources if inputs.state else {}
        cluster, known = inputs.connections.get(KafkaConnection).cluster, inputs.live.get(KafkaState)
        query = CLUSTER.merge(selections)
        return judge(
            self.policies,
            operations,
            lambda topics: Facts(cluster, topics, known, query),
            find_declared_labels(inputs.desired, owned),
            find_owned_labels(owned),
            override,
        )

    def judge_plan(
        self,
        operations: Sequence[Operation],
        plan: Plan,
        connections: Connections,
        owned: Mapping[str, Json],
        override: Override,
    ) -> Judgement:
        """Policies see the cluster as it is now."""
        cluster = connections.get(KafkaConnection).cluster
        labels = {**find_planned_labels(owned, plan.ownership), **plan.labels}
        applied = find_owned_labels(owned)
        return judge(
            self.policies, operations, lambda topics: Facts(cluster, topics), labels, applied, override
        )

    def find_labels_to_keep(
        self, desired: Iterable[Desired], owned: Mapping[str, Json], ownership: Iterable[Ownership]
    ) -> Labels:
        """None where there are no policies."""
        if not self.policies:
            return {}
        told = find_planned_labels(owned, ownership)
        labels = find_declared_labels(desired, owned)
        return {topic: dict(found) for topic, found in labels.items() if found != told.get(topic, {})}

    def list_judged(self, operations: Sequence[Operation]) -> frozenset[tuple[ResourceId, str]]:
        """The topics that the operations make something of."""
        return frozenset(effects_of(operations))
