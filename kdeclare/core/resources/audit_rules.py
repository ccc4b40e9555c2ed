"""Rules for fleet audits, which can report more about resources of a kind than the kind's diff does."""

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
    """One element of a resource that is a set of live objects. Each element is one live object.

    body: the body of the resource, reduced to this element; None if the resource is not declared. If the
        element was removed from a resource that is still declared, the body has no elements.
    owned: the ownership record of the resource, reduced to this element; None if the element is not owned.
    """

    key: LiveKey
    body: object | None
    owned: OwnedRecord | None = None


@dataclass(frozen=True, slots=True)
class ImpossibleField:
    """A field whose declared value no operation can set."""

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
    replaced: the message about a declared object that replaced the applied object.
    orphan_replaced: the message about an object that replaced the applied object and is no longer declared.
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
        """Return the field that a diagnostic with a code in ``impossible`` is about."""
        return None

    def list_unmanaged(
        self, resource: ResourceId, names: Sequence[str], live: LiveState
    ) -> Iterable[UnmanagedField]:
        """Return the fields in `Difference.unmanaged`, with their values."""
        return [UnmanagedField(name) for name in names]

    def is_set_by_others(self, path: str, desired: DesiredResource, owned: OwnedRecord | None) -> bool:
        """Whether the field counts as set by another client, because it was neither declared nor owned."""
        return False

    def describe_pending(self, resource: ResourceId, unset: Sequence[str]) -> str | None:
        """Return a note about fields that are not applied yet, or None.

        unset: the paths of the declared fields that have no live value.
        """
        return None


NO_RULES = AuditRules()
"""The rules of a kind that defines no audit rules."""
