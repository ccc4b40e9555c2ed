"""Putting a plan's operations before the policies, topic by topic."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kdeclare.model.ids import ResourceId
from kdeclare.model.operations import Operation
from kdeclare.model.plan import Verdict, VerdictOutcome
from kdeclare.policy.asking import LIMIT_S, Asking
from kdeclare.policy.configured import ConfiguredPolicy
from kdeclare.policy.facts import Facts
from kdeclare.policy.requests import Effects, Labels, Outlook, TopicRequest, effects_of

Override = Callable[[Verdict], str | None]
"""The reason for which a denial is to be overridden; None if it is not."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the policies said; ``denied`` names the topics of each resource that must be left alone."""

    verdicts: tuple[Verdict, ...]
    denied: Mapping[ResourceId, frozenset[str]]


def judge(
    policies: Sequence[ConfiguredPolicy],
    operations: Sequence[Operation],
    facts: Callable[[Sequence[str]], Facts],
    labels: Labels,
    override: Override = lambda verdict: None,
) -> Judgement:
    """Ask every policy about every topic that the operations, which are in order, make something of.

    Where several resources are about one topic, each is judged on what those before it will have made
    of the topic; what was denied does not count. Raises Fault when the cluster does not answer.
    """
    requested = effects_of(operations) if policies else {}
    if not requested:
        return Judgement((), {})
    by_topic: dict[str, Effects] = {}
    for (_, topic), effects in requested.items():
        by_topic[topic] = (*by_topic.get(topic, ()), *effects)
    outlook = Outlook(facts(tuple(by_topic)), labels, by_topic)
    verdicts: list[Verdict] = []
    denied: dict[ResourceId, frozenset[str]] = {}
    accepted: dict[str, Effects] = {}
    with Asking(LIMIT_S) as asking:
        for (resource, topic), effects in requested.items():
            request = TopicRequest(topic, effects, accepted.get(topic, ()), outlook)
            found, objections = _verdicts(policies, request, resource, asking)
            if objections:
                found = [_overridden(v, override) if v.denies else v for v in found]
            verdicts += found
            if objections and any(verdict.denies for verdict in found):
                denied[resource] = denied.get(resource, frozenset()) | {topic}
            else:
                accepted[topic] = (*accepted.get(topic, ()), *effects)
    return Judgement(tuple(verdicts), denied)


def _verdicts(
    policies: Sequence[ConfiguredPolicy], request: TopicRequest, resource: ResourceId, asking: Asking
) -> tuple[list[Verdict], bool]:
    """What each policy says, and whether one has something against it."""
    name, topic = str(resource), None if resource.name == request.topic else request.topic
    facts = request.outlook.facts
    verdicts, objections = [], False
    for item in policies:
        if not item.covers(request):
            continue
        message = asking.ask(item, request)
        if facts.fault is not None:
            raise facts.fault  # also where the policy has made nothing of it
        if message is None:
            verdicts.append(Verdict(item.name, name, VerdictOutcome.ALLOW, "", topic))
        else:
            verdicts.append(Verdict(item.name, name, item.outcome, message, topic))
            objections = True
    return verdicts, objections


def _overridden(verdict: Verdict, override: Override) -> Verdict:
    reason = override(verdict)
    return verdict if reason is None else replace(verdict, outcome=VerdictOutcome.WARN, override=reason)
