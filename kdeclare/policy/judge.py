"""Putting a plan's operations before the policies, topic by topic."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.ids import ResourceId
from kdeclare.core.judging import Judgement, Override
from kdeclare.core.operations import Operation
from kdeclare.core.plan import Verdict, VerdictOutcome
from kdeclare.policy.asking import Asking
from kdeclare.policy.configured import ConfiguredPolicy, Group
from kdeclare.policy.interface import Action, PolicyViolation, TopicActionsPolicy
from kdeclare.policy.requests.facts import Facts
from kdeclare.policy.requests.outlook import Labels, Outlook
from kdeclare.policy.requests.planned import TopicRequest, action_of, effects_of
from kdeclare.providers.kafka.ids import is_topic
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
