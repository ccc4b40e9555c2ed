"""Replace the names of types in a Protobuf schema with full names."""

import re
from collections.abc import Collection
from dataclasses import replace

from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_file import (
    SCALARS,
    ProtobufField,
    ProtobufFile,
    ProtobufMessage,
    ProtobufService,
)

_TYPE_NAME = re.compile(r"\.?[A-Za-z_][\w.]*")
_KEYWORDS = frozenset({"map", "group", "stream"})


def resolve_type_names(file: ProtobufFile) -> ProtobufFile:
    """Return the file with full names of types. Names of types from other files do not change."""
    known_names = list_scope_names(file)
    return replace(
        file,
        messages=tuple(_resolve_message(message, known_names) for message in file.messages),
        services=tuple(_resolve_service(service, known_names, file.package) for service in file.services),
        extensions=_resolve_extensions(file.extensions, file.package, known_names),
    )


def list_scope_names(file: ProtobufFile) -> frozenset[str]:
    """Return the full names of all messages and enums, and of the package and its parent packages.

    The first part of a type name, such as ``a`` in ``a.b.Item``, is resolved with these names.
    """
    package_parts = file.package.split(".")
    return frozenset(
        (
            *(message.name for message in file.list_messages()),
            *(enum.name for enum in file.list_enums()),
            *(".".join(package_parts[:end]) for end in range(1, len(package_parts) + 1)),
        )
    )


def write_type(type_: str, scope: str, scope_names: Collection[str]) -> str:
    """Return a resolved type as it must be written in a scope: with a leading dot only where it is needed."""

    def write(match: re.Match[str]) -> str:
        name = match[0]
        is_keyword = match.start() == 0 and name in _KEYWORDS and " " in type_
        return name if is_keyword or _resolve_name(name, scope, scope_names) == name else f".{name}"

    return _TYPE_NAME.sub(write, type_)


def _resolve_message(message: ProtobufMessage, known_names: Collection[str]) -> ProtobufMessage:
    return replace(
        message,
        fields=tuple(_resolve_field(field, message.name, known_names) for field in message.fields),
        messages=tuple(_resolve_message(nested, known_names) for nested in message.messages),
        extensions=_resolve_extensions(message.extensions, message.name, known_names),
    )


def _resolve_service(service: ProtobufService, known_names: Collection[str], package: str) -> ProtobufService:
    methods = tuple(
        replace(
            method,
            input=_resolve_type(method.input, package, known_names),
            output=_resolve_type(method.output, package, known_names),
        )
        for method in service.methods
    )
    return replace(service, methods=methods)


def _resolve_extensions(
    extensions: tuple[tuple[str, ProtobufField], ...], scope: str, known_names: Collection[str]
) -> tuple[tuple[str, ProtobufField], ...]:
    resolved = (
        (_resolve_name(extended, scope, known_names), _resolve_field(field, scope, known_names))
        for extended, field in extensions
    )
    return tuple(sorted(resolved, key=lambda pair: (pair[0], pair[1].number, pair[1].name)))


def _resolve_field(field: ProtobufField, scope: str, known_names: Collection[str]) -> ProtobufField:
    return replace(field, type=_resolve_type(field.type, scope, known_names))


def _resolve_type(type_: str, scope: str, known_names: Collection[str]) -> str:
    """Replace names with full names in a type such as ``Item``, ``map<string, Item>`` or ``stream Item``."""
    if " " not in type_:
        return _resolve_name(type_, scope, known_names)

    def resolve(match: re.Match[str]) -> str:
        is_keyword = match.start() == 0 and match[0] in _KEYWORDS
        return match[0] if is_keyword else _resolve_name(match[0], scope, known_names)

    return _TYPE_NAME.sub(resolve, type_)


def _resolve_name(name: str, scope: str, known_names: Collection[str]) -> str:
    """Return the full name of a type that is used in a scope.

    As in Protobuf, the innermost scope that defines the first part of the name counts.
    """
    if name.startswith("."):
        return name[1:]
    if name in SCALARS:
        return name
    first_part = name.partition(".")[0]
    while True:
        if (f"{scope}.{first_part}" if scope else first_part) in known_names:
            return f"{scope}.{name}" if scope else name
        if not scope:
            return name
        scope = scope.rpartition(".")[0]
