"""The interface of resource kinds; read this before adding a kind."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Protocol, TypeVar

from pydantic import BaseModel

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Selections
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.resources.changes import Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord

SpecPath = tuple[str | int, ...]
"""A position in a spec: keys and list indexes, starting below ``spec``."""

NAME: SpecPath = ("metadata", "name")
"""The only path outside the spec: the resource's name."""


@dataclass(frozen=True, slots=True)
class SpecProblem:
    """A diagnostic without a position. The code that has the file converts ``path`` (within ``spec``) to a
    position.

    offset: the index of the affected character, from 0, if ``path`` refers to a string.
    """

    path: SpecPath
    diagnostic: Diagnostic
    offset: int | None = None


_Narrowed = TypeVar("_Narrowed")


def narrow(value: object, expected_type: type[_Narrowed]) -> _Narrowed:
    """Return a spec or body as the class that its kind created. Raises TypeError for any other class."""
    if not isinstance(value, expected_type):
        raise TypeError(f"expected {expected_type.__name__}, got {type(value).__name__}")
    return value


def narrow_optional(value: object | None, expected_type: type[_Narrowed]) -> _Narrowed | None:
    """Return the result of `narrow`, or None for None."""
    return None if value is None else narrow(value, expected_type)


@dataclass(frozen=True, slots=True)
class DesiredResource:
    """One declared resource. ``body`` is the kind's own frozen value, plain and picklable."""

    id: ResourceId
    body: object
    labels: Mapping[str, str] = field(default_factory=dict)
    source: SourcePosition | None = None

    def get_body(self, body_type: type[_Narrowed]) -> _Narrowed:
        """Return the body as the class that its kind created. Raises TypeError for any other class."""
        return narrow(self.body, body_type)


@dataclass(frozen=True, slots=True)
class Difference:
    """The result of diffing one resource.

    change: None if the resource needs no change.
    owned: the ownership record after the change is applied; None if nothing is owned.
    unmanaged: override keys that are neither declared nor owned.
    drifted: paths (``configs.KEY``, ``partitions`` …) whose live value differs from what was last applied.
    diagnostics: errors prevent the change, and warnings report what users should know.
    deferred: whether part of the change must wait until another part of this plan has been applied.
    """

    change: Change | None
    owned: OwnedRecord | None = None
    unmanaged: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    deferred: bool = False
    drifted: tuple[str, ...] = ()

    def with_diagnostics(self, diagnostics: tuple[Diagnostic, ...]) -> "Difference":
        """Return a copy with these diagnostics. The change is unblocked if no diagnostic blocks it."""
        change = self.change
        if change is not None and change.blocked:
            change = replace(change, blocked=next((d.code for d in diagnostics if d.is_blocking), None))
        return replace(self, diagnostics=diagnostics, change=change)


class Kind(Protocol):
    """One kind of resource: the mandatory methods. `plan_capabilities`, `fleet_capabilities` and
    `manifest_capabilities` define the optional ones.
    """

    name: str
    spec: type[BaseModel]
    record: type[OwnedRecord]
    """The class of the kind's ownership records; `NoRecord` if the kind owns nothing."""

    def __hash__(self) -> int:
        """Return the identity hash of the object."""
        return id(self)

    def parse(self, name: str, spec: BaseModel) -> tuple[object, tuple[SpecProblem, ...]]:
        """Return the body of a valid spec, and any problems beyond its schema. Offline and pure."""

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Return what must be read to diff this resource."""

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """Compare the desired, live and owned resource. Pure and picklable; plans and fleet audits use it.

        ``desired`` is None for a resource that is owned and no longer declared; the change then describes the
        deletion. ``context`` contains what the provider prepared for the plan.
        """

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """Return the operations of a change, with the dependencies between them.

        Raises `CannotPlanError` if no operations lead to the desired state.
        """

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        """Return the new ownership record, given that only the operations in ``done`` succeeded."""


@dataclass(frozen=True, slots=True)
class ResourceComparison:
    """One resource in scope: its declaration, its ownership record, and the result of the diff."""

    id: ResourceId
    desired: DesiredResource | None
    owned: OwnedRecord | None
    difference: Difference

    @property
    def change(self) -> Change | None:
        """The change, if the resource needs one."""
        return self.difference.change


CONTRADICTION = "contradiction"


def report_contradiction(first: DesiredResource, second: DesiredResource, description: str) -> Diagnostic:
    """Return the error that two declared resources contradict each other."""
    position_suffix = f" ({second.source})" if second.source else ""
    return error(
        CONTRADICTION,
        "Two resources contradict each other",
        f"{first.id} conflicts with {second.id}{position_suffix}: {description}.",
        hint="Declare this setting in only one of the two resources.",
        place=first.source,
        resource=str(first.id),
    )
