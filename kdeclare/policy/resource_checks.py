"""Asking policies about resources as they are declared, or as they are: without any plan."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.policy_subjects import (
    DeclaredSubject,
    PolicyAction,
    PolicyRequest,
    Review,
    UnavailableOffline,
    UncertainRequest,
)
from kdeclare.policy.configured_policy import EVERY_ACTION, ConfiguredPolicy, group_by_kind
from kdeclare.policy.isolation import PolicyEvaluator
from kdeclare.policy.subjects import PolicyContext, get_policy_subjects


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What policies say of resources.

    open: policy and resource, where only a cluster can tell.
    """

    verdicts: tuple[Verdict, ...] = ()
    open: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StaticVerdicts:
    """What policies have against manifests, before any cluster is asked.

    certain: what will be said of every change that leads there; of a resource that is so already and
        stays so, nothing is asked. created: if the resource is not there yet.
    """

    certain: tuple[Verdict, ...]
    created: tuple[Verdict, ...]


def find_static_verdicts(
    policies: Sequence[ConfiguredPolicy], desired: Iterable[DesiredResource]
) -> StaticVerdicts:
    """What can be said of what is declared."""
    certain: list[Verdict] = []
    created: list[Verdict] = []
    widened_policies = {id(policy): _widen_actions(policy) for policy in policies}
    with PolicyEvaluator() as evaluator:
        for item, subject, applicable in _collect_declared_subjects(desired, policies):
            request = subject.make_request(item.labels, created=False)
            for policy in applicable:
                try:
                    certain += _evaluate_if_known(evaluator, widened_policies[id(policy)], request, item.id)
                except UnavailableOffline:
                    creation_request = subject.make_request(item.labels, created=True)
                    try:
                        created += _evaluate_if_known(evaluator, policy, creation_request, item.id)
                    except UnavailableOffline:
                        continue  # the plan will tell
    return StaticVerdicts(_filter_objections(certain), _filter_objections(created))


def _widen_actions(policy: ConfiguredPolicy) -> ConfiguredPolicy:
    """A policy about creations and modifications is about all that is declared: no need to ask which."""
    covers_both = {PolicyAction.CREATE, PolicyAction.MODIFY} <= policy.actions
    return replace(policy, actions=EVERY_ACTION) if covers_both else policy


def check_declared(policies: Sequence[ConfiguredPolicy], desired: Iterable[DesiredResource]) -> CheckResult:
    """What is declared, as if it were created now."""
    verdicts: list[Verdict] = []
    undecided: list[tuple[str, str]] = []
    with PolicyEvaluator() as evaluator:
        for item, subject, applicable in _collect_declared_subjects(desired, policies):
            request = subject.make_request(item.labels, created=True)
            for policy in applicable:
                try:
                    verdicts += _evaluate_if_known(evaluator, policy, request, item.id)
                except UnavailableOffline:
                    undecided.append((policy.name, str(item.id)))
    return CheckResult(tuple(verdicts), tuple(undecided))


def check_live(
    policies: Sequence[ConfiguredPolicy],
    resources: Sequence[ResourceId],
    context: PolicyContext,
    progress: Callable[[int], None],
) -> CheckResult:
    """Resources of systems as they are: as if they were created so, or changed without any effect.

    progress: told how many resources are done. Raises Fault when a system does not answer.
    """
    verdicts: list[Verdict] = []
    done_count = 0
    for kind, applicable in group_by_kind(policies).items():
        names = [resource.name for resource in resources if resource.kind == kind]
        if names:
            review = context.start_review(kind, {PolicyAction.CREATE: names, PolicyAction.MODIFY: names})
            for resource_verdicts in check_existing(applicable, kind, names, review):
                verdicts += resource_verdicts
                done_count += 1
                progress(done_count)
    return CheckResult(tuple(verdicts))


def check_existing(
    policies: Sequence[ConfiguredPolicy], kind: str, names: Sequence[str], review: Review
) -> Iterator[list[Verdict]]:
    """What policies say of each resource of their kind as it is. Raises Fault."""
    among = frozenset(names)
    with PolicyEvaluator(is_busy=lambda: review.is_busy) as evaluator:
        for name in names:
            verdicts: list[Verdict] = []
            for policy in policies:
                for action in (PolicyAction.CREATE, PolicyAction.MODIFY):
                    request = review.make_existing_request(name, action, among)
                    action_verdicts = _evaluate(evaluator, policy, request, ResourceId(kind, name))
                    if review.fault is not None:
                        raise review.fault
                    verdicts += action_verdicts
                    if action_verdicts:
                        break
            yield verdicts


def _collect_declared_subjects(
    desired: Iterable[DesiredResource], policies: Sequence[ConfiguredPolicy]
) -> Iterator[tuple[DesiredResource, DeclaredSubject, Sequence[ConfiguredPolicy]]]:
    """What is declared, with what it says of which subject, and the policies about those."""
    kinds = [(get_policy_subjects(kind), asked) for kind, asked in group_by_kind(policies).items()]
    for item in desired:
        for subjects, applicable in kinds:
            for subject in subjects.find_declared(item).values():
                yield item, subject, applicable


def _evaluate_if_known(
    evaluator: PolicyEvaluator, policy: ConfiguredPolicy, request: UncertainRequest, resource: ResourceId
) -> list[Verdict]:
    """Its verdict, if nothing was withheld from it. Raises NotKnownYet, also where the policy caught it."""
    request.withholding.forget()
    verdicts = _evaluate(evaluator, policy, request, resource)
    request.withholding.tell()
    return verdicts


def _evaluate(
    evaluator: PolicyEvaluator, policy: ConfiguredPolicy, request: PolicyRequest, resource: ResourceId
) -> list[Verdict]:
    """Its verdict, if it is asked about such requests at all."""
    if not policy.covers(request):
        return []
    message = evaluator.ask(policy, request)
    if message is None:
        return [Verdict(policy.name, str(resource), VerdictOutcome.ALLOW)]
    return [Verdict(policy.name, str(resource), policy.outcome, message)]


def _filter_objections(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    return tuple(v for v in verdicts if v.outcome is not VerdictOutcome.ALLOW)
