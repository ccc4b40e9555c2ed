"""Check the compatibility of two schemas, for tests.

A new schema is BACKWARD compatible if it can read data that was written with the earlier schema. Only common
changes are checked: in Avro, added and removed fields, defaults, types, symbols and branches; in JSON Schema,
types and required properties; in Protobuf, the types of fields.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from kdeclare.core.jsontypes import JsonValue, parse_json
from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    SchemaContent,
    SchemaType,
)
from kdeclare.providers.schema_registry.testing.contents import (
    PRIMITIVE_TYPES,
    build_full_name,
    remove_proto_comments,
)

Resolve = Callable[[str, int], SchemaContent]
"""Returns the schema and the references of one version of a subject."""

_PROMOTIONS: Mapping[str, frozenset[str]] = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
"""For each primitive Avro type in a writer's schema, the types to which a reader can promote the data."""
_PROTO_MESSAGE = re.compile(r"\bmessage\s+(\w+)\s*\{([^{}]*)\}")
_PROTO_FIELD = re.compile(r"(?:(optional|required|repeated)\s+)?([\w.]+)\s+(\w+)\s*=\s*(\d+)\s*[;\[]")


def find_incompatibilities(
    level: CompatibilityLevel,
    content: SchemaContent,
    earlier_contents: Iterable[SchemaContent],
    resolve: Resolve,
) -> list[str]:
    """Return the reasons why a schema is not compatible with earlier schemas."""
    direction = level.value.partition("_")[0]
    reasons: list[str] = []
    for earlier_content in earlier_contents:
        if direction in ("BACKWARD", "FULL"):
            reasons += _find_problems(content, earlier_content, resolve)
        if direction in ("FORWARD", "FULL"):
            reasons += _find_problems(earlier_content, content, resolve)
    return reasons


def _find_problems(reader: SchemaContent, writer: SchemaContent, resolve: Resolve) -> Iterable[str]:
    """Return the reasons why ``reader`` cannot read data that was written with ``writer``."""
    if reader.type is not writer.type:
        return [f"The schema type changed from {writer.type.value} to {reader.type.value}"]
    if reader.type is SchemaType.PROTOBUF:
        return _compare_proto(_list_proto_fields(reader.text), _list_proto_fields(writer.text))
    if reader.type is SchemaType.JSON:
        return _compare_json(parse_json(reader.text), parse_json(writer.text), "#")
    reader_types, writer_types = _Types(), _Types()
    reader_root = reader_types.add_content(reader, resolve)
    writer_root = writer_types.add_content(writer, resolve)
    return _AvroComparison(reader_types, writer_types).compare(reader_root, writer_root, "/")


class _Types:
    """The definitions of the named types in an Avro schema and in its references, by full name."""

    def __init__(self) -> None:
        self._by_name: dict[str, Mapping[str, JsonValue]] = {}

    def add_content(self, content: SchemaContent, resolve: Resolve) -> JsonValue:
        """Add the named types of a schema and its references. Return the schema with full names of types."""
        for one in content.references:
            self.add_content(resolve(one.subject, one.version), resolve)
        return self._expand(parse_json(content.text), "") if content.text else "null"

    def get(self, schema: JsonValue) -> JsonValue:
        """Return the definition of a type if ``schema`` is its name. Return any other schema unchanged."""
        return self._by_name.get(schema, schema) if isinstance(schema, str) else schema

    def _expand(self, schema: JsonValue, namespace: str) -> JsonValue:
        if isinstance(schema, str):
            return schema if schema in PRIMITIVE_TYPES else build_full_name(schema, namespace)
        if isinstance(schema, list):
            return [self._expand(branch, namespace) for branch in schema]
        if not isinstance(schema, dict):
            return schema
        kind = schema.get("type")
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            return {**schema, key: self._expand(schema[key], namespace)}
        if kind not in ("record", "error", "enum", "fixed"):
            return self._expand(kind, namespace)
        full_name = build_full_name(str(schema["name"]), str(schema.get("namespace", namespace)))
        inner_namespace = full_name.rpartition(".")[0]
        fields = schema.get("fields", ())
        assert isinstance(fields, list | tuple)
        self._by_name[full_name] = {
            **schema,
            "name": full_name,
            "fields": [{**one, "type": self._expand(one["type"], inner_namespace)} for one in fields],
        }
        return full_name


