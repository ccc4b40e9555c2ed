"""Evaluate policies for declared resources or live resources, without a plan."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.core.policies.policy_request import (
    PolicyAction,
    PolicyRequest,
    UnavailableOffline,
    UncertainRequest,
)
from kdeclare.core.policies.policy_subjects import DeclaredSubject, Review
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.policy.configured_policy import EVERY_ACTION, ConfiguredPolicy, group_by_kind
from kdeclare.policy.isolation import PolicyEvaluator
from kdeclare.policy.subjects import PolicyContext, get_policy_subjects


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The verdicts of policies about resources.

    open: pairs of a policy and a resource for which there is no verdict, because the policy needs data from
        a system.
    """

    verdicts: tuple[Verdict, ...] = ()
    open: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StaticVerdicts:
    """The denials and warnings for declared resources that can be determined without a connection.

    certain: the verdicts for any change that results in the declared state. They do not apply to a resource
        that already has the declared state, because kdeclare does not change it.
    created: the verdicts that apply only if the resource does not exist yet.
    """

    certain: tuple[Verdict, ...]
    created: tuple[Verdict, ...]


def find_static_verdicts(
    policies: Sequence[ConfiguredPolicy], desired: Iterable[DesiredResource]
) -> StaticVerdicts:
    """Return the denials and warnings for declared resources that are known without a connection."""
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
                        continue  # the policy is evaluated when a plan is made
    return StaticVerdicts(_filter_objections(certain), _filter_objections(created))


def _widen_actions(policy: ConfiguredPolicy) -> ConfiguredPolicy:
    """Extend a policy to all actions if it checks CREATE and MODIFY; otherwise return it unchanged."""
    covers_both = {PolicyAction.CREATE, PolicyAction.MODIFY} <= policy.actions
    return replace(policy, actions=EVERY_ACTION) if covers_both else policy


def check_declared(policies: Sequence[ConfiguredPolicy], desired: Iterable[DesiredResource]) -> CheckResult:
    """Evaluate policies for declared resources as if each resource were created now."""
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
    """Evaluate policies for live resources, as if each resource were created in its current state.

    Each resource is also evaluated as if it were modified to its current state. Raises Fault if a system does
    not respond.

    progress: a function that is called after each resource, with the number of evaluated resources.
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
    """Yield the verdicts about each live resource of a kind, as one list for each resource.

    Raises Fault if a system does not respond.

    policies: the policies for this kind.
    names: the names of the resources.
    """
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
    """Yield each subject of each declared resource, with the resource and the policies for the subject.

    A subject is a resource that policies check. It can be the declared resource itself, or an object that
    changes when the declared resource is applied.
    """
    kinds = [(get_policy_subjects(kind), asked) for kind, asked in group_by_kind(policies).items()]
    for item in desired:
        for subjects, applicable in kinds:
            for subject in subjects.find_declared(item).values():
                yield item, subject, applicable


def _evaluate_if_known(
    evaluator: PolicyEvaluator, policy: ConfiguredPolicy, request: UncertainRequest, resource: ResourceId
) -> list[Verdict]:
    """Return the verdict of a policy, or an empty list if the policy does not apply to the request.

    Raises UnavailableOffline if the policy reads data that only a system has, even if the policy catches this
    exception.
    """
    request.withholding.forget()
    verdicts = _evaluate(evaluator, policy, request, resource)
    request.withholding.tell()
    return verdicts


def _evaluate(
    evaluator: PolicyEvaluator, policy: ConfiguredPolicy, request: PolicyRequest, resource: ResourceId
) -> list[Verdict]:
    """Return the verdict of a policy, or an empty list if the policy does not apply to the request."""
    if not policy.covers(request):
        return []
    message = evaluator.ask(policy, request)
    if message is None:
        return [Verdict(policy.name, str(resource), VerdictOutcome.ALLOW)]
    return [Verdict(policy.name, str(resource), policy.outcome, message)]


def _filter_objections(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    return tuple(v for v in verdicts if v.outcome is not VerdictOutcome.ALLOW)
