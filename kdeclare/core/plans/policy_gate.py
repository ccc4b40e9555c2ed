"""The engine's interface to policies, which evaluate operations before they are executed."""

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
"""Returns the reason for overriding a denial, or None if it is not overridden."""

Labels = Mapping[str, Mapping[str, str]]
"""Labels by the name of the evaluated subject."""


@dataclass(frozen=True, slots=True)
class PolicyEvaluation:
    """The results of evaluating policies.

    denied: by resource, the subjects that the resource must not affect. If the resource itself is one of
        these subjects, none of its operations are executed.
    needs: by operation id, the ids of the operations that it depends on, with reasons. A policy evaluated it
        together with the effect of these operations, and would perhaps have denied it alone.
    """

    verdicts: tuple[Verdict, ...] = ()
    denied: Mapping[ResourceId, frozenset[ResourceId]] = field(default_factory=dict)
    needs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class PolicyGate:
    """Evaluates operations before they are executed. The default methods allow everything.

    Operations are passed in order. Methods raise Fault if a system does not respond.
    """

    def evaluate_draft(
        self,
        operations: Sequence[Operation],
        inputs: PlanInputs,
        selections: Selections,
        override: Override,
    ) -> PolicyEvaluation:
        """Evaluate the operations of a plan in progress. selections: the live state that was read."""
        return PolicyEvaluation()

    def evaluate_plan(
        self,
        operations: Sequence[Operation],
        plan: Plan,
        connections: Connections,
        owned: Mapping[str, OwnedRecord],
        override: Override,
    ) -> PolicyEvaluation:
        """Evaluate operations of a finished plan on the current live state. owned: ownership records."""
        return PolicyEvaluation()

    def find_labels_to_keep(
        self,
        desired: Iterable[DesiredResource],
        owned: Mapping[str, OwnedRecord],
        ownership: Iterable[Ownership],
    ) -> Labels:
        """Return the labels that are neither in the state nor in the records of the plan."""
        return {}

    def list_evaluated(self, operations: Sequence[Operation]) -> frozenset[tuple[ResourceId, str]]:
        """Return the resources that policies evaluate, each with the name of its subject in verdicts.

        The name is empty if the resource is its own subject.
        """
        return frozenset()


NO_POLICIES = PolicyGate()
