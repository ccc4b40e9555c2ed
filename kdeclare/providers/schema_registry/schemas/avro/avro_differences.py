"""Find the differences between two Avro schemas, and describe each of them."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain

from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.providers.schema_registry.schemas.attributes import (
    compare_attributes,
    compare_default,
    compare_documentation,
)
from kdeclare.providers.schema_registry.schemas.avro.avro_schema import (
    NAMED,
    RECORDS,
    AvroSchema,
    get_type_label,
)
from kdeclare.providers.schema_registry.schemas.differences import DifferenceKind, SchemaDifference
from kdeclare.providers.schema_registry.schemas.json_text import as_mapping, as_sequence

_FIELD_KEYS = frozenset({"name", "type", "default", "doc", "aliases"})
_NAMED_KEYS = frozenset({"type", "name", "doc", "aliases", "default"})
_CONTENT_KEYS = {"record": "fields", "error": "fields", "enum": "symbols", "array": "items", "map": "values"}
_KEEPS_ALIAS = ", which keeps the old name as an alias"


def describe_avro_differences(before: AvroSchema, after: AvroSchema) -> tuple[SchemaDifference, ...]:
    """Return the differences between two schemas, in the order of their fields.

    A named type is compared only once, even if several fields use the type.
    """
    comparison = _Comparison(before, after)
    root_path = _shorten(get_type_label(after.root))
    return (
        *comparison.compare_types(before.root, after.root, root_path, "schema"),
        *comparison.compare_remaining_definitions(),
    )


def format_avro_type(type_: JsonValue) -> str:
    """Return a type as text: ``long (timestamp-millis)``, ``array of x.Line``, ``[null, string]``."""
    if isinstance(type_, list):
        return f"[{', '.join(map(format_avro_type, type_))}]"
    if not isinstance(type_, Mapping):
        return str(type_)
    name = type_["type"]
    if name in NAMED:
        text = str(type_["name"])
    elif name == "array":
        text = f"array of {format_avro_type(type_['items'])}"
    elif name == "map":
        text = f"map of {format_avro_type(type_['values'])}"
    else:
        text = str(name)
    return f"{text} ({type_['logicalType']})" if "logicalType" in type_ else text


def _shorten(full_name: str) -> str:
    return full_name.rpartition(".")[2]


class _Comparison:
    def __init__(self, before: AvroSchema, after: AvroSchema) -> None:
        self._before = before.definitions
        self._after = after.definitions
        self._compared: set[tuple[str, str]] = set()

    def compare_types(
        self, before: JsonValue, after: JsonValue, path: str, subject: str
    ) -> Iterator[SchemaDifference]:
        """Yield the differences between two types.

        subject: how messages name the element that has the type.
        """
        first, second = _expand(before, self._before), _expand(after, self._after)
        if isinstance(first, list) and isinstance(second, list):
            yield from self._compare_unions(first, second, path, subject)
            return
        if not isinstance(first, Mapping) or not isinstance(second, Mapping):
            yield self._describe_type_change(before, after, path, subject)
            return
        kind = second["type"]
        if first["type"] != kind and not (first["type"] in RECORDS and kind in RECORDS):
            yield self._describe_type_change(before, after, path, subject)
        elif kind in NAMED:
            if first["name"] != second["name"] and not self._is_renaming(first, second):
                yield self._describe_type_change(before, after, path, subject)
            else:
                yield from self._compare_named(first, second, path)
        elif kind in ("array", "map"):
            yield from self._compare_contents(first, second, path, subject)
        else:
            yield from compare_attributes(first, second, ("type",), path, subject)

    def compare_remaining_definitions(self) -> Iterator[SchemaDifference]:
        """Yield the differences between those named types of both schemas that have not been compared yet.

        These are types that are used only by fields whose types have changed.
        """
        for name, definition in self._after.items():
            if name in self._before:
                yield from self.compare_types(self._before[name], definition, _shorten(name), "schema")

    def _is_renaming(self, before: JsonObject, after: JsonObject) -> bool:
        """Whether a type with a different name replaces a type that no longer exists."""
        return before["name"] not in self._after and after["name"] not in self._before

    def _describe_type_change(
        self, before: JsonValue, after: JsonValue, path: str, subject: str
    ) -> SchemaDifference:
        first, second = format_avro_type(before), format_avro_type(after)
        if first == second:  # an external type, or an enum instead of a record: both have the same name
            first, second = self._name_kind(before, self._before), self._name_kind(after, self._after)
        message = f"{subject}: type changed from {first} to {second}"
        return SchemaDifference(DifferenceKind.TYPE_CHANGED, path, message, first, second)

    def _name_kind(self, type_: JsonValue, definitions: Mapping[str, JsonObject]) -> str:
        definition = _expand(type_, definitions)
        if isinstance(definition, Mapping) and definition.get("type") in NAMED:
            return f"{definition['type']} {definition['name']}"
        return f"{format_avro_type(type_)} of a reference"

    def _compare_unions(
        self, before: list[JsonValue], after: list[JsonValue], path: str, subject: str
    ) -> Iterator[SchemaDifference]:
        first = {get_type_label(branch): branch for branch in before}
        second = {get_type_label(branch): branch for branch in after}
        if list(first) != list(second):
            yield self._describe_type_change(before, after, path, subject)
        for label, branch in second.items():
            if label in first:
                name = subject if label in ("array", "map") or "." in label else f"{subject}, type {label}"
                yield from self.compare_types(first[label], branch, path, name)

    def _compare_contents(
        self, before: JsonObject, after: JsonObject, path: str, subject: str
    ) -> Iterator[SchemaDifference]:
        content = _CONTENT_KEYS[str(after["type"])]
        yield from compare_attributes(before, after, ("type", content), path, subject)
        content_path = f"{path}[]" if content == "items" else f"{path}{{}}"
        yield from self.compare_types(
            before[content], after[content], content_path, f"{content} of {subject}"
        )

    def _compare_named(self, before: JsonObject, after: JsonObject, path: str) -> Iterator[SchemaDifference]:
        first, second = str(before["name"]), str(after["name"])
        if (first, second) in self._compared:
            return
        self._compared.add((first, second))
        subject = f"{after['type']} {second}"
        if first != second:
            alias = _KEEPS_ALIAS if first in _list_aliases(after) else ""
            message = f"{before['type']} {first} renamed to {second}{alias}"
            yield SchemaDifference(DifferenceKind.TYPE_RENAMED, path, message, first, second)
        if before["type"] != after["type"]:
            message = f"{subject}: type changed from {before['type']} to {after['type']}"
            yield SchemaDifference(DifferenceKind.TYPE_CHANGED, path, message, before["type"], after["type"])
        yield from compare_documentation(before, after, "doc", path, subject)
        yield from _compare_aliases(before, after, path, subject, {first} - {second})
        if after["type"] in RECORDS:
            yield from self._compare_fields(before, after, path)
        if after["type"] == "enum":
            yield from _compare_symbols(before, after, path, subject)
        yield from compare_default(before, after, path, subject)
        described_keys = _NAMED_KEYS | {_CONTENT_KEYS.get(str(after["type"]), "type")}
        yield from compare_attributes(before, after, described_keys, path, subject)

    def _compare_fields(self, before: JsonObject, after: JsonObject, path: str) -> Iterator[SchemaDifference]:
        first, second = _index_fields(before), _index_fields(after)
        old_names = {name: _find_old_name(field, first, second) for name, field in second.items()}
        kept_names = set(old_names.values())
        record = f"record {after['name']}"
        for name, field in first.items():
            if name not in second and name not in kept_names:
                message = f"field '{name}' of {record} removed ({format_avro_type(field['type'])})"
                yield SchemaDifference(DifferenceKind.FIELD_REMOVED, f"{path}.{name}", message, dict(field))
        for name, field in second.items():
            field_path, subject, old_name = f"{path}.{name}", f"field '{name}' of {record}", old_names[name]
            if old_name is None:
                default = "with a default" if "default" in field else "without a default"
                message = f"{subject} added ({format_avro_type(field['type'])}, {default})"
                yield SchemaDifference(DifferenceKind.FIELD_ADDED, field_path, message, None, dict(field))
                continue
            if old_name != name:
                message = f"field '{old_name}' of {record} renamed to '{name}'{_KEEPS_ALIAS}"
                yield SchemaDifference(DifferenceKind.FIELD_RENAMED, field_path, message, old_name, name)
            yield from self._compare_field(first[old_name], field, field_path, subject)
        kept = [name for name in second if old_names[name] is not None]
        if [old_names[name] for name in kept] != [name for name in first if name in kept_names]:
            message = f"fields of {record} reordered: {', '.join(kept)}"
            yield SchemaDifference(DifferenceKind.FIELDS_REORDERED, path, message, list(first), list(second))

    def _compare_field(
        self, before: JsonObject, after: JsonObject, path: str, subject: str
    ) -> Iterator[SchemaDifference]:
        yield from self.compare_types(before["type"], after["type"], path, subject)
        yield from compare_default(before, after, path, subject)
        yield from compare_documentation(before, after, "doc", path, subject)
        yield from _compare_aliases(
            before, after, path, subject, {str(before["name"])} - {str(after["name"])}
        )
        yield from compare_attributes(before, after, _FIELD_KEYS, path, subject)


def _expand(type_: JsonValue, definitions: Mapping[str, JsonObject]) -> JsonValue:
    """Return a union as a list, and any other type as an object.

    The name of a named type is replaced by its definition. For a primitive type, or for a type that the
    schema does not define, the object contains only the name.
    """
    if isinstance(type_, str):
        return definitions.get(type_, {"type": type_})
    return type_


def _index_fields(record: JsonObject) -> dict[str, JsonObject]:
    fields = map(as_mapping, as_sequence(record["fields"]))
    return {str(field["name"]): field for field in fields}


def _list_aliases(element: JsonObject) -> list[str]:
    return [str(alias) for alias in as_sequence(element.get("aliases"))]


def _find_old_name(
    field: JsonObject, before: Mapping[str, JsonObject], after: Mapping[str, JsonObject]
) -> str | None:
    """Return the name that a field had before; None if the field is new."""
    name = str(field["name"])
    if name in before:
        return name
    return next((alias for alias in _list_aliases(field) if alias in before and alias not in after), None)


def _compare_aliases(
    before: JsonObject, after: JsonObject, path: str, subject: str, explained: Collection[str]
) -> Iterator[SchemaDifference]:
    """Yield the difference between the aliases of two elements, if there is one.

    explained: new aliases that are not reported, because the message about a renaming already mentions them.
    """
    first, second = _list_aliases(before), _list_aliases(after)
    remaining = [alias for alias in second if alias in first or alias not in explained]
    has_explained = len(remaining) < len(second)
    if remaining == first and (has_explained or ("aliases" in before) == ("aliases" in after)):
        return
    clauses = chain(
        (f"alias '{alias}' added" for alias in second if alias not in first),
        (f"alias '{alias}' removed" for alias in first if alias not in second),
    )
    message = f"{subject}: {', '.join(clauses) or 'list of aliases changed'}"
    yield SchemaDifference(
        DifferenceKind.ALIASES_CHANGED, path, message, before.get("aliases"), after.get("aliases")
    )


def _compare_symbols(
    before: JsonObject, after: JsonObject, path: str, subject: str
) -> Iterator[SchemaDifference]:
    first, second = as_sequence(before["symbols"]), as_sequence(after["symbols"])
    for symbol in first:
        if symbol not in second:
            message = f"{subject}: symbol {symbol} removed"
            yield SchemaDifference(DifferenceKind.SYMBOL_REMOVED, path, message, symbol)
    for symbol in second:
        if symbol not in first:
            message = f"{subject}: symbol {symbol} added"
            yield SchemaDifference(DifferenceKind.SYMBOL_ADDED, path, message, None, symbol)
    kept = [symbol for symbol in second if symbol in first]
    if kept != [symbol for symbol in first if symbol in second]:
        message = f"{subject}: symbols reordered: {', '.join(map(str, second))}"
        yield SchemaDifference(DifferenceKind.SYMBOLS_REORDERED, path, message, list(first), list(second))
