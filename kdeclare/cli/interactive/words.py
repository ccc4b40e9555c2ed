"""Split lines into words with the quoting rules of sh. The only expansion is ``~`` at the start of a word."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode

_CONTINUATION = "\\\n"
_ESCAPABLE_IN_DOUBLE_QUOTES = '"\\'
_SHELL_OPERATORS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<"})


@dataclass(slots=True)
class Word:
    """A word of a line.

    text: the word without its quotes. start, end: the position of the word in the line. ``end`` is the length
    of the line if the word may continue. quote: the open quote character; empty if all quotes are closed.
    bare: whether the word begins without a quote or backslash.
    """

    text: str
    start: int
    end: int
    quote: str = ""
    bare: bool = True


def split_words(line: str) -> list[Word]:
    """Split a complete or incomplete line into words, without comments (``#``)."""
    parsed_words: list[Word] = []
    word: Word | None = None
    position = 0
    while position < len(line):
        character = line[position]
        quote = word.quote if word else ""
        width = 1
        if not quote and character.isspace():
            word = None
        elif not quote and word is None and character == "#":
            width = len(line[position:].partition("\n")[0])
        elif quote != "'" and line.startswith(_CONTINUATION, position):
            width = 2
        else:
            if word is None:
                word = Word("", position, position, bare=character not in "'\"\\")
                parsed_words.append(word)
            width = _consume(word, line[position : position + 2])
        position += width
        if word is not None:
            word.end = position
    return parsed_words


def _consume(word: Word, upcoming: str) -> int:
    """Parse the next character or escape sequence of a word. Return the number of characters consumed."""
    character, next_character = upcoming[0], upcoming[1:]
    if word.quote:
        if character == word.quote:
            word.quote = ""
            return 1
        is_escape = (
            character == "\\"
            and word.quote == '"'
            and next_character
            and next_character in _ESCAPABLE_IN_DOUBLE_QUOTES
        )
    else:
        if character in "'\"":
            word.quote = character
            return 1
        is_escape = character == "\\"
    word.text += next_character if is_escape else character
    return 2 if is_escape and next_character else 1


def parse_arguments(line: str) -> list[str]:
    """Parse a line into arguments.

    Raises KdeclareError with exit code USAGE if the line has unclosed quotes or operators of sh.
    """
    parsed_words = split_words(line)
    open_word = next((word for word in parsed_words if word.quote), None)
    if open_word is not None:
        raise _build_unreadable_line_error(
            "Unclosed quote",
            f"The word at column {open_word.start + 1} has an unclosed quote: "
            f"{line[open_word.start : open_word.start + 40]}",
            f"Add the closing {open_word.quote}, or write \\{open_word.quote} to include that character.",
        )
    operator = next(
        (line[w.start : w.end] for w in parsed_words if line[w.start : w.end] in _SHELL_OPERATORS), None
    )
    if operator is not None:
        raise _build_unreadable_line_error(
            "Shell operator not supported",
            f"The kdeclare shell runs one command per line and does not support the operator '{operator}'.",
            f"Write each command on its own line, or put '{operator}' in quotes if it is part of a value.",
        )
    return [_expand_home(word) for word in parsed_words]


def is_continued(line: str) -> bool:
    """Return whether ``line`` ends with an unescaped backslash, so that the next line continues it."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def quote_word(text: str, quote: str = "") -> str:
    """Quote ``text`` as a word of a line if necessary.

    quote: the open quote character that the user typed, if any. If possible, the quoted word starts with this
    character and does not close the quote.
    """
    if quote == "'" and "'" not in text:
        return f"'{text}"
    if quote == '"':
        escaped = "".join(f"\\{c}" if c in _ESCAPABLE_IN_DOUBLE_QUOTES else c for c in text)
        return f'"{escaped}'
    home = "~/" if text.startswith("~/") else ""
    rest = text.removeprefix(home)
    is_plain = not set(rest) & set(" \t\n'\"\\") and not rest.startswith(("#", "~"))
    return text if is_plain and rest not in _SHELL_OPERATORS else home + shlex.quote(rest)


def _expand_home(word: Word) -> str:
    if word.bare and (word.text == "~" or word.text.startswith("~/")):
        return str(Path(word.text).expanduser())
    return word.text


def _build_unreadable_line_error(summary: str, detail: str, hint: str) -> KdeclareError:
    problem: Diagnostic = error("unreadable-line", summary, detail, hint=hint)
    return KdeclareError(problem, exit_code=ExitCode.USAGE)
