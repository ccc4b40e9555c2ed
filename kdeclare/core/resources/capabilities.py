"""What a kind can do besides what every kind must: one small protocol each.

A kind implements what it has something to say for. Generic code asks through the functions here, which know
what holds where a kind does not implement a capability.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import cache
from typing import Protocol, runtime_checkable

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.live_codec import DeclaredFacts, LiveKey
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.audit_rules import NO_RULES, AuditRules, Element
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, SpecPath, SpecProblem
from kdeclare.core.resources.owned_record import OwnedRecord

Plain = str | int | None
"""A text (for fields in which text is read as it stands), a whole number, a truth value, or null."""


@dataclass(frozen=True, slots=True)
class ValueEdit:
    """A field that is to have a value: a text, a whole number, null, or a list of them in that order.

    path: within the spec. Nothing is edited where the manifest says so already.
    """

    path: SpecPath
    value: Plain | list[Plain]


@dataclass(frozen=True, slots=True)
class SettingEdit:
    """A setting of which a manifest can say a value, elements that a list has or has not, or "no override".

    path: within the spec. fields: what changes of it, in that order; lists have no order. A setting that is
    deleted leaves the manifest, unless something beneath it would show then.
    """

    path: SpecPath
    fields: tuple[FieldChange, ...]


FieldEdit = ValueEdit | SettingEdit


@dataclass(frozen=True, slots=True)
class ManifestEdits:
    """edits: in the order in which they are made. problems: what people are told; an error refuses them."""

    edits: tuple[FieldEdit, ...] = ()
    problems: tuple[SpecProblem, ...] = ()


class DeclaredFields(Protocol):
    """What the manifest and the overlays of one resource declare."""

    def is_declared(self, path: SpecPath) -> bool:
        """Whether they say something at a path within the spec; null says nothing."""


@runtime_checkable
class HasExclusiveFields(Protocol):
    """A kind with fields that cannot stand beside others."""

    exclusive_fields: Mapping[str, frozenset[str]]
    """Fields of the spec by name, each with those that it cannot stand beside: a default of it gives way."""


@runtime_checkable
class AssessesRisks(Protocol):
    """A kind whose changes can interrupt clients or lose data."""

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """Return the field with its risk and the cause, as far as the field itself tells them."""


@runtime_checkable
class StaticallyChecked(Protocol):
    """A kind of which `diff` says something that does not depend on any system."""

    def find_static_diagnostics(self, desired: DesiredResource) -> tuple[Diagnostic, ...]:
        """Return what `diff` is going to say of the resource whatever the system has."""


@runtime_checkable
class SharesSettings(Protocol):
    """A kind whose resources state values that resources of other kinds can state, too."""

    def list_exclusive_settings(self, name: str, body: object) -> Mapping[str, JsonValue]:
        """Return the values that only one resource may state, by a name of what they belong to."""


@runtime_checkable
class AffectsResources(Protocol):
    """A kind whose resources change what resources of other names or kinds are."""

    def find_affected(self, body: object) -> Collection[ResourceId]:
        """Return the other resources that it names, whether they are declared or not."""


@runtime_checkable
class BodyCodec(Protocol):
    """A kind whose bodies can be written as plain data."""

    def to_json(self, name: str, body: object) -> JsonObject:
        """Return the body as a JSON object, without the value of anything that is or may be secret."""

    def from_json(self, json: JsonObject) -> object:
        """Return the body again: its diff is the same, but secrets are known by their hashes only."""


@runtime_checkable
class FleetComparable(BodyCodec, Protocol):
    """A kind whose live state is in the snapshot of a fleet, so that audits compare it."""

    def is_self_contained(self, name: str, body: object) -> bool:
        """Whether its diff needs no more than its own live object and what all objects of its sort share."""

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey | None:
        """Return the live object that the resource is, whether it exists or not; None where it is none.

        One of ``body`` and ``owned`` can be None.
        """


@runtime_checkable
class SetLike(Protocol):
    """A kind whose resources are sets of live objects, so that fleets compare element by element."""

    def list_elements(self, name: str, body: object | None, owned: OwnedRecord | None) -> Iterable[Element]:
        """Return every element that is declared or owned. `find_live_key` knows it by its body or record."""


@runtime_checkable
class ListsFacts(Protocol):
    """A kind with a quick test that a live object is as declared: a speed-up for audits of fleets."""

    def list_facts(self, body: object, owned: OwnedRecord | None) -> DeclaredFacts | None:
        """Return the test; None where only the diff can tell."""


@runtime_checkable
class ExplainsFindings(Protocol):
    """A kind that audits have more to say about than its diff says."""

    audit_rules: AuditRules


@runtime_checkable
class ConcernsObjects(Protocol):
    """A kind whose resources are about live objects that are not theirs."""

    def find_concerned(self, name: str, body: object, keys: Collection[LiveKey]) -> Collection[LiveKey]:
        """Return those of the keys that the resource is about."""


@runtime_checkable
class RecordsIdentity(Protocol):
    """A kind whose records of ownership say which of several objects of one name is owned."""

    def record_identity(
        self, record: OwnedRecord | None, done: tuple[Operation, ...], created_ids: Mapping[str, str | None]
    ) -> OwnedRecord | None:
        """Return the record with the id of what the operations created; without one if nothing proves it.

        created_ids: by operation id, as the system acknowledged them.
        """

    def forget_identity(self, record: OwnedRecord | None) -> OwnedRecord | None:
        """Return the record as it is for whatever object has the name."""


@runtime_checkable
class ProtectsObjects(Protocol):
    """A kind of which the system has objects that must never be deleted."""

    def find_undeletable(self, names: Collection[str], live: LiveState) -> Mapping[str, str]:
        """Return which of these must not be deleted, and why, in a sentence.

        live: what was read for the operations that delete them.
        """


@runtime_checkable
class DescribesDeletion(Protocol):
    """A kind of which people should know what goes with a deleted object."""

    deletion_cause: str
    """What is lost, in a sentence."""


@runtime_checkable
class RatesByLiveState(Protocol):
    """A kind that rates some fields by what the system has: plans can show less than `assess_field` knows."""

    def is_rated_by_live_state(self, field: FieldChange) -> bool:
        """Whether the risk of this field depends on what the system has."""


Values = tuple[JsonValue, ...]
"""The values of one field one after the other: what it is, and what it becomes; between them, its steps."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a plan file shows of one resource, and what its operations do, both by the path of the field.

    shared: what all operations of the plan do whose work goes on after their requests: of two resources that
        state the same, only one has an operation.
    """

    shown: Mapping[str, Values]
    done: Mapping[str, Values]
    shared: Mapping[str, Values]


@runtime_checkable
class ProvesFields(Protocol):
    """A kind whose changes show fields in other words than its operations have them, or fewer fields.

    A plan file with a resource of any other kind is believed only where it shows each field as operations
    change it, and in one step.
    """

    def normalize_field(self, resource: ResourceId, field: FieldChange) -> FieldChange:
        """Return the field with the path and values that it has whether a diff or an operation says it."""

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """Return those paths where nothing is hidden although what is shown and done differ."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What to import.

    read: reads live state. matches: whether a name is asked for. permits: whether the project may have a
    resource. is_selective: whether names were asked for at all; then only objects are meant that people name.
    """

    read: Callable[[Selections], LiveState]
    matches: Callable[[str], bool]
    permits: Callable[[ResourceId], bool]
    is_selective: bool = False


@dataclass(frozen=True, slots=True)
class OmittedObjects:
    """What was seen and is in no manifest, counted. one, many: what it is. why: half a sentence."""

    count: int
    one: str
    many: str
    why: str


@dataclass(frozen=True, slots=True)
class Export:
    """The texts of manifests by the resource's name, and what is in none of them."""

    manifests: Mapping[str, str]
    left_out: tuple[OmittedObjects, ...] = ()


