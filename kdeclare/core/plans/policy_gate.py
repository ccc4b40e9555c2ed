"""Policies as the engine sees them: they judge operations before these are run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Selections
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Ownership, Plan, Verdict
from kdeclare.core.plans.plan_hooks import PlanInputs
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord

Override = Callable[[Verdict], str | None]
"""The reason for which a denial is to be overridden; None if it is not."""

Labels = Mapping[str, Mapping[str, str]]
"""The labels of what is judged, by name."""


@dataclass(frozen=True, slots=True)
class PolicyEvaluation:
    """What the policies said.

    denied: by resource, the subjects that it must leave alone; where it is one of them itself, nothing of it
        may be done.
    needs: by operation id, the operations that it needs, with reasons: it was judged on what they make of
        its subject, and might have been denied without them.
    """

    verdicts: tuple[Verdict, ...] = ()
    denied: Mapping[ResourceId, frozenset[ResourceId]] = field(default_factory=dict)
    needs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class PolicyGate:
    """What is asked about operations before they are run; by default it has nothing against anything.

    Operations are given in order. Fault says that a system does not answer.
    """

    def evaluate_draft(
        self,
        operations: Sequence[Operation],
        inputs: PlanInputs,
        selections: Selections,
        override: Override,
    ) -> PolicyEvaluation:
        """Judge the operations of a plan that is being made. selections: what was read of the live state."""
        return PolicyEvaluation()

    def evaluate_plan(
        self,
        operations: Sequence[Operation],
        plan: Plan,
        connections: Connections,
        owned: Mapping[str, OwnedRecord],
        override: Override,
    ) -> PolicyEvaluation:
        """Judge operations of a finished plan on the systems as they are now. owned: records of the state."""
        return PolicyEvaluation()

    def find_labels_to_keep(
        self,
        desired: Iterable[DesiredResource],
        owned: Mapping[str, OwnedRecord],
        ownership: Iterable[Ownership],
    ) -> Labels:
        """Return the labels that neither the state nor the records of the plan have."""
        return {}

    def list_evaluated(self, operations: Sequence[Operation]) -> frozenset[tuple[ResourceId, str]]:
        """Return the resources that policies are asked about, each with the subject as verdicts name it.

        The name is empty where the resource is its own subject.
        """
        return frozenset()


NO_POLICIES = PolicyGate()