class _AvroComparison:
    """Compares the Avro schema of a reader with the Avro schema of a writer."""

    def __init__(self, reader_types: _Types, writer_types: _Types) -> None:
        self._reader_types = reader_types
        self._writer_types = writer_types
        self._in_progress: set[tuple[str, str]] = set()

    def compare(self, reader: JsonValue, writer: JsonValue, path: str) -> list[str]:
        """Return the reasons why the reader cannot read the writer's data."""
        names = (str(reader), str(writer))
        if names in self._in_progress:  # a recursive type
            return []
        reader_type, writer_type = self._reader_types.get(reader), self._writer_types.get(writer)
        if isinstance(reader_type, str) or isinstance(writer_type, str):
            return self._compare_primitives(reader_type, writer_type, path)
        self._in_progress.add(names)
        try:
            return self._compare_complex(reader_type, writer_type, path)
        finally:
            self._in_progress.remove(names)

    def _compare_primitives(self, reader: JsonValue, writer: JsonValue, path: str) -> list[str]:
        """Compare two types, of which at least one is primitive."""
        if isinstance(reader, list) or isinstance(writer, list):
            return self._compare_complex(reader, writer, path)
        is_promoted = (
            isinstance(reader, str) and isinstance(writer, str) and reader in _PROMOTIONS.get(writer, ())
        )
        if reader == writer or is_promoted:
            return []
        return [f"{path}: {_describe(writer)} cannot be read as {_describe(reader)}"]

    def _compare_complex(self, reader: JsonValue, writer: JsonValue, path: str) -> list[str]:
        if isinstance(writer, list):
            return [reason for branch in writer for reason in self.compare(reader, branch, path)]
        if isinstance(reader, list):
            if any(not self.compare(branch, writer, path) for branch in reader):
                return []
            return [f"{path}: no branch of the reader's union can read {_describe(writer)}"]
        assert isinstance(reader, Mapping)
        assert isinstance(writer, Mapping)
        if reader["type"] != writer["type"]:
            return [f"{path}: {_describe(writer)} cannot be read as {_describe(reader)}"]
        return self._compare_same_kind(reader, writer, path)

    def _compare_same_kind(
        self, reader: Mapping[str, JsonValue], writer: Mapping[str, JsonValue], path: str
    ) -> list[str]:
        kind = reader["type"]
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            return self.compare(reader[key], writer[key], f"{path}{key}/")
        if _get_short_name(reader) != _get_short_name(writer):
            return [f"{path}: the name changed from {writer['name']} to {reader['name']}"]
        if kind == "fixed":
            same_size = reader.get("size") == writer.get("size")
            return [] if same_size else [f"{path}: the size of {reader['name']} changed"]
        if kind == "enum":
            missing = [one for one in _as_list(writer["symbols"]) if one not in _as_list(reader["symbols"])]
            if not missing or "default" in reader:
                return []
            return [f"{path}: the reader's enum {reader['name']} lacks {', '.join(map(str, missing))}"]
        return list(self._compare_fields(reader, writer, path))

    def _compare_fields(
        self, reader: Mapping[str, JsonValue], writer: Mapping[str, JsonValue], path: str
    ) -> Iterator[str]:
        writer_fields = {one["name"]: one for one in _as_objects(writer["fields"])}
        for one in _as_objects(reader["fields"]):
            names = (one["name"], *_as_list(one.get("aliases", ())))
            written = next((writer_fields[name] for name in names if name in writer_fields), None)
            field_path = f"{path}fields/{one['name']}/"
            if written is not None:
                yield from self.compare(one["type"], written["type"], field_path)
            elif "default" not in one:
                yield f"{field_path}: the reader's field has no default value, and the writer lacks the field"


def _compare_json(reader: JsonValue, writer: JsonValue, path: str) -> Iterator[str]:
    if not isinstance(reader, Mapping) or not isinstance(writer, Mapping):
        return
    if "type" in reader and "type" in writer and reader["type"] != writer["type"]:
        yield f"{path}: the type changed from {writer['type']} to {reader['type']}"
        return
    for name in _as_list(reader.get("required", ())):
        if name not in _as_list(writer.get("required", ())):
            yield f"{path}: the property {name} became required"
    reader_properties, writer_properties = reader.get("properties", {}), writer.get("properties", {})
    assert isinstance(reader_properties, Mapping)
    assert isinstance(writer_properties, Mapping)
    for name in reader_properties.keys() & writer_properties.keys():
        yield from _compare_json(
            reader_properties[name], writer_properties[name], f"{path}/properties/{name}"
        )


def _list_proto_fields(text: str) -> dict[tuple[str, int], str]:
    """Return the type of each field in a Protobuf schema, by message name and field number."""
    return {
        (message, int(number)): type_name
        for message, body in _PROTO_MESSAGE.findall(remove_proto_comments(text))
        for _, type_name, _, number in _PROTO_FIELD.findall(body)
    }


def _compare_proto(
    reader: Mapping[tuple[str, int], str], writer: Mapping[tuple[str, int], str]
) -> Iterator[str]:
    for message, number in sorted(reader.keys() & writer.keys()):
        before, after = writer[message, number], reader[message, number]
        if before != after:
            yield f"{message}: the type of field {number} changed from {before} to {after}"


def _describe(schema: JsonValue) -> str:
    if isinstance(schema, Mapping):
        return str(schema.get("name", schema.get("type")))
    return str(schema)


def _get_short_name(schema: Mapping[str, JsonValue]) -> str:
    return str(schema["name"]).rpartition(".")[2]


def _as_list(value: JsonValue) -> list[JsonValue]:
    assert isinstance(value, list | tuple)
    return list(value)


def _as_objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [dict(one) for one in _as_list(value) if isinstance(one, Mapping)]
