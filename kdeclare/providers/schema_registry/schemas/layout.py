"""Write schemas in one layout, so that two schemas can be compared line by line.

Two schemas have the same layout if and only if they are the same.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from kdeclare.core.jsontypes import JsonValue
from kdeclare.providers.schema_registry.schemas.avro.avro_schema import NAMED, AvroSchema
from kdeclare.providers.schema_registry.schemas.json_schema.json_schema import JsonSchema
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_file import (
    ProtobufEnum,
    ProtobufField,
    ProtobufFile,
    ProtobufMessage,
    ProtobufService,
)
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_tokens import quote_string

_Lines: TypeAlias = Iterator[str]

_WIDTH = 80
_INDENT = "  "
_FIRST_KEYS = ("$schema", "$id", "$ref", "type", "name", "title", "doc", "description", "aliases")
_LAST_KEYS = ("fields", "symbols", "items", "values", "required", "properties", "definitions", "$defs")


def format_layout(schema: AvroSchema | JsonSchema | ProtobufFile) -> tuple[str, ...]:
    """Return the lines of a schema in the common layout."""
    if isinstance(schema, ProtobufFile):
        return tuple(_format_file(schema))
    return tuple(_format_json(schema.root, ""))


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


def _format_file(file: ProtobufFile) -> _Lines:
    if file.syntax.startswith("edition "):
        yield f"edition = {quote_string(file.syntax.removeprefix('edition '))};"
    else:
        yield f"syntax = {quote_string(file.syntax)};"
    if file.package:
        yield f"package {file.package};"
    for name, modifier in sorted(file.imports.items()):
        yield f"import {f'{modifier} ' if modifier else ''}{quote_string(name)};"
    yield from _format_options(file.options, "")
    for message in file.messages:
        yield ""
        yield from _format_message(message, "")
    for enum in file.enums:
        yield ""
        yield from _format_enum(enum, "")
    yield from _format_extensions(file.extensions, "")
    for service in file.services:
        yield ""
        yield from _format_service(service)


def _format_options(options: Mapping[str, str], indent: str) -> _Lines:
    return (f"{indent}option {name} = {value};" for name, value in sorted(options.items()))


def _format_compact_options(options: Mapping[str, str]) -> str:
    text = ", ".join(f"{name} = {value}" for name, value in sorted(options.items()))
    return f" [{text}]" if text else ""


def _format_message(message: ProtobufMessage, indent: str) -> _Lines:
    inner = f"{indent}{_INDENT}"
    yield f"{indent}message {message.name.rpartition('.')[2]} {{"
    yield from _format_options(message.options, inner)
    yield from (f"{inner}reserved {range_};" for range_ in _sort_ranges(message.reserved))
    yield from (f"{inner}extensions {range_};" for range_ in _sort_ranges(message.extension_ranges))
    yield from (_format_field(field, inner) for field in message.fields if not field.oneof)
    for oneof, options in sorted(message.oneofs.items()):
        yield f"{inner}oneof {oneof} {{"
        yield from _format_options(options, f"{inner}{_INDENT}")
        yield from (
            _format_field(field, f"{inner}{_INDENT}") for field in message.fields if field.oneof == oneof
        )
        yield f"{inner}}}"
    for nested in message.messages:
        yield from _format_message(nested, inner)
    for enum in message.enums:
        yield from _format_enum(enum, inner)
    yield from _format_extensions(message.extensions, inner)
    yield f"{indent}}}"


def _format_field(field: ProtobufField, indent: str) -> str:
    label = f"{field.label} " if field.label else ""
    return (
        f"{indent}{label}{field.type} {field.name} = {field.number}{_format_compact_options(field.options)};"
    )


def _format_extensions(extensions: Iterable[tuple[str, ProtobufField]], indent: str) -> _Lines:
    for extended, field in extensions:
        yield f"{indent}extend {extended} {{"
        yield _format_field(field, f"{indent}{_INDENT}")
        yield f"{indent}}}"


def _format_enum(enum: ProtobufEnum, indent: str) -> _Lines:
    inner = f"{indent}{_INDENT}"
    yield f"{indent}enum {enum.name.rpartition('.')[2]} {{"
    yield from _format_options(enum.options, inner)
    yield from (f"{inner}reserved {range_};" for range_ in _sort_ranges(enum.reserved))
    for value in enum.values:
        yield f"{inner}{value.name} = {value.number}{_format_compact_options(value.options)};"
    yield f"{indent}}}"


def _sort_ranges(ranges: Iterable[str]) -> list[str]:
    """Return ranges sorted by their first numbers, then names."""

    def rank(range_: str) -> tuple[bool, int, str]:
        first = range_.split()[0]
        is_number = first.lstrip("-").isdecimal()
        return not is_number, int(first) if is_number else 0, range_

    return sorted(ranges, key=rank)


def _format_service(service: ProtobufService) -> _Lines:
    yield f"service {service.name.rpartition('.')[2]} {{"
    yield from _format_options(service.options, _INDENT)
    for method in service.methods:
        declaration = f"{_INDENT}rpc {method.name}({method.input}) returns ({method.output})"
        if method.options:
            yield f"{declaration} {{"
            yield from _format_options(method.options, f"{_INDENT}{_INDENT}")
            yield f"{_INDENT}}}"
        else:
            yield f"{declaration};"
    yield "}"
