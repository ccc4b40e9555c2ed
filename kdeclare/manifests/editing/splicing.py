"""One edit of the text of one document, also inside of collections between brackets."""

import re
from collections.abc import Sequence
from itertools import takewhile

from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.manifests.editing.edits import (
    Append,
    Edit,
    Path,
    Put,
    Value,
    flow_text,
    nested_block,
    nested_flow,
    plain_text,
)
from kdeclare.manifests.editing.file_text import (
    BREAKS,
    Span,
    bare,
    begin,
    is_flow,
    items,
    line_break,
    line_end,
    line_start,
    next_line,
    span,
    without_break,
)
from kdeclare.manifests.syntax.nodes import child, node_at
from kdeclare.manifests.syntax.reading import resolve

_COMMA = re.compile(rf"[ \t{BREAKS}]*,")
_SPACE = re.compile(r"[ \t]*")
_REST = re.compile(rf"[ \t]*(?:(?<=[ \t])#.*)?(?=[{BREAKS}])")
"""What may stand in a line after its last item."""


def added(text: str, node: CollectionNode, written: str) -> str:
    """With an item after the last one; in a line of its own if that one is."""
    if not node.value:
        at = bare(text, node) + 1
        return text[:at] + written + text[at:]
    last = items(text, node)[-1]
    comma = _COMMA.match(text, last.end)
    at = comma.end() if comma else last.end
    rest = _REST.match(text, at)
    if rest is None or not _begins_line(text, last):
        return text[:at] + (" " if comma else ", ") + written + text[at:]
    indent = text[line_start(text, last.start) : last.start]
    upper = text[:at] + ("" if comma else ",") + text[at : rest.end()]
    return upper + line_break(text) + indent + written + ("," if comma else "") + text[rest.end() :]


def dropped(text: str, node: CollectionNode, index: int) -> str:
    """Without an item and one comma; and without its lines, if it has them for itself."""
    found = items(text, node)
    one = found[index]
    comma = _COMMA.match(text, one.end)
    start, end = one.start, comma.end() if comma else one.end
    rest = _REST.match(text, end)
    if rest is not None and _begins_line(text, one):
        start, end = line_start(text, start), next_line(text, rest.end())
        before = _COMMA.match(text, found[index - 1].end) if index and comma is None else None
        kept = text[: before.end() - 1] + text[before.end() : start] if before else text[:start]
        return kept + text[end:]
    if comma is not None:
        space = _SPACE.match(text, end)
        return text[:start] + text[space.end() if space else end :]
    return text[: found[index - 1].end if index else start] + text[end:]


def _begins_line(text: str, one: Span) -> bool:
    return not text[line_start(text, one.start) : one.start].strip(" \t")


_COLON = re.compile(r"[ \t]*:")
_DASH = re.compile(r"( *)-[ \t]*")
_HEADER = re.compile(r"[|>][0-9+-]*([ \t]+#.*)?")
_WIDTH = 2


class OddLayout(Exception):
    """No splice does it without touching more than what is to change."""


def spliced(text: str, root: Node, edit: Edit) -> str:
    """The text after an edit; ``root`` is what it composes to. Raises OddLayout."""
    if isinstance(edit, Put):
        return _put(text, root, edit.path, edit.value)
    if isinstance(edit, Append):
        return _append(text, root, edit)
    return _drop(text, root, edit.path)


def is_null(node: Node) -> bool:
    """Whether it is a null, written out or not."""
    return isinstance(node, ScalarNode) and not node.style and resolve(node.value) == (None, None)


def _put(text: str, root: Node, path: Path, value: Value) -> str:
    there = len(list(takewhile(lambda n: node_at(root, path[:n]) is not None, range(1, len(path) + 1))))
    node, missing = node_at(root, path[:there]), path[there:]
    if not missing and isinstance(node, ScalarNode) and not isinstance(value, dict | list):
        return _replaced(text, root, path, plain_text(value, node.style))
    if not missing:
        return _replaced(text, root, path, flow_text(value))
    if isinstance(node, MappingNode):
        return _with_key(text, root, node, missing, value)
    parent = node_at(root, path[: there - 1])
    if not isinstance(node, ScalarNode) or not is_null(node):
        raise OddLayout
    if not isinstance(parent, MappingNode) or is_flow(parent):
        return _replaced(text, root, path[:there], "{" + nested_flow(missing, value) + "}")
    lines = nested_block(missing, value, _column(parent) + _width(root), _width(root))
    return _below(text, node, lines)


