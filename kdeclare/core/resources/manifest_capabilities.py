"""Capabilities of kinds for manifests: import, write-back, positions of fields, completion of names.

`plan_capabilities` explains what a capability is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.changes import Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import SpecPath, SpecProblem

Plain = str | int | None
"""A string (also for fields that are taken literally), an integer, a boolean, or null."""


@dataclass(frozen=True, slots=True)
class ValueEdit:
    """Give a field a value: a scalar, null, or an ordered list of scalars.

    path: the path within the spec. A manifest that already has the value is not edited.
    """

    path: SpecPath
    value: Plain | list[Plain]


@dataclass(frozen=True, slots=True)
class SettingEdit:
    """Change a setting. A manifest can declare its value, list elements to add or remove, or that it is
    unset.

    path: the path within the spec. fields: the changes of the setting, in this order. Lists have no order. A
        deleted setting is removed from the manifest, unless the value of a lower layer would then take
        effect.
    """

    path: SpecPath
    fields: tuple[FieldChange, ...]


FieldEdit = ValueEdit | SettingEdit


@dataclass(frozen=True, slots=True)
class ManifestEdits:
    """Edits in the order in which they are made. problems: diagnostics about the edits. An error stops all
    edits.
    """

    edits: tuple[FieldEdit, ...] = ()
    problems: tuple[SpecProblem, ...] = ()


class DeclaredFields(Protocol):
    """What the manifest and the overlays of one resource declare."""

    def is_declared(self, path: SpecPath) -> bool:
        """Whether the manifest or an overlay has a value other than null at a path within the spec."""


@runtime_checkable
class HasExclusiveFields(Protocol):
    """A kind with fields that exclude each other."""

    exclusive_fields: Mapping[str, frozenset[str]]
    """Fields of the spec, each with the fields that it excludes. A default never displaces a declared field.
    """


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What to import.

    read: reads live state. matches: returns whether a name is requested. permits: returns whether a resource
        is in the scope of the project. is_selective: whether the user requested names. If so, objects without
        their own name are left out.
    """

    read: Callable[[Selections], LiveState]
    matches: Callable[[str], bool]
    permits: Callable[[ResourceId], bool]
    is_selective: bool = False


@dataclass(frozen=True, slots=True)
class OmittedObjects:
    """A count of live objects that no manifest was written for.

    one: the singular noun. many: the plural noun. why: the reason, as a phrase.
    """

    count: int
    one: str
    many: str
    why: str


@dataclass(frozen=True, slots=True)
class Export:
    """Manifests as text, by name of the resource, and the objects that were left out."""

    manifests: Mapping[str, str]
    left_out: tuple[OmittedObjects, ...] = ()


@runtime_checkable
class Exportable(Protocol):
    """A kind whose live resources can be imported."""

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """Return manifests of the live resources of this kind. Raises Fault."""


@runtime_checkable
class Editable(Protocol):
    """A kind whose manifests can be edited to match a change (write-back)."""

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """Return the edits that make the manifest of a declared resource match a change."""

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        """Return the lines of the spec, not indented, for the manifest of a resource to create."""

    def is_same_value(self, path: SpecPath, text: str, value: JsonValue) -> bool:
        """Whether a string at a path within the spec already means this value."""

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        """Whether ``after`` differs from ``before`` (None: no body) by the change and nothing else."""


@runtime_checkable
class LocatesFields(Protocol):
    """A kind whose manifests can declare a field at a place that differs from its path."""

    def locate_field(self, path: str) -> Sequence[SpecPath]:
        """Return the places where a spec can declare a field of a change. The first place that exists is
        used.
        """


@runtime_checkable
class ListsNames(Protocol):
    """A kind whose live objects can be listed, so that the shell can complete their names."""

    def list_names(self, connections: Connections) -> Sequence[str]:
        """Return the names by which live objects can be declared, sorted. Raises Fault."""


@runtime_checkable
class ClaimsFields(Protocol):
    """A kind whose bodies and records can determine a field without a value at its path."""

    def is_field_claimed(self, field: FieldChange, stated: JsonObject) -> bool:
        """Whether a body or an ownership record, as plain data, determines a field."""


@runtime_checkable
class LocatesSecrets(Protocol):
    """A kind whose bodies and specs have secrets at different paths."""

    def locate_secret(self, path: SpecPath) -> SpecPath | None:
        """Return the path in the spec of the secret at a path in the body; None if it is unknown."""


def find_exclusive_fields(kind: object) -> Mapping[str, frozenset[str]]:
    """Return the fields of a kind that exclude each other; by default, there are none."""
    return kind.exclusive_fields if isinstance(kind, HasExclusiveFields) else {}


def find_editable(kind: str) -> Editable | None:
    """Return the kind if its manifests can be edited; otherwise None."""
    registered_kind = KINDS.get(kind)
    return registered_kind if isinstance(registered_kind, Editable) else None


def locate_field(kind: str, path: str) -> Sequence[SpecPath]:
    """Return the places where a spec can declare a field. By default, ``a.b.c`` is key ``b.c`` of ``a``."""
    registered_kind = KINDS.get(kind)
    if isinstance(registered_kind, LocatesFields):
        return registered_kind.locate_field(path)
    name, _, subpath = path.partition(".")
    return ((name, subpath) if subpath else (name,),)


def locate_secret(kind: str, path: SpecPath) -> tuple[SpecPath | None, bool]:
    """Return the path in the spec of a secret in the body, and whether the kind provided this path.

    If the kind does not provide a path, return the path in the body. The caller has to check it.
    """
    registered_kind = KINDS.get(kind)
    return (
        (registered_kind.locate_secret(path), True)
        if isinstance(registered_kind, LocatesSecrets)
        else (path, False)
    )


def is_field_claimed(kind: str, field: FieldChange, stated: JsonObject) -> bool:
    """Whether a body or ownership record determines a field. By default, it does if it has a value at the
    path.
    """
    registered_kind = KINDS.get(kind)
    if isinstance(registered_kind, ClaimsFields):
        return registered_kind.is_field_claimed(field, stated)
    return has_value_at(field.path, stated)


def has_value_at(path: str, stated: JsonObject) -> bool:
    """Whether plain data has a value at the path of a field. ``a.b.c`` is key ``b.c`` of ``a``."""
    name, _, subpath = path.partition(".")
    value = stated.get(name)
    return subpath in value if isinstance(value, Mapping) and subpath else value is not None


def export_manifests(kind: object, connections: Connections, request: ExportRequest) -> Export:
    """Return manifests of live resources, or an empty result if the kind cannot be imported. Raises Fault."""
    return kind.export(connections, request) if isinstance(kind, Exportable) else Export({})


def list_names(kind: str, connections: Connections) -> Sequence[str]:
    """Return the names of live objects of a kind, or no names if it cannot list them. Raises Fault."""
    registered_kind = KINDS.get(kind)
    return registered_kind.list_names(connections) if isinstance(registered_kind, ListsNames) else ()
