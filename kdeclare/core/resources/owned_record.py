"""Records of ownership: what was last applied to one resource, and is kdeclare's to undo."""

from collections.abc import Collection, Mapping
from typing import Self, TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.operations.operation import Arguments


@dataclass(frozen=True, slots=True)
class OwnedRecord(Arguments):
    """The base of the records of a kind: what was last applied to one resource, and is kdeclare's to undo.

    Its fields are named and typed as files hold them. ``labels`` and ``preventDestroy``, where a record has
    them, are the resource's labels, and whether nothing may delete it.
    """


@dataclass(frozen=True, slots=True)
class NoRecord(OwnedRecord):
    """The class that a kind names which owns nothing. No record of it is ever made."""


@dataclass(frozen=True, slots=True)
class CodedRecord(OwnedRecord):
    """A record that reads and writes itself, for a kind of which one state holds thousands."""

    @classmethod
    def from_json(cls, json: JsonObject) -> Self:
        """Return the record that a file holds. Raises ValueError, with what is wrong and where."""
        raise NotImplementedError

    def to_json(self) -> JsonObject:
        """Return the record as files hold it."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class UnboundRecord(OwnedRecord):
    """A record that this kdeclare cannot read, as its file holds it. It is kept as it is.

    Its kind is not installed, or is of another version.

    problem: why not, in words.
    """

    json: JsonValue
    problem: str


_Record = TypeVar("_Record", bound=OwnedRecord)
_Field = TypeVar("_Field")


def narrow_record(owned: object, record_type: type[_Record]) -> _Record | None:
    """Return a record as what its kind made it; None where nothing is owned. Raises TypeError for another."""
    if owned is None:
        return None
    if not isinstance(owned, record_type):
        raise TypeError(f"a record is {type(owned).__name__}, not {record_type.__name__}")
    return owned


def merge_fields(
    before: Mapping[str, _Field], after: Mapping[str, _Field], names: Collection[str]
) -> dict[str, _Field]:
    """Return what is owned where only the fields of these names became what was planned."""
    kept_fields = {name: value for name, value in before.items() if name not in names}
    return kept_fields | {name: value for name, value in after.items() if name in names}


def get_record_field(record: OwnedRecord | None, name: str) -> JsonValue:
    """Return what a record says under a name that files have; None where it does not say it."""
    if isinstance(record, UnboundRecord):
        return record.json.get(name) if isinstance(record.json, Mapping) else None
    value: JsonValue = getattr(record, name, None)
    return value


def get_owned_labels(record: OwnedRecord | None) -> Mapping[str, str]:
    """Return the labels of a resource as they were when it was last applied; none where it does not say."""
    labels = get_record_field(record, "labels")
    if not isinstance(labels, Mapping):
        return {}
    return {name: value for name, value in labels.items() if isinstance(value, str)}


def is_protected(record: OwnedRecord | None) -> bool:
    """Whether nothing may delete the resource, by what was last applied."""
    return bool(get_record_field(record, "preventDestroy"))