def _replaced(text: str, root: Node, path: Path, written: str) -> str:
    """With ``written`` in place of a node, whose anchor stays."""
    parent, node = node_at(root, path[:-1]) if path else None, node_at(root, path)
    pair = child(parent, path[-1]) if parent is not None else None
    if pair is None or node is None:
        raise OddLayout
    after = pair[0].end_mark.index if pair[0] is not None else None
    start, end = bare(text, node), span(text, node, 0).end
    if isinstance(node, CollectionNode) and not is_flow(node) and node.value:
        return _block_replaced(text, node, after, written)
    if start < end:
        return text[:start] + written + _comment_of_block(text, node, start) + text[end:]
    if after is None:
        raise OddLayout
    colon = _COLON.match(text, after)
    if colon is None:
        return f"{text[:start]}: {written}{text[start:]}"
    space = text[start : start + 1] == " " and text[start + 1 : start + 2] != "#"
    return text[:start].rstrip(" \t") + f" {written}" + text[start + space :]


def _block_replaced(text: str, node: CollectionNode, after: int | None, written: str) -> str:
    """With ``written`` in the line of the key, and without the lines of the block."""
    colon = _COLON.match(text, after) if after is not None else None
    end = line_end(text, span(text, node, 0).end)
    first = line_start(text, items(text, node)[0].start)
    if colon is None or first < colon.end():
        raise OddLayout
    at = bare(text, node) if text[begin(node)] in "&!" else colon.end()
    if end == len(text):  # the last line had no break, and the one before it will have none
        first = without_break(text, first)
    return f"{text[:at]} {written}{text[at:first]}{text[next_line(text, end) :]}"


def _comment_of_block(text: str, node: Node, start: int) -> str:
    """The comment behind the ``|`` or ``>`` of a scalar in lines of its own."""
    header = _HEADER.match(text, start) if isinstance(node, ScalarNode) and node.style in ("|", ">") else None
    return (header[1] or "") if header else ""


def _below(text: str, node: ScalarNode, lines: Sequence[str]) -> str:
    """With a block in place of a null, whose key keeps the comment in its line."""
    start, end = bare(text, node), span(text, node, 0).end
    upper = text[:start].rstrip(" \t") if start < end else text[:start]
    at = line_end(text, end)
    return upper + text[end:at] + "".join(line_break(text) + line for line in lines) + text[at:]


def _with_key(text: str, root: Node, node: MappingNode, steps: Sequence[str | int], value: Value) -> str:
    if is_flow(node) or not node.value:
        style = node.value[-1][0].style if node.value else None
        return added(text, node, nested_flow(steps, value, style))
    return _with_lines(text, node, _column(node), nested_block(steps, value, _column(node), _width(root)))


def _append(text: str, root: Node, edit: Append) -> str:
    node = node_at(root, edit.path)
    if not isinstance(node, SequenceNode):
        raise OddLayout
    last = node.value[-1] if node.value else None
    written = plain_text(edit.value, last.style if isinstance(last, ScalarNode) else None)
    if is_flow(node) or not node.value:
        return added(text, node, written)
    first = items(text, node)[0].start
    dash = _DASH.fullmatch(text, line_start(text, first), first)
    if dash is None:
        raise OddLayout
    # a comment in the column of the dashes can speak of the key that follows, as that can stand there too
    return _with_lines(text, node, len(dash[1]) + 1, [f"{dash[1]}- {written}"])


def _with_lines(text: str, node: CollectionNode, column: int, lines: Sequence[str]) -> str:
    """With lines after the last item of a block, and after the comments below it that are in the block."""
    at = line_end(text, items(text, node)[-1].end)
    comment = re.compile(rf" {{{column},}}#")
    while comment.match(text, next_line(text, at)):
        at = line_end(text, next_line(text, at))
    return text[:at] + "".join(line_break(text) + line for line in lines) + text[at:]


def _drop(text: str, root: Node, path: Path) -> str:
    parent = node_at(root, path[:-1])
    if not isinstance(parent, CollectionNode) or node_at(root, path) is None:
        raise OddLayout
    index = _index(parent, path[-1])
    if is_flow(parent):
        return dropped(text, parent, index)
    if len(parent.value) == 1:
        return _replaced(text, root, path[:-1], "{}" if isinstance(parent, MappingNode) else "[]")
    one = items(text, parent)[index]
    start, end = line_start(text, one.start), line_end(text, one.end)
    if not _DASH.fullmatch(text, start, one.start) and text[start : one.start].strip(" "):
        raise OddLayout
    if end == len(text):
        return text[: without_break(text, start)]
    return text[:start] + text[next_line(text, end) :]


def _index(node: CollectionNode, step: str | int) -> int:
    if isinstance(node, SequenceNode) and isinstance(step, int):
        return step
    return next(n for n, (key, _) in enumerate(node.value) if key.value == str(step))


def _column(node: MappingNode) -> int:
    return int(node.value[0][0].start_mark.column)


def _width(root: Node) -> int:
    """By how much a document indents its levels."""
    if isinstance(root, MappingNode) and not is_flow(root):
        for key, value in root.value:
            if isinstance(value, MappingNode) and not is_flow(value) and value.value:
                return max(1, _column(value) - int(key.start_mark.column))
    return _WIDTH