@runtime_checkable
class Exportable(Protocol):
    """A kind whose live resources can be imported."""

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """Return manifests of the live resources of this kind. Raises Fault."""


@runtime_checkable
class Editable(Protocol):
    """A kind whose manifests can be made to say what a change says (write-back)."""

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """Return what the manifest of a declared resource is to say once the change is made."""

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        """Return the lines of the spec of a new manifest, not indented, for a change that creates."""

    def is_same_value(self, path: SpecPath, text: str, value: JsonValue) -> bool:
        """Whether a text at a path within the spec means this value already."""

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        """Whether a body says what a change says, and otherwise what it said before (None: nothing)."""


@runtime_checkable
class LocatesFields(Protocol):
    """A kind of which a manifest can declare a field elsewhere than where its path says."""

    def locate_field(self, path: str) -> Sequence[SpecPath]:
        """Return where the spec can declare a field of a change; the first that is there counts."""


@runtime_checkable
class ListsNames(Protocol):
    """A kind of which the system can list the objects, so that their names can be completed."""

    def list_names(self, connections: Connections) -> Sequence[str]:
        """Return the names by which live objects can be declared, sorted. Raises Fault."""


@runtime_checkable
class MovesData(Protocol):
    """A kind of which some fields say where its data is, so that reports can mark a change as a move."""

    def is_location(self, path: str) -> bool:
        """Return whether a field of a change says where data is, and nothing else."""


