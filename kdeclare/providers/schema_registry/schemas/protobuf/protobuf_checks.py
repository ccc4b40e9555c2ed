"""Check Protobuf schemas for errors that the syntax alone does not reveal."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from kdeclare.providers.schema_registry.schemas.problems import SchemaProblem
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_file import (
    PROTO3,
    SCALARS,
    ProtobufEnum,
    ProtobufField,
    ProtobufFile,
    ProtobufMessage,
)
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_tokens import locate_offset

_MAX_NUMBER = 2**29 - 1
_IMPLEMENTATION_NUMBERS = range(19_000, 20_000)
_MAP = re.compile(r"map<(.+), (.+)>")
_KEY_TYPES = SCALARS - {"float", "double", "bytes"}


def find_protobuf_problems(
    text: str, file: ProtobufFile, offsets: Mapping[str, int]
) -> Iterator[SchemaProblem]:
    """Yield the problems of a Protobuf schema.

    text: the text of the schema.
    file: the parsed schema.
    offsets: the positions of definitions in the text, by full name.
    """
    report = _Report(text, offsets)
    messages, enums = list(file.list_messages()), list(file.list_enums())
    if not (messages or enums or file.services or file.extensions):
        yield SchemaProblem("The schema defines no message, enum or service.")
    type_names = [*(message.name for message in messages), *(enum.name for enum in enums)]
    for name in _list_repeated(type_names):
        yield report.build(name, "is defined twice.")
    known_types = frozenset(type_names)
    for message in messages:
        yield from _check_message(report, message, file, known_types)
    for enum in enums:
        yield from _check_enum(report, enum, file)
    for _, field in file.extensions:
        yield from _check_field_type(report, field, file.package, file, known_types)


class _Report:
    """Creates the problems of one schema, with their positions in its text."""

    def __init__(self, text: str, offsets: Mapping[str, int]) -> None:
        self._text = text
        self._offsets = offsets

    def build(self, path: str, message: str) -> SchemaProblem:
        """Return a problem with an element, such as a field.

        path: the full name of the element.
        message: the rest of a sentence that begins with this name, such as ``is defined twice.``
        """
        position = locate_offset(self._text, self._offsets[path]) if path in self._offsets else (None, None)
        return SchemaProblem(f"'{path}' {message}", path, *position)


def _list_repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _check_message(
    report: _Report, message: ProtobufMessage, file: ProtobufFile, known_types: Collection[str]
) -> Iterator[SchemaProblem]:
    for name in _list_repeated(field.name for field in message.fields):
        yield report.build(f"{message.name}.{name}", "is defined twice.")
    first_names: dict[int, str] = {}
    for field in message.fields:
        first_name = first_names.setdefault(field.number, field.name)
        if first_name != field.name:
            problem = f"has the same number ({field.number}) as the field '{first_name}'."
            yield report.build(f"{message.name}.{field.name}", problem)
        if number_problem := _find_number_problem(field.number, message):
            yield report.build(f"{message.name}.{field.name}", number_problem)
        if f'"{field.name}"' in message.reserved:
            yield report.build(f"{message.name}.{field.name}", "has a reserved name.")
        if field.label == "required" and file.syntax == PROTO3:
            problem = "is required, but proto3 has no required fields."
            yield report.build(f"{message.name}.{field.name}", problem)
        yield from _check_field_type(report, field, message.name, file, known_types)


def _find_number_problem(number: int, message: ProtobufMessage) -> str | None:
    if not 1 <= number <= _MAX_NUMBER:
        return f"has the number {number}, but the numbers of fields go from 1 to {_MAX_NUMBER}."
    if number in _IMPLEMENTATION_NUMBERS:
        return f"has the number {number}, but 19000 to 19999 are reserved for Protobuf itself."
    if any(_contains(range_, number) for range_ in message.reserved):
        return f"has the reserved number {number}."
    return None


def _contains(range_: str, number: int) -> bool:
    """Whether a range such as ``4``, ``9 to 11`` or ``100 to max`` contains a number."""
    first, _, last = range_.partition(" to ")
    if not first.lstrip("-").isdecimal():
        return False  # a name
    end = number if last == "max" else int(last or first)
    return int(first) <= number <= end


def _check_field_type(
    report: _Report, field: ProtobufField, scope: str, file: ProtobufFile, known_types: Collection[str]
) -> Iterator[SchemaProblem]:
    map_type = _MAP.fullmatch(field.type)
    if map_type and map_type[1] not in _KEY_TYPES:
        problem = f"is a map whose keys have the type {map_type[1]}, which Protobuf does not allow."
        yield report.build(f"{scope}.{field.name}", problem)
    type_ = map_type[2] if map_type else field.type.removeprefix("group ")
    if type_ not in SCALARS and type_ not in known_types and not file.imports:
        problem = f"has the type '{type_}', which the schema neither defines nor imports."
        yield report.build(f"{scope}.{field.name}", problem)


def _check_enum(report: _Report, enum: ProtobufEnum, file: ProtobufFile) -> Iterator[SchemaProblem]:
    if not enum.values:
        yield report.build(enum.name, "is an enum without values.")
    elif file.syntax == PROTO3 and enum.values[0].number != 0:
        problem = "is the first value of a proto3 enum, so its number must be 0."
        yield report.build(f"{enum.name}.{enum.values[0].name}", problem)
    for name in _list_repeated(value.name for value in enum.values):
        yield report.build(f"{enum.name}.{name}", "is defined twice.")
    first_names: dict[int, str] = {}
    for value in enum.values:
        first_name = first_names.setdefault(value.number, value.name)
        if first_name != value.name and enum.options.get("allow_alias") != "true":
            problem = f"has the same number ({value.number}) as '{first_name}', but allow_alias is not set."
            yield report.build(f"{enum.name}.{value.name}", problem)
        if f'"{value.name}"' in enum.reserved:
            yield report.build(f"{enum.name}.{value.name}", "has a reserved name.")
        if any(_contains(range_, value.number) for range_ in enum.reserved):
            problem = f"has the reserved number {value.number}."
            yield report.build(f"{enum.name}.{value.name}", problem)
