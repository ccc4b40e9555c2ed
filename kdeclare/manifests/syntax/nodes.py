"""Parse YAML files into nodes with source positions, and find positions within a scalar.

The parser does not resolve tags (see `_Composer.resolve`), which halves the parsing time. The position of
each node contains the name of the file, so that nodes of several files can be merged into one tree.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from math import isqrt

import yaml
from yaml._yaml import CParser
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error
from kdeclare.manifests.syntax.files import read_file
from kdeclare.manifests.syntax.substitution import has_reference

MAX_DEPTH = 100
MAX_EXPANSION = 100_000

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Stream:
    """A byte stream with a file name, which the parser stores in the positions of nodes."""

    __slots__ = ("_data", "name")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self._data = data

    def read(self, _size: int = -1, /) -> bytes:
        data, self._data = self._data, b""
        return data


class _Composer(CParser):
    """The C parser without tag resolution. Its hooks do nothing, because they are called for every node."""

    def resolve(self, _kind: object, _value: object, _implicit: object) -> None:
        return None

    def descend_resolver(self, _parent: Node | None, _index: object) -> None:
        return None

    def ascend_resolver(self) -> None:
        return None


class _BoundedComposer(_Composer):
    """A parser that refuses documents that are nested too deeply.

    Without a limit, deep nesting would overflow the C stack, which Python code cannot catch.
    """

    _depth = 0

    def descend_resolver(self, parent: Node | None, _index: object) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH and parent is not None:
            raise yaml.MarkedYAMLError(
                problem=f"nested more than {MAX_DEPTH} levels deep", problem_mark=parent.start_mark
            )

    def ascend_resolver(self) -> None:
        self._depth -= 1


def _can_be_deep(data: bytes) -> bool:
    """Return whether a document could be nested too deeply, so that its levels must be counted.

    A level starts with one of the characters ``[ { - ?``, or with a line that is indented further. Opening n
    levels by indentation takes at least n²/2 bytes.
    """
    return isqrt(2 * len(data)) + sum(map(data.count, (b"[", b"{", b"-", b"?"))) >= MAX_DEPTH


def compose(file: str, data: bytes, diagnostics: list[Diagnostic]) -> Iterator[Node]:
    """Yield the documents of a file up to the first syntax error. Add errors to ``diagnostics``."""
    has_aliases = b"*" in data and b"&" in data
    try:
        composer = (_BoundedComposer if _can_be_deep(data) else _Composer)(_Stream(file, data))
        while composer.check_node():
            node: Node = composer.get_node()  # type: ignore[assignment]  # check_node found one
            alias_error = _check_aliases(node) if has_aliases else None
            if alias_error is None:
                yield node
            else:
                diagnostics.append(alias_error)
    except yaml.MarkedYAMLError as e:
        diagnostics.append(_build_syntax_error(file, data, e))
    except yaml.YAMLError:
        diagnostics.append(_build_encoding_error(file, data))


def get_position(node: Node) -> SourcePosition:
    """Return the position where a node starts."""
    mark = node.start_mark
    return SourcePosition(mark.name, mark.line + 1, mark.column + 1)


def find_position(root: Node, path: Sequence[str | int], *, key: bool = False) -> SourcePosition:
    """Return the position of the node at ``path``.

    If the node does not exist, return the position of the deepest node that exists on the path.

    key: whether to return the position of the last key in the path rather than that of its value.
    """
    node: Node = root
    for index, step in enumerate(path):
        pair = find_child(node, step)
        if pair is None:
            break
        if key and index == len(path) - 1 and pair[0] is not None:
            return get_position(pair[0])
        node = pair[1]
    return get_position(node)


def find_node(root: Node, path: Sequence[str | int]) -> Node | None:
    """Return the node at ``path``, or None if the path does not exist."""
    node = root
    for step in path:
        pair = find_child(node, step)
        if pair is None:
            return None
        node = pair[1]
    return node


def find_path(root: Node, node: Node) -> tuple[str | int, ...] | None:
    """Return the path from ``root`` to this node object, or None if the node is not in the tree."""
    pending: list[tuple[Node, tuple[str | int, ...]]] = [(root, ())]
    while pending:
        current, path = pending.pop()
        if current is node:
            return path
        if isinstance(current, MappingNode):
            pending += [(value, (*path, str(key.value))) for key, value in current.value]
        elif isinstance(current, SequenceNode):
            pending += [(item, (*path, index)) for index, item in enumerate(current.value)]
    return None


def find_child(node: Node, step: str | int) -> tuple[Node | None, Node] | None:
    """Return the child of a node at one step of a path, as its key and value; None if it does not exist.

    step: a key of a mapping, or an index of a list. In a list, the returned key is None.
    """
    if isinstance(node, MappingNode):
        text = str(step)
        for pair in node.value:
            if pair[0].value == text:
                return pair[0], pair[1]
        return None
    if isinstance(node, SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
        return None, node.value[step]
    return None


def _check_aliases(root: Node) -> Diagnostic | None:
    """Return an error if aliases are recursive or expand to too many nodes or levels; otherwise None."""
    measured: dict[int, tuple[int, int]] = {}
    recursive: list[Node] = []

    def measure(node: Node) -> tuple[int, int]:
        if isinstance(node, ScalarNode):
            return 1, 1
        measurement = measured.get(id(node))
        if measurement is not None:
            if measurement == (0, 0):
                recursive.append(node)
            return measurement
        measured[id(node)] = 0, 0
        nodes, levels = 1, 0
        for item in node.value:
            for inner in item if isinstance(item, tuple) else (item,):
                inner_nodes, inner_levels = measure(inner)
                nodes, levels = nodes + inner_nodes, max(levels, inner_levels)
        measured[id(node)] = nodes, levels + 1
        return measured[id(node)]

    nodes, levels = measure(root)
    if recursive:
        return error(
            "recursive-alias",
            "Recursive alias",
            "This node contains an alias of itself.",
            hint="Remove the alias (*name), or write out the values that it should stand for.",
            place=get_position(recursive[0]),
        )
    if levels <= MAX_DEPTH and nodes - sum(1 for _ in walk_distinct_nodes(root)) <= MAX_EXPANSION:
        return None
    detail = (
        f"With its aliases expanded, this document has {nodes:,} nodes on {levels} levels. The limits are "
        f"{MAX_EXPANSION:,} nodes from aliases and {MAX_DEPTH} levels."
    )
    hint = "Use fewer aliases, or split the document."
    return error("alias-expansion", "Aliases expand too far", detail, hint=hint, place=get_position(root))


def walk_distinct_nodes(root: Node) -> Iterator[Node]:
    """Yield each node once, even if it has aliases, in the order in which the nodes start in the document."""
    visited: set[int] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        yield node
        if not isinstance(node, ScalarNode):
            for item in reversed(node.value):
                pending.extend(reversed(item) if isinstance(item, tuple) else (item,))


_SYNTAX = "yaml-syntax"


def _build_syntax_error(file: str, data: bytes, e: yaml.MarkedYAMLError) -> Diagnostic:
    mark = e.problem_mark or e.context_mark
    error_position = (
        SourcePosition(file, mark.line + 1, mark.column + 1) if mark else SourcePosition(file, 1, 1)
    )
    message = ", ".join(part for part in (e.context, e.problem) if part) or "this is not YAML"
    if e.context_mark and e.problem_mark and e.context_mark.line != e.problem_mark.line:
        message += f"; the construct begins on line {e.context_mark.line + 1}"
    lines = data.split(b"\n")
    line = lines[error_position.line - 1] if error_position.line <= len(lines) else b""
    detail = f"{message[0].upper()}{message[1:]}."
    return error(
        _SYNTAX, "YAML syntax error", detail, hint=_find_syntax_hint(message, line), place=error_position
    )


def _find_syntax_hint(message: str, line: bytes) -> str:
    if b"\t" in line[: len(line) - len(line.lstrip())]:
        return "Indent with spaces; YAML does not allow tabs there."
    if "mapping values are not allowed" in message:
        return "Put a string that contains ': ' in quotes, and check the indentation."
    if "flow" in message and b"${" in line:
        return "Put ${…} in quotes inside { } or [ ]."
    if "anchor" in message or "alias" in message:
        return "Define each anchor (&name) once, before the aliases (*name) that use it."
    return ""


def _build_encoding_error(file: str, data: bytes) -> Diagnostic:
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    except UnicodeDecodeError as e:
        text_before = data[: e.start].decode("utf-8", errors="replace")
        return error(
            "not-utf8",
            "File is not UTF-8",
            "This byte is not part of a UTF-8 character.",
            hint="Save the file as UTF-8.",
            place=_compute_position(file, text_before),
        )
    match = _UNPRINTABLE.search(text)
    return error(
        _SYNTAX,
        "YAML syntax error",
        "The file contains a control character here, which YAML does not allow.",
        hint='Remove it, or write it as an escape in double quotes ("\\x01").',
        place=_compute_position(file, text[: match.start()] if match else ""),
    )


def _compute_position(file: str, text_before: str) -> SourcePosition:
    return SourcePosition(
        file, text_before.count("\n") + 1, len(text_before) - (text_before.rfind("\n") + 1) + 1
    )


_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_QUOTED = {
    "'": re.compile(r"''|."),
    '"': re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|."),
}
"""Patterns that match one character of a quoted scalar as written in the file, by quote character."""


def find_position_within(node: Node, offset: int) -> SourcePosition:
    """Return the position of a character in a scalar, or the start of the scalar if it cannot be determined.

    offset: the index of the character in the value of the scalar.
    The position can be determined in plain and quoted scalars on one line and in literal blocks (``|``), but
    not after a ``${…}``.
    """
    start = get_position(node)
    if not isinstance(node, ScalarNode) or has_reference(node.value[: offset + 1]):
        return start
    # an error at the end of the scalar is reported right after the last character
    offset = min(offset, len(node.value.rstrip()))
    lines = _read_lines(start.file)
    if node.style == "|":
        return _find_block_position(node.value, offset, start, lines)
    if node.start_mark.line != node.end_mark.line or start.line > len(lines):
        return start
    column = _find_column(node, offset, lines[start.line - 1], start.column - 1)
    return start if column is None else SourcePosition(start.file, start.line, column + 1)


def _read_lines(file: str) -> list[str]:
    data = read_file(file, []) or b""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return _BREAK.split(data.decode(encoding, errors="replace"))


def _find_column(node: ScalarNode, offset: int, line: str, begin: int) -> int | None:
    """Return the column of a character in a scalar on one line, counted from 0, or None if it is not found.

    begin: the column where the node begins, which can be an anchor or a tag before the scalar.
    """
    if not node.style:
        text_start = line.find(node.value, begin)
        return text_start + offset if text_start >= 0 else None
    quote_start = line.find(node.style, begin)
    character_pattern = _QUOTED.get(node.style)
    if quote_start < 0 or character_pattern is None:
        return None
    preceding = list(islice(character_pattern.finditer(line, quote_start + 1), offset))
    return preceding[-1].end() if preceding else quote_start + 1


def _find_block_position(text: str, offset: int, start: SourcePosition, lines: list[str]) -> SourcePosition:
    line_index = text.count("\n", 0, offset)
    line = text.split("\n")[line_index]
    file_line = start.line + line_index  # the string begins on the line after the ``|``
    if file_line >= len(lines) or not lines[file_line].endswith(line):
        return start
    indent = len(lines[file_line]) - len(line)
    column = indent + offset - (text.rfind("\n", 0, offset) + 1)
    return SourcePosition(start.file, file_line + 1, column + 1)


def list_keys(node: Node | None) -> list[str]:
    """Return the keys of a mapping, or an empty list for other nodes."""
    return [str(key.value) for key, _ in node.value] if isinstance(node, MappingNode) else []
