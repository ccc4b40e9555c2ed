"""The policies of a project, as the engine asks them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kdeclare.core.collector import Selections
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.judging import Judgement, Labels, Override
from kdeclare.core.kind import Desired
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plan import Ownership, Plan
from kdeclare.core.planning import PlanInputs
from kdeclare.policy.configured import ConfiguredPolicy
from kdeclare.policy.judge import judge
from kdeclare.policy.labels import find_declared_labels, find_owned_labels, find_planned_labels
from kdeclare.policy.requests.facts import Facts
from kdeclare.policy.requests.planned import effects_of
from kdeclare.providers.kafka.collector import CLUSTER, KafkaConnection
from kdeclare.providers.kafka.live import KafkaState


@dataclass(frozen=True, slots=True)
class PolicyJudge:
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
