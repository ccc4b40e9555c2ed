"""Represent the differences between two schemas."""

from collections.abc import Iterable
from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue


class DifferenceKind(StrEnum):
    """The kind of a difference between two schemas."""

    TYPE_CHANGED = "type-changed"
    TYPE_ADDED = "type-added"  # a message, an enum, a definition …
    TYPE_REMOVED = "type-removed"
    TYPE_RENAMED = "type-renamed"
    TYPES_REORDERED = "types-reordered"
    FIELD_ADDED = "field-added"
    FIELD_REMOVED = "field-removed"
    FIELD_RENAMED = "field-renamed"
    FIELDS_REORDERED = "fields-reordered"
    FIELD_MOVED = "field-moved"  # into a oneof, or out of it
    NUMBER_CHANGED = "number-changed"
    LABEL_CHANGED = "label-changed"  # optional, required, repeated
    DEFAULT_ADDED = "default-added"
    DEFAULT_REMOVED = "default-removed"
    DEFAULT_CHANGED = "default-changed"
    ALIASES_CHANGED = "aliases-changed"
    SYMBOL_ADDED = "symbol-added"  # a value of an enum
    SYMBOL_REMOVED = "symbol-removed"
    SYMBOL_RENAMED = "symbol-renamed"
    SYMBOLS_REORDERED = "symbols-reordered"
    REQUIRED_ADDED = "required-added"
    REQUIRED_REMOVED = "required-removed"
    RESERVED_ADDED = "reserved-added"
    RESERVED_REMOVED = "reserved-removed"
    ATTRIBUTE_ADDED = "attribute-added"  # an attribute, a keyword or an option
    ATTRIBUTE_REMOVED = "attribute-removed"
    ATTRIBUTE_CHANGED = "attribute-changed"
    DOCUMENTATION_ADDED = "documentation-added"
    DOCUMENTATION_REMOVED = "documentation-removed"
    DOCUMENTATION_CHANGED = "documentation-changed"
    IMPORT_ADDED = "import-added"
    IMPORT_REMOVED = "import-removed"
    REFERENCE_ADDED = "reference-added"
    REFERENCE_REMOVED = "reference-removed"
    REFERENCE_CHANGED = "reference-changed"
    LANGUAGE_CHANGED = "language-changed"  # Avro, JSON Schema, Protobuf
    TEXT_CHANGED = "text-changed"  # at least one of the texts is not a valid schema


_DOCUMENTATION = frozenset(
    {
        DifferenceKind.DOCUMENTATION_ADDED,
        DifferenceKind.DOCUMENTATION_REMOVED,
        DifferenceKind.DOCUMENTATION_CHANGED,
    }
)


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """One difference between two schemas.

    path: the part that differs, as seen from the root of the schema, such as ``Order.items[].price``. ``[]``
        are the elements of an array and ``{}`` the values of a map.
    message: a clause that names the part and the difference, without a period:
        ``field 'price' of record x.Item: type changed from int to long``.
    before, after: the values that differ; None for an absent value.
    """

    kind: DifferenceKind
    path: str
    message: str
    before: JsonValue = None
    after: JsonValue = None

    @property
    def is_documentation(self) -> bool:
        """Whether the difference has no effect on data."""
        return self.kind in _DOCUMENTATION


class DifferenceScope(StrEnum):
    """What the differences between two schemas affect: content, only documentation, or nothing."""

    NONE = "none"
    DOCUMENTATION = "documentation"
    CONTENT = "content"


def classify_differences(differences: Iterable[SchemaDifference]) -> DifferenceScope:
    """Return what the differences affect: the content of a schema, only its documentation, or nothing."""
    scope = DifferenceScope.NONE
    for difference in differences:
        if not difference.is_documentation:
            return DifferenceScope.CONTENT
        scope = DifferenceScope.DOCUMENTATION
    return scope
