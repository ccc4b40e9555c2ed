"""Compare the defaults, documentation and other attributes of elements of Avro schemas and JSON Schemas."""

from collections.abc import Collection, Iterator

from kdeclare.core.jsontypes import JsonObject
from kdeclare.providers.schema_registry.schemas.differences import DifferenceKind, SchemaDifference
from kdeclare.providers.schema_registry.schemas.json_text import format_value, is_equal_json

_ADDED = {
    "default": DifferenceKind.DEFAULT_ADDED,
    "documentation": DifferenceKind.DOCUMENTATION_ADDED,
    "attribute": DifferenceKind.ATTRIBUTE_ADDED,
}
_REMOVED = {
    "default": DifferenceKind.DEFAULT_REMOVED,
    "documentation": DifferenceKind.DOCUMENTATION_REMOVED,
    "attribute": DifferenceKind.ATTRIBUTE_REMOVED,
}
_CHANGED = {
    "default": DifferenceKind.DEFAULT_CHANGED,
    "documentation": DifferenceKind.DOCUMENTATION_CHANGED,
    "attribute": DifferenceKind.ATTRIBUTE_CHANGED,
}


def compare_default(
    before: JsonObject, after: JsonObject, path: str, subject: str
) -> Iterator[SchemaDifference]:
    """Yield the difference between the defaults of two fields or types, if there is one."""
    return _compare_values(before, after, "default", path, subject, "default", "default")


def compare_documentation(
    before: JsonObject, after: JsonObject, key: str, path: str, subject: str
) -> Iterator[SchemaDifference]:
    """Yield the difference between the documentation of two schema parts, if there is one."""
    noun = "documentation" if key == "doc" else key
    return _compare_values(before, after, key, path, subject, "documentation", noun)


def compare_attributes(
    before: JsonObject, after: JsonObject, excluded: Collection[str], path: str, subject: str
) -> Iterator[SchemaDifference]:
    """Yield the differences between the attributes that are not in ``excluded``, sorted by name."""
    for key in sorted((before.keys() | after.keys()) - set(excluded)):
        yield from _compare_values(before, after, key, path, subject, "attribute", key)


def _compare_values(
    before: JsonObject, after: JsonObject, key: str, path: str, subject: str, sort: str, noun: str
) -> Iterator[SchemaDifference]:
    if key not in before and key not in after:
        return
    first, second = before.get(key), after.get(key)
    if key not in before:
        message = f"{subject}: {noun} {format_value(second)} added"
        yield SchemaDifference(_ADDED[sort], path, message, None, second)
    elif key not in after:
        message = f"{subject}: {noun} {format_value(first)} removed"
        yield SchemaDifference(_REMOVED[sort], path, message, first)
    elif not is_equal_json(first, second):
        message = f"{subject}: {noun} changed from {format_value(first)} to {format_value(second)}"
        yield SchemaDifference(_CHANGED[sort], path, message, first, second)
