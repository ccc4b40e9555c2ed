"""Apply one edit to the YAML text of one document, in block style and in flow style (brackets and braces)."""

import re
from collections.abc import Sequence
from itertools import takewhile

from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.manifests.editing.edits import (
    AppendEdit,
    Edit,
    EditValue,
    NodePath,
    PutEdit,
    format_flow,
    format_nested_block,
    format_nested_flow,
    format_scalar,
)
from kdeclare.manifests.editing.file_text import (
    BREAKS,
    Span,
    collect_item_spans,
    find_break_start,
    find_content_start,
    find_line_break,
    find_line_end,
    find_line_start,
    find_next_line,
    find_span,
    get_node_start,
    is_flow,
)
from kdeclare.manifests.syntax.node_reader import parse_scalar
from kdeclare.manifests.syntax.nodes import find_child, find_node

_COMMA = re.compile(rf"[ \t{BREAKS}]*,")
_SPACE = re.compile(r"[ \t]*")
_REST = re.compile(rf"[ \t]*(?:(?<=[ \t])#.*)?(?=[{BREAKS}])")
"""Matches white space and a comment after the last item on a line."""


def insert_item(text: str, node: CollectionNode, item_text: str) -> str:
    """Add an item to a list in brackets or a mapping in braces.

    The new item is put on its own line if the last existing item is on its own line.
    """
    if not node.value:
        offset = find_content_start(text, node) + 1
        return text[:offset] + item_text + text[offset:]
    last_item = collect_item_spans(text, node)[-1]
    comma = _COMMA.match(text, last_item.end)
    offset = comma.end() if comma else last_item.end
    line_rest = _REST.match(text, offset)
    if line_rest is None or not _is_first_in_line(text, last_item):
        return text[:offset] + (" " if comma else ", ") + item_text + text[offset:]
    indent = text[find_line_start(text, last_item.start) : last_item.start]
    head = text[:offset] + ("" if comma else ",") + text[offset : line_rest.end()]
    return (
        head + find_line_break(text) + indent + item_text + ("," if comma else "") + text[line_rest.end() :]
    )


def remove_item(text: str, node: CollectionNode, index: int) -> str:
    """Remove an item and one comma from a list in brackets or a mapping in braces.

    If the lines of the item contain no other item, remove these lines as well.
    """
    spans = collect_item_spans(text, node)
    item = spans[index]
    comma = _COMMA.match(text, item.end)
    start, end = item.start, comma.end() if comma else item.end
    line_rest = _REST.match(text, end)
    if line_rest is not None and _is_first_in_line(text, item):
        start, end = find_line_start(text, start), find_next_line(text, line_rest.end())
        previous_comma = _COMMA.match(text, spans[index - 1].end) if index and comma is None else None
        head = (
            text[: previous_comma.end() - 1] + text[previous_comma.end() : start]
            if previous_comma
            else text[:start]
        )
        return head + text[end:]
    if comma is not None:
        space = _SPACE.match(text, end)
        return text[:start] + text[space.end() if space else end :]
    return text[: spans[index - 1].end if index else start] + text[end:]


def _is_first_in_line(text: str, item: Span) -> bool:
    return not text[find_line_start(text, item.start) : item.start].strip(" \t")


_COLON = re.compile(r"[ \t]*:")
_DASH = re.compile(r"( *)-[ \t]*")
_HEADER = re.compile(r"[|>][0-9+-]*([ \t]+#.*)?")
_WIDTH = 2


class UnsupportedLayout(Exception):
    """Raised if an edit is not possible without changing other parts of the document."""


def splice_edit(text: str, root: Node, edit: Edit) -> str:
    """Return the edited text of a document. root: the root node of ``text``. Raises UnsupportedLayout."""
    if isinstance(edit, PutEdit):
        return _splice_put(text, root, edit.path, edit.value)
    if isinstance(edit, AppendEdit):
        return _splice_append(text, root, edit)
    return _splice_drop(text, root, edit.path)


def is_null(node: Node) -> bool:
    """Return whether a node is null: an empty value, or a plain scalar such as ``null`` or ``~``."""
    return isinstance(node, ScalarNode) and not node.style and parse_scalar(node.value) == (None, None)


def _splice_put(text: str, root: Node, path: NodePath, value: EditValue) -> str:
    existing_depth = len(
        list(takewhile(lambda n: find_node(root, path[:n]) is not None, range(1, len(path) + 1)))
    )
    node, missing_steps = find_node(root, path[:existing_depth]), path[existing_depth:]
    if not missing_steps and isinstance(node, ScalarNode) and not isinstance(value, dict | list):
        return _replace_node(text, root, path, format_scalar(value, node.style))
    if not missing_steps:
        return _replace_node(text, root, path, format_flow(value))
    if isinstance(node, MappingNode):
        return _insert_key(text, root, node, missing_steps, value)
    parent = find_node(root, path[: existing_depth - 1])
    if not isinstance(node, ScalarNode) or not is_null(node):
        raise UnsupportedLayout
    if not isinstance(parent, MappingNode) or is_flow(parent):
        return _replace_node(
            text, root, path[:existing_depth], "{" + format_nested_flow(missing_steps, value) + "}"
        )
    lines = format_nested_block(
        missing_steps, value, _get_column(parent) + _compute_indent_width(root), _compute_indent_width(root)
    )
    return _insert_below(text, node, lines)


