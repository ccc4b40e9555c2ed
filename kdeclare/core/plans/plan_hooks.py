"""How providers take part in planning: at fixed points of one pipeline, which the engine runs.

The engine collects, diffs, plans operations, orders them, asks the policies, has the systems check the
result, and assembles the plan. A provider that has more to say than its kinds do, because it looks at all
resources of a plan at once, offers one `PlanHooks` per plan.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from pydantic import BaseModel

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext, PlanOptions
from kdeclare.core.plans.state import State
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, ResourceComparison
from kdeclare.core.resources.owned_record import OwnedRecord


class CannotPlanError(Exception):
    """No operations lead to what is desired; raised by `Kind.plan_operations`."""

    def __init__(self, problem: Diagnostic) -> None:
        """Keep what people are told. It blocks its resource."""
        super().__init__(problem.detail)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """What one plan is made from.

    pending: owned objects that exist but that no member of the system shows yet.
    by_hand: whether a command asks for what is desired, so that nothing comes to be owned.
    has_preflight: whether the system is going to be asked to check the operations.
    """

    desired: tuple[DesiredResource, ...]
    state: State | None
    live: LiveState
    connections: Connections
    options: PlanOptions
    pending: frozenset[ResourceId] = frozenset()
    by_hand: bool = False
    has_preflight: bool = True


@dataclass(frozen=True, slots=True)
class PlanStep:
    """What a step of the pipeline makes of the operations, and what it has to say."""

    operations: tuple[Operation, ...]
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What project files can say for all plans about a provider's system, and again for each environment.

    field: its name in the spec of a project and of an environment. model: what stands there.
    complete: returns the options of a plan, where those that were chosen leave something open by what is
        stated: the environment's model, then the project's.
    description, environment_description: what it is for, as editors show it.
    """

    field: str
    model: type[BaseModel]
    complete: Callable[[PlanOptions, Sequence[BaseModel]], PlanOptions]
    description: str = ""
    environment_description: str = ""


class PlanHooks:
    """What a provider does while one plan is made; by default nothing.

    Plans call the methods from top to bottom. An object serves one plan. Fault says that the system does not
    answer.
    """

    def prepare(self) -> object | None:
        """Return the part of the `PlanContext` that the provider's kinds share; None for no such part."""
        return None

    def withhold(
        self, resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> Difference | None:
        """Return what is said in place of a diff, where too little can be seen for one; None where it can."""
        return None

    def review_difference(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        owned: OwnedRecord | None,
        difference: Difference,
    ) -> Difference:
        """Return the diff of one resource, weighed by what people have chosen for this plan."""
        return difference

    def review_diagnostics(self, diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        """Return what loading the manifests said, corrected by what the live system knows better."""
        return diagnostics

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Complete the operations of all resources, before they are ordered and policies judge them.

        Here a provider adds edges that follow from names or values, and reports what cannot be planned
        together. An error or denial about a resource takes its operations out.
        """
        return PlanStep(operations)

    def settle(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Complete what policies have left, before the system checks it.

        What depends on which operations remain belongs here: two that would do the same work, and waits for
        work that is under way.
        """
        return PlanStep(operations)

    def preflight(self, operations: tuple[Operation, ...]) -> tuple[Diagnostic, ...]:
        """Return why operations would fail although the system accepts each request on its own."""
        return ()

    def finalize(self, operations: tuple[Operation, ...]) -> PlanStep:
        """Turn the operations, which are final otherwise, into the steps of a careful operator, in order."""
        return PlanStep(operations)

    def locate_members(self, operations: Sequence[Operation]) -> Mapping[int, str]:
        """Return where the members of the system are that operations name, by id; for people."""
        return {}

    def count_unmanaged(self, known: Set[str]) -> int:
        """Return how many live objects are neither declared nor owned. known: resource ids that are."""
        return 0


def prepare_context(hooks: Iterable[PlanHooks]) -> PlanContext:
    """Return what the kinds of all providers share while one plan is made."""
    return PlanContext(*(part for hook in hooks if (part := hook.prepare()) is not None))
