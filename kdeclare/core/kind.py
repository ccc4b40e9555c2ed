"""What a resource kind is: the one place to look before adding another."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import BaseModel

from kdeclare.core.changes import Change
from kdeclare.core.collector import Selections
from kdeclare.core.diagnostics import Diagnostic, Place
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.operations import Operation
from kdeclare.core.parts import LiveState, PlanContext

Path = tuple[str | int, ...]
"""Where in a spec: keys and list indexes from ``spec`` down."""

NAME: Path = ("metadata", "name")
"""The one path that is not in the spec: the resource's name."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A diagnostic without its place; whoever has the file turns ``path`` (within ``spec``) into one.

    offset: of the character that it is about, from 0, where ``path`` leads to a text.
    """

    path: Path
    diagnostic: Diagnostic
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Desired:
    """One declared resource: ``body`` is the kind's own frozen value, plain and picklable."""

    id: ResourceId
    body: Any
    labels: Mapping[str, str] = field(default_factory=dict)
    source: Place | None = None


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
    owned: Json = None
    unmanaged: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    deferred: bool = False
    drifted: tuple[str, ...] = ()

    def with_diagnostics(self, diagnostics: tuple[Diagnostic, ...]) -> "Difference":
        """Return the same with other diagnostics, which may block the change no longer."""
        change = self.change
        if change is not None and change.blocked:
            change = replace(change, blocked=next((d.code for d in diagnostics if d.blocks), None))
        return replace(self, diagnostics=diagnostics, change=change)


class Kind(Protocol):
    """One kind of resource: what every kind must say. What it may say besides is in `core.capabilities`."""

    name: str
    spec: type[BaseModel]

    def __hash__(self) -> int:
        """Return the hash of the object itself, as every object has it."""
        return id(self)

    def parse(self, name: str, spec: Any) -> tuple[Any, tuple[Problem, ...]]:
        """Return the body of a valid spec, and what is wrong with it beyond its shape. Offline and pure."""

    def select(self, name: str, body: Any | None, owned: Json) -> Selections:
        """Return what must be read to diff this resource."""

    def diff(
        self,
        resource: ResourceId,
        desired: Desired | None,
        live: LiveState,
        owned: Json,
        context: PlanContext,
    ) -> Difference:
        """Compare what is desired, live and owned. Pure and picklable: it serves one resource and a fleet.

        ``desired`` is None for a resource that is owned and no longer declared: the change is then
        what deleting it would mean. ``context`` has what its provider prepared for the plan.
        """

    def plan_operations(
        self, change: Change, desired: Desired | None, live: LiveState, owned: Json, context: PlanContext
    ) -> tuple[Operation, ...]:
        """Return the operations of a change, with the edges among them.

        Raises `core.planning.CannotPlanError` where none lead to what is desired.
        """

    def merge_ownership(self, before: Json, after: Json, done: tuple[Operation, ...], all_done: bool) -> Json:
        """Return the record of ownership when of the operations only ``done`` ended well."""
