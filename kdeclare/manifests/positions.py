"""Places inside of a scalar, for texts that have a syntax of their own.

The file is read once more, as nodes do not keep how they were written; this happens for mistakes only.
"""

import re
from itertools import islice

from yaml.nodes import Node, ScalarNode

from kdeclare.core.diagnostics import Place
from kdeclare.manifests.files import read
from kdeclare.manifests.nodes import place
from kdeclare.manifests.substitution import has_reference

_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_QUOTED = {
    "'": re.compile(r"''|."),
    '"': re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|."),
}
"""What stands for one character between these quotes."""


def within(node: Node, offset: int) -> Place:
    """The place of a character of a scalar's text; the scalar's own where that cannot be told.

    It can be told in plain and quoted scalars of one line, and in blocks that keep their lines (``|``),
    up to the first ``${…}``.
    """
    start = place(node)
    if not isinstance(node, ScalarNode) or has_reference(node.value[: offset + 1]):
        return start
    offset = min(offset, len(node.value.rstrip()))  # what is missing at the end is missing after the text
    lines = _lines(start.file)
    if node.style == "|":
        return _in_block(node.value, offset, start, lines)
    if node.start_mark.line != node.end_mark.line or start.line > len(lines):
        return start
    column = _in_line(node, offset, lines[start.line - 1], start.column - 1)
    return start if column is None else Place(start.file, start.line, column + 1)


def _lines(file: str) -> list[str]:
    data = read(file, []) or b""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return _BREAK.split(data.decode(encoding, errors="replace"))


def _in_line(node: ScalarNode, offset: int, line: str, begin: int) -> int | None:
    """The column, from 0. An anchor or a tag may stand before the text."""
    if not node.style:
        found = line.find(node.value, begin)
        return found + offset if found >= 0 else None
    opened = line.find(node.style, begin)
    written = _QUOTED.get(node.style)
    if opened < 0 or written is None:
        return None
    before = list(islice(written.finditer(line, opened + 1), offset))
    return before[-1].end() if before else opened + 1


def _in_block(text: str, offset: int, start: Place, lines: list[str]) -> Place:
    number = text.count("\n", 0, offset)
    line = text.split("\n")[number]
    at = start.line + number  # the text begins in the line after the one with the bar
    if at >= len(lines) or not lines[at].endswith(line):
        return start
    indent = len(lines[at]) - len(line)
    column = indent + offset - (text.rfind("\n", 0, offset) + 1)
    return Place(start.file, at + 1, column + 1)
