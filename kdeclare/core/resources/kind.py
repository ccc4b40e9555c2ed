"""What a resource kind is: the one place to look before adding another."""

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
"""Where in a spec: keys and list indexes from ``spec`` down."""

NAME: SpecPath = ("metadata", "name")
"""The one path that is not in the spec: the resource's name."""


@dataclass(frozen=True, slots=True)
class SpecProblem:
    """A diagnostic without its place; whoever has the file turns ``path`` (within ``spec``) into one.

    offset: of the character that it is about, from 0, where ``path`` leads to a text.
    """

    path: SpecPath
    diagnostic: Diagnostic
    offset: int | None = None


_Narrowed = TypeVar("_Narrowed")


def narrow(value: object, expected_type: type[_Narrowed]) -> _Narrowed:
    """Return a spec or a body as what its kind made it. Raises TypeError where it is of another class."""
    if not isinstance(value, expected_type):
        raise TypeError(f"{type(value).__name__} where {expected_type.__name__} belongs")
    return value


def narrow_optional(value: object | None, expected_type: type[_Narrowed]) -> _Narrowed | None:
    """Return what `narrow` does, and None for None."""
    return None if value is None else narrow(value, expected_type)


@dataclass(frozen=True, slots=True)
class DesiredResource:
    """One declared resource: ``body`` is the kind's own frozen value, plain and picklable."""

    id: ResourceId
    body: object
    labels: Mapping[str, str] = field(default_factory=dict)
    source: SourcePosition | None = None

    def get_body(self, body_type: type[_Narrowed]) -> _Narrowed:
        """Return the body as what its kind made it. Raises TypeError where it is of another class."""
        return narrow(self.body, body_type)


@dataclass(frozen=True, slots=True)
class Difference:
    """What the diff of one resource says.

    change: None when the resource is in order.
    owned: the record of ownership once the change is applied; None where nothing is owned.
    unmanaged: override keys that are neither declared nor owned.
    drifted: paths (``configs.KEY``, ``partitions`` …) where live is no longer what was last applied.
    diagnostics: what stands in the way (error) or should be known (warning).
    deferred: whether part of it has to wait until something else of this plan has been applied.
    """

    change: Change | None
    owned: OwnedRecord | None = None
    unmanaged: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    deferred: bool = False
    drifted: tuple[str, ...] = ()

    def with_diagnostics(self, diagnostics: tuple[Diagnostic, ...]) -> "Difference":
        """Return the same with other diagnostics, which may block the change no longer."""
        change = self.change
        if change is not None and change.blocked:
            change = replace(change, blocked=next((d.code for d in diagnostics if d.is_blocking), None))
        return replace(self, diagnostics=diagnostics, change=change)


class Kind(Protocol):
    """One kind of resource: what every kind must say. Capabilities are the rest: `plan_capabilities`,
    `fleet_capabilities`, `manifest_capabilities`."""

    name: str
    spec: type[BaseModel]
    record: type[OwnedRecord]
    """The class of its records of ownership; `NoRecord` where it owns nothing."""

    def __hash__(self) -> int:
        """Return the hash of the object itself, as every object has it."""
        return id(self)

    def parse(self, name: str, spec: BaseModel) -> tuple[object, tuple[SpecProblem, ...]]:
        """Return the body of a valid spec, and what is wrong with it beyond its shape. Offline and pure."""

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
        """Compare what is desired, live and owned. Pure and picklable: it serves one resource and a fleet.

        ``desired`` is None for a resource that is owned and no longer declared: the change is then
        what deleting it would mean. ``context`` has what its provider prepared for the plan.
        """

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """Return the operations of a change, with the edges among them.

        Raises `CannotPlanError` where none lead to what is desired.
        """

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        """Return the record of ownership when of the operations only ``done`` ended well."""


@dataclass(frozen=True, slots=True)
class ResourceComparison:
    """One resource in scope: what is declared, what is owned, and what the diff says of the two."""

    id: ResourceId
    desired: DesiredResource | None
    owned: OwnedRecord | None
    difference: Difference

    @property
    def change(self) -> Change | None:
        """The change, if the resource is not in order."""
        return self.difference.change


CONTRADICTION = "contradiction"


def report_contradiction(first: DesiredResource, second: DesiredResource, description: str) -> Diagnostic:
    """Report that two declared resources cannot both be as they are declared."""
    position_suffix = f" ({second.source})" if second.source else ""
    return error(
        CONTRADICTION,
        "Two resources contradict each other",
        f"{first.id} and {second.id}{position_suffix} want different things: {description}.",
        hint="Let one of them say it.",
        place=first.source,
        resource=str(first.id),
    )
