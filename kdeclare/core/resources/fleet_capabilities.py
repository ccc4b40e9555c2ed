"""Capabilities of kinds for fleets: bodies as plain data, keys of live objects, facts, and audit rules.

`plan_capabilities` explains what a capability is.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Protocol, runtime_checkable

from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.live.live_codec import DeclaredFacts, LiveKey
from kdeclare.core.parts import LiveState
from kdeclare.core.provider.registry import CODECS, KINDS
from kdeclare.core.resources.audit_rules import NO_RULES, AuditRules, Element
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord, get_record_field


@runtime_checkable
class BodyCodec(Protocol):
    """A kind whose bodies can be converted to plain data and back."""

    def to_json(self, name: str, body: object) -> JsonObject:
        """Return the body as a JSON object. Values that are or might be secrets are left out."""

    def from_json(self, json: JsonObject) -> object:
        """Restore a body from its JSON object. Secrets are restored as hashes, which suffice for the diff."""


@runtime_checkable
class FleetComparable(BodyCodec, Protocol):
    """A kind whose live state is stored in fleet snapshots, so that audits can compare the live state."""

    def is_self_contained(self, name: str, body: object) -> bool:
        """Whether the diff reads no live object except the resource's own.

        It can still read data that all objects of the kind share.
        """

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey | None:
        """Return the key of the resource's live object, whether or not the object exists.

        Return None if there is no such key. If ``body`` and ``owned`` are None, only the name is known;
        return None unless the name determines the key.
        """


@runtime_checkable
class SetLike(Protocol):
    """A kind whose resources are sets of live objects, which fleet audits compare element by element."""

    def list_elements(self, name: str, body: object | None, owned: OwnedRecord | None) -> Iterable[Element]:
        """Return all declared or owned elements of a resource.

        The key of an element is the result of `find_live_key` for the element's body or ownership record.
        """


@runtime_checkable
class RemovesUnmanaged(Protocol):
    """A kind whose resources are sets of live objects.

    Its manifests can require that unmanaged objects are removed.
    """

    def list_removed_groups(self, name: str, body: object) -> Mapping[str, object]:
        """Return the groups (`LiveObject.group`) whose unmanaged objects must be removed.

        Each group is mapped to a body. The diff between this body and an unmanaged object of the group
        contains the removal of the object.
        """


@runtime_checkable
class ListsFacts(Protocol):
    """A kind with facts, so that audits can quickly check whether a live object matches its manifest."""

    def list_facts(self, body: object, owned: OwnedRecord | None) -> DeclaredFacts | None:
        """Return the facts of a declared resource; None if an audit must always use the diff."""


@runtime_checkable
class ExplainsFindings(Protocol):
    """A kind with audit rules, so that audits report more than the diff."""

    audit_rules: AuditRules


@runtime_checkable
class ConcernsObjects(Protocol):
    """A kind whose resources also affect the live objects of other resources."""

    def find_concerned(self, name: str, body: object, keys: Collection[LiveKey]) -> Collection[LiveKey]:
        """Return the subset of ``keys`` whose live objects the resource affects."""


# Protocol checks are slow and a plan makes thousands of them, so each kind is checked once.


@cache
def _find_body_codec(kind: object) -> BodyCodec | None:
    return kind if isinstance(kind, BodyCodec) else None


@cache
def _find_fleet_comparable(kind: object) -> FleetComparable | None:
    return kind if isinstance(kind, FleetComparable) else None


@cache
def _find_set_like(kind: object) -> SetLike | None:
    return kind if isinstance(kind, SetLike) else None


@cache
def _find_remover(kind: object) -> RemovesUnmanaged | None:
    return kind if isinstance(kind, RemovesUnmanaged) else None


@cache
def _find_fact_lister(kind: object) -> ListsFacts | None:
    return kind if isinstance(kind, ListsFacts) else None


@cache
def _get_audit_rules(kind: object) -> AuditRules:
    return kind.audit_rules if isinstance(kind, ExplainsFindings) else NO_RULES


@cache
def _find_concern_lister(kind: object) -> ConcernsObjects | None:
    return kind if isinstance(kind, ConcernsObjects) else None


def encode_body(desired: DesiredResource) -> JsonObject:
    """Return the body of a resource as a JSON object. The object is empty if the kind has no codec."""
    kind = _find_body_codec(KINDS[desired.id.kind])
    return kind.to_json(desired.id.name, desired.body) if kind is not None else {}


def decode_body(kind: str, json: JsonObject) -> object:
    """Return the body that `encode_body` encoded. Raises LookupError if the kind has no codec."""
    codec = _find_body_codec(KINDS[kind])
    if codec is None:
        raise LookupError(f"bodies of {kind} cannot be read from plain data")
    return codec.from_json(json)


def is_fleet_comparable(kind: str) -> bool:
    """Whether fleet audits compare resources of this kind."""
    return _find_fleet_comparable(KINDS.get(kind)) is not None


def is_self_contained(desired: DesiredResource) -> bool:
    """Whether the diff reads no live object except the resource's own.

    It can still read data that all objects of the kind share.
    """
    kind = _find_fleet_comparable(KINDS[desired.id.kind])
    return kind is not None and kind.is_self_contained(desired.id.name, desired.body)


def find_live_key(resource: ResourceId, body: object | None, owned: OwnedRecord | None) -> LiveKey | None:
    """Return the key of a resource's live object, whether or not the object exists.

    Return None if there is no such key, or if audits do not compare resources of the kind.
    """
    kind = _find_fleet_comparable(KINDS.get(resource.kind))
    return kind.find_live_key(resource.name, body, owned) if kind is not None else None


def list_elements(
    resource: ResourceId, body: object | None, owned: OwnedRecord | None
) -> tuple[Element, ...] | None:
    """Return the elements of a resource that is a set of live objects; None for any other resource."""
    kind = _find_set_like(KINDS.get(resource.kind))
    return tuple(kind.list_elements(resource.name, body, owned)) if kind is not None else None


def list_live_keys(
    resource: ResourceId, body: object | None, owned: OwnedRecord | None
) -> tuple[LiveKey, ...]:
    """Return the keys of all live objects of a resource: of its elements, or of its only object."""
    elements = list_elements(resource, body, owned)
    if elements is not None:
        return tuple(element.key for element in elements)
    key = find_live_key(resource, body, owned)
    return () if key is None else (key,)


def list_removed_groups(desired: DesiredResource) -> Mapping[str, object]:
    """Return the groups whose unmanaged objects must be removed, according to the manifest of a resource.

    Each group is mapped to the body that audits compare with the unmanaged objects of the group.
    """
    kind = _find_remover(KINDS[desired.id.kind])
    return kind.list_removed_groups(desired.id.name, desired.body) if kind is not None else {}


def is_set_like(kind: str) -> bool:
    """Whether resources of a kind are sets of live objects."""
    return _find_set_like(KINDS.get(kind)) is not None


def list_facts(desired: DesiredResource, owned: OwnedRecord | None) -> DeclaredFacts | None:
    """Return the facts of a declared resource; None if an audit must always use the diff."""
    kind = _find_fact_lister(KINDS[desired.id.kind])
    return kind.list_facts(desired.body, owned) if kind is not None else None


def find_audit_rules(kind: str) -> AuditRules:
    """Return the audit rules of a kind."""
    return _get_audit_rules(KINDS.get(kind))


def find_concerned(desired: DesiredResource, keys: Collection[LiveKey]) -> Collection[LiveKey]:
    """Return the subset of ``keys`` whose live objects a resource affects.

    By default, a resource affects only its own live object.
    """
    concern_lister = _find_concern_lister(KINDS[desired.id.kind])
    if concern_lister is not None:
        return concern_lister.find_concerned(desired.id.name, desired.body, keys)
    own_key = find_live_key(desired.id, desired.body, None)
    return [own_key] if own_key is not None and own_key in keys else []


def is_present(key: LiveKey | None, live: LiveState) -> bool:
    """Whether the live object with this key exists.

    True if the key is None, that is, if the resource does not correspond to a single live object. Raises
    Fault if it is unknown whether the object exists.
    """
    return key is None or CODECS[key.sort].has_object(key, live)


def find_replaced_identity(
    resource: ResourceId, body: object | None, owned: OwnedRecord | None, live: LiveState
) -> tuple[JsonValue, str] | None:
    """Return the recorded id and the current id if the object was deleted and recreated after the last apply.

    Return None if the ids are equal, or if one of them is unknown.
    """
    path = find_audit_rules(resource.kind).identity_field
    before = get_record_field(owned, path) if path is not None else None
    if not before:  # without a recorded id, a recreated object cannot be recognized
        return None
    key = find_live_key(resource, body, owned)
    after = CODECS[key.sort].find_identity(key, live) if key is not None else None
    return None if after is None or after == before else (before, after)
