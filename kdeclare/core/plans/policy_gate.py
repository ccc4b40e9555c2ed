"""The interface between the engine and policies. Policies evaluate operations before they are executed."""

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
"""A function that returns the reason for overriding a denial, or None if the denial is not overridden."""

Labels = Mapping[str, Mapping[str, str]]
"""The labels of the resources that policies evaluate.

The key is the name of a topic, or the id of any other resource.
"""


@dataclass(frozen=True, slots=True)
class PolicyEvaluation:
    """The results of evaluating policies.

    denied: for each resource, the policy subjects that its operations must not change. If the resource itself
        is one of these subjects, none of its operations are executed.
    needs: for each operation id, the ids of the operations that must succeed first, with reasons. A policy
        allowed the operation only in combination with these earlier operations.
    """

    verdicts: tuple[Verdict, ...] = ()
    denied: Mapping[ResourceId, frozenset[ResourceId]] = field(default_factory=dict)
    needs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class PolicyGate:
    """Evaluates operations before they are executed. The default methods allow everything.

    The arguments contain operations in execution order. Methods raise Fault if a system does not respond.
    """

    def evaluate_draft(
        self,
        operations: Sequence[Operation],
        inputs: PlanInputs,
        selections: Selections,
        override: Override,
    ) -> PolicyEvaluation:
        """Evaluate the operations while the plan is made.

        selections: the selections of live state that were read.
        """
        return PolicyEvaluation()

    def evaluate_plan(
        self,
        operations: Sequence[Operation],
        plan: Plan,
        connections: Connections,
        owned: Mapping[str, OwnedRecord],
        override: Override,
    ) -> PolicyEvaluation:
        """Evaluate operations of a finished plan against the current live state.

        owned: the ownership records by resource id.
        """
        return PolicyEvaluation()

    def find_labels_to_keep(
        self,
        desired: Iterable[DesiredResource],
        owned: Mapping[str, OwnedRecord],
        ownership: Iterable[Ownership],
    ) -> Labels:
        """Return the labels that the plan must store, because the state and ``ownership`` lack them."""
        return {}

    def list_evaluated(self, operations: Sequence[Operation]) -> frozenset[tuple[ResourceId, str]]:
        """Return the changed resources, each with the name of the policy subject that policies evaluate.

        The name is empty if policies evaluate the changed resource itself.
        """
        return frozenset()


NO_POLICIES = PolicyGate()
