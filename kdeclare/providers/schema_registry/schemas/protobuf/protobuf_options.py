"""Read the tokens and options of a Protobuf schema. Option values can be messages in text format."""

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_tokens import (
    Token,
    TokenKind,
    decode_string,
    parse_integer,
    quote_string,
    raise_problem,
    split_tokens,
)

_MAX_DEPTH = 60
_OPENING = {"{": "}", "<": ">"}


class TokenReader:
    """Reads the tokens of a schema one after another.

    Methods whose names begin with ``expect`` or ``read`` raise SchemaError if the next tokens are not as
    expected.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = split_tokens(text)
        self._position = 0
        self._depth = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._position]

    @property
    def previous_token(self) -> Token:
        """The token that was read last."""
        return self._tokens[self._position - 1]

    def list_tokens(self) -> Sequence[Token]:
        """Return all tokens of the text."""
        return self._tokens

    def peek(self, distance: int = 1) -> Token:
        """Return the token at this distance after the next token, without reading any token."""
        return self._tokens[min(self._position + distance, len(self._tokens) - 1)]

    def fail(self, expected: str) -> NoReturn:
        """Raise SchemaError at the position of the next token. expected: what the parser expected instead."""
        token = self.token
        shown = f"not '{token.text}'" if token.kind is not TokenKind.END else "but the text ends"
        raise_problem(self._text, token.offset, f"Expected {expected}, {shown}.")

    def take(self) -> Token:
        """Read and return the next token."""
        token = self.token
        if token.kind is not TokenKind.END:
            self._position += 1
        return token

    def accept(self, *texts: str) -> bool:
        """Skip the next token if it is one of these symbols or words, and return whether it was skipped."""
        is_accepted = self.token.kind is not TokenKind.STRING and self.token.text in texts
        if is_accepted:
            self._position += 1
        return is_accepted

    def put_back(self, token: Token) -> None:
        """Replace the token that was read last. The parser then reads the replacement next."""
        self._position -= 1
        self._tokens[self._position] = token

    def expect(self, symbol: str) -> Token:
        """Read a symbol or a word."""
        if self.token.kind is TokenKind.STRING or self.token.text != symbol:
            self.fail(f"'{symbol}'")
        return self.take()

    def expect_name(self, expected: str = "a name") -> str:
        """Read a name. expected: a description of the name, for error messages."""
        if self.token.kind is not TokenKind.NAME:
            self.fail(expected)
        return self.take().text

    def expect_type_name(self) -> str:
        """Read a name with dots, which can begin with a dot."""
        prefix = "." if self.accept(".") else ""
        parts = [self.expect_name("the name of a type")]
        while self.accept("."):
            parts.append(self.expect_name())
        return prefix + ".".join(parts)

    def expect_integer(self) -> int:
        """Read an integer with its sign."""
        sign = -1 if self.accept("-") else 1
        if self.token.kind is not TokenKind.INTEGER:
            self.fail("an integer")
        return sign * parse_integer(self.take().text)

    def expect_string(self) -> str:
        """Read a string. Adjacent strings are joined."""
        if self.token.kind is not TokenKind.STRING:
            self.fail("a string")
        parts = []
        while self.token.kind is TokenKind.STRING:
            parts.append(decode_string(self.take().text))
        return "".join(parts)

    def read_block(self, read_element: Callable[[], None]) -> None:
        """Read a block in braces, element by element. Empty statements are ignored."""
        self.expect("{")
        self.enter()
        while not self.accept("}"):
            if self.token.kind is TokenKind.END:
                self.fail("'}'")
            if not self.accept(";"):
                read_element()
        self._depth -= 1

    def enter(self) -> None:
        """Increase the nesting level. Raises SchemaError if there are too many levels.

        The number of levels is limited, because the parser recurses at each level.
        """
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise_problem(
                self._text, self.token.offset, f"More than {_MAX_DEPTH} levels of braces are nested."
            )


class OptionReader(TokenReader):
    """Reads options. Converts values to strings, so that equal values have equal strings."""

    def read_compact_options(self) -> Mapping[str, str]:
        """Read options in brackets, if there are any."""
        options: dict[str, str] = {}
        if self.accept("["):
            self.read_option(options)
            while self.accept(","):
                self.read_option(options)
            self.expect("]")
        return options

    def read_option(self, options: dict[str, str]) -> None:
        """Read ``NAME = VALUE``. The values of a repeated option become the lines of one string."""
        name = self._read_option_name()
        self.expect("=")
        value = self._read_option_value()
        options[name] = f"{options[name]}\n{value}" if name in options else value

    def _read_option_name(self) -> str:
        parts: list[str] = []
        while True:
            if self.accept("("):
                parts.append(f"({self.expect_type_name().removeprefix('.')})")
                self.expect(")")
            else:
                parts.append(self.expect_name("the name of an option"))
            if not self.accept("."):
                return ".".join(parts)

    def _read_option_value(self) -> str:
        if self.token.text in _OPENING and self.token.kind is TokenKind.SYMBOL:
            return self._read_literal_message()
        if self.token.kind is TokenKind.STRING:
            return quote_string(self.expect_string())
        sign = "-" if self.accept("-") else ""
        if not sign:
            self.accept("+")
        if self.token.kind is TokenKind.INTEGER:
            return f"{sign}{parse_integer(self.take().text)}"
        if self.token.kind is TokenKind.FLOAT:
            return f"{sign}{float(self.take().text)!r}"
        if self.token.kind is not TokenKind.NAME:
            self.fail("a value")
        return f"{sign}{self.expect_type_name()}"

    def _read_literal_message(self) -> str:
        """Read a message in the text format, such as ``{name: "x", range {from: 1}}``."""
        closing, parts = _OPENING[self.take().text], list[str]()
        self.enter()
        while not self.accept(closing):
            is_extension = self.accept("[")
            name = f"[{self._read_url()}]" if is_extension else self.expect_name("the name of a field")
            self.accept(":")
            parts.append(f"{name}: {self._read_literal_value()}")
            self.accept(",", ";")
        self._depth -= 1
        return f"{{{', '.join(parts)}}}"

    def _read_url(self) -> str:
        """Read the name of an extension, or the URL of a type, up to the closing bracket."""
        url = ""
        while not self.accept("]"):
            if self.token.kind is TokenKind.END:
                self.fail("']'")
            url += self.take().text
        return url

    def _read_literal_value(self) -> str:
        if not self.accept("["):
            return self._read_option_value()
        self.enter()
        values: list[str] = []
        while not self.accept("]"):
            values.append(self._read_literal_value())
            if not self.accept(",") and self.token.text != "]":
                self.fail("',' or ']'")
        self._depth -= 1
        return f"[{', '.join(values)}]"


def format_options(options: Mapping[str, str]) -> str:
    """Return options in brackets, sorted by name, with a leading space; empty if there are none."""
    text = ", ".join(
        f"{name} = {value}" for name, values in sorted(options.items()) for value in values.splitlines()
    )
    return f" [{text}]" if text else ""
