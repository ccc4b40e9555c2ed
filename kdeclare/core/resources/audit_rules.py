"""Rules for fleet audits. With these rules, audits report more about a resource than the kind's diff."""

from collections.abc import Iterable, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.changes import FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a resource that is a set of live objects. Each element is a live object.

    body: the body of the resource, reduced to this element; None if the resource is not declared. If the
        element was removed from a resource that is still declared, the body has no elements.
    owned: the ownership record of the resource, reduced to this element; None if the element is not owned.
    """

    key: LiveKey
    body: object | None
    owned: OwnedRecord | None = None


@dataclass(frozen=True, slots=True)
class ImpossibleField:
    """A field whose live value no operation can change to the declared value."""

    path: str
    before: JsonValue
    after: JsonValue


@dataclass(frozen=True, slots=True)
class UnmanagedField:
    """A field of a live object that is neither declared nor owned."""

    path: str
    value: JsonValue = None


@dataclass(frozen=True, slots=True)
class AuditRules:
    """Rules for audit findings about resources of one kind, in addition to the diff.

    By default, audits report only the diff.

    identity_field: the field of the ownership record that contains the result of `LiveCodec.find_identity`;
        None if records have no such field.
    replaced: the message for a declared resource whose live object is not the object that was applied.
    orphan_replaced: the corresponding message for a resource that is no longer declared.
    impossible: the codes of diagnostics that users can resolve only by changing the manifest.
    """

    identity_field: str | None = None
    replaced: str = (
        "The applied object was deleted outside kdeclare, and a different object was created under the same "
        "name."
    )
    orphan_replaced: str = (
        "No manifest declares the object anymore, and the applied object was deleted outside kdeclare. "
        "kdeclare keeps the different object that now has the same name."
    )
    impossible: frozenset[str] = field(default_factory=frozenset)

    def find_impossible(self, desired: DesiredResource, live: LiveState) -> ImpossibleField | None:
        """Return the field whose problem can be solved only by changing the manifest (see ``impossible``)."""
        return None

    def list_unmanaged(
        self, resource: ResourceId, names: Sequence[str], live: LiveState
    ) -> Iterable[UnmanagedField]:
        """Return the fields of `Difference.unmanaged` and their live values."""
        return [UnmanagedField(name) for name in names]

    def is_set_by_others(self, path: str, desired: DesiredResource, owned: OwnedRecord | None) -> bool:
        """Whether the field is neither declared nor owned, so that it counts as set by another client."""
        return False

    def describe_pending(self, resource: ResourceId, unset: Sequence[str]) -> str | None:
        """Return a note about fields that are not applied yet; None if there is nothing to add.

        unset: the paths of the declared fields that have no live value.
        """
        return None

    def describe_difference(self, desired: DesiredResource, live: LiveState, field: FieldChange) -> str:
        """Return a sentence about a declared field whose live value differs.

        The result is empty if the values of the field need no explanation.
        """
        return ""


NO_RULES = AuditRules()
"""The rules for a kind without audit rules of its own."""
