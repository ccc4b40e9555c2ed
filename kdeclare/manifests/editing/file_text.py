"""The text of a file: its encoding, its lines as YAML counts them, and the spans of nodes in it.

In PyYAML, the end mark of a block is where the next token begins, and an aliased node has the marks of its
anchor. The spans of this module exclude the white space and comments after a node. The span of an aliased
node is that of the alias.
"""

import codecs
import re
from typing import NamedTuple

from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

from kdeclare.core.frozen_dataclass import dataclass

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
    """The encoding of a file. mark: the byte order mark, which is not part of the text."""

    mark: bytes
    codec: str

    def encode(self, text: str) -> bytes:
        """Return the text as bytes in this encoding."""
        return self.mark + text.encode(self.codec)


def decode_text(data: bytes) -> tuple[str, Encoding]:
    """Return the text of a valid YAML file, and the encoding with which to write it back."""
    mark, codec = next(((m, c) for m, c in _MARKS if data.startswith(m)), (b"", "utf-8"))
    return data[len(mark) :].decode(codec), Encoding(mark, codec)


def find_line_start(text: str, offset: int) -> int:
    """Return the offset where the line of a character begins."""
    return max(text.rfind(mark, 0, offset) for mark in BREAKS) + 1


def find_line_end(text: str, offset: int) -> int:
    """Return the offset where the line of a character ends, before its line break."""
    match = _BREAK.search(text, offset)
    return match.start() if match else len(text)


def find_next_line(text: str, offset: int) -> int:
    """Return the offset where the next line begins, or the text ends."""
    match = _BREAK.search(text, offset)
    return match.end() if match else len(text)


def find_line_break(text: str) -> str:
    """Return the line break that the text uses."""
    match = _BREAK.search(text)
    return match[0] if match else "\n"


def find_break_start(text: str, offset: int) -> int:
    """Return the offset before the line break that ends at ``offset``, if there is one."""
    if text[:offset].endswith("\r\n"):
        return offset - 2
    return offset - 1 if offset and text[offset - 1] in BREAKS else offset


_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]*)+(?<=\S)")
_ALIAS = re.compile(r"\*[^\s,\[\]{}]+")


class Span(NamedTuple):
    """The offsets of a piece of text; the end is exclusive."""

    start: int
    end: int


def get_node_start(node: Node) -> int:
    """Return the offset where a node begins, including its anchor and tag."""
    return int(node.start_mark.index)


def find_content_start(text: str, node: Node) -> int:
    """Return the offset where a node begins after its anchor and tag.

    If nothing follows the anchor and tag on their line, return the offset where they end.
    """
    match = _PROPERTIES.match(text, get_node_start(node))
    if match is None:
        return get_node_start(node)
    offset = match.end()
    while offset < node.end_mark.index and text[offset] in " \t":
        offset += 1
    return match.end() if offset >= node.end_mark.index or text[offset] in BREAKS + "#" else offset


def is_flow(node: CollectionNode) -> bool:
    """Return whether a collection is written in brackets or braces."""
    return bool(node.flow_style)


def find_span(text: str, node: Node, earliest_start: int) -> Span:
    """Return the span of a node that begins at or after ``earliest_start``."""
    if get_node_start(node) < earliest_start:
        match = _ALIAS.search(text, earliest_start)
        return Span(*match.span()) if match else Span(earliest_start, earliest_start)
    if isinstance(node, ScalarNode):
        return Span(get_node_start(node), _find_scalar_end(text, node))
    if not isinstance(node, CollectionNode) or is_flow(node) or not node.value:
        return Span(get_node_start(node), node.end_mark.index)
    return Span(get_node_start(node), collect_item_spans(text, node)[-1].end)


def collect_item_spans(text: str, node: CollectionNode) -> list[Span]:
    """Return the spans of the pairs of a mapping or the elements of a list, without their dashes."""
    spans: list[Span] = []
    earliest_start = get_node_start(node)
    for item in node.value:
        if isinstance(node, MappingNode):
            key, value = item
            item_span = Span(get_node_start(key), find_span(text, value, key.end_mark.index).end)
        else:
            item_span = find_span(text, item, earliest_start)
        spans.append(item_span)
        earliest_start = item_span.end
    return spans


def _find_scalar_end(text: str, node: ScalarNode) -> int:
    end = int(node.end_mark.index)
    if node.style not in ("|", ">"):
        return end
    start = find_content_start(text, node)
    if "+" in text[start : find_line_end(text, start)].partition("#")[0]:
        return find_break_start(text, end)  # trailing blank lines belong to the scalar
    return len(text[:end].rstrip())
