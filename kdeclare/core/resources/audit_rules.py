"""What a kind says about its findings in audits of fleets, beyond what its diff says."""

from collections.abc import Iterable, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a set-like resource, which is one live object.

    body, owned: of the resource as if it had this element alone; None where it is not declared, or not owned.
    An element that left a resource which is still declared has a body without any element.
    """

    key: LiveKey
    body: object | None
    owned: OwnedRecord | None = None


@dataclass(frozen=True, slots=True)
class ImpossibleField:
    """A declared value that no operation leads to."""

    path: str
    before: JsonValue
    after: JsonValue


@dataclass(frozen=True, slots=True)
class UnmanagedField:
    """A part of a live object that is neither declared nor owned."""

    path: str
    value: JsonValue = None


@dataclass(frozen=True, slots=True)
class AuditRules:
    """What audits say about resources of one kind beyond what its diff says. By default nothing.

    identity_field: where a record of ownership has what `LiveCodec.find_identity` returns; None where records
    do not have it. replaced, orphan_replaced: what to say of an object that is another one than what was
    applied, and of one that is no longer declared. impossible: codes of diagnostics that mean that a manifest
    has to change.
    """

    identity_field: str | None = None
    replaced: str = (
        "It was deleted and created again outside kdeclare since it was last applied: it is another object."
    )
    orphan_replaced: str = (
        "The object that was applied is gone and no longer declared. Another one has its name and is kept."
    )
    impossible: frozenset[str] = field(default_factory=frozenset)

    def find_impossible(self, desired: DesiredResource, live: LiveState) -> ImpossibleField | None:
        """Return the field that a diagnostic of `impossible` is about."""
        return None

    def list_unmanaged(
        self, resource: ResourceId, names: Sequence[str], live: LiveState
    ) -> Iterable[UnmanagedField]:
        """Return the fields that `Difference.unmanaged` names, with their values."""
        return [UnmanagedField(name) for name in names]

    def is_set_by_others(self, path: str, desired: DesiredResource, owned: OwnedRecord | None) -> bool:
        """Whether a field that is to change was neither declared nor owned, so that others have set it."""
        return False

    def describe_pending(self, resource: ResourceId, unset: Sequence[str]) -> str | None:
        """Return what to add where fields are not applied yet. unset: paths of those without a value."""
        return None


NO_RULES = AuditRules()
"""The rules of a kind that has none."""
