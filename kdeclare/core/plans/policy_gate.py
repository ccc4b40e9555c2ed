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

    denied: by resource, the subjects that it must not affect; if the resource itself is one of them, none of
        its operations may be executed.
    needs: by operation id, the operations that it depends on, with reasons: it was evaluated together with
        their effect on its subject, and might have been denied without them.
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
        """Evaluate the operations of a plan in progress. selections: what was read of the live state."""
        return PolicyEvaluation()

    def evaluate_plan(
        self,
        operations: Sequence[Operation],
        plan: Plan,
        connections: Connections,
        owned: Mapping[str, OwnedRecord],
        override: Override,
    ) -> PolicyEvaluation:
        """Evaluate operations of a finished plan on the current live state. owned: records of the state."""
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
        """Return the resources that policies evaluate, each with the subject as verdicts name it.

        The name is empty if the resource is its own subject.
        """
        return frozenset()


NO_POLICIES = PolicyGate()