@runtime_checkable
class ClaimsFields(Protocol):
    """A kind of which bodies and records claim a field in another way than by having a value at its path."""

    def is_field_claimed(self, field: FieldChange, stated: JsonObject) -> bool:
        """Return whether a body or a record of ownership, as plain data, determines a field."""


@runtime_checkable
class LocatesSecrets(Protocol):
    """A kind whose bodies have secrets at other places than its specs."""

    def locate_secret(self, path: SpecPath) -> SpecPath | None:
        """Return where the spec states the secret that is at a path in the body; None if nobody knows."""


PREVENT_DESTROY = "prevent-destroy"
"""The code of a diagnostic that says that something must not be deleted."""


# Whether a kind implements a capability is looked up once: checks of protocols are slow, and a plan makes
# thousands of them.


@cache
def _find_risk_assessor(kind: object) -> AssessesRisks | None:
    return kind if isinstance(kind, AssessesRisks) else None


@cache
def _find_deletion_describer(kind: object) -> DescribesDeletion | None:
    return kind if isinstance(kind, DescribesDeletion) else None


@cache
def _find_static_checker(kind: object) -> StaticallyChecked | None:
    return kind if isinstance(kind, StaticallyChecked) else None


@cache
def _find_settings_lister(kind: object) -> SharesSettings | None:
    return kind if isinstance(kind, SharesSettings) else None


@cache
def _find_identity_recorder(kind: object) -> RecordsIdentity | None:
    return kind if isinstance(kind, RecordsIdentity) else None


@cache
def _find_body_codec(kind: object) -> BodyCodec | None:
    return kind if isinstance(kind, BodyCodec) else None


@cache
def _find_fleet_comparable(kind: object) -> FleetComparable | None:
    return kind if isinstance(kind, FleetComparable) else None


@cache
def _find_field_prover(kind: object) -> ProvesFields | None:
    return kind if isinstance(kind, ProvesFields) else None


@cache
def _find_set_like(kind: object) -> SetLike | None:
    return kind if isinstance(kind, SetLike) else None


@cache
def _find_fact_lister(kind: object) -> ListsFacts | None:
    return kind if isinstance(kind, ListsFacts) else None


@cache
def _get_audit_rules(kind: object) -> AuditRules:
    return kind.audit_rules if isinstance(kind, ExplainsFindings) else NO_RULES


@cache
def _find_concern_lister(kind: object) -> ConcernsObjects | None:
    return kind if isinstance(kind, ConcernsObjects) else None


def find_exclusive_fields(kind: object) -> Mapping[str, frozenset[str]]:
    """Return the fields of a kind that cannot stand beside others; none by default."""
    return kind.exclusive_fields if isinstance(kind, HasExclusiveFields) else {}


def assess_field(kind: str, action: Action, field: FieldChange) -> FieldChange:
    """Return the field with its risk; as it is where the kind is not installed, or knows of no risk."""
    assessor = _find_risk_assessor(KINDS.get(kind))
    return assessor.assess_field(action, field) if assessor is not None else field


