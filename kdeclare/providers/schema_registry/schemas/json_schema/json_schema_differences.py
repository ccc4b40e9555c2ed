"""Find the differences between two JSON Schemas, and describe each of them."""

from collections.abc import Iterator, Mapping, Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, dump_canonical_json
from kdeclare.providers.schema_registry.schemas.attributes import (
    compare_attributes,
    compare_default,
    compare_documentation,
)
from kdeclare.providers.schema_registry.schemas.differences import DifferenceKind, SchemaDifference
from kdeclare.providers.schema_registry.schemas.json_schema.json_schema import JsonSchema
from kdeclare.providers.schema_registry.schemas.json_text import (
    as_mapping,
    as_sequence,
    format_value,
    is_equal_json,
)

_DOCUMENTATION = ("description", "$comment", "examples")
"""Keywords that only document a schema.

A title is more than documentation: serializers and Connect use it as the name of the record.
"""
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SCHEMAS = (
    "items",
    "additionalProperties",
    "additionalItems",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
)
_SCHEMA_LISTS = ("prefixItems", "allOf", "anyOf", "oneOf")
_NOUNS = {
    "properties": "property",
    "patternProperties": "pattern property",
    "$defs": "definition",
    "definitions": "definition",
    "dependentSchemas": "schema that depends on",
}
_ROOT = "$"


@dataclass(frozen=True, slots=True)
class _Place:
    """A subschema. path: as in `SchemaDifference`. subject: how messages name the subschema."""

    path: str
    subject: str

    @property
    def label(self) -> str:
        """The path without the root: ``items[].price``; empty for the root."""
        return self.path.removeprefix(_ROOT).removeprefix(".")

    def enter_keyword(self, keyword: str, suffix: str) -> "_Place":
        return _Place(f"{self.path}{suffix}", f"{keyword} of {self.subject}")

    def enter_entry(self, keyword: str, name: str) -> "_Place":
        path = f"{self.path}.{name}" if keyword == "properties" else f"{self.path}.{keyword}.{name}"
        label = _Place(path, "").label if keyword == "properties" else name
        return _Place(path, f"{_NOUNS[keyword]} '{label}'")


def describe_json_schema_differences(before: JsonSchema, after: JsonSchema) -> tuple[SchemaDifference, ...]:
    """Return the differences, from the root of the schemas to their deepest parts."""
    return tuple(_compare_schemas(before.root, after.root, _Place(_ROOT, "schema")))


def _compare_schemas(before: JsonValue, after: JsonValue, place: _Place) -> Iterator[SchemaDifference]:
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        if not is_equal_json(before, after):
            message = f"{place.subject}: changed from {format_value(before)} to {format_value(after)}"
            yield SchemaDifference(DifferenceKind.TYPE_CHANGED, place.path, message, before, after)
        return
    yield from _compare_types(before, after, place)
    for key in _DOCUMENTATION:
        yield from compare_documentation(before, after, key, place.path, place.subject)
    yield from compare_default(before, after, place.path, place.subject)
    described_keys = {"type", "default", *_DOCUMENTATION}
    if _is_list_pair(before, after, "required"):
        described_keys.add("required")
        yield from _compare_required(before, after, place)
    if _is_list_pair(before, after, "enum"):
        described_keys.add("enum")
        yield from _compare_enums(before, after, place)
    nested = [key for key in (*_SCHEMA_MAPS, *_SCHEMAS, *_SCHEMA_LISTS) if key in before or key in after]
    described_keys.update(key for key in nested if _is_comparable(before, after, key))
    yield from compare_attributes(before, after, described_keys, place.path, place.subject)
    for key in nested:
        if key in described_keys:
            yield from _compare_keyword(before, after, key, place)


def _compare_types(before: JsonObject, after: JsonObject, place: _Place) -> Iterator[SchemaDifference]:
    first, second = before.get("type"), after.get("type")
    if is_equal_json(first, second):
        return
    message = f"{place.subject}: type changed from {_format_type(before)} to {_format_type(after)}"
    yield SchemaDifference(DifferenceKind.TYPE_CHANGED, place.path, message, first, second)


def _format_type(schema: JsonValue) -> str:
    """Return the type that a schema permits, in readable form."""
    if not isinstance(schema, Mapping):
        return format_value(schema)
    if "type" not in schema:
        return str(schema.get("$ref", "any type"))
    type_ = schema["type"]
    return " or ".join(map(str, type_)) if isinstance(type_, list) else str(type_)


def _is_list_pair(before: JsonObject, after: JsonObject, key: str) -> bool:
    """Whether a keyword occurs in at least one of two schemas, and each of its values is a list."""
    values = [schema[key] for schema in (before, after) if key in schema]
    return bool(values) and all(isinstance(value, list) for value in values)


