"""Evaluate the policies of a project for the changes in a plan."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Selections
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Ownership, Plan, Verdict, VerdictOutcome
from kdeclare.core.plans.plan_hooks import PlanInputs
from kdeclare.core.plans.policy_gate import Labels, Override, PolicyEvaluation, PolicyGate
from kdeclare.core.policies.policy_request import (
    PolicyAction,
    PolicyEffect,
    PolicyRequest,
    PolicyViolation,
    find_policy_action,
)
from kdeclare.core.policies.policy_subjects import Review, format_kind
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.manifests.policies import TOPIC
from kdeclare.policy.configured_policy import ConfiguredPolicy, Policy, PolicyGroup, group_by_kind
from kdeclare.policy.isolation import PolicyEvaluator
from kdeclare.policy.subjects import (
    PolicyContext,
    dump_labels,
    find_declared_labels,
    find_owned_labels,
    find_planned_labels,
    get_policy_subjects,
    parse_labels,
)


@dataclass(slots=True)
class SubjectEffects:
    """The effects of the change to one resource on one subject.

    A subject is a resource that policies check.
    """

    resource: ResourceId
    subject: ResourceId
    find_topic_effects: list[PolicyEffect] = field(default_factory=list)

    @property
    def deletes(self) -> bool:
        """Whether the subject is deleted."""
        return any(effect.deleted for effect in self.find_topic_effects)


def evaluate_operations(
    policies: Sequence[ConfiguredPolicy],
    operations: Sequence[Operation],
    context: PolicyContext,
    override: Override = lambda verdict: None,
) -> PolicyEvaluation:
    """Evaluate each policy for each resource of its kind that the operations change.

    If changes to several resources affect the same object, each change is evaluated as if all earlier
    changes that were not denied had been applied. Raises Fault if a system does not respond.

    operations: the operations in the order of their execution.
    """
    policies_by_kind = group_by_kind(policies)
    subject_effects = collect_subject_effects(operations, policies_by_kind)
    if not subject_effects:
        return PolicyEvaluation()
    reviews = _start_reviews(subject_effects, context)
    evaluation = _Evaluation(policies_by_kind, reviews, override)
    with PolicyEvaluator(is_busy=lambda: any(review.is_busy for review in reviews.values())) as evaluator:
        for item in subject_effects:
            evaluation.judge(item, evaluator)
    return PolicyEvaluation(
        tuple(evaluation.verdicts),
        evaluation.denied,
        _find_predecessors(operations, policies_by_kind, evaluation.prerequisites),
    )


def collect_subject_effects(operations: Sequence[Operation], kinds: Iterable[str]) -> list[SubjectEffects]:
    """Return the effects of each resource's change on each subject of these kinds, in evaluation order.

    A subject is a resource that policies check. Deletions come first, because they free capacity. All other
    effects are grouped by subject, and each group is in the order of the operations.
    """
    effects_by_key: dict[tuple[str, str, str, str], SubjectEffects] = {}  # str keys have cached hashes
    deletions: list[SubjectEffects] = []  # of objects that are created again
    kind_subjects = [(number, kind, get_policy_subjects(kind)) for number, kind in enumerate(kinds)]
    for op in operations:
        op_resource = op.resource
        for _, kind, subjects in kind_subjects:
            for name, effect in subjects.find_policy_effects(op).items():
                item = effects_by_key.get((op_resource.kind, op_resource.name, kind, name))
                if item is not None and effect.created and item.deletes:
                    deletions.append(item)  # a replacement is evaluated as a deletion, then as a creation
                    item = None
                if item is None:
                    subject = (
                        op_resource
                        if op_resource.name == name and op_resource.kind == kind
                        else ResourceId(kind, name)
                    )
                    item = effects_by_key[op_resource.kind, op_resource.name, kind, name] = SubjectEffects(
                        op_resource, subject
                    )
                item.find_topic_effects.append(effect)
    kind_order = {kind: number for number, kind, _ in kind_subjects}
    return sorted(
        (*deletions, *effects_by_key.values()),
        key=lambda item: (not item.deletes, kind_order[item.subject.kind], item.subject.name),
    )


def _start_reviews(subject_effects: Sequence[SubjectEffects], context: PolicyContext) -> dict[str, Review]:
    names_by_kind: dict[str, dict[PolicyAction, list[str]]] = defaultdict(
        lambda: {a: [] for a in PolicyAction}
    )
    for item in subject_effects:
        names_by_kind[item.subject.kind][find_policy_action(item.find_topic_effects)].append(
            item.subject.name
        )
    effects_by_kind: dict[str, dict[str, list[PolicyEffect]]] = defaultdict(dict)
    for item in subject_effects:
        effects_by_kind[item.subject.kind].setdefault(item.subject.name, []).extend(item.find_topic_effects)
    return {
        kind: context.start_review(kind, subjects, effects_by_kind[kind])
        for kind, subjects in names_by_kind.items()
    }


@dataclass(slots=True)
class _Evaluation:
    """The state of one evaluation of all policies. A subject is a resource that policies check.

    prerequisites: for each pair of a planned resource and a subject, the resources whose earlier changes
        affect the same subject. The verdicts assume that these changes are applied.
    changers: the resources whose changes affect a subject and were not denied, by kind and name of the
        subject.
    """

    policies: Mapping[str, Sequence[ConfiguredPolicy]]
    reviews: Mapping[str, Review]
    override: Override
    verdicts: list[Verdict] = field(default_factory=list)
    denied: dict[ResourceId, frozenset[ResourceId]] = field(default_factory=dict)
    prerequisites: dict[tuple[ResourceId, ResourceId], tuple[ResourceId, ...]] = field(default_factory=dict)
    changers: dict[tuple[str, str], tuple[ResourceId, ...]] = field(default_factory=dict)

    def judge(self, item: SubjectEffects, asking: PolicyEvaluator) -> None:
        """Evaluate the policies for the effects of the change to one resource, and record the verdicts."""
        resource, subject = item.resource, item.subject
        review = self.reviews[subject.kind]
        request = review.make_request(subject.name, item.find_topic_effects)
        found, objections = _collect_verdicts(self.policies[subject.kind], request, item, review, asking)
        if objections:
            found = [_apply_override(v, self.override) if v.is_denial else v for v in found]
        self.verdicts += found
        if objections and any(verdict.is_denial for verdict in found):
            self.denied[resource] = self.denied.get(resource, frozenset()) | {subject}
            return
        review.accept(subject.name, item.find_topic_effects)
        before = self.changers.get((subject.kind, subject.name), ())
        if before:
            self.prerequisites[resource, subject] = before
        self.changers[subject.kind, subject.name] = (*before, resource)


def _collect_verdicts(
    policies: Sequence[ConfiguredPolicy],
    request: PolicyRequest,
    subject_effects: SubjectEffects,
    review: Review,
    evaluator: PolicyEvaluator,
) -> tuple[list[Verdict], bool]:
    """Return the verdict of each policy, and whether at least one policy denies or warns."""
    name = str(subject_effects.resource)
    subject_name = (
        None
        if subject_effects.subject == subject_effects.resource
        else _format_subject(subject_effects.subject)
    )
    verdicts, has_objection = [], False
    applicable = [item for item in policies if item.covers(request)]
    passing_groups = _find_passing_groups(applicable, request)
    for item in applicable:
        message = None if item.group in passing_groups else evaluator.ask(item, request)
        fault = review.fault
        if fault is not None:
            raise fault  # even if the policy caught the exception
        if message is None:
            verdicts.append(Verdict(item.name, name, VerdictOutcome.ALLOW, "", subject_name))
        else:
            verdicts.append(Verdict(item.name, name, item.outcome, message, subject_name))
            has_objection = True
    return verdicts, has_objection


def _format_subject(subject: ResourceId) -> str:
    """Format a subject for a verdict: the name of a topic, or the id of any other resource."""
    return subject.name if subject.kind == TOPIC else str(subject)


def _find_passing_groups(applicable: Sequence[ConfiguredPolicy], request: PolicyRequest) -> list[PolicyGroup]:
    """Return the groups of policies in which every policy allows the request."""
    groups: dict[PolicyGroup, list[Policy]] = {}
    for item in applicable:
        if item.group is not None:
            groups.setdefault(item.group, []).append(item.policy)
    try:
        return [group for group, policies in groups.items() if group.passes(policies, request)]
    except PolicyViolation:
        return []  # the resource no longer exists: evaluate each policy separately, so each one reports this


def _apply_override(verdict: Verdict, override: Override) -> Verdict:
    reason = override(verdict)
    return verdict if reason is None else replace(verdict, outcome=VerdictOutcome.WARN, override=reason)


def _find_predecessors(
    operations: Sequence[Operation],
    kinds: Iterable[str],
    prerequisites: Mapping[tuple[ResourceId, ResourceId], Sequence[ResourceId]],
) -> Mapping[str, Mapping[str, str]]:
    """Return, for each operation, the earlier operations that its policy verdicts rely on.

    The keys are the ids of operations. The values are the ids of the predecessors, with a reason for each.
    """
    if not prerequisites:
        return {}
    operation_ids: dict[tuple[ResourceId, ResourceId], list[str]] = {}
    predecessors: dict[str, Mapping[str, str]] = {}
    for op in operations:
        subjects = [
            ResourceId(kind, name)
            for kind in kinds
            for name in get_policy_subjects(kind).find_policy_effects(op)
        ]
        earlier_changes = [(other, s) for s in subjects for other in prerequisites.get((op.resource, s), ())]
        reasons = {
            id_: f"a policy's verdict assumes that this change to the {format_kind(subject.kind)} is made"
            for other, subject in earlier_changes
            for id_ in operation_ids.get((other, subject), ())
        }
        if reasons:
            predecessors[op.id] = reasons
        for subject in subjects:
            operation_ids.setdefault((op.resource, subject), []).append(op.id)
    return predecessors


@dataclass(frozen=True, slots=True)
class ProjectPolicyGate(PolicyGate):
    """A `PolicyGate` that evaluates the policies of a project."""

    policies: tuple[ConfiguredPolicy, ...] = ()

    def evaluate_draft(
        self,
        operations: Sequence[Operation],
        inputs: PlanInputs,
        selections: Selections,
        override: Override,
    ) -> PolicyEvaluation:
        """Evaluate the policies while a plan is being created.

        Policies see the live state that was read for the plan. Other data is read when a policy needs it.
        """
        if not self.policies or not operations:  # skip building the context, which covers all resources
            return PolicyEvaluation()
        owned = inputs.state.resources if inputs.state else {}
        context = PolicyContext(
            inputs.connections,
            inputs.live,
            selections,
            {d.id: d for d in inputs.desired},
            _parse_ids(owned),
            find_declared_labels(inputs.desired, owned),
            find_owned_labels(owned),
            inputs.shared_reads,
        )
        return evaluate_operations(self.policies, operations, context, override)

    def evaluate_plan(
        self,
        operations: Sequence[Operation],
        plan: Plan,
        connections: Connections,
        owned: Mapping[str, OwnedRecord],
        override: Override,
    ) -> PolicyEvaluation:
        """Evaluate the policies for a finished plan, with the current state of the systems."""
        if not self.policies or not operations:
            return PolicyEvaluation()
        planned = ((item.id, item.before or item.after) for item in plan.ownership)
        records = {**_parse_ids(owned), **{id_: record for id_, record in planned if record is not None}}
        context = PolicyContext(
            connections,
            owned=records,
            labels={**find_planned_labels(owned, plan.ownership), **parse_labels(plan.labels)},
            applied=find_owned_labels(owned),
        )
        return evaluate_operations(self.policies, operations, context, override)

    def find_labels_to_keep(
        self,
        desired: Iterable[DesiredResource],
        owned: Mapping[str, OwnedRecord],
        ownership: Iterable[Ownership],
    ) -> Labels:
        """Return the labels to store in the plan, so that policies can be evaluated again before apply.

        If there are no policies, return no labels.
        """
        kinds = group_by_kind(self.policies)
        if not kinds:
            return {}
        planned_labels = find_planned_labels(owned, ownership)
        labels = find_declared_labels(desired, owned)
        return dump_labels(
            {
                id_: found
                for id_, found in labels.items()
                if id_.kind in kinds and found != planned_labels.get(id_, {})
            }
        )

    def list_evaluated(self, operations: Sequence[Operation]) -> frozenset[tuple[ResourceId, str]]:
        """Return pairs of a planned resource and a subject that the change to this resource affects.

        A subject is a resource that policies check. The subject has the same form as in verdicts. If the
        subject is the planned resource itself, the second value is an empty string.
        """
        subject_effects = collect_subject_effects(operations, group_by_kind(self.policies))
        return frozenset(
            (item.resource, "" if item.subject == item.resource else _format_subject(item.subject))
            for item in subject_effects
        )


def _parse_ids(owned: Mapping[str, OwnedRecord]) -> dict[ResourceId, OwnedRecord]:
    return {ResourceId.parse(text): record for text, record in owned.items()}
