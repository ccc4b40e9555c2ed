"""What the text of a CEL expression shows that its checker does not look at.

An expression cannot loop for ever, and its steps are counted when it is evaluated. Two things are not
bounded by that: how large its values get, and whether the regular expressions in it are any.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

MAX_GROWTH = 10_000
"""How many times over an expression may hold what it looks at."""

_TOKEN = re.compile(
    r"""(?x)
    //[^\n]* | \s+
    | (?: [rR][bB]? | [bB][rR] ) (?: \"{3}.*?\"{3} | '{3}.*?'{3} | "[^"\n]*" | '[^'\n]*' )
    | [bB]? (?: \"{3}(?:\\.|.)*?\"{3} | '{3}(?:\\.|.)*?'{3} | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    | [A-Za-z_]\w* | .
    """,
    re.DOTALL,
)
_LOOPS = frozenset(("all", "exists", "exists_one", "filter", "map"))
_MANY = 1_000  # stands for the elements of a list that nobody has counted
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """A piece of an expression, and where it starts."""

    text: str
    offset: int


class _Loop(NamedTuple):
    """``.map(x, x + 1)``: which it is, its variable, and where its body begins and ends."""

    token: Token
    variable: str
    begin: int
    end: int


def tokens(source: str) -> list[Token]:
    """The pieces of an expression, without space and comments."""
    found = (Token(match[0], match.start()) for match in _TOKEN.finditer(source))
    return [token for token in found if not token.text.isspace() and not token.text.startswith("//")]


def growing(source: str) -> Token | None:
    """The first loop of an expression whose values could grow beyond all bounds; None if it has none.

    In a loop that uses its variable twice, ``.map(x, x + x)``, what comes out is twice as large as what
    went in: of thirty such loops one after another no memory is large enough.
    """
    pieces = tokens(source)
    loops = list(_loops(pieces))
    growth = 1
    first = None
    for at, loop in enumerate(loops):
        makers = [inner for inner in _inside(loop, loops[at + 1 :]) if inner.token.text == "map"]
        copies = _copies(loop, makers, pieces)
        first = first or (loop.token if copies > 1 else None)
        growth *= max(1, copies)
    return first if growth > MAX_GROWTH else None


def patterns(source: str) -> Iterator[Token]:
    """The regular expressions that stand literally in it, as they are written, quotes included."""
    pieces = tokens(source)
    for at, token in enumerate(pieces[:-1]):
        if token.text == "matches" and pieces[at + 1].text == "(":
            inside = pieces[at + 2 : _closed(pieces, at + 1)]
            alone = len(inside) == 1 or (len(inside) > 1 and inside[-2].text == ",")
            if alone and inside[-1].text[-1] in "'\"":
                yield inside[-1]


def keys_of(source: str, mapping: str) -> list[Token] | None:
    """The keys by which an expression looks into ``post.configs``, literal texts in their quotes.

    None where it does more with it than to look up, or to ask for, keys that stand in it.
    """
    pieces = tokens(source)
    side, _, name = mapping.partition(".")
    keys = []
    for at in range(len(pieces) - 2):
        if [token.text for token in pieces[at : at + 3]] == [side, ".", name]:
            after = pieces[at + 3 : at + 7]
            key = _key_after(after)
            if key is None and not (after and after[0].text in (".", "[")):
                key = _key_before(pieces[max(at - 3, 0) : at])
            if key is None:
                return None
            keys.append(key)
    return keys


def _key_after(pieces: Sequence[Token]) -> Token | None:
    """``['key']`` or ``.key``."""
    texts = [token.text for token in (*pieces, Token("", 0), Token("", 0), Token("", 0))]
    if texts[0] == "[" and texts[1][-1] in "'\"" and texts[2] == "]":
        return pieces[1]
    return pieces[1] if texts[0] == "." and texts[2] != "(" else None


def _key_before(pieces: Sequence[Token]) -> Token | None:
    """``'key' in``, unless the key is put together."""
    if len(pieces) > 1 and pieces[-1].text == "in" and pieces[-2].text[-1] in "'\"":
        return None if pieces[-3:-2] and pieces[-3].text == "+" else pieces[-2]
    return None


def _loops(pieces: Sequence[Token]) -> Iterator[_Loop]:
    for at, token in enumerate(pieces[:-3]):
        if token.text in _LOOPS and pieces[at + 1].text == "(" and pieces[at + 3].text == ",":
            yield _Loop(token, pieces[at + 2].text, at + 4, _closed(pieces, at + 1))


def _inside(loop: _Loop, later: Sequence[_Loop]) -> Iterator[_Loop]:
    return takewhile(lambda other: other.begin < loop.end, later)


def _closed(pieces: Sequence[Token], opened: int) -> int:
    """Where the bracket is that closes another one."""
    waiting: list[str] = []
    for at in range(opened, len(pieces)):
        text = pieces[at].text
        if text in _CLOSING:
            waiting.append(_CLOSING[text])
        elif text == waiting[-1]:
            waiting.pop()
            if not waiting:
                return at
    return opened


def _copies(loop: _Loop, makers: Sequence[_Loop], pieces: Sequence[Token]) -> int:
    """How many times its variable can be in what the body of a loop makes of it.

    makers: the loops inside of it that make a value for each element.
    """
    copies = 0
    for at in range(loop.begin, loop.end):
        if pieces[at].text == loop.variable and pieces[at - 1].text != ".":
            copies += _MANY ** sum(maker.begin <= at < maker.end for maker in makers)
    return copies