def _compare_required(before: JsonObject, after: JsonObject, place: _Place) -> Iterator[SchemaDifference]:
    first, second = as_sequence(before.get("required")), as_sequence(after.get("required"))
    old_properties, new_properties = as_mapping(before.get("properties")), as_mapping(after.get("properties"))
    if not _subtract(first, second) and not _subtract(second, first):
        yield from _compare_order(before, after, "required", place)
    for names, properties, other_properties, kind, verb in (
        (_subtract(second, first), new_properties, old_properties, DifferenceKind.REQUIRED_ADDED, "now"),
        (
            _subtract(first, second),
            old_properties,
            new_properties,
            DifferenceKind.REQUIRED_REMOVED,
            "no longer",
        ),
    ):
        for name in map(str, names):
            if name in properties and name not in other_properties:
                continue  # described together with the property
            entry = place.enter_entry("properties", name)
            note = "" if name in properties else ", but is not declared"
            yield SchemaDifference(kind, entry.path, f"{entry.subject} is {verb} required{note}")


def _compare_enums(before: JsonObject, after: JsonObject, place: _Place) -> Iterator[SchemaDifference]:
    first, second = as_sequence(before.get("enum")), as_sequence(after.get("enum"))
    if "enum" not in before or "enum" not in after:
        yield from compare_attributes(
            {"enum": list(first)} if "enum" in before else {},
            {"enum": list(second)} if "enum" in after else {},
            (),
            place.path,
            place.subject,
        )
        return
    removed, added = _subtract(first, second), _subtract(second, first)
    for value in removed:
        message = f"{place.subject}: enum value {format_value(value)} removed"
        yield SchemaDifference(DifferenceKind.SYMBOL_REMOVED, place.path, message, value)
    for value in added:
        message = f"{place.subject}: enum value {format_value(value)} added"
        yield SchemaDifference(DifferenceKind.SYMBOL_ADDED, place.path, message, None, value)
    if not removed and not added:
        yield from _compare_order(before, after, "enum", place)


def _compare_order(
    before: JsonObject, after: JsonObject, key: str, place: _Place
) -> Iterator[SchemaDifference]:
    """Yield a difference if the value of a keyword differs in a way that has no effect on data."""
    if key in before and key in after and is_equal_json(before[key], after[key]):
        return
    verb = "reordered" if key in before and key in after else "added" if key in after else "removed"
    message = f"{place.subject}: {key} {verb}, without an effect on data"
    yield SchemaDifference(
        DifferenceKind.SYMBOLS_REORDERED, place.path, message, before.get(key), after.get(key)
    )


def _subtract(values: Sequence[JsonValue], others: Sequence[JsonValue]) -> list[JsonValue]:
    excluded = set(map(dump_canonical_json, others))
    return [value for value in values if dump_canonical_json(value) not in excluded]


def _is_comparable(before: JsonObject, after: JsonObject, key: str) -> bool:
    """Whether the subschemas in the old and in the new value of a keyword can be compared in pairs."""
    if key == "properties":
        return all(isinstance(schema.get(key, {}), Mapping) for schema in (before, after))
    if key not in before or key not in after:
        return key in _SCHEMA_MAPS and all(
            isinstance(schema.get(key, {}), Mapping) for schema in (before, after)
        )
    first, second = before[key], after[key]
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second)
    return isinstance(first, Mapping) and isinstance(second, Mapping)


def _compare_keyword(
    before: JsonObject, after: JsonObject, key: str, place: _Place
) -> Iterator[SchemaDifference]:
    if key in _SCHEMA_MAPS:
        yield from _compare_entries(before, after, key, place)
        return
    first, second = before[key], after[key]
    if isinstance(first, list) and isinstance(second, list):
        for index, (old, new) in enumerate(zip(first, second, strict=True)):
            step = f"{key}[{index}]"
            suffix = f"[{index}]" if key in ("items", "prefixItems") else f".{step}"
            yield from _compare_schemas(old, new, place.enter_keyword(step, suffix))
        return
    suffix = {"items": "[]", "additionalProperties": "{}"}.get(key, f".{key}")
    yield from _compare_schemas(first, second, place.enter_keyword(key, suffix))


def _compare_entries(
    before: JsonObject, after: JsonObject, key: str, place: _Place
) -> Iterator[SchemaDifference]:
    first, second = as_mapping(before.get(key)), as_mapping(after.get(key))
    is_property = key in ("properties", "patternProperties")
    count = 0
    for name in (*first, *(name for name in second if name not in first)):
        entry = place.enter_entry(key, name)
        if name not in second:
            kind = DifferenceKind.FIELD_REMOVED if is_property else DifferenceKind.TYPE_REMOVED
            message = f"{entry.subject} removed ({_format_type(first[name])})"
            yield SchemaDifference(kind, entry.path, message, first[name])
        elif name not in first:
            kind = DifferenceKind.FIELD_ADDED if is_property else DifferenceKind.TYPE_ADDED
            notes = _format_type(second[name])
            if key == "properties":
                is_required = name in as_sequence(after.get("required"))
                notes = f"{notes}, {'required' if is_required else 'not required'}"
            message = f"{entry.subject} added ({notes})"
            yield SchemaDifference(kind, entry.path, message, None, second[name])
        else:
            yield from _compare_schemas(first[name], second[name], entry)
            continue
        count += 1
    if not count and (key in before) != (key in after):
        verb = "added" if key in after else "removed"
        message = f"{place.subject}: empty {key} {verb}"
        kind = DifferenceKind.ATTRIBUTE_ADDED if key in after else DifferenceKind.ATTRIBUTE_REMOVED
        yield SchemaDifference(kind, place.path, message)