def find_deletion_cause(kind: str) -> str:
    """Return what is lost when an object of a kind is deleted, in a sentence; empty where nobody says."""
    describer = _find_deletion_describer(KINDS.get(kind))
    return describer.deletion_cause if describer is not None else ""


def is_rated_by_live_state(kind: str, field: FieldChange) -> bool:
    """Whether a plan may show a lower risk of a field than `assess_field` knows."""
    registered_kind = KINDS.get(kind)
    return isinstance(registered_kind, RatesByLiveState) and registered_kind.is_rated_by_live_state(field)


def normalize_field(resource: ResourceId, field: FieldChange) -> FieldChange:
    """Return the field as it is compared between what a plan shows and what its operations do."""
    field_prover = _find_field_prover(KINDS.get(resource.kind))
    return field_prover.normalize_field(resource, field) if field_prover is not None else field


def find_proven_fields(change: Change, evidence: Evidence) -> Set[str]:
    """Return those paths where nothing is hidden although what is shown and done differ; none by default."""
    field_prover = _find_field_prover(KINDS.get(change.id.kind))
    return field_prover.find_proven_fields(change, evidence) if field_prover is not None else frozenset()


def find_static_diagnostics(desired: DesiredResource) -> tuple[Diagnostic, ...]:
    """Return what the diff of a resource is going to say whatever the system has."""
    static_checker = _find_static_checker(KINDS[desired.id.kind])
    return static_checker.find_static_diagnostics(desired) if static_checker is not None else ()


def list_exclusive_settings(desired: DesiredResource) -> Mapping[str, JsonValue]:
    """Return the values that only one resource may state, by a name of what they belong to."""
    settings_lister = _find_settings_lister(KINDS[desired.id.kind])
    return (
        settings_lister.list_exclusive_settings(desired.id.name, desired.body)
        if settings_lister is not None
        else {}
    )


def find_affected(kind: object, body: object) -> Collection[ResourceId]:
    """Return the other resources that a resource of a kind changes, as far as its body names them."""
    return kind.find_affected(body) if isinstance(kind, AffectsResources) else ()


def record_identity(
    kind: str, record: OwnedRecord | None, done: tuple[Operation, ...], created_ids: Mapping[str, str | None]
) -> OwnedRecord | None:
    """Return the record of ownership with the id of what the operations created."""
    recorder = _find_identity_recorder(KINDS[kind])
    return recorder.record_identity(record, done, created_ids) if recorder is not None else record


def forget_identity(kind: str, record: OwnedRecord | None) -> OwnedRecord | None:
    """Return the record of ownership as it is for whatever object has the name."""
    recorder = _find_identity_recorder(KINDS[kind])
    return recorder.forget_identity(record) if recorder is not None else record


def find_undeletable(kind: str, names: Collection[str], live: LiveState) -> Mapping[str, str]:
    """Return which objects of a kind must not be deleted, and why, in a sentence.

    live: what was read for the operations that delete them.
    """
    registered_kind = KINDS.get(kind)
    return (
        registered_kind.find_undeletable(names, live) if isinstance(registered_kind, ProtectsObjects) else {}
    )


def encode_body(desired: DesiredResource) -> JsonObject:
    """Return the body of a resource as a JSON object; an empty one where the kind cannot tell it."""
    kind = _find_body_codec(KINDS[desired.id.kind])
    return kind.to_json(desired.id.name, desired.body) if kind is not None else {}


def decode_body(kind: str, json: JsonObject) -> object:
    """Return the body that `encode_body` gave the text of. Raises LookupError where the kind has no codec."""
    codec = _find_body_codec(KINDS[kind])
    if codec is None:
        raise LookupError(f"bodies of {kind} cannot be read from plain data")
    return codec.from_json(json)


def is_fleet_comparable(kind: str) -> bool:
    """Whether audits of fleets compare resources of this kind."""
    return _find_fleet_comparable(KINDS.get(kind)) is not None


def is_self_contained(desired: DesiredResource) -> bool:
    """Whether the diff of a resource needs no more than its own live object and what its sort shares."""
    kind = _find_fleet_comparable(KINDS[desired.id.kind])
    return kind is not None and kind.is_self_contained(desired.id.name, desired.body)


