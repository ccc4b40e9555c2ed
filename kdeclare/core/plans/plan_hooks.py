"""The hooks of providers, which the engine calls at fixed points of planning.

The engine reads the live state, compares resources, plans and orders operations, evaluates policies, has the
systems validate the operations, and builds the plan. The kinds of a provider consider one resource at a time.
If a provider must consider all resources of a plan together, it supplies a `PlanHooks` object for each plan.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import field

from pydantic import BaseModel

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext, PlanOptions, SharedReads
from kdeclare.core.plans.observation import Observation
from kdeclare.core.plans.plan import Verdict
from kdeclare.core.plans.state import State
from kdeclare.core.resources.changes import Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, ResourceComparison
from kdeclare.core.resources.owned_record import OwnedRecord


class CannotPlanError(Exception):
    """Raised by `Kind.plan_operations` if no operations can lead to the desired state."""

    def __init__(self, problem: Diagnostic) -> None:
        """Store the diagnostic. The engine reports the diagnostic and blocks the change to the resource."""
        super().__init__(problem.detail)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """The inputs of one plan.

    pending: owned objects that exist but that no member of the system shows yet.
    by_hand: whether the desired state comes from an ad hoc command instead of manifests. kdeclare then does
        not take ownership.
    has_preflight: whether the systems will validate the operations during planning.
    is_complete: whether ``desired`` contains all resources of the project. If not, a resource that is missing
        from ``desired`` can still be declared, in a file that was not read.
    shows_impact: whether `PlanHooks.observe_impact` will be called.
    shared_reads: the data that policies and hooks have read, so that nothing is read twice.
    """

    desired: tuple[DesiredResource, ...]
    state: State | None
    live: LiveState
    connections: Connections
    options: PlanOptions
    pending: frozenset[ResourceId] = frozenset()
    by_hand: bool = False
    has_preflight: bool = True
    is_complete: bool = True
    shows_impact: bool = False
    shared_reads: SharedReads = field(default_factory=SharedReads, compare=False)


@dataclass(frozen=True, slots=True)
class PlanStep:
    """The result of one planning step: the operations, and diagnostics about these operations."""

    operations: tuple[Operation, ...]
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """The settings of a provider that apply to all plans. The project file and each environment can set them.

    field: the name of the settings in the spec of a project and of an environment. model: the type of the
        settings.
    complete: a function that fills in the plan options that the user did not set. Its second argument
        contains the settings of the environment, followed by the settings of the project.
    description, environment_description: the purpose of the settings, for editors.
    """

    field: str
    model: type[BaseModel]
    complete: Callable[[PlanOptions, Sequence[BaseModel]], PlanOptions]
    description: str = ""
    environment_description: str = ""


class PlanHooks:
    """The hooks of one provider for one plan. The default methods change nothing.

    The engine creates a new object for each plan, and calls the methods in the order in which this class
    defines them. Methods raise Fault if the system does not respond.
    """

    def prepare(self) -> object | None:
        """Return the value that the provider's kinds will get from the `PlanContext`; None for no value."""
        return None

    def withhold(
        self, resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> Difference | None:
        """Return the difference to report for a resource if its live state is not complete enough for a diff.

        Return None if the resource can be compared.
        """
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
        """Return the diagnostics from loading the manifests, adjusted to the live state."""
        return diagnostics

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Complete the operations of all resources before the engine orders them and evaluates policies.

        An implementation can add dependencies that result from names or values, and report resources that
        cannot be planned together. An error or a denial removes all operations of the resource.
        """
        return PlanStep(operations)

    def guard(self, operations: tuple[Operation, ...]) -> tuple[Verdict, ...]:
        """Return verdicts about operations that would harm kdeclare or the system.

        The engine also calls this method for rollbacks, and again when a plan is applied. A denial removes
        all operations of its resource. Users can permit the operations with a plan option. The ``override``
        of the verdict then names the option, and runs record the override. `Provider.guards` contains the
        names that the verdicts can have in ``policy``.
        """
        return ()

    def settle(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Complete the operations that policies allowed, before the system validates these operations.

        An implementation can, for example, merge operations that do the same work, or make operations wait
        for work in progress.
        """
        return PlanStep(operations)

    def preflight(self, operations: tuple[Operation, ...]) -> tuple[Diagnostic, ...]:
        """Return diagnostics about operations that would fail although the system accepts their requests."""
        return ()

    def finalize(self, operations: tuple[Operation, ...]) -> PlanStep:
        """Split the final operations into smaller steps, in the order an administrator would choose."""
        return PlanStep(operations)

    def locate_members(self, operations: Sequence[Operation]) -> Mapping[int, str]:
        """Return the locations, such as racks, of the members that the operations name.

        The keys are member ids. Reports display the locations.
        """
        return {}

    def count_unmanaged(self, known: Set[str]) -> int:
        """Return the number of live objects that are neither declared nor owned.

        known: the ids of declared and owned resources.
        """
        return 0

    def observe_impact(
        self, operations: tuple[Operation, ...], changes: Sequence[Change]
    ) -> Iterable[Observation]:
        """Return the impact of the changes on records and clients, for the reviewers of the plan.

        An implementation sends a bounded number of requests, and reads only the data that it needs for these
        changes. It reports data that it cannot read as an observation (`ObservationLevel.UNKNOWN`).

        operations: the operations of the plan. changes: the changes that they make.
        """
        return ()


def prepare_context(hooks: Iterable[PlanHooks]) -> PlanContext:
    """Return the context that the kinds of all providers share while one plan is made."""
    return PlanContext(*(part for hook in hooks if (part := hook.prepare()) is not None))
