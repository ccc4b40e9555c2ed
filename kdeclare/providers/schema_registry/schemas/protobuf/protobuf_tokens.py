"""Split the text of a Protobuf schema into tokens."""

import json
import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple, NoReturn

from kdeclare.providers.schema_registry.schemas.problems import SchemaError, SchemaProblem


class TokenKind(Enum):
    """The kind of a token."""

    NAME = auto()
    INTEGER = auto()
    FLOAT = auto()
    STRING = auto()
    SYMBOL = auto()
    END = auto()


class Token(NamedTuple):
    """A token of the text. Comments are not tokens.

    has_comment: whether a comment precedes the token.
    end_comment: whether a comment follows the token on the same line.
    """

    kind: TokenKind
    text: str
    offset: int
    has_comment: bool = False
    end_comment: bool = False


_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f\v]+)
    |(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<FLOAT>(?:[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)(?![\w.]))
    |(?P<INTEGER>(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)(?![\w.]))
    |(?P<NAME>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<STRING>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<SYMBOL>[;=\[\](){}<>,.:+-]|/(?!\*))""",
    re.VERBOSE | re.DOTALL,
)


_MAX_NUMBER_LENGTH = 400
"""The maximum number of digits of an integer.

No valid Protobuf integer is that long, and Python does not convert more than 4,300 decimal digits.
"""


def raise_problem(text: str, offset: int, message: str) -> NoReturn:
    """Raise SchemaError for a problem at an offset of the text."""
    raise SchemaError(SchemaProblem(message, "", *locate_offset(text, offset)))


def locate_offset(text: str, offset: int) -> tuple[int, int]:
    """Return the line and the column of an offset, both starting at 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def split_tokens(text: str) -> list[Token]:
    """Return the tokens of a text; the last token has the kind END. Raises SchemaError."""
    tokens: list[Token] = []
    has_comment, is_new_line = False, True
    for kind, part, offset in _scan(text):
        if kind == "space":
            is_new_line = is_new_line or "\n" in part
        elif kind != "comment":
            tokens.append(Token(TokenKind[kind], part, offset, has_comment))
            has_comment = is_new_line = False
        elif is_new_line or not tokens:
            has_comment = True
        else:
            tokens[-1] = tokens[-1]._replace(end_comment=True)
    tokens.append(Token(TokenKind.END, "", len(text)))
    return tokens


def _scan(text: str) -> Iterator[tuple[str, str, int]]:
    offset = 1 if text.startswith("\ufeff") else 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None or match.lastgroup is None:
            if text[offset] in "\"'":
                raise_problem(text, offset, "The string has no closing quotation mark on the same line.")
            if text.startswith("/*", offset):
                raise_problem(text, offset, "The comment is not closed.")
            raise_problem(text, offset, f"'{text[offset]}' is not expected here.")
        if match.lastgroup == TokenKind.INTEGER.name and len(match[0]) > _MAX_NUMBER_LENGTH:
            raise_problem(text, offset, f"The number has more than {_MAX_NUMBER_LENGTH} digits.")
        yield match.lastgroup, match[0], offset
        offset = match.end()


_ESCAPE = re.compile(
    r"\\(?:[xX](?P<hex>[0-9a-fA-F]{1,2})|(?P<octal>[0-7]{1,3})|u(?P<short>[0-9a-fA-F]{4})"
    r"|U(?P<long>[0-9a-fA-F]{8})|(?P<character>.))",
    re.DOTALL,
)
_CHARACTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def decode_string(literal: str) -> str:
    """Return the content of a quoted string. Each escaped byte becomes the character with this code point."""
    return _ESCAPE.sub(_decode_escape, literal[1:-1])


def _decode_escape(match: re.Match[str]) -> str:
    if match["character"] is not None:
        return _CHARACTERS.get(match["character"], match["character"])
    digits = match["hex"] or match["short"] or match["long"]
    number = int(digits, 16) if digits else int(match["octal"], 8)
    return chr(number) if number <= 0x10FFFF else match[0]


def parse_integer(literal: str) -> int:
    """Return the value of a decimal, octal or hexadecimal integer."""
    if literal[:2] in ("0x", "0X"):
        return int(literal, 16)
    return int(literal, 8 if literal.startswith("0") else 10)


def quote_string(content: str) -> str:
    """Return a string in double quotes, on a single line."""
    return _LINE_BREAK.sub(_escape_line_break, json.dumps(content, ensure_ascii=False))


_LINE_BREAK = re.compile("[\x7f-\x9f\u2028\u2029]")


def _escape_line_break(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
