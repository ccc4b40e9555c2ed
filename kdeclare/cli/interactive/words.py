"""A line cut into words, quoted as in sh. Nothing is expanded but ``~`` at the beginning of a word."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode

_CONTINUED = "\\\n"
_ESCAPED_IN_DOUBLE = '"\\'
_OF_OTHER_SHELLS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<"})


@dataclass(slots=True)
class Word:
    """One word.

    text: what it means, its quotes taken off. start, end: where it stands in the line; ``end`` is the
    length of the line where it may go on. quote: the quotation that has no end, or nothing.
    bare: whether it begins without a quote.
    """

    text: str
    start: int
    end: int
    quote: str = ""
    bare: bool = True


def words(line: str) -> list[Word]:
    """The words of a line, as far as it has been typed; what follows a ``#`` is left out."""
    found: list[Word] = []
    word: Word | None = None
    at = 0
    while at < len(line):
        character = line[at]
        quote = word.quote if word else ""
        width = 1
        if not quote and character.isspace():
            word = None
        elif not quote and word is None and character == "#":
            width = len(line[at:].partition("\n")[0])
        elif quote != "'" and line.startswith(_CONTINUED, at):
            width = 2
        else:
            if word is None:
                word = Word("", at, at, bare=character not in "'\"\\")
                found.append(word)
            width = _take(word, line[at : at + 2])
        at += width
        if word is not None:
            word.end = at
    return found


def _take(word: Word, coming: str) -> int:
    """Add to a word what comes next, and say how many characters that was."""
    character, after = coming[0], coming[1:]
    if word.quote:
        if character == word.quote:
            word.quote = ""
            return 1
        escapes = character == "\\" and word.quote == '"' and after and after in _ESCAPED_IN_DOUBLE
    else:
        if character in "'\"":
            word.quote = character
            return 1
        escapes = character == "\\"
    word.text += after if escapes else character
    return 2 if escapes and after else 1


def arguments(line: str) -> list[str]:
    """What a command gets of a line. Raises KdeclareError (wrong usage) for a quotation without an end."""
    found = words(line)
    open_ = next((word for word in found if word.quote), None)
    if open_ is not None:
        raise _unreadable(
            "A quotation has no end",
            f"From column {open_.start + 1} on: {line[open_.start : open_.start + 40]}",
            f"Close it with {open_.quote}, or write \\{open_.quote} for the character itself.",
        )
    foreign = next((line[w.start : w.end] for w in found if line[w.start : w.end] in _OF_OTHER_SHELLS), None)
    if foreign is not None:
        raise _unreadable(
            "This is no shell of the system",
            f"'{foreign}' has no meaning here: a line is one command.",
            f"Write '{foreign}' in quotes where the character itself is meant.",
        )
    return [_at_home(word) for word in found]


def is_continued(line: str) -> bool:
    """Whether a line goes on in the next one: it ends with a backslash that nothing takes back."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def quoted(text: str, quote: str = "") -> str:
    """A word that means ``text``; with an open ``quote``, in that one and left open."""
    if quote == "'" and "'" not in text:
        return f"'{text}"
    if quote == '"':
        escaped = "".join(f"\\{c}" if c in _ESCAPED_IN_DOUBLE else c for c in text)
        return f'"{escaped}'
    home = "~/" if text.startswith("~/") else ""
    rest = text.removeprefix(home)
    plain = not set(rest) & set(" \t\n'\"\\") and not rest.startswith(("#", "~"))
    return text if plain and rest not in _OF_OTHER_SHELLS else home + shlex.quote(rest)


def _at_home(word: Word) -> str:
    if word.bare and (word.text == "~" or word.text.startswith("~/")):
        return str(Path(word.text).expanduser())
    return word.text


def _unreadable(summary: str, detail: str, hint: str) -> KdeclareError:
    problem: Diagnostic = error("unreadable-line", summary, detail, hint=hint)
    return KdeclareError(problem, exit_code=ExitCode.USAGE)
