"""Write schemas in one layout, so that two schemas can be compared line by line.

Two schemas have the same layout if and only if they are the same. The lines are a valid text of the schema.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from kdeclare.core.jsontypes import JsonValue
from kdeclare.providers.schema_registry.schemas.avro.avro_schema import (
    NAMED,
    AvroSchema,
    write_namespaces,
)
from kdeclare.providers.schema_registry.schemas.json_schema.json_schema import JsonSchema
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_file import ProtobufFile
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_layout import format_protobuf

_Lines: TypeAlias = Iterator[str]

_WIDTH = 80
_INDENT = "  "
_FIRST_KEYS = ("$schema", "$id", "$ref", "type", "name", "title", "doc", "description", "aliases")
_LAST_KEYS = ("fields", "symbols", "items", "values", "required", "properties", "definitions", "$defs")


def format_layout(schema: AvroSchema | JsonSchema | ProtobufFile) -> tuple[str, ...]:
    """Return the lines of a schema in the common layout."""
    if isinstance(schema, ProtobufFile):
        return tuple(format_protobuf(schema))
    root = write_namespaces(schema.root) if isinstance(schema, AvroSchema) else schema.root
    return tuple(_format_json(root, ""))


def _format_json(value: JsonValue, prefix: str) -> _Lines:
    """Yield the lines of a JSON value. A value that fits in one line gets one line."""
    short = _format_short(value)
    if len(prefix) + len(short) <= _WIDTH or not isinstance(value, list | Mapping) or not value:
        yield f"{prefix}{short}"
        return
    indent = prefix[: len(prefix) - len(prefix.lstrip())]
    is_list = isinstance(value, list)
    yield f"{prefix}{'[' if is_list else '{'}"
    entries = (
        [("", item) for item in value]
        if isinstance(value, list)
        else [(f"{json.dumps(key, ensure_ascii=False)}: ", value[key]) for key in _sort_keys(value)]
    )
    for index, (key, item) in enumerate(entries):
        lines = list(_format_json(item, f"{indent}{_INDENT}{key}"))
        yield from lines[:-1]
        yield lines[-1] if index == len(entries) - 1 else f"{lines[-1]},"
    yield f"{indent}{']' if is_list else '}'}"


def _format_short(value: JsonValue) -> str:
    if isinstance(value, Mapping):
        entries = (
            f"{json.dumps(key, ensure_ascii=False)}: {_format_short(value[key])}" for key in _sort_keys(value)
        )
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_format_short, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _sort_keys(value: Mapping[str, JsonValue]) -> list[str]:
    """Return the keys in the usual order: names and documentation first, contents last."""
    is_field = "name" in value and not (isinstance(value.get("type"), str) and value["type"] in NAMED)

    def rank(key: str) -> tuple[int, int, str]:
        if key in _FIRST_KEYS:
            return 0, -1 if key == "name" and is_field else _FIRST_KEYS.index(key), key
        return (2, _LAST_KEYS.index(key), key) if key in _LAST_KEYS else (1, 0, key)

    return sorted(value, key=rank)
