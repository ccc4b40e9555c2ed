"""Find the loops, regular expressions and map keys in the source of a CEL expression.

CEL's type checker does not provide this information.
"""

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
    """A token of a CEL expression, with its offset in the source."""

    text: str
    offset: int


class Loop(NamedTuple):
    """A loop in a CEL expression, such as ``.map(x, x + 1)``.

    at: the index of the token with the name of the loop (``map``).
    token: this token.
    variable: the name of the loop's variable (``x``).
    begin, end: the range of token indexes of the loop's body (``x + 1``).
    """

    at: int
    token: Token
    variable: str
    begin: int
    end: int


def tokenize(source: str) -> list[Token]:
    """Return the tokens of an expression. White space and comments are omitted."""
    all_tokens = (Token(match[0], match.start()) for match in _TOKEN.finditer(source))
    return [token for token in all_tokens if not token.text.isspace() and not token.text.startswith("//")]


def find_loops(pieces: Sequence[Token]) -> Iterator[Loop]:
    """Yield the loops of an expression, in the order in which they appear."""
    for index, token in enumerate(pieces[:-3]):
        if token.text in _LOOPS and pieces[index + 1].text == "(" and pieces[index + 3].text == ",":
            yield Loop(index, token, pieces[index + 2].text, index + 4, find_closing(pieces, index + 1))


def is_text(token: Token) -> bool:
    return token.text[-1] in "'\""


def find_matches(pieces: Sequence[Token]) -> Iterator[tuple[int, Token | None]]:
    """Yield each call to ``matches``: its token index and the token of its pattern.

    The second value is None if the pattern is not a string literal.
    """
    for index, token in enumerate(pieces[:-1]):
        if token.text == "matches" and pieces[index + 1].text == "(":
            argument_tokens = pieces[index + 2 : find_closing(pieces, index + 1)]
            is_lone = len(argument_tokens) == 1 or (
                len(argument_tokens) > 1 and argument_tokens[-2].text == ","
            )
            yield index, argument_tokens[-1] if is_lone and is_text(argument_tokens[-1]) else None


def find_keys(source: str, mapping: str, sides: Collection[str]) -> list[Token] | None:
    """Return the tokens of the literal keys that an expression looks up in a mapping.

    mapping: a field of the state before or after a change, such as ``post.configs``.
    sides: the names of these states, such as ``pre`` and ``post``.
    Return None if the expression might use the mapping in other ways, for example in a loop.
    """
    pieces = tokenize(source)
    side, _, name = mapping.partition(".")
    keys = []
    for index, token in enumerate(pieces):
        if index == 0 or pieces[index - 1].text != "." or token.text.strip("`") != name:
            continue
        if index == 1 or (index > 2 and pieces[index - 3].text == ".") or pieces[index - 2].text not in sides:
            return None  # for example (post).configs: the tokens do not show which state has this field
        if pieces[index - 2].text != side:
            continue
        next_tokens = pieces[index + 1 : index + 5]
        key = _find_key_after(next_tokens)
        if key is None and not (next_tokens and next_tokens[0].text in (".", "[")):
            key = _find_key_before(pieces[max(index - 5, 0) : index - 2])
        if key is None:
            return None
        keys.append(key)
    return keys


def _find_key_after(pieces: Sequence[Token]) -> Token | None:
    """Return the key if the tokens begin with ``['key']`` or ``.key``; otherwise None."""
    texts = [token.text for token in (*pieces, Token("", 0), Token("", 0), Token("", 0))]
    if texts[0] == "[" and texts[1][-1:] in ("'", '"') and texts[2] == "]":
        return pieces[1]
    return pieces[1] if texts[0] == "." and texts[2] != "(" and texts[1][:1] != "`" else None


def _find_key_before(pieces: Sequence[Token]) -> Token | None:
    """Return the key if the tokens end with ``'key' in``; otherwise None."""
    if len(pieces) > 1 and pieces[-1].text == "in" and pieces[-2].text[-1] in "'\"":
        return None if pieces[-3:-2] and pieces[-3].text == "+" else pieces[-2]
    return None


def find_closing(pieces: Sequence[Token], opening_index: int) -> int:
    return (
        next((end for begin, end in find_brackets(pieces[opening_index:]) if begin == 0), 0) + opening_index
    )


def find_brackets(pieces: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the indexes of each pair of brackets, in the order of the closing brackets."""
    open_brackets: list[tuple[int, str]] = []
    for index, token in enumerate(pieces):
        if token.text in _CLOSING:
            open_brackets.append((index, _CLOSING[token.text]))
        elif open_brackets and token.text == open_brackets[-1][1]:
            yield open_brackets.pop()[0], index