def find_editable(kind: str) -> Editable | None:
    """Return the kind, where manifests of it can be edited."""
    registered_kind = KINDS.get(kind)
    return registered_kind if isinstance(registered_kind, Editable) else None


def locate_field(kind: str, path: str) -> Sequence[SpecPath]:
    """Return where a spec can declare a field of a change: by default ``a.b.c`` is ``b.c`` of ``a``."""
    registered_kind = KINDS.get(kind)
    if isinstance(registered_kind, LocatesFields):
        return registered_kind.locate_field(path)
    name, _, subpath = path.partition(".")
    return ((name, subpath) if subpath else (name,),)


def locate_secret(kind: str, path: SpecPath) -> tuple[SpecPath | None, bool]:
    """Return where the spec states a secret of the body, and whether the kind says so itself.

    Otherwise it is taken to be at the same path, which the caller has to check.
    """
    registered_kind = KINDS.get(kind)
    return (
        (registered_kind.locate_secret(path), True)
        if isinstance(registered_kind, LocatesSecrets)
        else (path, False)
    )


def is_move(change: Change) -> bool:
    """Return whether all that a change alters is where data is."""
    kind = KINDS.get(change.id.kind)
    if not isinstance(kind, MovesData) or not change.fields:
        return False
    return all(kind.is_location(field.path) for field in change.fields)


def is_field_claimed(kind: str, field: FieldChange, stated: JsonObject) -> bool:
    """Return whether a body or a record of ownership determines a field: by default, at its path."""
    registered_kind = KINDS.get(kind)
    if isinstance(registered_kind, ClaimsFields):
        return registered_kind.is_field_claimed(field, stated)
    name, _, subpath = field.path.partition(".")
    value = stated.get(name)
    return subpath in value if isinstance(value, Mapping) and subpath else value is not None


def find_live_key(resource: ResourceId, body: object | None, owned: OwnedRecord | None) -> LiveKey | None:
    """Return the live object that a resource is; None where it is none, or fleets do not compare its kind."""
    kind = _find_fleet_comparable(KINDS.get(resource.kind))
    return kind.find_live_key(resource.name, body, owned) if kind is not None else None


def list_elements(
    resource: ResourceId, body: object | None, owned: OwnedRecord | None
) -> tuple[Element, ...] | None:
    """Return the elements of a resource that is a set of live objects; None where it is not."""
    kind = _find_set_like(KINDS.get(resource.kind))
    return tuple(kind.list_elements(resource.name, body, owned)) if kind is not None else None


def is_set_like(kind: str) -> bool:
    """Whether resources of a kind are sets of live objects."""
    return _find_set_like(KINDS.get(kind)) is not None


def list_facts(desired: DesiredResource, owned: OwnedRecord | None) -> DeclaredFacts | None:
    """Return a quick test whether a resource is as declared; None where only the diff can tell."""
    kind = _find_fact_lister(KINDS[desired.id.kind])
    return kind.list_facts(desired.body, owned) if kind is not None else None


def find_audit_rules(kind: str) -> AuditRules:
    """Return what audits say about resources of a kind beyond what its diff says."""
    return _get_audit_rules(KINDS.get(kind))


def find_concerned(desired: DesiredResource, keys: Collection[LiveKey]) -> Collection[LiveKey]:
    """Return those of the live objects that a resource is about; by default its own."""
    concern_lister = _find_concern_lister(KINDS[desired.id.kind])
    if concern_lister is not None:
        return concern_lister.find_concerned(desired.id.name, desired.body, keys)
    own_key = find_live_key(desired.id, desired.body, None)
    return [own_key] if own_key is not None and own_key in keys else []


def export_manifests(kind: object, connections: Connections, request: ExportRequest) -> Export:
    """Return manifests of live resources; none where the kind cannot be imported. Raises Fault."""
    return kind.export(connections, request) if isinstance(kind, Exportable) else Export({})


def list_names(kind: str, connections: Connections) -> Sequence[str]:
    """Return the names of live objects of a kind; none where it cannot list them. Raises Fault."""
    registered_kind = KINDS.get(kind)
    return registered_kind.list_names(connections) if isinstance(registered_kind, ListsNames) else ()
