"""What a resource kind is: the one place to look before adding another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from kdeclare.core.changes import Action, Change, FieldChange
from kdeclare.core.collector import Selections
from kdeclare.core.diagnostics import Diagnostic, Place
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.operation_type import Effect
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


@dataclass(frozen=True, slots=True)
class Stated:
    """What a resource says of a topic, as if the topic were created so.

    open: config keys whose value depends on what the topic has, if it is there already.
    placed: whether kdeclare chooses the replicas of a new topic, which takes a cluster.
    """

    effect: Effect
    open: frozenset[str] = frozenset()
    placed: bool = False


class Kind(Protocol):
    """One kind of resource. Everything that depends on the kind is behind these methods."""

    name: str
    spec: type[BaseModel]
    in_brokers: bool
    """Whether brokers hold its live state, so that a snapshot of a fleet does."""
    exclusive: Mapping[str, frozenset[str]]
    """Fields of the spec by name, each with those that it cannot stand beside: a default of it gives way."""

    def parse(self, name: str, spec: Any) -> tuple[Any, tuple[Problem, ...]]:
        """The body of a valid spec, and what is wrong with it beyond its shape. Offline and pure."""

    def query(self, name: str, body: Any | None, owned: Json) -> Selections:
        """What must be read to diff this resource."""

    def diff(
        self,
        resource: ResourceId,
        desired: Desired | None,
        live: LiveState,
        owned: Json,
        context: PlanContext,
    ) -> Difference:
        """The three-way diff. Pure and picklable: the same function serves one topic and a fleet.

        ``desired`` is None for a resource that is owned and no longer declared: the change is then
        what deleting it would mean. ``context`` has what its provider prepared for the plan.
        """

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """The field with its risk and the cause, as far as they can be told from the field itself."""

    def foresees(self, desired: Desired) -> tuple[Diagnostic, ...]:
        """What `diff` is going to say of it whatever the cluster has."""

    def wants(self, name: str, body: Any) -> Mapping[str, Json]:
        """What the resource says of things that another resource can speak about, too."""

    def states(self, name: str, body: Any) -> Mapping[str, Stated]:
        """What the resource says of which topics without asking any cluster."""

    def operations(
        self, change: Change, desired: Desired | None, live: LiveState, owned: Json, context: PlanContext
    ) -> tuple[Operation, ...]:
        """The operations of a change, with the edges among them."""

    def settle(self, before: Json, after: Json, done: tuple[Operation, ...], all_done: bool) -> Json:
        """The record of ownership when of the operations only ``done`` ended well."""

    def alone(self, name: str, body: Any) -> bool:
        """Whether its diff needs nothing but its own resource's live state and the list of brokers."""

    def to_json(self, name: str, body: Any) -> Json:
        """The body as plain data, without the value of anything that is or may be secret."""

    def from_json(self, json: Json) -> Any:
        """The body again: its diff is the same, but what is or may be secret is known by its hash only."""

    def export(self, live: LiveState) -> Mapping[str, str]:
        """The text of a manifest for each live resource of this kind, by name."""
