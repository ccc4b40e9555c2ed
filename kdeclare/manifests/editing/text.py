"""The text of a file: how its bytes hold it, and its lines as YAML counts them."""

import codecs
import re
from dataclasses import dataclass

BREAKS = "\n\r\x85\u2028\u2029"
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""The byte order marks that YAML files may begin with."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """mark: the byte order mark, which is no part of the text."""

    mark: bytes
    codec: str

    def encoded(self, text: str) -> bytes:
        """The bytes of a text."""
        return self.mark + text.encode(self.codec)


def decoded(data: bytes) -> tuple[str, Encoding]:
    """The text of a file that YAML could read, and how to write it again."""
    mark, codec = next(((m, c) for m, c in _MARKS if data.startswith(m)), (b"", "utf-8"))
    return data[len(mark) :].decode(codec), Encoding(mark, codec)


def line_start(text: str, at: int) -> int:
    """Where the line of a character begins."""
    return max(text.rfind(mark, 0, at) for mark in BREAKS) + 1


def line_end(text: str, at: int) -> int:
    """Where the line of a character ends, before its break."""
    found = _BREAK.search(text, at)
    return found.start() if found else len(text)


def next_line(text: str, at: int) -> int:
    """Where the line after a character's begins, or the text ends."""
    found = _BREAK.search(text, at)
    return found.end() if found else len(text)


def line_break(text: str) -> str:
    """What ends the lines of a text."""
    found = _BREAK.search(text)
    return found[0] if found else "\n"


def without_break(text: str, at: int) -> int:
    """The position before the break that ends at ``at``, if one does."""
    if text[:at].endswith("\r\n"):
        return at - 2
    return at - 1 if at and text[at - 1] in BREAKS else at
