"""Parse Protobuf schemas: proto2, proto3 and editions.

The parser supports the whole language, because an error here would block a schema that the registry accepts.
The library proto-schema-parser is not used: it rejects comments inside declarations and reserved names of
editions, continues after syntax errors, reads octal numbers wrongly, and drops the options of groups.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass as mutable_dataclass
from dataclasses import field as dataclass_field
from dataclasses import replace
from itertools import islice, takewhile

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.schema_registry.schemas.problems import MAX_PROBLEMS, SchemaError
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_checks import find_protobuf_problems
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_file import (
    PROTO2,
    ProtobufEnum,
    ProtobufEnumValue,
    ProtobufField,
    ProtobufFile,
    ProtobufMessage,
    ProtobufMethod,
    ProtobufService,
)
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_names import resolve_type_names
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_options import OptionReader, format_options
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_tokens import Token, TokenKind, quote_string

_LABELS = ("optional", "required", "repeated")


@dataclass(frozen=True, slots=True)
class ProtobufSource:
    """A parsed schema, with the positions and comments in its text.

    offsets: the offsets of the names of messages, fields, enums, values, services and methods, by full name.
        If a name is defined twice, the last definition counts.
    documented: the full names of elements with a comment before them, or after them on the same line.
    """

    file: ProtobufFile
    offsets: Mapping[str, int]
    documented: frozenset[str]


def parse_protobuf(text: str) -> ProtobufFile:
    """Parse a Protobuf schema. Raises SchemaError with the first syntax error, or with other problems."""
    return parse_protobuf_source(text).file


def parse_protobuf_source(text: str) -> ProtobufSource:
    """Parse a Protobuf schema, and keep the positions and comments. Raises SchemaError."""
    parser = _Parser(text)
    file = resolve_type_names(parser.parse_file())
    if problems := tuple(islice(find_protobuf_problems(text, file, parser.offsets), MAX_PROBLEMS)):
        raise SchemaError(*problems)
    return ProtobufSource(file, parser.offsets, frozenset(parser.documented))


@mutable_dataclass
class _Scope:
    """The elements that have been read from a file or message so far.

    name: the full name of the file's package or of the message; it can be empty.
    """

    name: str
    fields: list[ProtobufField] = dataclass_field(default_factory=list)
    messages: list[ProtobufMessage] = dataclass_field(default_factory=list)
    enums: list[ProtobufEnum] = dataclass_field(default_factory=list)
    services: list[ProtobufService] = dataclass_field(default_factory=list)
    oneofs: dict[str, Mapping[str, str]] = dataclass_field(default_factory=dict)
    options: dict[str, str] = dataclass_field(default_factory=dict)
    reserved: set[str] = dataclass_field(default_factory=set)
    extension_ranges: set[str] = dataclass_field(default_factory=set)
    extensions: list[tuple[str, ProtobufField]] = dataclass_field(default_factory=list)

    def join(self, name: str) -> str:
        """Return the full name of an element that is defined in this scope."""
        return f"{self.name}.{name}" if self.name else name

    def sort_extensions(self) -> tuple[tuple[str, ProtobufField], ...]:
        """Return the extensions, sorted by extended message and number."""
        return tuple(sorted(self.extensions, key=lambda pair: (pair[0], pair[1].number, pair[1].name)))


class _Parser(OptionReader):
    """A recursive descent parser. Each method begins at the first token of the element that it reads."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.offsets: dict[str, int] = {}
        self.documented: set[str] = set()

    def _record(self, full_name: str, first: Token, name: Token) -> None:
        """Record the position of an element, and whether it is documented.

        Call this method after the last token of the element was read.

        first: the first token of the element.
        """
        self.offsets[full_name] = name.offset
        if first.has_comment or self.previous_token.end_comment:
            self.documented.add(full_name)

    # Files

    def parse_file(self) -> ProtobufFile:
        """Parse the file. Type names are kept as they are in the text; they are resolved later."""
        syntax = PROTO2
        if self.token.text in ("syntax", "edition"):
            keyword = self.take().text
            self.expect("=")
            level = self.expect_string()
            syntax = level if keyword == "syntax" else f"edition {level}"
            self.expect(";")
        scope, imports = _Scope(self._find_package()), dict[str, str]()
        while self.token.kind is not TokenKind.END:
            if self.accept(";"):
                continue
            if self.accept("import"):
                modifier = self.take().text if self.token.text in ("public", "weak", "option") else ""
                imports[self.expect_string()] = modifier
                self.expect(";")
            elif self.accept("package"):
                self.expect_type_name()
                self.expect(";")
            elif self.token.text == "service":
                scope.services.append(self._read_service(scope))
            elif not self._read_declaration(scope):
                self.fail("a declaration such as 'message'")
        return ProtobufFile(
            syntax=syntax,
            package=scope.name,
            imports=imports,
            options=scope.options,
            messages=tuple(scope.messages),
            enums=tuple(sorted(scope.enums, key=lambda enum: enum.name)),
            services=tuple(sorted(scope.services, key=lambda service: service.name)),
            extensions=scope.sort_extensions(),
        )

    def _find_package(self) -> str:
        """Return the name of the package. Other declarations can precede the package statement."""
        depth, is_statement = 0, True
        for index, token in enumerate(self.list_tokens()):
            if is_statement and depth == 0 and token.text == "package" and token.kind is TokenKind.NAME:
                names = takewhile(lambda part: part.text != ";", self.list_tokens()[index + 1 :])
                return "".join(name.text for name in names)
            depth += (token.text == "{") - (token.text == "}")
            is_statement = token.text in (";", "}")
        return ""

    def _read_declaration(self, scope: _Scope) -> bool:
        """Read an element of a type that both files and messages can contain.

        Return False if the next element has a different type.
        """
        has_visibility = self.token.text in ("export", "local") and self.peek().text in ("message", "enum")
        visibility = self.take().text if has_visibility else ""
        keyword, following, after = self.token.text, self.peek(), self.peek(2)
        is_block = following.kind is TokenKind.NAME and after.text == "{"
        if keyword == "message" and is_block:
            first = self.take()
            scope.messages.append(replace(self._read_message(scope, first), visibility=visibility))
        elif keyword == "enum" and is_block:
            scope.enums.append(replace(self._read_enum(scope), visibility=visibility))
        elif keyword == "extend" and following.text != "=" and after.text != "=":
            self.take()
            extended = self.expect_type_name()
            self.read_block(lambda: self._read_extension(scope, extended))
        elif keyword == "option" and (following.kind is TokenKind.NAME or following.text == "("):
            self.take()
            self.read_option(scope.options)
            self.expect(";")
        else:
            return False
        return True

    def _read_extension(self, scope: _Scope, extended: str) -> None:
        field = self._read_field(scope, "", scope)
        scope.extensions.append((extended, field))

    # Messages

    def _read_message(self, scope: _Scope, first: Token) -> ProtobufMessage:
        name = self.token
        message = _Scope(scope.join(self.expect_name()))
        self._expect_comment(message.name, first, name)
        self.read_block(lambda: self._read_message_element(message))
        return ProtobufMessage(
            name=message.name,
            fields=tuple(sorted(message.fields, key=lambda field: (field.number, field.name))),
            messages=tuple(message.messages),
            enums=tuple(sorted(message.enums, key=lambda enum: enum.name)),
            oneofs=message.oneofs,
            options=message.options,
            reserved=frozenset(message.reserved),
            extension_ranges=frozenset(message.extension_ranges),
            extensions=message.sort_extensions(),
        )

    def _expect_comment(self, full_name: str, first: Token, name: Token) -> None:
        """Record the position and the documentation of an element whose block is read next.

        A comment after the opening brace also documents the element.
        """
        self.offsets[full_name] = name.offset
        if first.has_comment or self.token.end_comment:
            self.documented.add(full_name)

    def _read_message_element(self, message: _Scope) -> None:
        following = self.peek()
        if self.token.text == "oneof" and following.kind is TokenKind.NAME and self.peek(2).text == "{":
            self.take()
            oneof, options = self.expect_name(), dict[str, str]()
            self.read_block(lambda: self._read_oneof_element(message, oneof, options))
            message.oneofs[oneof] = options
        elif self.token.text == "reserved" and self.peek(2).text != "=":
            self.take()
            message.reserved |= set(self._read_reserved())
        elif self.token.text == "extensions" and following.kind is TokenKind.INTEGER:
            self.take()
            ranges = list(self._read_ranges())
            suffix = format_options(self.read_compact_options())
            message.extension_ranges |= {f"{range_}{suffix}" for range_ in ranges}
            self.expect(";")
        elif not self._read_declaration(message):
            message.fields.append(self._read_field(message, "", message))

    def _read_oneof_element(self, message: _Scope, oneof: str, options: dict[str, str]) -> None:
        if self.token.text == "option" and (self.peek().kind is TokenKind.NAME or self.peek().text == "("):
            self.take()
            self.read_option(options)
            self.expect(";")
        else:
            message.fields.append(self._read_field(message, oneof, message))

    def _read_field(self, scope: _Scope, oneof: str, nested: _Scope) -> ProtobufField:
        """Read a field or a group. nested: the scope that gets the message of a group."""
        first, label = self.token, ""
        if self.token.text in _LABELS and (self.peek().kind is TokenKind.NAME or self.peek().text == "."):
            label = self.take().text
        if self.token.text == "group" and self.peek(2).text == "=":
            return self._read_group(scope, oneof, label, first, nested)
        type_ = self._read_map_type() if self._is_map() else self.expect_type_name()
        name = self.token
        self.expect_name("the name of a field")
        self.expect("=")
        number = self.expect_integer()
        options = self.read_compact_options()
        self.expect(";")
        self._record(scope.join(name.text), first, name)
        return ProtobufField(name.text, number, type_, label, oneof, options)

    def _is_map(self) -> bool:
        return self.token.text == "map" and self.peek().text == "<"

    def _read_map_type(self) -> str:
        self.take()
        self.expect("<")
        key_type = self.expect_type_name()
        self.expect(",")
        value_type = self.expect_type_name()
        self.expect(">")
        return f"map<{key_type}, {value_type}>"

    def _read_group(
        self, scope: _Scope, oneof: str, label: str, first: Token, nested: _Scope
    ) -> ProtobufField:
        self.take()
        name = self.token
        if not name.text[:1].isupper():
            self.fail("the name of a group, which starts with a capital letter")
        self.expect_name()
        self.expect("=")
        number = self.expect_integer()
        options = self.read_compact_options()
        self.put_back(name)  # the body of a group defines a message: read the name again, then the body
        nested.messages.append(self._read_message(nested, first))
        self._record(scope.join(name.text.lower()), first, name)
        return ProtobufField(name.text.lower(), number, f"group {name.text}", label, oneof, options)

    def _read_reserved(self) -> Iterator[str]:
        """Read the rest of a ``reserved`` statement: ranges, strings, or plain names (in editions)."""
        if self.token.kind in (TokenKind.STRING, TokenKind.NAME):
            while True:
                is_string = self.token.kind is TokenKind.STRING
                yield quote_string(self.expect_string() if is_string else self.expect_name())
                if not self.accept(","):
                    break
        else:
            yield from self._read_ranges()
        self.expect(";")

    def _read_ranges(self) -> Iterator[str]:
        while True:
            first = self.expect_integer()
            if self.accept("to"):
                yield f"{first} to {'max' if self.accept('max') else self.expect_integer()}"
            else:
                yield str(first)
            if not self.accept(","):
                return

    # Enums and services

    def _read_enum(self, scope: _Scope) -> ProtobufEnum:
        first, name = self.take(), self.token
        full_name = scope.join(self.expect_name())
        self._expect_comment(full_name, first, name)
        values, options, reserved = list[ProtobufEnumValue](), dict[str, str](), set[str]()

        def read_element() -> None:
            if self.token.text == "option" and self.peek().text != "=":
                self.take()
                self.read_option(options)
                self.expect(";")
            elif self.token.text == "reserved" and self.peek().text != "=":
                self.take()
                reserved.update(self._read_reserved())
            else:
                value = self.token
                self.expect_name("the name of a value")
                self.expect("=")
                number = self.expect_integer()
                value_options = self.read_compact_options()
                values.append(ProtobufEnumValue(value.text, number, value_options))
                self.expect(";")
                self._record(f"{full_name}.{value.text}", value, value)

        self.read_block(read_element)
        return ProtobufEnum(full_name, tuple(values), options, frozenset(reserved))

    def _read_service(self, scope: _Scope) -> ProtobufService:
        first, name = self.take(), self.token
        full_name = scope.join(self.expect_name())
        self._expect_comment(full_name, first, name)
        methods, options = list[ProtobufMethod](), dict[str, str]()

        def read_element() -> None:
            if self.accept("option"):
                self.read_option(options)
                self.expect(";")
            else:
                methods.append(self._read_method(full_name))

        self.read_block(read_element)
        return ProtobufService(full_name, tuple(sorted(methods, key=lambda method: method.name)), options)

    def _read_method(self, service: str) -> ProtobufMethod:
        first = self.expect("rpc")
        name, options = self.token, dict[str, str]()
        self.expect_name()
        input_type = self._read_message_type()
        self.expect("returns")
        output_type = self._read_message_type()

        def read_element() -> None:
            self.expect("option")
            self.read_option(options)
            self.expect(";")

        if not self.accept(";"):
            self.read_block(read_element)
        self._record(f"{service}.{name.text}", first, name)
        return ProtobufMethod(name.text, input_type, output_type, options)

    def _read_message_type(self) -> str:
        self.expect("(")
        is_stream = self.token.text == "stream" and self.peek().text != ")"
        if is_stream:
            self.take()
        name = self.expect_type_name()
        self.expect(")")
        return f"stream {name}" if is_stream else name
