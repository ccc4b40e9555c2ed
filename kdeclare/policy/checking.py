"""Asking policies about resources as they are declared, or as they are: without any plan."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from kdeclare.core.frozen import dataclass
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.core.resources.policy_subjects import (
    DeclaredSubject,
    NotKnownYet,
    PolicyAction,
    PolicyRequest,
    Review,
    UncertainRequest,
)
from kdeclare.policy.configured import EVERY_ACTION, ConfiguredPolicy, by_kind
from kdeclare.policy.isolation import Asking
from kdeclare.policy.subjects import PolicyContext, subjects_of


@dataclass(frozen=True, slots=True)
class Checked:
    """What policies say of resources.

    open: policy and resource, where only a cluster can tell.
    """

    verdicts: tuple[Verdict, ...] = ()
    open: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What policies have against manifests, before any cluster is asked.

    certain: what will be said of every change that leads there; of a resource that is so already and
        stays so, nothing is asked. created: if the resource is not there yet.
    """

    certain: tuple[Verdict, ...]
    created: tuple[Verdict, ...]


def foresee(policies: Sequence[ConfiguredPolicy], desired: Iterable[Desired]) -> Foreseen:
    """What can be said of what is declared."""
    certain: list[Verdict] = []
    created: list[Verdict] = []
    whichever = {id(policy): _whichever(policy) for policy in policies}
    with Asking() as asking:
        for item, subject, asked in _declared(desired, policies):
            request = subject.make_request(item.labels, created=False)
            for policy in asked:
                try:
                    certain += _known(asking, whichever[id(policy)], request, item.id)
                except NotKnownYet:
                    as_new = subject.make_request(item.labels, created=True)
                    try:
                        created += _known(asking, policy, as_new, item.id)
                    except NotKnownYet:
                        continue  # the plan will tell
    return Foreseen(_objections(certain), _objections(created))


def _whichever(policy: ConfiguredPolicy) -> ConfiguredPolicy:
    """A policy about creations and modifications is about all that is declared: no need to ask which."""
    both = {PolicyAction.CREATE, PolicyAction.MODIFY} <= policy.actions
    return replace(policy, actions=EVERY_ACTION) if both else policy


def check_declared(policies: Sequence[ConfiguredPolicy], desired: Iterable[Desired]) -> Checked:
    """What is declared, as if it were created now."""
    verdicts: list[Verdict] = []
    left: list[tuple[str, str]] = []
    with Asking() as asking:
        for item, subject, asked in _declared(desired, policies):
            request = subject.make_request(item.labels, created=True)
            for policy in asked:
                try:
                    verdicts += _known(asking, policy, request, item.id)
                except NotKnownYet:
                    left.append((policy.name, str(item.id)))
    return Checked(tuple(verdicts), tuple(left))


def check_live(
    policies: Sequence[ConfiguredPolicy],
    resources: Sequence[ResourceId],
    context: PolicyContext,
    progress: Callable[[int], None],
) -> Checked:
    """Resources of systems as they are: as if they were created so, or changed without any effect.

    progress: told how many resources are done. Raises Fault when a system does not answer.
    """
    verdicts: list[Verdict] = []
    done = 0
    for kind, asked in by_kind(policies).items():
        names = [resource.name for resource in resources if resource.kind == kind]
        if names:
            review = context.start_review(kind, {PolicyAction.CREATE: names, PolicyAction.MODIFY: names})
            for found in check_existing(asked, kind, names, review):
                verdicts += found
                done += 1
                progress(done)
    return Checked(tuple(verdicts))


def check_existing(
    policies: Sequence[ConfiguredPolicy], kind: str, names: Sequence[str], review: Review
) -> Iterator[list[Verdict]]:
    """What policies say of each resource of their kind as it is. Raises Fault."""
    among = frozenset(names)
    with Asking(busy=lambda: review.busy) as asking:
        for name in names:
            verdicts: list[Verdict] = []
            for policy in policies:
                for action in (PolicyAction.CREATE, PolicyAction.MODIFY):
                    request = review.make_existing(name, action, among)
                    found = _said(asking, policy, request, ResourceId(kind, name))
                    if review.fault is not None:
                        raise review.fault
                    verdicts += found
                    if found:
                        break
            yield verdicts


def _declared(
    desired: Iterable[Desired], policies: Sequence[ConfiguredPolicy]
) -> Iterator[tuple[Desired, DeclaredSubject, Sequence[ConfiguredPolicy]]]:
    """What is declared, with what it says of which subject, and the policies about those."""
    kinds = [(subjects_of(kind), asked) for kind, asked in by_kind(policies).items()]
    for item in desired:
        for subjects, asked in kinds:
            for subject in subjects.find_declared(item).values():
                yield item, subject, asked


def _known(
    asking: Asking, policy: ConfiguredPolicy, request: UncertainRequest, resource: ResourceId
) -> list[Verdict]:
    """Its verdict, if nothing was withheld from it. Raises NotKnownYet, also where the policy caught it."""
    request.withholding.forget()
    found = _said(asking, policy, request, resource)
    request.withholding.tell()
    return found


def _said(
    asking: Asking, policy: ConfiguredPolicy, request: PolicyRequest, resource: ResourceId
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
