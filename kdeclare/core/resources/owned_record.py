"""Ownership records, which contain the fields that kdeclare applied last and has managed since then."""

from collections.abc import Collection, Mapping
from typing import Self, TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.operations.operation import Arguments


@dataclass(frozen=True, slots=True)
class OwnedRecord(Arguments):
    """The base class of ownership records.

    A record contains the fields of a resource that kdeclare applied last and has managed since then. The
    fields have the same names and types as in state files and plan files. The optional field ``labels``
    contains the labels of the resource. The optional field ``preventDestroy`` means that kdeclare must not
    delete the resource.
    """


@dataclass(frozen=True, slots=True)
class NoRecord(OwnedRecord):
    """The record class of kinds whose resources are never owned. The class is never instantiated."""


@dataclass(frozen=True, slots=True)
class CodedRecord(OwnedRecord):
    """The base class of ownership records with custom serialization, for kinds with thousands of records."""

    @classmethod
    def from_json(cls, json: JsonObject) -> Self:
        """Restore a record from the JSON of a file. Raises ValueError with the location of the error."""
        raise NotImplementedError

    def to_json(self) -> JsonObject:
        """Return the record in the form that files contain."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class UnboundRecord(OwnedRecord):
    """An ownership record that this version of kdeclare cannot read, exactly as it is in the file.

    Either the kind is not installed, or a different version of the kind is installed.

    problem: the reason why the record cannot be read.
    """

    json: JsonValue
    problem: str


_Record = TypeVar("_Record", bound=OwnedRecord)
_Field = TypeVar("_Field")


def narrow_record(owned: object, record_type: type[_Record]) -> _Record | None:
    """Return ``owned``, which must be None or an ownership record of the given type. Raises TypeError."""
    if owned is None:
        return None
    if not isinstance(owned, record_type):
        raise TypeError(f"expected {record_type.__name__}, got {type(owned).__name__}")
    return owned


def merge_fields(
    before: Mapping[str, _Field], after: Mapping[str, _Field], names: Collection[str]
) -> dict[str, _Field]:
    """Return the owned fields after a run that changed only the fields in ``names``."""
    kept_fields = {name: value for name, value in before.items() if name not in names}
    return kept_fields | {name: value for name, value in after.items() if name in names}


def get_record_field(record: OwnedRecord | None, name: str) -> JsonValue:
    """Return the value of the field that files call ``name``; None if the record has no such field."""
    if isinstance(record, UnboundRecord):
        return record.json.get(name) if isinstance(record.json, Mapping) else None
    value: JsonValue = getattr(record, name, None)
    return value


def get_owned_labels(record: OwnedRecord | None) -> Mapping[str, str]:
    """Return the labels that a resource had when it was last applied; empty if the record has none."""
    labels = get_record_field(record, "labels")
    if not isinstance(labels, Mapping):
        return {}
    return {name: value for name, value in labels.items() if isinstance(value, str)}


OWNER_LABEL = "team"
"""The label that names the owner of a resource. ``metadata.owner`` of a manifest sets this label.

The owner is a label, so that selectors, policies, ownership records and fleets need no second concept.
"""


def find_owner(labels: Mapping[str, str]) -> str | None:
    """Return the owner of a resource with these labels; None if the resource has no owner."""
    return labels.get(OWNER_LABEL) or None


def is_protected(record: OwnedRecord | None) -> bool:
    """Whether the resource must not be deleted, according to its last applied manifest."""
    return bool(get_record_field(record, "preventDestroy"))