def _replace_node(text: str, root: Node, path: NodePath, new_text: str) -> str:
    """Replace the content of a node with ``new_text``, and keep the anchor of the node."""
    parent, node = find_node(root, path[:-1]) if path else None, find_node(root, path)
    pair = find_child(parent, path[-1]) if parent is not None else None
    if pair is None or node is None:
        raise UnsupportedLayout
    key_end = pair[0].end_mark.index if pair[0] is not None else None
    start, end = find_content_start(text, node), find_span(text, node, 0).end
    if isinstance(node, CollectionNode) and not is_flow(node) and node.value:
        return _replace_block(text, node, key_end, new_text)
    if start < end:
        return text[:start] + new_text + _find_block_comment(text, node, start) + text[end:]
    if key_end is None:
        raise UnsupportedLayout
    colon = _COLON.match(text, key_end)
    if colon is None:
        return f"{text[:start]}: {new_text}{text[start:]}"
    has_space = text[start : start + 1] == " " and text[start + 1 : start + 2] != "#"
    return text[:start].rstrip(" \t") + f" {new_text}" + text[start + has_space :]


def _replace_block(text: str, node: CollectionNode, key_end: int | None, new_text: str) -> str:
    """Replace a block-style mapping or list. Put ``new_text`` on the line of the key that has this value."""
    colon = _COLON.match(text, key_end) if key_end is not None else None
    end = find_line_end(text, find_span(text, node, 0).end)
    block_start = find_line_start(text, collect_item_spans(text, node)[0].start)
    if colon is None or block_start < colon.end():
        raise UnsupportedLayout
    offset = find_content_start(text, node) if text[get_node_start(node)] in "&!" else colon.end()
    if end == len(text):  # the last line had no line break, so the new last line gets none either
        block_start = find_break_start(text, block_start)
    return f"{text[:offset]} {new_text}{text[offset:block_start]}{text[find_next_line(text, end) :]}"


def _find_block_comment(text: str, node: Node, start: int) -> str:
    """Return the comment after the ``|`` or ``>`` of a block scalar."""
    header = _HEADER.match(text, start) if isinstance(node, ScalarNode) and node.style in ("|", ">") else None
    return (header[1] or "") if header else ""


def _insert_below(text: str, node: ScalarNode, lines: Sequence[str]) -> str:
    """Replace a null value with lines below its key. A comment on the key's line is kept."""
    start, end = find_content_start(text, node), find_span(text, node, 0).end
    head = text[:start].rstrip(" \t") if start < end else text[:start]
    offset = find_line_end(text, end)
    return head + text[end:offset] + "".join(find_line_break(text) + line for line in lines) + text[offset:]


def _insert_key(
    text: str, root: Node, node: MappingNode, steps: Sequence[str | int], value: EditValue
) -> str:
    if is_flow(node) or not node.value:
        style = node.value[-1][0].style if node.value else None
        return insert_item(text, node, format_nested_flow(steps, value, style))
    return _insert_lines(
        text,
        node,
        _get_column(node),
        format_nested_block(steps, value, _get_column(node), _compute_indent_width(root)),
    )


def _splice_append(text: str, root: Node, edit: AppendEdit) -> str:
    node = find_node(root, edit.path)
    if not isinstance(node, SequenceNode):
        raise UnsupportedLayout
    last_element = node.value[-1] if node.value else None
    style = last_element.style if isinstance(last_element, ScalarNode) else None
    element_text = (
        format_flow(edit.value) if isinstance(edit.value, dict | list) else format_scalar(edit.value, style)
    )
    if is_flow(node) or not node.value:
        return insert_item(text, node, element_text)
    first_start = collect_item_spans(text, node)[0].start
    dash = _DASH.fullmatch(text, find_line_start(text, first_start), first_start)
    if dash is None:
        raise UnsupportedLayout
    # a comment in the column of the dashes can belong to the next key, which can start in the same column
    return _insert_lines(text, node, len(dash[1]) + 1, [f"{dash[1]}- {element_text}"])


def _insert_lines(text: str, node: CollectionNode, column: int, lines: Sequence[str]) -> str:
    """Insert lines at the end of a block: after its last item and the comments below this item.

    column: the minimum indentation of a comment that belongs to the block.
    """
    offset = find_line_end(text, collect_item_spans(text, node)[-1].end)
    comment = re.compile(rf" {{{column},}}#")
    while comment.match(text, find_next_line(text, offset)):
        offset = find_line_end(text, find_next_line(text, offset))
    return text[:offset] + "".join(find_line_break(text) + line for line in lines) + text[offset:]


def _splice_drop(text: str, root: Node, path: NodePath) -> str:
    parent = find_node(root, path[:-1])
    if not isinstance(parent, CollectionNode) or find_node(root, path) is None:
        raise UnsupportedLayout
    index = _get_index(parent, path[-1])
    if is_flow(parent):
        return remove_item(text, parent, index)
    if len(parent.value) == 1:
        return _replace_node(text, root, path[:-1], "{}" if isinstance(parent, MappingNode) else "[]")
    item = collect_item_spans(text, parent)[index]
    start, end = find_line_start(text, item.start), find_line_end(text, item.end)
    if not _DASH.fullmatch(text, start, item.start) and text[start : item.start].strip(" "):
        raise UnsupportedLayout
    if end == len(text):
        return text[: find_break_start(text, start)]
    return text[:start] + text[find_next_line(text, end) :]


def _get_index(node: CollectionNode, step: str | int) -> int:
    if isinstance(node, SequenceNode) and isinstance(step, int):
        return step
    return next(n for n, (key, _) in enumerate(node.value) if key.value == str(step))


def _get_column(node: MappingNode) -> int:
    return int(node.value[0][0].start_mark.column)


def _compute_indent_width(root: Node) -> int:
    if isinstance(root, MappingNode) and not is_flow(root):
        for key, value in root.value:
            if isinstance(value, MappingNode) and not is_flow(value) and value.value:
                return max(1, _get_column(value) - int(key.start_mark.column))
    return _WIDTH
