"""The text of a YAML file: its encoding, its lines, and the spans of its nodes.

A span contains only the node, without the white space and comments that follow. The span of an aliased node
is the span of the alias. PyYAML's end marks are different: the end mark of a block is the start of the next
token, and an aliased node has the marks of its anchor.
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
"""The byte order marks with which a YAML file can begin, each with the encoding."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of a file. mark: the byte order mark, which is not part of the decoded text."""

    mark: bytes
    codec: str

    def encode(self, text: str) -> bytes:
        """Encode text, and put the byte order mark before it."""
        return self.mark + text.encode(self.codec)


def decode_text(data: bytes) -> tuple[str, Encoding]:
    """Return the text of a valid YAML file, and the encoding to use when the file is written again."""
    mark, codec = next(((m, c) for m, c in _MARKS if data.startswith(m)), (b"", "utf-8"))
    return data[len(mark) :].decode(codec), Encoding(mark, codec)


def find_line_start(text: str, offset: int) -> int:
    """Return the offset of the start of the line that contains ``offset``."""
    return max(text.rfind(mark, 0, offset) for mark in BREAKS) + 1


def find_line_end(text: str, offset: int) -> int:
    """Return the offset of the end of the line that contains ``offset``, before the line break."""
    match = _BREAK.search(text, offset)
    return match.start() if match else len(text)


def find_next_line(text: str, offset: int) -> int:
    """Return the offset of the start of the next line, or of the end of the text if there is no next line."""
    match = _BREAK.search(text, offset)
    return match.end() if match else len(text)


def find_line_break(text: str) -> str:
    """Return the first line break of the text, or a newline if the text has no line break."""
    match = _BREAK.search(text)
    return match[0] if match else "\n"


def find_break_start(text: str, offset: int) -> int:
    """Return the start of the line break that ends at ``offset``, or ``offset`` if there is no line break."""
    if text[:offset].endswith("\r\n"):
        return offset - 2
    return offset - 1 if offset and text[offset - 1] in BREAKS else offset


_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]*)+(?<=\S)")
_ALIAS = re.compile(r"\*[^\s,\[\]{}]+")


class Span(NamedTuple):
    """The start and end offsets of a node in the text of a file. The end is exclusive."""

    start: int
    end: int


def get_node_start(node: Node) -> int:
    """Return the start offset of a node, before its anchor and tag."""
    return int(node.start_mark.index)


def find_content_start(text: str, node: Node) -> int:
    """Return the start offset of a node's content, after its anchor and tag.

    If no content follows on the line of the anchor and tag, return the end offset of the anchor and tag.
    """
    match = _PROPERTIES.match(text, get_node_start(node))
    if match is None:
        return get_node_start(node)
    offset = match.end()
    while offset < node.end_mark.index and text[offset] in " \t":
        offset += 1
    return match.end() if offset >= node.end_mark.index or text[offset] in BREAKS + "#" else offset


def is_flow(node: CollectionNode) -> bool:
    """Return whether a list is written in brackets, or a mapping in braces."""
    return bool(node.flow_style)


def find_span(text: str, node: Node, earliest_start: int) -> Span:
    """Return the span of a node.

    earliest_start: the end offset of the token before the node. A node that starts before this offset is the
        target of an alias. In this case, the span of the alias is returned.
    """
    if get_node_start(node) < earliest_start:
        match = _ALIAS.search(text, earliest_start)
        return Span(*match.span()) if match else Span(earliest_start, earliest_start)
    if isinstance(node, ScalarNode):
        return Span(get_node_start(node), _find_scalar_end(text, node))
    if not isinstance(node, CollectionNode) or is_flow(node) or not node.value:
        return Span(get_node_start(node), node.end_mark.index)
    return Span(get_node_start(node), collect_item_spans(text, node)[-1].end)


def collect_item_spans(text: str, node: CollectionNode) -> list[Span]:
    """Return the span of each key-value pair of a mapping, or of each list element, without its dash."""
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
