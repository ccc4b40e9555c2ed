"""How providers take part in planning: through hooks at fixed points of one pipeline, which the engine runs.

The engine collects live state, diffs, plans operations, orders them, evaluates policies, lets the systems
validate the result, and assembles the plan. A provider that must consider all resources of a plan together,
and not only one at a time as its kinds do, supplies one `PlanHooks` object per plan.
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
    """No operations lead to the desired state. Raised by `Kind.plan_operations`."""

    def __init__(self, problem: Diagnostic) -> None:
        """Keep the diagnostic to report. It blocks its resource."""
        super().__init__(problem.detail)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """The inputs of one plan.

    pending: owned objects that exist but that no member of the system shows yet.
    by_hand: whether the desired state comes from an ad hoc command, so that kdeclare does not take ownership.
    has_preflight: whether the system will be asked to validate the operations.
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
    """The result of one step of the pipeline: the operations, and diagnostics about them."""

    operations: tuple[Operation, ...]
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """Settings for all plans of a provider's system: in project files, and again in each environment.

    field: the name of the settings in the spec of a project and of an environment. model: their type.
    complete: fills in the options of a plan that were left open, from the settings given: first the
        environment's, then the project's.
    description, environment_description: what they are for, for editors.
    """

    field: str
    model: type[BaseModel]
    complete: Callable[[PlanOptions, Sequence[BaseModel]], PlanOptions]
    description: str = ""
    environment_description: str = ""


class PlanHooks:
    """What a provider does while one plan is made. The default methods do nothing.

    The methods are called from top to bottom. An object serves one plan. Methods raise Fault if the system
    does not respond.
    """

    def prepare(self) -> object | None:
        """Return the part of the `PlanContext` that the provider's kinds share; None if there is none."""
        return None

    def withhold(
        self, resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> Difference | None:
        """Return a result to use instead of a diff if too little is visible for one, else None."""
        return None

    def review_difference(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        owned: OwnedRecord | None,
        difference: Difference,
    ) -> Difference:
        """Return the diff of one resource, adjusted for the options of this plan."""
        return difference

    def review_diagnostics(self, diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        """Return the diagnostics from loading the manifests, corrected by what the live state shows."""
        return diagnostics

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Complete the operations of all resources before they are ordered and evaluated by policies.

        Here a provider adds dependencies that result from names or values, and reports what cannot be planned
        together. An error or denial about a resource removes its operations.
        """
        return PlanStep(operations)

    def settle(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Complete the operations that policies have allowed, before the system validates them.

        Anything that depends on which operations remain belongs here: merging operations that would do the
        same work, and waiting for work in progress.
        """
        return PlanStep(operations)

    def preflight(self, operations: tuple[Operation, ...]) -> tuple[Diagnostic, ...]:
        """Return why operations would fail although the system accepts each request on its own."""
        return ()

    def finalize(self, operations: tuple[Operation, ...]) -> PlanStep:
        """Split the otherwise final operations into the ordered steps that a careful operator would take."""
        return PlanStep(operations)

    def locate_members(self, operations: Sequence[Operation]) -> Mapping[int, str]:
        """Return the locations of the system's members that operations name, by id, for display."""
        return {}

    def count_unmanaged(self, known: Set[str]) -> int:
        """Return how many live objects are neither declared nor owned. known: ids of resources that are."""
        return 0


def prepare_context(hooks: Iterable[PlanHooks]) -> PlanContext:
    """Return the context that the kinds of all providers share while one plan is made."""
    return PlanContext(*(part for hook in hooks if (part := hook.prepare()) is not None))
