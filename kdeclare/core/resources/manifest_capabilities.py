"""Capabilities of kinds for manifests: import, write-back, positions of fields, and completion of names.

`plan_capabilities` explains what a capability is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.changes import Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import SpecPath, SpecProblem

Plain = str | int | None
"""A string, an integer, a Boolean, or null. The value of a `RawText` field is always a string."""


@dataclass(frozen=True, slots=True)
class ValueEdit:
    """An edit that sets a field to a scalar, null, or an ordered list of scalars.

    path: the path within the spec. A manifest that already contains the value stays unchanged.
    """

    path: SpecPath
    value: Plain | list[Plain]


@dataclass(frozen=True, slots=True)
class SettingEdit:
    """An edit that sets or unsets a setting, or adds or removes elements if the setting is a list.

    path: the path within the spec.
    fields: the changes to the setting, in order. The order of list elements does not matter. A deleted
        setting is removed from the manifest, unless a value from elsewhere (such as a default) would then
        take effect.
    """

    path: SpecPath
    fields: tuple[FieldChange, ...]


ListEntry = Mapping[str, Plain | list[Plain]]
"""An entry of a list of mappings, with scalars and lists of scalars as values."""


@dataclass(frozen=True, slots=True)
class EntriesEdit:
    """An edit that adds and removes entries of a list of mappings.

    path: the path of the list within the spec. The list is created if it does not exist.
    added: the entries to add at the end of the list.
    removed: the indexes of the entries to remove, in the list before the edit.
    """

    path: SpecPath
    added: tuple[ListEntry, ...] = ()
    removed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FileEdit:
    """An edit that sets the content of the file that a field of type `FileText` names.

    path: the path of the field within the spec. A file that already has this content is not written.
    """

    path: SpecPath
    text: str


FieldEdit = ValueEdit | SettingEdit | EntriesEdit | FileEdit


@dataclass(frozen=True, slots=True)
class ManifestEdits:
    """The edits that a manifest needs, in order, and the problems that were found.

    If one of the problems is an error, no edit is made.
    """

    edits: tuple[FieldEdit, ...] = ()
    problems: tuple[SpecProblem, ...] = ()


class DeclaredFields(Protocol):
    """The fields that the manifest and the overlays of one resource declare."""

    def is_declared(self, path: SpecPath) -> bool:
        """Whether the manifest or an overlay has a value other than null at a path within the spec."""

    def read_value(self, path: SpecPath) -> JsonValue:
        """Return the value at a path within the spec, after overlays are applied; None if there is no value.

        All scalars are strings, and references are replaced by their values.
        """


@runtime_checkable
class HasExclusiveFields(Protocol):
    """A kind with mutually exclusive fields."""

    exclusive_fields: Mapping[str, frozenset[str]]
    """The fields of the spec that exclude other fields, each with the excluded fields.

    If a manifest declares a field, the defaults for the fields that it excludes do not apply.
    """


@runtime_checkable
class HasIndividualFields(Protocol):
    """A kind with fields that an import writes to the manifest of each resource instead of `Defaults`."""

    individual_fields: frozenset[str]
    """The fields of the spec that an import does not move to `Defaults`.

    Examples are fields that identify the object, and permissions, which reviewers look for in the manifest.
    """


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The inputs of an import.

    read: reads live state.
    matches: returns whether the user requested an object with this name.
    permits: returns whether a resource is in the scope of the project.
    is_selective: whether the user requested particular names. Objects without a name are then left out.
    """

    read: Callable[[Selections], LiveState]
    matches: Callable[[str], bool]
    permits: Callable[[ResourceId], bool]
    is_selective: bool = False


@dataclass(frozen=True, slots=True)
class OmittedObjects:
    """The number of live objects that an import left out, and the reason.

    one: the singular noun. many: the plural noun. why: the reason, as a phrase.
    """

    count: int
    one: str
    many: str
    why: str


@dataclass(frozen=True, slots=True)
class Export:
    """The manifests that an import creates, as YAML by resource name, and the objects that it leaves out."""

    manifests: Mapping[str, str]
    left_out: tuple[OmittedObjects, ...] = ()


@runtime_checkable
class Exportable(Protocol):
    """A kind whose live resources can be imported."""

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """Return manifests for the live resources of this kind. Raises Fault."""


@runtime_checkable
class Editable(Protocol):
    """A kind whose manifests can be edited to match a change (write-back)."""

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """Return the edits that make the manifest of a declared resource match a change."""

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        """Return the unindented lines of the spec for the manifest of a new resource."""

    def is_same_value(self, path: SpecPath, text: str, value: JsonValue) -> bool:
        """Whether a string in a manifest is equivalent to ``value``.

        path: the path of the string within the spec.
        """

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        """Whether ``change`` is the only difference between the bodies ``before`` and ``after``.

        before: None if the resource had no body.
        """


@runtime_checkable
class CompletesChanges(Protocol):
    """An `Editable` kind whose changes do not contain all values that a manifest declares."""

    def complete_change(self, change: Change, operations: Sequence[Operation]) -> Change:
        """Return the change, completed with all values that the operations of the resource will set."""


