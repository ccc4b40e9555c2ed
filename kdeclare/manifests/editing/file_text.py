"""The text of a file: how its bytes hold it, its lines as YAML counts them, and where nodes stand in it.

The end mark of a block is where the next token begins, and an aliased node has the marks of its anchor: the
spans here leave out the white space and comments after a node, and are those of the alias itself.
"""

import codecs
import re
from typing import NamedTuple

from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

from kdeclare.core.frozen import dataclass

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


_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]*)+(?<=\S)")
_ALIAS = re.compile(r"\*[^\s,\[\]{}]+")


class Span(NamedTuple):
    """From a character up to, and without, another one."""

    start: int
    end: int


def begin(node: Node) -> int:
    """Where a node begins, its anchor and tag included."""
    return int(node.start_mark.index)


def bare(text: str, node: Node) -> int:
    """Where a node begins without anchor and tag; the end of those where nothing follows in their line."""
    found = _PROPERTIES.match(text, begin(node))
    if found is None:
        return begin(node)
    at = found.end()
    while at < node.end_mark.index and text[at] in " \t":
        at += 1
    return found.end() if at >= node.end_mark.index or text[at] in BREAKS + "#" else at


def is_flow(node: CollectionNode) -> bool:
    """Whether it stands between brackets."""
    return bool(node.flow_style)


def span(text: str, node: Node, after: int) -> Span:
    """A node that is met after the position ``after``."""
    if begin(node) < after:
        found = _ALIAS.search(text, after)
        return Span(*found.span()) if found else Span(after, after)
    if isinstance(node, ScalarNode):
        return Span(begin(node), _scalar_end(text, node))
    if not isinstance(node, CollectionNode) or is_flow(node) or not node.value:
        return Span(begin(node), node.end_mark.index)
    return Span(begin(node), items(text, node)[-1].end)


def items(text: str, node: CollectionNode) -> list[Span]:
    """The pairs of a mapping or the elements of a list; not the dashes before those."""
    found: list[Span] = []
    after = begin(node)
    for item in node.value:
        if isinstance(node, MappingNode):
            key, value = item
            one = Span(begin(key), span(text, value, key.end_mark.index).end)
        else:
            one = span(text, item, after)
        found.append(one)
        after = one.end
    return found


def _scalar_end(text: str, node: ScalarNode) -> int:
    end = int(node.end_mark.index)
    if node.style not in ("|", ">"):
        return end
    start = bare(text, node)
    if "+" in text[start : line_end(text, start)].partition("#")[0]:
        return without_break(text, end)  # blank lines at its end are part of it
    return len(text[:end].rstrip())
