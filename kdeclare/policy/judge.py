"""The policies of a project judge what operations make of resources, one resource after the other."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from kdeclare.core.frozen import dataclass
from kdeclare.core.live.collector import Selections
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Ownership, Plan, Verdict, VerdictOutcome
from kdeclare.core.plans.planning import PlanInputs
from kdeclare.core.plans.policy_gate import Judge, Judgement, Labels, Override
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.policy_subjects import (
    PolicyAction,
    PolicyEffect,
    PolicyRequest,
    PolicyViolation,
    Review,
    find_action,
    noun_of,
)
from kdeclare.manifests.policies import TOPIC
from kdeclare.policy.configured import ConfiguredPolicy, Group, Policy, by_kind
from kdeclare.policy.isolation import Asking
from kdeclare.policy.subjects import (
    PolicyContext,
    find_declared_labels,
    find_owned_labels,
    find_planned_labels,
    read_labels,
    subjects_of,
    write_labels,
)


@dataclass(slots=True)
class Requested:
    """What a planned resource makes of a subject, which can be the resource itself."""

    resource: ResourceId
    subject: ResourceId
    effects: list[PolicyEffect] = field(default_factory=list)

    @property
    def deletes(self) -> bool:
        """Whether the subject is there only before."""
        return any(effect.deleted for effect in self.effects)


def judge(
    policies: Sequence[ConfiguredPolicy],
    operations: Sequence[Operation],
    context: PolicyContext,
    override: Override = lambda verdict: None,
) -> Judgement:
    """Ask every policy about every resource of its kind that the operations, in order, make something of.

    Where several planned resources are about one subject, each is judged on what those before it will have
    made of it; what was denied does not count. Raises Fault when a system does not answer.
    """
    asked = by_kind(policies)
    requested = find_requested(operations, asked)
    if not requested:
        return Judgement()
    reviews = _start_reviews(requested, context)
    run = _Run(asked, reviews, override)
    with Asking(busy=lambda: any(review.busy for review in reviews.values())) as asking:
        for item in requested:
            run.judge(item, asking)
    return Judgement(tuple(run.verdicts), run.denied, _find_needs(operations, asked, run.stands_on))


def find_requested(operations: Sequence[Operation], kinds: Iterable[str]) -> list[Requested]:
    """Return what each resource makes of each subject of these kinds, in the order in which it is judged.

    Deletions come first, as they make room; then subject by subject, and for one subject in the order of the
    operations, which is that of the resources wherever one needs the other.
    """
    found: dict[tuple[str, str, str, str], Requested] = {}  # by texts, whose hashes are known
    ordered = [(number, kind, subjects_of(kind)) for number, kind in enumerate(kinds)]
    for op in operations:
        own = op.resource
        for _, kind, subjects in ordered:
            for name, effect in subjects.find_policy_effects(op).items():
                item = found.get((own.kind, own.name, kind, name))
                if item is None:
                    subject = own if own.name == name and own.kind == kind else ResourceId(kind, name)
                    item = found[own.kind, own.name, kind, name] = Requested(own, subject)
                item.effects.append(effect)
    place = {kind: number for number, kind, _ in ordered}
    return sorted(
        found.values(), key=lambda item: (not item.deletes, place[item.subject.kind], item.subject.name)
    )


def _start_reviews(requested: Iterable[Requested], context: PolicyContext) -> dict[str, Review]:
    doing: dict[str, dict[PolicyAction, list[str]]] = defaultdict(lambda: {a: [] for a in PolicyAction})
    for item in requested:
        doing[item.subject.kind][find_action(item.effects)].append(item.subject.name)
    return {kind: context.start_review(kind, subjects) for kind, subjects in doing.items()}


@dataclass(slots=True)
class _Run:
    """One judgement under way.

    stands_on: of a resource and a subject, the resources without which it might have been denied.
    """

    policies: Mapping[str, Sequence[ConfiguredPolicy]]
    reviews: Mapping[str, Review]
    override: Override
    verdicts: list[Verdict] = field(default_factory=list)
    denied: dict[ResourceId, frozenset[ResourceId]] = field(default_factory=dict)
    stands_on: dict[tuple[ResourceId, ResourceId], tuple[ResourceId, ...]] = field(default_factory=dict)
    makers: dict[tuple[str, str], tuple[ResourceId, ...]] = field(default_factory=dict)

    def judge(self, item: Requested, asking: Asking) -> None:
        """Judge what a resource makes of a subject."""
        resource, subject = item.resource, item.subject
        review = self.reviews[subject.kind]
        request = review.make_request(subject.name, item.effects)
        found, objections = _verdicts(self.policies[subject.kind], request, item, review, asking)
        if objections:
            found = [_overridden(v, self.override) if v.denies else v for v in found]
        self.verdicts += found
        if objections and any(verdict.denies for verdict in found):
            self.denied[resource] = self.denied.get(resource, frozenset()) | {subject}
            return
        review.accept(subject.name, item.effects)
        before = self.makers.get((subject.kind, subject.name), ())
        if before:
            self.stands_on[resource, subject] = before
        self.makers[subject.kind, subject.name] = (*before, resource)


def _verdicts(
    policies: Sequence[ConfiguredPolicy],
    request: PolicyRequest,
    requested: Requested,
    review: Review,
    asking: Asking,
) -> tuple[list[Verdict], bool]:
    """What each policy says, and whether one has something against it."""
    name = str(requested.resource)
    about = None if requested.subject == requested.resource else _name_of(requested.subject)
    verdicts, objections = [], False
    asked = [item for item in policies if item.covers(request)]
    passing = _passing(asked, request)
    for item in asked:
        message = None if item.group in passing else asking.ask(item, request)
        fault = review.fault
        if fault is not None:
            raise fault  # also where the policy has made nothing of it
        if message is None:
            verdicts.append(Verdict(item.name, name, VerdictOutcome.ALLOW, "", about))
        else:
            verdicts.append(Verdict(item.name, name, item.outcome, message, about))
            objections = True
    return verdicts, objections


def _name_of(subject: ResourceId) -> str:
    """What a verdict calls a subject that is not the planned resource: a topic by its name alone."""
    return subject.name if subject.kind == TOPIC else str(subject)


def _passing(asked: Sequence[ConfiguredPolicy], request: PolicyRequest) -> list[Group]:
    """The groups of which nobody has anything against a request."""
    groups: dict[Group, list[Policy]] = {}
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
    operations: Sequence[Operation],
    kinds: Iterable[str],
    stands_on: Mapping[tuple[ResourceId, ResourceId], Sequence[ResourceId]],
) -> Mapping[str, Mapping[str, str]]:
    """What was allowed on what another resource makes of a subject needs that."""
    if not stands_on:
        return {}
    made: dict[tuple[ResourceId, ResourceId], list[str]] = {}
    found: dict[str, Mapping[str, str]] = {}
    for op in operations:
        subjects = [
            ResourceId(kind, name) for kind in kinds for name in subjects_of(kind).find_policy_effects(op)
        ]
        others = [(other, s) for s in subjects for other in stands_on.get((op.resource, s), ())]
        needs = {
            id_: f"was allowed on what this makes of the {noun_of(subject.kind)}"
            for other, subject in others
            for id_ in made.get((other, subject), ())
        }
        if needs:
            found[op.id] = needs
        for subject in subjects:
            made.setdefault((op.resource, subject), []).append(op.id)
    return found


@dataclass(frozen=True, slots=True)
class PolicyJudge(Judge):
    """A `Judge` of what operations make of resources."""

    policies: tuple[ConfiguredPolicy, ...] = ()

    def judge_draft(
        self,
        operations: Sequence[Operation],
        inputs: PlanInputs,
        selections: Selections,
        override: Override,
    ) -> Judgement:
        """Policies see what was read for the plan, and read the rest when they ask for it."""
        if not self.policies or not operations:  # what they would be told is of all resources
            return Judgement()
        owned = inputs.state.resources if inputs.state else {}
        context = PolicyContext(
            inputs.connections,
            inputs.live,
            selections,
            {d.id: d for d in inputs.desired},
            _by_id(owned),
            find_declared_labels(inputs.desired, owned),
            find_owned_labels(owned),
        )
        return judge(self.policies, operations, context, override)

    def judge_plan(
        self,
        operations: Sequence[Operation],
        plan: Plan,
        connections: Connections,
        owned: Mapping[str, OwnedRecord],
        override: Override,
    ) -> Judgement:
        """Policies see the systems as they are now."""
        if not self.policies or not operations:
            return Judgement()
        planned = ((item.id, item.before or item.after) for item in plan.ownership)
        records = {**_by_id(owned), **{id_: record for id_, record in planned if record is not None}}
        context = PolicyContext(
            connections,
            owned=records,
            labels={**find_planned_labels(owned, plan.ownership), **read_labels(plan.labels)},
            applied=find_owned_labels(owned),
        )
        return judge(self.policies, operations, context, override)

    def find_labels_to_keep(
        self, desired: Iterable[Desired], owned: Mapping[str, OwnedRecord], ownership: Iterable[Ownership]
    ) -> Labels:
        """None where there are no policies."""
        kinds = by_kind(self.policies)
        if not kinds:
            return {}
        told = find_planned_labels(owned, ownership)
        labels = find_declared_labels(desired, owned)
        return write_labels(
            {id_: found for id_, found in labels.items() if id_.kind in kinds and found != told.get(id_, {})}
        )

    def list_judged(self, operations: Sequence[Operation]) -> frozenset[tuple[ResourceId, str]]:
        """The subjects that the operations make something of, by the names that verdicts have for them."""
        requested = find_requested(operations, by_kind(self.policies))
        return frozenset(
            (item.resource, "" if item.subject == item.resource else _name_of(item.subject))
            for item in requested
        )


def _by_id(owned: Mapping[str, OwnedRecord]) -> dict[ResourceId, OwnedRecord]:
    return {ResourceId.parse(text): record for text, record in owned.items()}
