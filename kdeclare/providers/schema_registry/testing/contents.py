"""Validate and compare the texts of schemas for the in-memory registry.

This code is deliberately independent of kdeclare's own comparison of schemas, and much simpler.
"""

import json
import re

from kdeclare.core.jsontypes import JsonValue, parse_json
from kdeclare.core.live.faults import Fault
from kdeclare.providers.schema_registry.client.port import INVALID_SCHEMA, SchemaContent, SchemaType

PRIMITIVE_TYPES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_COMPLEX_TYPES = frozenset({"record", "error", "enum", "fixed", "array", "map"})
_PROTO_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PROTO_DEFINITION = re.compile(r"\b(message|enum|service)\s+\w+\s*\{")


def validate(content: SchemaContent) -> None:
    """Raise Fault INVALID_SCHEMA if a registry would reject the text. Only common mistakes are found."""
    if content.type is SchemaType.PROTOBUF:
        text = remove_proto_comments(content.text)
        if not _PROTO_DEFINITION.search(text) or text.count("{") != text.count("}"):
            raise Fault(INVALID_SCHEMA, "Invalid Protobuf schema")
        return
    try:
        document = parse_json(content.text)
    except ValueError as e:
        raise Fault(INVALID_SCHEMA, f"Invalid {content.type.value} schema: {e}") from None
    if content.type is SchemaType.JSON:
        if not isinstance(document, dict | bool):
            raise Fault(INVALID_SCHEMA, "Invalid JSON schema: it is not an object")
        return
    _validate_avro(document, {one.name for one in content.references}, "")


def normalize_content(content: SchemaContent) -> object:
    """Return a value that is equal for two schemas if their texts differ only in layout."""
    if content.type is SchemaType.PROTOBUF:
        text = " ".join(re.findall(r"\w+|[^\w\s]", remove_proto_comments(content.text)))
    else:
        text = json.dumps(parse_json(content.text), sort_keys=True) if content.text else ""
    return (content.type, text, content.references)


def remove_proto_comments(text: str) -> str:
    """Return the text of a Protobuf schema without comments."""
    return _PROTO_COMMENT.sub(" ", text)


def build_full_name(name: str, namespace: str) -> str:
    """Return the full name of an Avro type."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _validate_avro(schema: JsonValue, known_names: set[str], namespace: str) -> None:
    """Raise Fault if an Avro schema refers to a type that is not defined.

    known_names: the full names of the types that are defined so far. This function adds the types that the
        schema defines.
    """
    if isinstance(schema, str):
        if schema not in PRIMITIVE_TYPES and build_full_name(schema, namespace) not in known_names:
            raise Fault(INVALID_SCHEMA, f"Undefined name: {schema}")
    elif isinstance(schema, list):
        for branch in schema:
            _validate_avro(branch, known_names, namespace)
    elif isinstance(schema, dict):
        _validate_avro_object(schema, known_names, namespace)
    else:
        raise Fault(INVALID_SCHEMA, f"No type: {schema}")


def _validate_avro_object(schema: dict[str, JsonValue], known_names: set[str], namespace: str) -> None:
    kind = schema.get("type")
    if kind not in _COMPLEX_TYPES:
        _validate_avro(kind, known_names, namespace)
        return
    if kind in ("array", "map"):
        _validate_avro(schema.get("items" if kind == "array" else "values"), known_names, namespace)
        return
    name = schema.get("name")
    if not isinstance(name, str):
        raise Fault(INVALID_SCHEMA, f"No name in schema: {kind}")
    full_name = build_full_name(name, str(schema.get("namespace", namespace)))
    known_names.add(full_name)
    fields = schema.get("fields")
    if kind == "enum" and not isinstance(schema.get("symbols"), list):
        raise Fault(INVALID_SCHEMA, f"Enum has no symbols: {full_name}")
    if kind in ("record", "error"):
        if not isinstance(fields, list):
            raise Fault(INVALID_SCHEMA, f"Record has no fields: {full_name}")
        for one in fields:
            if not isinstance(one, dict) or "name" not in one:
                raise Fault(INVALID_SCHEMA, f"No field name in {full_name}")
            _validate_avro(one.get("type"), known_names, full_name.rpartition(".")[0])
