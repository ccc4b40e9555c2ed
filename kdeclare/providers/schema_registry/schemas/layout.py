"""Format schemas in a common layout, so that two schemas can be compared line by line.

Two schemas produce the same lines if and only if they are equal. The joined lines are valid schema text.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

from kdeclare.core.jsontypes import JsonValue
from kdeclare.providers.schema_registry.schemas.avro.avro_schema import (
    NAMED,
    AvroSchema,
    write_namespaces,
)
from kdeclare.providers.schema_registry.schemas.json_schema.json_schema import JsonSchema
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_file import ProtobufFile
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_layout import format_protobuf

_dump = json.JSONEncoder(ensure_ascii=False).encode

_WIDTH = 80
_INDENT = "  "
_FIRST_KEYS = ("$schema", "$id", "$ref", "type", "name", "title", "doc", "description", "aliases")
_LAST_KEYS = ("fields", "symbols", "items", "values", "required", "properties", "definitions", "$defs")


class _Node(NamedTuple):
    """A JSON value that can be written on one line or on several lines.

    short: the value on one line.
    entries: the elements of an object or an array. The key of an element includes the colon and a space; it
        is empty in an array.
    """

    short: str
    entries: tuple[tuple[str, "_Node"], ...] = ()


def format_layout(schema: AvroSchema | JsonSchema | ProtobufFile) -> tuple[str, ...]:
    """Return the lines of a schema in the common layout."""
    if isinstance(schema, ProtobufFile):
        return tuple(format_protobuf(schema))
    root = write_namespaces(schema.root) if isinstance(schema, AvroSchema) else schema.root
    lines: list[str] = []
    _add_lines(lines, _build_node(root), "")
    return tuple(lines)


def _build_node(value: JsonValue) -> _Node:
    """Build the `_Node` of a JSON value. Each nested value is formatted once, so that plans stay fast."""
    if isinstance(value, str):
        return _Node(_dump(value))
    if isinstance(value, Mapping):
        entries = tuple((f"{_dump(key)}: ", _build_node(value[key])) for key in _sort_keys(value))
        return _Node(f"{{{', '.join([f'{key}{node.short}' for key, node in entries])}}}", entries)
    if isinstance(value, list):
        nodes = [_build_node(item) for item in value]
        return _Node(f"[{', '.join([node.short for node in nodes])}]", tuple(("", node) for node in nodes))
    return _Node(_dump(value))


def _add_lines(lines: list[str], node: _Node, prefix: str) -> None:
    """Add the lines of a JSON value. A value that fits on one line gets one line."""
    short, entries = node
    if len(prefix) + len(short) <= _WIDTH or not entries:
        lines.append(f"{prefix}{short}")
        return
    indent = prefix[: len(prefix) - len(prefix.lstrip())]
    lines.append(f"{prefix}{short[0]}")
    for index, (key, item) in enumerate(entries, 1):
        _add_lines(lines, item, f"{indent}{_INDENT}{key}")
        if index < len(entries):
            lines[-1] += ","
    lines.append(f"{indent}{short[-1]}")


def _sort_keys(value: Mapping[str, JsonValue]) -> list[str]:
    """Return the keys in the usual order: names and documentation first, nested elements last."""
    is_field = "name" in value and not (isinstance(value.get("type"), str) and value["type"] in NAMED)

    def rank(key: str) -> tuple[int, int, str]:
        if key in _FIRST_KEYS:
            return 0, -1 if key == "name" and is_field else _FIRST_KEYS.index(key), key
        return (2, _LAST_KEYS.index(key), key) if key in _LAST_KEYS else (1, 0, key)

    return sorted(value, key=rank)
