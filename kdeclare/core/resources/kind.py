"""The interface of resource kinds. Read this module before you add a kind."""

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
"""A path within a spec: the keys and list indexes from ``spec`` to a value."""

NAME: SpecPath = ("metadata", "name")
"""The path of the resource's name. All other paths are within the spec."""


@dataclass(frozen=True, slots=True)
class SpecProblem:
    """A diagnostic with a path in the spec. The manifest loader converts the path to a position in the file.

    If the diagnostic already has a position, which can be in a `FileText`, the position is kept.

    offset: the index, from 0, of the character that the diagnostic is about, if ``path`` refers to a string.
    """

    path: SpecPath
    diagnostic: Diagnostic
    offset: int | None = None


_Narrowed = TypeVar("_Narrowed")


def narrow(value: object, expected_type: type[_Narrowed]) -> _Narrowed:
    """Check the type of a spec or a body, and return the value. Raises TypeError if the type is different."""
    if not isinstance(value, expected_type):
        raise TypeError(f"expected {expected_type.__name__}, got {type(value).__name__}")
    return value


def narrow_optional(value: object | None, expected_type: type[_Narrowed]) -> _Narrowed | None:
    """Return the result of `narrow`, or None if ``value`` is None."""
    return None if value is None else narrow(value, expected_type)


@dataclass(frozen=True, slots=True)
class DesiredResource:
    """One declared resource. ``body`` is a frozen, picklable value of a class that the kind defines.

    is_absent: whether the manifest declares that the resource must not exist.
    description: what the resource is for, according to its manifest; empty if the manifest does not say.
    """

    id: ResourceId
    body: object
    labels: Mapping[str, str] = field(default_factory=dict)
    source: SourcePosition | None = None
    is_absent: bool = False
    description: str = ""

    def get_body(self, body_type: type[_Narrowed]) -> _Narrowed:
        """Return the body. Raises TypeError if it is not an instance of ``body_type``."""
        return narrow(self.body, body_type)


@dataclass(frozen=True, slots=True)
class ManifestExclusion:
    """Why a manifest is not present in an environment.

    field: ``metadata.only`` or ``metadata.except``. place: the position of this field.
    environments: the environments in which the manifest is present, sorted; empty if they are not known.
    """

    field: str
    place: SourcePosition
    environments: tuple[str, ...] = ()

    @property
    def hint(self) -> str:
        """How a user can include the manifest."""
        options = " or ".join(f"--env {name}" for name in self.environments[:3])
        return f"Pass {options}, or change {self.field}." if options else f"Change {self.field}."


@dataclass(frozen=True, slots=True)
class Difference:
    """The result of diffing one resource.

    change: None if the resource needs no change.
    owned: the ownership record after the change has been applied; None if the resource is then not owned.
    unmanaged: the keys of overrides that are neither declared nor owned.
    drifted: the paths (``configs.KEY``, ``partitions`` …) whose live value differs from the value that was
        last applied.
    diagnostics: errors and denials, which block the change, and warnings for users.
    deferred: whether part of the change might have to wait for the next plan, because it depends on changes
        in this plan.
    """

    change: Change | None
    owned: OwnedRecord | None = None
    unmanaged: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    deferred: bool = False
    drifted: tuple[str, ...] = ()

    def with_diagnostics(self, diagnostics: tuple[Diagnostic, ...]) -> "Difference":
        """Return a copy with the given diagnostics.

        If none of these diagnostics blocks the change, the change is no longer blocked.
        """
        change = self.change
        if change is not None and change.blocked:
            change = replace(change, blocked=next((d.code for d in diagnostics if d.is_blocking), None))
        return replace(self, diagnostics=diagnostics, change=change)


class Kind(Protocol):
    """One kind of resource, with the methods that every kind must have.

    The modules `plan_capabilities`, `fleet_capabilities` and `manifest_capabilities` define optional methods.
    """

    name: str
    spec: type[BaseModel]
    record: type[OwnedRecord]
    """The class of the kind's ownership records; `NoRecord` if resources of the kind are never owned."""

    def __hash__(self) -> int:
        return id(self)

    def parse(self, name: str, spec: BaseModel) -> tuple[object, tuple[SpecProblem, ...]]:
        """Convert a spec to a body. Also return the problems that the schema of the spec cannot detect.

        The method is pure and needs no connection.
        """

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Return the selections of the live state that the diff of this resource needs."""

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """Compare the desired, live and owned state of a resource.

        The method is pure and picklable, so that fleet audits can use it, too.

        desired: None if the resource is owned and no longer declared. The change then describes the deletion.
        context: the data that the provider prepared for the plan.
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
        """Return the ownership record after a run in which only the operations in ``done`` succeeded.

        before, after: the record before the run, and the record that the plan intended.
        """


@dataclass(frozen=True, slots=True)
class ResourceComparison:
    """One resource of the plan, with its declaration, its ownership record and the result of its diff.

    absent_record: the result of `DeletesByRecord.build_absent_record`, if a manifest declares the resource as
        absent.
    """

    id: ResourceId
    desired: DesiredResource | None
    owned: OwnedRecord | None
    difference: Difference
    absent_record: OwnedRecord | None = None

    @property
    def compared_record(self) -> OwnedRecord | None:
        """The record that the diff used: ``absent_record`` or, by default, the ownership record."""
        return self.owned if self.absent_record is None else self.absent_record

    @property
    def change(self) -> Change | None:
        """The change that the resource needs; None if it needs no change."""
        return self.difference.change


CONTRADICTION = "contradiction"


def report_contradiction(first: DesiredResource, second: DesiredResource, description: str) -> Diagnostic:
    """Return the error about two declared resources that contradict each other."""
    position_suffix = f" ({second.source})" if second.source else ""
    return error(
        CONTRADICTION,
        "Two resources contradict each other",
        f"{first.id} conflicts with {second.id}{position_suffix}: {description}.",
        hint="Declare this setting in only one of the two resources.",
        place=first.source,
        resource=str(first.id),
    )
