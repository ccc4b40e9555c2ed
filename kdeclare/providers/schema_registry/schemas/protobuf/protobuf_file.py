"""Represent Protobuf schemas as values, so that equal schemas have equal values.

Comments, white space, and the order in which a file lists fields, options, imports and enums make no
difference. The order of messages does make a difference, because records refer to the message of a schema by
its index.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from kdeclare.core.frozen_dataclass import dataclass

SCALARS: Final = frozenset(
    {
        "double",
        "float",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "sint32",
        "sint64",
        "fixed32",
        "fixed64",
        "sfixed32",
        "sfixed64",
        "bool",
        "string",
        "bytes",
    }
)
PROTO2: Final = "proto2"
PROTO3: Final = "proto3"


@dataclass(frozen=True, slots=True)
class ProtobufField:
    """A field of a message, or an extension.

    type: a scalar type, the full name of a message or an enum, ``map<K, V>``, or ``group NAME``. A type that
        the file does not define keeps its name from the text.
    label: ``optional``, ``required``, ``repeated``, or empty.
    oneof: the name of the oneof that contains the field; empty if there is none.
    options: the values of the options as they are written, such as ``true`` or ``"text"``. The values of a
        repeated option are the lines of one string.
    """

    name: str
    number: int
    type: str
    label: str
    oneof: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProtobufEnumValue:
    """A value of an enum."""

    name: str
    number: int
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProtobufEnum:
    """An enum with its full name. The first value is the default. visibility: as in `ProtobufMessage`."""

    name: str
    values: tuple[ProtobufEnumValue, ...]
    options: Mapping[str, str]
    reserved: frozenset[str]
    visibility: str = ""


@dataclass(frozen=True, slots=True)
class ProtobufMessage:
    """A message with its full name.

    fields: sorted by number. messages: nested messages, in the order of the text.
    enums: nested enums, sorted by name. oneofs: the options of each oneof.
    reserved, extension_ranges: ranges such as ``4`` or ``9 to 11``, and quoted names.
    extensions: pairs of the extended message and the field, sorted.
    visibility: ``export``, ``local``, or empty (since edition 2024).
    """

    name: str
    fields: tuple[ProtobufField, ...]
    messages: tuple["ProtobufMessage", ...]
    enums: tuple[ProtobufEnum, ...]
    oneofs: Mapping[str, Mapping[str, str]]
    options: Mapping[str, str]
    reserved: frozenset[str]
    extension_ranges: frozenset[str]
    extensions: tuple[tuple[str, ProtobufField], ...]
    visibility: str = ""


@dataclass(frozen=True, slots=True)
class ProtobufMethod:
    """A method of a service.

    input, output: the names of message types. For a stream, the word ``stream`` precedes the name.
    """

    name: str
    input: str
    output: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProtobufService:
    """A service with its full name. methods: sorted by name."""

    name: str
    methods: tuple[ProtobufMethod, ...]
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProtobufFile:
    """A valid Protobuf schema.

    syntax: ``proto2``, ``proto3`` or ``edition YEAR``. messages: in the order of the text.
    imports: the modifier (``public``, ``weak``, or empty) of each imported file.
    enums, services: sorted by name.
    """

    syntax: str
    package: str
    imports: Mapping[str, str]
    options: Mapping[str, str]
    messages: tuple[ProtobufMessage, ...]
    enums: tuple[ProtobufEnum, ...]
    services: tuple[ProtobufService, ...]
    extensions: tuple[tuple[str, ProtobufField], ...]

    def list_messages(self) -> Iterator[ProtobufMessage]:
        """Yield all messages. Each message comes before its nested messages."""
        return _list_all(self.messages)

    def list_enums(self) -> Iterator[ProtobufEnum]:
        """Yield all enums, including nested enums."""
        yield from self.enums
        for message in self.list_messages():
            yield from message.enums


def _list_all(messages: tuple[ProtobufMessage, ...]) -> Iterator[ProtobufMessage]:
    for message in messages:
        yield message
        yield from _list_all(message.messages)
