"""Write Protobuf schemas in the common layout."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_file import (
    ProtobufEnum,
    ProtobufField,
    ProtobufFile,
    ProtobufMessage,
    ProtobufService,
)
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_names import (
    list_scope_names,
    write_type,
)
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_options import format_options
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_tokens import quote_string

_Lines: TypeAlias = Iterator[str]
_Extensions: TypeAlias = Iterable[tuple[str, ProtobufField]]

_INDENT = "  "
_GROUP = "group "


def format_protobuf(file: ProtobufFile) -> _Lines:
    """Yield the lines of a Protobuf schema in the common layout."""
    return _Writer(file).write_file()


class _Writer:
    def __init__(self, file: ProtobufFile) -> None:
        self._file = file
        self._scope_names = list_scope_names(file)

    def write_file(self) -> _Lines:
        """Yield the lines of the whole schema."""
        file = self._file
        is_edition = file.syntax.startswith("edition ")
        keyword = "edition" if is_edition else "syntax"
        yield f"{keyword} = {quote_string(file.syntax.removeprefix('edition '))};"
        if file.package:
            yield f"package {file.package};"
        for name, modifier in sorted(file.imports.items()):
            yield f"import {f'{modifier} ' if modifier else ''}{quote_string(name)};"
        yield from _write_options(file.options, "")
        groups = _find_groups(field for _, field in file.extensions)
        for message in file.messages:
            yield ""
            if message.name in groups:
                yield from self._write_extensions(_select_group(file.extensions, message), file.messages, "")
            else:
                yield from self._write_message(message, "")
        for enum in file.enums:
            yield ""
            yield from _write_enum(enum, "")
        yield from self._write_extensions(_select_plain(file.extensions), (), "")
        for service in file.services:
            yield ""
            yield from self._write_service(service)

    def _write_message(self, message: ProtobufMessage, indent: str) -> _Lines:
        visibility = f"{message.visibility} " if message.visibility else ""
        yield f"{indent}{visibility}message {_shorten(message.name)} {{"
        yield from self._write_body(message, f"{indent}{_INDENT}")
        yield f"{indent}}}"

    def _write_body(self, message: ProtobufMessage, indent: str) -> _Lines:
        yield from _write_options(message.options, indent)
        yield from (f"{indent}reserved {range_};" for range_ in _sort_ranges(message.reserved))
        yield from (f"{indent}extensions {range_};" for range_ in _sort_ranges(message.extension_ranges))
        groups = _find_groups(message.fields)
        late_oneofs = {field.oneof for field in groups.values()}  # written where the messages of groups are
        for field in message.fields:
            if not field.oneof and not field.type.startswith(_GROUP):
                yield from self._write_field(field, message.name, (), indent)
        for oneof in sorted(message.oneofs.keys() - late_oneofs):
            yield from self._write_oneof(message, oneof, indent)
        extension_groups = _find_groups(field for _, field in message.extensions)
        for nested in message.messages:
            group = groups.get(nested.name)
            if group is None and nested.name in extension_groups:
                extensions = _select_group(message.extensions, nested)
                yield from self._write_extensions(extensions, message.messages, indent, message.name)
            elif group is None:
                yield from self._write_message(nested, indent)
            elif not group.oneof:
                yield from self._write_field(group, message.name, message.messages, indent)
            elif group.oneof in late_oneofs:
                late_oneofs.discard(group.oneof)
                yield from self._write_oneof(message, group.oneof, indent)
        for enum in message.enums:
            yield from _write_enum(enum, indent)
        yield from self._write_extensions(_select_plain(message.extensions), (), indent, message.name)

    def _write_oneof(self, message: ProtobufMessage, oneof: str, indent: str) -> _Lines:
        inner = f"{indent}{_INDENT}"
        yield f"{indent}oneof {oneof} {{"
        yield from _write_options(message.oneofs[oneof], inner)
        for field in message.fields:
            if field.oneof == oneof:
                yield from self._write_field(field, message.name, message.messages, inner)
        yield f"{indent}}}"

    def _write_field(
        self, field: ProtobufField, scope: str, messages: Iterable[ProtobufMessage], indent: str
    ) -> _Lines:
        """Yield the lines of a field. If the field is a group, ``messages`` must contain its message."""
        label = f"{field.label} " if field.label else ""
        suffix = f"= {field.number}{format_options(field.options)}"
        if not field.type.startswith(_GROUP):
            type_ = write_type(field.type, scope, self._scope_names)
            yield f"{indent}{label}{type_} {field.name} {suffix};"
            return
        message = next(message for message in messages if f"{_GROUP}{message.name}" == field.type)
        yield f"{indent}{label}group {_shorten(message.name)} {suffix} {{"
        yield from self._write_body(message, f"{indent}{_INDENT}")
        yield f"{indent}}}"

    def _write_extensions(
        self,
        extensions: _Extensions,
        messages: Iterable[ProtobufMessage],
        indent: str,
        scope: str | None = None,
    ) -> _Lines:
        scope = self._file.package if scope is None else scope
        for extended, field in extensions:
            yield f"{indent}extend {write_type(extended, scope, self._scope_names)} {{"
            yield from self._write_field(field, scope, messages, f"{indent}{_INDENT}")
            yield f"{indent}}}"

    def _write_service(self, service: ProtobufService) -> _Lines:
        yield f"service {_shorten(service.name)} {{"
        yield from _write_options(service.options, _INDENT)
        for method in service.methods:
            input_, output = (
                write_type(type_, self._file.package, self._scope_names)
                for type_ in (method.input, method.output)
            )
            declaration = f"{_INDENT}rpc {method.name}({input_}) returns ({output})"
            if method.options:
                yield f"{declaration} {{"
                yield from _write_options(method.options, f"{_INDENT}{_INDENT}")
                yield f"{_INDENT}}}"
            else:
                yield f"{declaration};"
        yield "}"


def _shorten(full_name: str) -> str:
    return full_name.rpartition(".")[2]


def _find_groups(fields: Iterable[ProtobufField]) -> dict[str, ProtobufField]:
    """Return the fields that are groups, by the names of their messages."""
    return {field.type.removeprefix(_GROUP): field for field in fields if field.type.startswith(_GROUP)}


def _select_group(extensions: _Extensions, message: ProtobufMessage) -> _Extensions:
    return [pair for pair in extensions if pair[1].type == f"{_GROUP}{message.name}"]


def _select_plain(extensions: _Extensions) -> _Extensions:
    return [pair for pair in extensions if not pair[1].type.startswith(_GROUP)]


def _write_options(options: Mapping[str, str], indent: str) -> _Lines:
    for name, values in sorted(options.items()):
        for value in values.splitlines():
            yield f"{indent}option {name} = {value};"


def _write_enum(enum: ProtobufEnum, indent: str) -> _Lines:
    inner = f"{indent}{_INDENT}"
    visibility = f"{enum.visibility} " if enum.visibility else ""
    yield f"{indent}{visibility}enum {_shorten(enum.name)} {{"
    yield from _write_options(enum.options, inner)
    yield from (f"{inner}reserved {range_};" for range_ in _sort_ranges(enum.reserved))
    for value in enum.values:
        yield f"{inner}{value.name} = {value.number}{format_options(value.options)};"
    yield f"{indent}}}"


def _sort_ranges(ranges: Collection[str]) -> list[str]:
    """Sort reserved or extension ranges by their first numbers. Reserved names come last."""

    def rank(range_: str) -> tuple[bool, int, str]:
        first = range_.split()[0]
        is_number = first.lstrip("-").isdecimal()
        return not is_number, int(first) if is_number else 0, range_

    return sorted(ranges, key=rank)
