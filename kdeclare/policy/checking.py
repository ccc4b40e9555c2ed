"""Asking policies about topics as they are declared, or as they are: without any plan."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kdeclare.core.ids import ResourceId
from kdeclare.core.judging import Labels
from kdeclare.core.kind import Desired
from kdeclare.core.plan import Verdict, VerdictOutcome
from kdeclare.policy.asking import Asking
from kdeclare.policy.configured import EVERY_ACTION, ConfiguredPolicy
from kdeclare.policy.interface import Action, RequestMetadata
from kdeclare.policy.requests.declared import DeclaredRequest, NotKnownYet
from kdeclare.policy.requests.existing import ExistingRequest
from kdeclare.policy.requests.facts import Facts
from kdeclare.policy.requests.outlook import Outlook
from kdeclare.providers.kafka.topic_effects import Stated, find_static_topic_state


@dataclass(frozen=True, slots=True)
class Checked:
    """What policies say of topics.

    open: policy and resource, where only a cluster can tell.
    """

    verdicts: tuple[Verdict, ...] = ()
    open: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What policies have against manifests, before any cluster is asked.

    certain: what will be said of every change that leads there; of a topic that is so already and stays
        so, nothing is asked. created: if the topic is not there yet.
    """

    certain: tuple[Verdict, ...]
    created: tuple[Verdict, ...]


def foresee(policies: Sequence[ConfiguredPolicy], desired: Iterable[Desired]) -> Foreseen:
    """What can be said of the topics that are declared."""
    certain: list[Verdict] = []
    created: list[Verdict] = []
    asked = [(policy, _whichever(policy)) for policy in policies]
    with Asking() as asking:
        for item, topic, stated in _declared(desired):
            request = DeclaredRequest(topic, item.labels, stated)
            for policy, whichever in asked:
                try:
                    certain += _known(asking, whichever, request, item.id)
                except NotKnownYet:
                    try:
                        created += _known(asking, policy, replace(request, created=True), item.id)
                    except NotKnownYet:
                        continue  # the plan will tell
    return Foreseen(_objections(certain), _objections(created))


def _whichever(policy: ConfiguredPolicy) -> ConfiguredPolicy:
    """A policy about creations and modifications is about all that is declared: no need to ask which."""
    both = {Action.CREATE, Action.MODIFY} <= policy.actions
    return replace(policy, actions=EVERY_ACTION) if both else policy


def check_declared(policies: Sequence[ConfiguredPolicy], desired: Iterable[Desired]) -> Checked:
    """The topics that are declared, as if they were created now."""
    verdicts: list[Verdict] = []
    left: list[tuple[str, str]] = []
    with Asking() as asking:
        for item, topic, stated in _declared(desired):
            request = DeclaredRequest(topic, item.labels, stated, created=True)
            for policy in policies:
                try:
                    verdicts += _known(asking, policy, request, item.id)
                except NotKnownYet:
                    left.append((policy.name, str(item.id)))
    return Checked(tuple(verdicts), tuple(left))


def check_live(
    policies: Sequence[ConfiguredPolicy],
    topics: Sequence[ResourceId],
    facts: Facts,
    labels: Labels,
    progress: Callable[[int], None],
) -> Checked:
    """Topics of a cluster as they are: as if they were created so, or changed without any effect.

    progress: told how many topics are done. Raises Fault when the cluster does not answer.
    """
    outlook = Outlook(facts, labels)
    among = frozenset(topic.name for topic in topics)
    verdicts: list[Verdict] = []
    with Asking(busy=lambda: facts.busy) as asking:
        for done, topic in enumerate(topics, start=1):
            for policy in policies:
                for action in (Action.CREATE, Action.MODIFY):
                    request = ExistingRequest(topic.name, action, outlook, among)
                    found = _said(asking, policy, request, topic)
                    if facts.fault is not None:
                        raise facts.fault
                    verdicts += found
                    if found:
                        break
            progress(done)
    return Checked(tuple(verdicts))


def _declared(desired: Iterable[Desired]) -> Iterator[tuple[Desired, str, Stated]]:
    for item in desired:
        for topic, stated in find_static_topic_state(item).items():
            yield item, topic, stated


def _known(
    asking: Asking, policy: ConfiguredPolicy, request: DeclaredRequest, resource: ResourceId
) -> list[Verdict]:
    """Its verdict, if nothing was withheld from it. Raises NotKnownYet, also where the policy caught it."""
    request.withholding.forget()
    found = _said(asking, policy, request, resource)
    request.withholding.tell()
    return found


def _said(
    asking: Asking, policy: ConfiguredPolicy, request: RequestMetadata, resource: ResourceId
) -> list[Verdict]:
    """Its verdict, if it is asked about such requests at all."""
    if not policy.covers(request):
        return []
    message = asking.ask(policy, request)
    if message is None:
        return [Verdict(policy.name, str(resource), VerdictOutcome.ALLOW)]
    return [Verdict(policy.name, str(resource), policy.outcome, message)]


def _objections(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    return tuple(v for v in verdicts if v.outcome is not VerdictOutcome.ALLOW)
