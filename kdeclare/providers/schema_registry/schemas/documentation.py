"""Find the parts of schemas that have no documentation."""

from collections.abc import Iterator, Mapping

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.providers.schema_registry.client.port import SchemaContent, SchemaType
from kdeclare.providers.schema_registry.schemas.avro.avro_schema import RECORDS, AvroSchema, parse_avro
from kdeclare.providers.schema_registry.schemas.json_schema.json_schema import parse_json_schema
from kdeclare.providers.schema_registry.schemas.json_text import as_mapping, as_sequence
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_parse import (
    ProtobufSource,
    parse_protobuf_source,
)


@dataclass(frozen=True, slots=True)
class SchemaPart:
    """A part of a schema that can have documentation.

    noun: what the part is, such as ``record``, ``field``, ``property`` or ``message``.
    path: the full name, such as ``x.Order.id`` in Avro and Protobuf, or ``items[].price`` in JSON Schema. The
        path of a whole JSON Schema is empty.
    """

    noun: str
    path: str
    is_documented: bool


def list_documentable_parts(content: SchemaContent) -> tuple[SchemaPart, ...]:
    """Return all parts of a schema that can have documentation, in the order of the schema.

    Documentation is ``doc`` in Avro and ``description`` in JSON Schema. In Protobuf, it is a comment before
    an element, or after it on the same line. Raises SchemaError.
    """
    if content.type is SchemaType.AVRO:
        return tuple(_list_avro_parts(parse_avro(content.text, is_open=bool(content.references))))
    if content.type is SchemaType.JSON:
        return tuple(_list_json_parts(parse_json_schema(content.text).root, "", "schema"))
    return tuple(_list_protobuf_parts(parse_protobuf_source(content.text)))


def find_undocumented_parts(content: SchemaContent) -> tuple[SchemaPart, ...]:
    """Return the parts of a schema without documentation. Raises SchemaError."""
    return tuple(part for part in list_documentable_parts(content) if not part.is_documented)


def _list_avro_parts(schema: AvroSchema) -> Iterator[SchemaPart]:
    for name, definition in sorted(schema.definitions.items()):
        kind = str(definition["type"])
        yield SchemaPart(kind, name, _has_text(definition, "doc"))
        if kind in RECORDS:
            for field in map(as_mapping, as_sequence(definition["fields"])):
                yield SchemaPart("field", f"{name}.{field['name']}", _has_text(field, "doc"))


def _has_text(element: JsonObject, key: str) -> bool:
    text = element.get(key)
    return isinstance(text, str) and bool(text.strip())


def _list_json_parts(schema: JsonValue, path: str, noun: str) -> Iterator[SchemaPart]:
    """Yield a schema, its definitions, and all properties at any depth."""
    if not isinstance(schema, Mapping):
        return
    if noun:
        yield SchemaPart(noun, path, _has_text(schema, "description"))
    prefix = f"{path}." if path else ""
    for name, child in as_mapping(schema.get("properties")).items():
        yield from _list_json_parts(child, f"{prefix}{name}", "property")
    for keyword in ("definitions", "$defs"):
        for name, child in as_mapping(schema.get(keyword)).items():
            yield from _list_json_parts(child, f"{prefix}{name}", "definition")
    yield from _list_json_parts(schema.get("items"), f"{path}[]", "")
    yield from _list_json_parts(schema.get("additionalProperties"), f"{path}{{}}", "")
    for keyword in ("allOf", "anyOf", "oneOf"):
        for child in as_sequence(schema.get(keyword)):
            yield from _list_json_parts(child, path, "")


def _list_protobuf_parts(source: ProtobufSource) -> Iterator[SchemaPart]:
    for message in source.file.list_messages():
        yield SchemaPart("message", message.name, message.name in source.documented)
        for field in message.fields:
            path = f"{message.name}.{field.name}"
            yield SchemaPart("field", path, path in source.documented)
    for enum in source.file.list_enums():
        yield SchemaPart("enum", enum.name, enum.name in source.documented)
