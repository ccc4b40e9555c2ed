"""What the text of a CEL expression shows that its checker does not look at: loops, patterns, keys."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?x)
    //[^\n]* | \s+
    | (?: [rR][bB]? | [bB][rR] ) (?: \"{3}.*?\"{3} | '{3}.*?'{3} | "[^"\n]*" | '[^'\n]*' )
    | [bB]? (?: \"{3}(?:\\.|.)*?\"{3} | '{3}(?:\\.|.)*?'{3} | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    | [A-Za-z_]\w* | `[^`\n]*` | .
    """,
    re.DOTALL,
)
_LOOPS = frozenset(("all", "exists", "exists_one", "filter", "map"))
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """A piece of an expression, and where it starts."""

    text: str
    offset: int


class Loop(NamedTuple):
    """``.map(x, x + 1)``: where it is among the pieces, its name, its variable, and where its body is."""

    at: int
    token: Token
    variable: str
    begin: int
    end: int


def tokens(source: str) -> list[Token]:
    """The pieces of an expression, without space and comments."""
    found = (Token(match[0], match.start()) for match in _TOKEN.finditer(source))
    return [token for token in found if not token.text.isspace() and not token.text.startswith("//")]


def loops(pieces: Sequence[Token]) -> Iterator[Loop]:
    """The loops among the pieces, in the order of their names."""
    for at, token in enumerate(pieces[:-3]):
        if token.text in _LOOPS and pieces[at + 1].text == "(" and pieces[at + 3].text == ",":
            yield Loop(at, token, pieces[at + 2].text, at + 4, closed(pieces, at + 1))


def is_text(token: Token) -> bool:
    """Whether it is a text in quotes."""
    return token.text[-1] in "'\""


def matches(pieces: Sequence[Token]) -> Iterator[tuple[int, Token | None]]:
    """Each use of ``matches``: where it is among the pieces, and its pattern if that is a literal text."""
    for at, token in enumerate(pieces[:-1]):
        if token.text == "matches" and pieces[at + 1].text == "(":
            inside = pieces[at + 2 : closed(pieces, at + 1)]
            alone = len(inside) == 1 or (len(inside) > 1 and inside[-2].text == ",")
            yield at, inside[-1] if alone and is_text(inside[-1]) else None


def keys_of(source: str, mapping: str, sides: Collection[str]) -> list[Token] | None:
    """The keys by which an expression looks into ``post.configs``, literal texts in their quotes.

    sides: the names that the states have.

    None where it does, or may do, more with it than to look up, or to ask for, keys that stand in it.
    """
    pieces = tokens(source)
    side, _, name = mapping.partition(".")
    keys = []
    for at, token in enumerate(pieces):
        if at == 0 or pieces[at - 1].text != "." or token.text.strip("`") != name:
            continue
        if at == 1 or (at > 2 and pieces[at - 3].text == ".") or pieces[at - 2].text not in sides:
            return None  # (post).configs: whose it is, is not to be seen
        if pieces[at - 2].text != side:
            continue
        after = pieces[at + 1 : at + 5]
        key = _key_after(after)
        if key is None and not (after and after[0].text in (".", "[")):
            key = _key_before(pieces[max(at - 5, 0) : at - 2])
        if key is None:
            return None
        keys.append(key)
    return keys


def _key_after(pieces: Sequence[Token]) -> Token | None:
    """``['key']`` or ``.key``."""
    texts = [token.text for token in (*pieces, Token("", 0), Token("", 0), Token("", 0))]
    if texts[0] == "[" and texts[1][-1:] in ("'", '"') and texts[2] == "]":
        return pieces[1]
    return pieces[1] if texts[0] == "." and texts[2] != "(" and texts[1][:1] != "`" else None


def _key_before(pieces: Sequence[Token]) -> Token | None:
    """``'key' in``, unless the key is put together."""
    if len(pieces) > 1 and pieces[-1].text == "in" and pieces[-2].text[-1] in "'\"":
        return None if pieces[-3:-2] and pieces[-3].text == "+" else pieces[-2]
    return None


def closed(pieces: Sequence[Token], opened: int) -> int:
    """Where the bracket is that closes another one."""
    return next((end for begin, end in brackets(pieces[opened:]) if begin == 0), 0) + opened


def brackets(pieces: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Where brackets open and close, in the order in which they close."""
    waiting: list[tuple[int, str]] = []
    for at, token in enumerate(pieces):
        if token.text in _CLOSING:
            waiting.append((at, _CLOSING[token.text]))
        elif waiting and token.text == waiting[-1][1]:
            yield waiting.pop()[0], at