@runtime_checkable
class LocatesFields(Protocol):
    """A kind whose field paths in manifests can differ from the paths in plans."""

    def locate_field(self, path: str) -> Sequence[SpecPath]:
        """Return the paths at which a spec can declare a field, given the field's path in a change.

        The first of these paths that exists in the spec is used.
        """


@runtime_checkable
class ListsNames(Protocol):
    """A kind that can list the names of live objects, so that the shell can complete these names."""

    def list_names(self, connections: Connections) -> Sequence[str]:
        """Return the sorted names under which live objects can be declared. Raises Fault."""


@runtime_checkable
class ClaimsFields(Protocol):
    """A kind whose bodies or records can specify a field indirectly, without a value at the field's path."""

    def is_field_claimed(self, field: FieldChange, stated: JsonObject) -> bool:
        """Whether a body or an ownership record specifies a field.

        stated: the body or the record as plain data.
        """


@runtime_checkable
class ConvertsValues(Protocol):
    """A kind whose manifests can contain values in a form that the system does not use, such as ``7d``."""

    def convert_value(self, path: SpecPath, text: str) -> str | None:
        """Return the value that the system gets for a string in a spec; None if it gets the string itself.

        path: the path of the string within the spec.
        """


@runtime_checkable
class LocatesSecrets(Protocol):
    """A kind in which the path of a secret in a body differs from its path in the spec."""

    def locate_secret(self, path: SpecPath) -> SpecPath | None:
        """Convert the path of a secret in a body to the path in the spec.

        Return None if the path in the spec is unknown.
        """


def find_exclusive_fields(kind: object) -> Mapping[str, frozenset[str]]:
    """Return the fields of a kind that exclude other fields, each with the excluded fields."""
    return kind.exclusive_fields if isinstance(kind, HasExclusiveFields) else {}


def find_individual_fields(kind: object) -> frozenset[str]:
    """Return the fields of a kind that an import does not move to `Defaults`."""
    return kind.individual_fields if isinstance(kind, HasIndividualFields) else frozenset()


def find_editable(kind: str) -> Editable | None:
    """Return the kind if its manifests can be edited; otherwise None."""
    registered_kind = KINDS.get(kind)
    return registered_kind if isinstance(registered_kind, Editable) else None


def complete_change(change: Change, operations: Sequence[Operation]) -> Change:
    """Complete a change with values that manifests can declare, but that only the operations contain.

    operations: the operations of the resource.
    """
    kind = KINDS.get(change.id.kind)
    return kind.complete_change(change, operations) if isinstance(kind, CompletesChanges) else change


def locate_field(kind: str, path: str) -> Sequence[SpecPath]:
    """Return the paths at which a spec can declare a field, given the field's path in a change.

    By default, the path ``a.b.c`` means the key ``b.c`` of ``a``.
    """
    registered_kind = KINDS.get(kind)
    if isinstance(registered_kind, LocatesFields):
        return registered_kind.locate_field(path)
    name, _, subpath = path.partition(".")
    return ((name, subpath) if subpath else (name,),)


def locate_secret(kind: str, path: SpecPath) -> tuple[SpecPath | None, bool]:
    """Convert the path of a secret in a body to the path in the spec.

    The second result is whether the kind has converted the path. If not, the first result is the path in the
    body, and the caller has to check whether the spec has this path.
    """
    registered_kind = KINDS.get(kind)
    return (
        (registered_kind.locate_secret(path), True)
        if isinstance(registered_kind, LocatesSecrets)
        else (path, False)
    )


def convert_value(kind: str, path: SpecPath, text: str) -> str | None:
    """Return the value that the system gets for a string in a spec; None if it gets the string itself."""
    registered_kind = KINDS.get(kind)
    return registered_kind.convert_value(path, text) if isinstance(registered_kind, ConvertsValues) else None


def is_field_claimed(kind: str, field: FieldChange, stated: JsonObject) -> bool:
    """Whether a body or an ownership record specifies a field. stated: the body or the record as plain data.

    By default, a field is specified if the body or record has a value at the path of the field.
    """
    registered_kind = KINDS.get(kind)
    if isinstance(registered_kind, ClaimsFields):
        return registered_kind.is_field_claimed(field, stated)
    return has_value_at(field.path, stated)


def has_value_at(path: str, stated: JsonObject) -> bool:
    """Whether plain data has a value at the path of a field.

    The path ``a.b.c`` means the key ``b.c`` of ``a``.
    """
    name, _, subpath = path.partition(".")
    value = stated.get(name)
    return subpath in value if isinstance(value, Mapping) and subpath else value is not None


def export_manifests(kind: object, connections: Connections, request: ExportRequest) -> Export:
    """Return manifests for live resources; empty if the kind does not support import. Raises Fault."""
    return kind.export(connections, request) if isinstance(kind, Exportable) else Export({})


def list_names(kind: str, connections: Connections) -> Sequence[str]:
    """Return the names of live objects of a kind; empty if the kind cannot list names. Raises Fault."""
    registered_kind = KINDS.get(kind)
    return registered_kind.list_names(connections) if isinstance(registered_kind, ListsNames) else ()
