"""Indent the text of one YAML document, and remove needless blank lines and white space.

Only the beginnings of lines change. Scalars and values in brackets keep their lines; if they have several
lines, these lines move together with the first one.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.manifests.editing.file_text import BREAKS, find_line_break, find_span, get_node_start, is_flow
from kdeclare.manifests.editing.text_splice import UnsupportedLayout

_WIDTH = 2
_LINE = re.compile(rf"[^{BREAKS}]*(?:\r\n|[{BREAKS}]|\Z)")
_FILLER = re.compile(rf"(?:[ \t{BREAKS}]+|(?<!\S)#[^{BREAKS}]*|[&!][^\s,\[\]{{}}]*)*")
"""Matches what can be between two items: white space, comments, and the anchor and tag of the value."""
_SPACES = re.compile(" *")

_Block = tuple[int, int]
"""The column of a block before and after formatting."""


@dataclass(slots=True)
class _Prefix:
    """The beginning of a line that starts an item of a block.

    column: the column where the rest of the line begins. text: the new text before the rest.
    """

    column: int
    text: str


@dataclass(slots=True)
class _Plan:
    """How each line of a document changes. Lines are counted from 0.

    prefixes: the new beginnings of the lines that start an item. blocks: the blocks that are open in these
    lines, the outermost first.
    shifts: the number of columns by which the other lines of a value move.
    literals: the lines inside block scalars, with the indentation of the scalar.
    """

    prefixes: dict[int, _Prefix] = field(default_factory=dict)
    blocks: dict[int, tuple[_Block, ...]] = field(default_factory=dict)
    shifts: dict[int, int] = field(default_factory=dict)
    literals: dict[int, int] = field(default_factory=dict)


def split_lines(text: str) -> list[str]:
    """Split a text into lines, each with its line break. YAML has more line breaks than ``\\n``."""
    return [line for line in _LINE.findall(text) if line]


def format_indentation(text: str, root: Node) -> str:
    """Return a document with two columns of indentation for each level, including lists.

    root: the root node of ``text``. Raises UnsupportedLayout for explicit keys (``? key``) and for other
    layouts that are rare in manifests.
    """
    lines = split_lines(text)
    plan = _Planner(text, lines).build(root)
    return "".join(_join_lines(lines, plan, find_line_break(text)))


class _Planner:
    def __init__(self, text: str, lines: Sequence[str]) -> None:
        self._text, self._lines = text, lines
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))
        self._plan = _Plan()

    def build(self, root: Node) -> _Plan:
        if _is_block(root):
            self._place_block(root, 0, 0, ())
        else:
            self._shift_lines(root, get_node_start(root), self._find_line(get_node_start(root)) - 1, 0)
        return self._plan

    def _find_line(self, offset: int) -> int:
        return min(bisect_right(self._starts, offset), len(self._lines)) - 1

    def _locate(self, offset: int) -> tuple[int, int]:
        line = self._find_line(offset)
        return line, offset - self._starts[line]

    def _place(self, offset: int, new_column: int, blocks: tuple[_Block, ...]) -> int:
        """Plan to move the item that starts at ``offset`` to a new column. Return the line of the item."""
        line, column = self._locate(offset)
        prefix = self._plan.prefixes.get(line)
        if prefix is None:
            if self._lines[line][:column].strip(" ") or line in self._plan.shifts:
                raise UnsupportedLayout
            self._plan.prefixes[line] = _Prefix(column, " " * new_column)
        elif prefix.column != column or len(prefix.text) != new_column:
            raise UnsupportedLayout
        self._plan.blocks[line] = blocks
        return line

    def _place_block(
        self, node: CollectionNode, start: int, new_column: int, blocks: tuple[_Block, ...]
    ) -> int:
        """Plan to move the items of a block to a new column. Return the end of the last item.

        start: an offset before the first item, and after the key or dash of the block.
        """
        if isinstance(node, MappingNode):
            return self._place_mapping(node, new_column, blocks)
        return self._place_sequence(node, start, new_column, blocks)

    def _place_mapping(self, node: MappingNode, new_column: int, blocks: tuple[_Block, ...]) -> int:
        end = get_node_start(node)
        column = self._locate(get_node_start(node.value[0][0]))[1]
        own_blocks = (*blocks, (column, new_column))
        for key, value in node.value:
            key_start = get_node_start(key)
            if key_start < end or not isinstance(key, ScalarNode):  # an alias, or a key in brackets
                raise UnsupportedLayout
            line = self._place(key_start, new_column, own_blocks)
            if _is_block(value) and get_node_start(value) >= key.end_mark.index:
                end = self._place_block(value, self._find_colon(key) + 1, new_column + _WIDTH, own_blocks)
            else:
                end = self._shift_lines(value, key.end_mark.index, line, new_column - column)
        return end

    def _find_colon(self, key: Node) -> int:
        return self._text.index(":", key.end_mark.index)

    def _place_sequence(
        self, node: CollectionNode, start: int, new_column: int, blocks: tuple[_Block, ...]
    ) -> int:
        end = start
        column: int | None = None
        for item in node.value:
            dash = self._find_next(end)
            if self._text[dash : dash + 1] != "-":
                raise UnsupportedLayout
            dash_line, dash_column = self._locate(dash)
            column = dash_column if column is None else column
            own_blocks = (*blocks, (column, new_column))
            self._place(dash, new_column, own_blocks)
            content = self._find_content(dash + 1)
            prefix = self._plan.prefixes[dash_line]
            if self._locate(content)[0] == dash_line and content < len(self._text):
                prefix.column, prefix.text = self._locate(content)[1], prefix.text + "- "
            else:
                prefix.column, prefix.text = dash_column + 1, prefix.text + "-"
            shift = len(prefix.text) - prefix.column
            if _is_block(item) and get_node_start(item) > dash:
                end = self._place_block(item, dash + 1, new_column + _WIDTH, own_blocks)
            else:
                end = self._shift_lines(item, dash + 1, dash_line, shift)
        return end

    def _find_next(self, offset: int) -> int:
        match = _FILLER.match(self._text, offset)
        return match.end() if match else offset

    def _find_content(self, offset: int) -> int:
        """Return the start of the text after a dash on the same line, or the end of the document."""
        while self._text[offset : offset + 1] in (" ", "\t"):
            offset += 1
        is_empty = self._text[offset : offset + 1] in ("", "#", *BREAKS)
        return len(self._text) if is_empty else offset

    def _shift_lines(self, node: Node, start: int, line: int, shift: int) -> int:
        """Plan to move the lines of a value that follow its key or dash. Return the end of the value."""
        end = find_value_end(self._text, node, start)
        is_literal = _is_literal(node)
        inner = range(line + 1, self._find_line(max(end - 1, start)) + 1)
        indents = [_count_spaces(self._lines[n]) for n in inner if self._lines[n].strip()]
        for number in inner:
            if number in self._plan.prefixes:
                raise UnsupportedLayout
            self._plan.shifts[number] = shift
            if is_literal:
                self._plan.literals[number] = min(indents, default=0)
        return max(end, start)


def find_value_end(text: str, node: Node, start: int) -> int:
    """Return the end of a value, including the significant blank lines at the end of a block scalar.

    start: the end of the key or dash before the value.
    """
    end = find_span(text, node, start).end
    last = node
    while _is_block(last):
        item = last.value[-1]
        last = item[1] if isinstance(item, tuple) else item
    if not _is_literal(last) or last.end_mark.index < end:  # the latter is the target of an alias
        return end
    header, *lines = split_lines(text[get_node_start(last) : last.end_mark.index])
    if "+" in header.partition("#")[0]:  # all blank lines at the end are a part of the scalar
        return int(last.end_mark.index)
    indent = min((_count_spaces(line) for line in lines if line.strip()), default=0)
    offset = significant_end = last.end_mark.index - sum(map(len, lines))
    for line in lines:
        offset += len(line)
        if len(line.rstrip(BREAKS)) > indent:  # longer white space is a part of the scalar
            significant_end = offset
    return max(end, significant_end)


def _is_literal(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.style in ("|", ">")


def _is_block(node: Node) -> TypeGuard[CollectionNode]:
    is_collection = isinstance(node, MappingNode | SequenceNode)
    return is_collection and bool(node.value) and not is_flow(node)  # type: ignore[arg-type]  # a collection


def _count_spaces(line: str) -> int:
    match = _SPACES.match(line)
    return match.end() if match else 0


def _join_lines(lines: Sequence[str], plan: _Plan, line_break: str) -> Iterator[str]:
    """Yield the new lines, without blank lines at the start and the end, and without repeated blank lines."""
    pending_blank = ""
    is_started = False
    for number, line in enumerate(lines):
        content = line.rstrip(BREAKS)
        if number in plan.shifts:
            new_line = _shift_line(content, plan.shifts[number], plan.literals.get(number))
        elif number in plan.prefixes:
            prefix = plan.prefixes[number]
            new_line = (prefix.text + content[prefix.column :]).rstrip(" \t")
        elif content.strip(" \t"):
            new_line = " " * _choose_comment_column(content, number, len(lines), plan) + content.strip(" \t")
        else:
            pending_blank = line[len(content) :] or line_break
            continue
        if is_started:
            yield pending_blank
        pending_blank, is_started = "", True
        yield new_line + (line[len(content) :] or line_break)


def _shift_line(line: str, shift: int, literal_indent: int | None) -> str:
    spaces = _count_spaces(line)
    if not line.strip(" ") and (literal_indent is None or spaces <= literal_indent):
        return ""
    return " " * shift + line if shift > 0 else line[min(-shift, spaces) :]


def _choose_comment_column(line: str, number: int, count: int, plan: _Plan) -> int:
    """Return the new column of a comment.

    A comment in the column of the next item belongs to this item. Other comments belong to the block before
    them with the same column or, if there is none, to the innermost block to the left of the comment.
    """
    if not line.lstrip(" \t").startswith("#"):
        raise UnsupportedLayout
    column = len(line) - len(line.lstrip(" \t"))
    following = next((n for n in range(number + 1, count) if n in plan.prefixes), None)
    if following is not None:
        next_column = _find_item_column(plan, following)
        if next_column[0] == column:
            return next_column[1]
    preceding = next((n for n in range(number - 1, -1, -1) if n in plan.prefixes), None)
    blocks = plan.blocks[preceding] if preceding is not None else ()
    left = [block for block in blocks if block[0] <= column]
    if left:
        return max(left, key=lambda block: block[0])[1]  # the outermost of several in one column
    return _find_item_column(plan, following)[1] if following is not None else 0


def _find_item_column(plan: _Plan, line: int) -> _Block:
    """Return the outermost block that begins on a line. It can begin with the dash before a key."""
    new_text = plan.prefixes[line].text
    new_column = len(new_text) - len(new_text.lstrip(" "))
    return next(block for block in plan.blocks[line] if block[1] == new_column)
