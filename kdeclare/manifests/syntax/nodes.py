"""YAML text to composed nodes, which know their places, and places inside of a scalar.

The C parser composes; resolving tags is left out (`resolve` does it), which halves the time. Marks carry the
name of the file, so nodes of several files can be merged into one tree and still tell where they came from.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from math import isqrt

import yaml
from yaml._yaml import CParser
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, Place, error
from kdeclare.manifests.syntax.files import read
from kdeclare.manifests.syntax.substitution import has_reference

MAX_DEPTH = 100
MAX_EXPANSION = 100_000

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Stream:
    """Bytes with a name, for the marks."""

    __slots__ = ("_data", "name")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self._data = data

    def read(self, _size: int = -1, /) -> bytes:
        data, self._data = self._data, b""
        return data


class _Composer(CParser):
    """The C parser, with the hooks that it calls for every node cut down to nothing."""

    def resolve(self, _kind: object, _value: object, _implicit: object) -> None:
        return None

    def descend_resolver(self, _parent: Node | None, _index: object) -> None:
        return None

    def ascend_resolver(self) -> None:
        return None


class _BoundedComposer(_Composer):
    """The same with a bound: deep nesting overruns the C stack, which no Python code can catch."""

    _depth = 0

    def descend_resolver(self, parent: Node | None, _index: object) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH and parent is not None:
            raise yaml.MarkedYAMLError(
                problem=f"nested more than {MAX_DEPTH} levels deep", problem_mark=parent.start_mark
            )

    def ascend_resolver(self) -> None:
        self._depth -= 1


def _may_be_deep(data: bytes) -> bool:
    """Whether the bytes could nest too deep; most cannot, and are spared the counting of every level.

    A level is opened by one of ``[ { - ?``, or by a line that is indented more than those around it:
    n of these take n²/2 bytes.
    """
    return isqrt(2 * len(data)) + sum(map(data.count, (b"[", b"{", b"-", b"?"))) >= MAX_DEPTH


def compose(file: str, data: bytes, diagnostics: list[Diagnostic]) -> Iterator[Node]:
    """The documents of a file, up to the first syntax error, which is added to ``diagnostics``."""
    aliases = b"*" in data and b"&" in data
    try:
        composer = (_BoundedComposer if _may_be_deep(data) else _Composer)(_Stream(file, data))
        while composer.check_node():
            node: Node = composer.get_node()  # type: ignore[assignment]  # there is one, it was checked
            wrong = _alias_problem(node) if aliases else None
            if wrong is None:
                yield node
            else:
                diagnostics.append(wrong)
    except yaml.MarkedYAMLError as e:
        diagnostics.append(_syntax_error(file, data, e))
    except yaml.YAMLError:
        diagnostics.append(_unreadable_text(file, data))


def place(node: Node) -> Place:
    """Where a node starts."""
    mark = node.start_mark
    return Place(mark.name, mark.line + 1, mark.column + 1)


def find(root: Node, path: Sequence[str | int], *, key: bool = False) -> Place:
    """The place of what ``path`` leads to, or of the deepest node on the way where it leads nowhere.

    key: the place of the last key, not of its value.
    """
    node: Node = root
    for index, step in enumerate(path):
        pair = child(node, step)
        if pair is None:
            break
        if key and index == len(path) - 1 and pair[0] is not None:
            return place(pair[0])
        node = pair[1]
    return place(node)


def node_at(root: Node, path: Sequence[str | int]) -> Node | None:
    """What ``path`` leads to, if it leads somewhere."""
    node = root
    for step in path:
        pair = child(node, step)
        if pair is None:
            return None
        node = pair[1]
    return node


def path_to(root: Node, node: Node) -> tuple[str | int, ...] | None:
    """The keys and indexes that lead from ``root`` to this very node; None where nothing does."""
    waiting: list[tuple[Node, tuple[str | int, ...]]] = [(root, ())]
    while waiting:
        current, path = waiting.pop()
        if current is node:
            return path
        if isinstance(current, MappingNode):
            waiting += [(value, (*path, str(key.value))) for key, value in current.value]
        elif isinstance(current, SequenceNode):
            waiting += [(item, (*path, index)) for index, item in enumerate(current.value)]
    return None


def child(node: Node, step: str | int) -> tuple[Node | None, Node] | None:
    """The key (of a mapping) and the value that one step leads to; None where there is none."""
    if isinstance(node, MappingNode):
        text = str(step)
        for pair in node.value:
            if pair[0].value == text:
                return pair[0], pair[1]
        return None
    if isinstance(node, SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
        return None, node.value[step]
    return None


def _alias_problem(root: Node) -> Diagnostic | None:
    """Aliases that lead into themselves, or stand for more than anybody can have meant."""
    measured: dict[int, tuple[int, int]] = {}
    recursive: list[Node] = []

    def measure(node: Node) -> tuple[int, int]:
        """Nodes and levels with all aliases expanded; anchored nodes come first, so recursion is bounded."""
        if isinstance(node, ScalarNode):
            return 1, 1
        known = measured.get(id(node))
        if known is not None:
            if known == (0, 0):
                recursive.append(node)
            return known
        measured[id(node)] = 0, 0
        nodes, levels = 1, 0
        for item in node.value:
            for inner in item if isinstance(item, tuple) else (item,):
                more, deep = measure(inner)
                nodes, levels = nodes + more, max(levels, deep)
        measured[id(node)] = nodes, levels + 1
        return measured[id(node)]

    nodes, levels = measure(root)
    if recursive:
        return error(
            "recursive-alias",
            "Alias leads into itself",
            "This node holds an alias of itself.",
            place=place(recursive[0]),
        )
    if levels <= MAX_DEPTH and nodes - sum(1 for _ in _distinct(root)) <= MAX_EXPANSION:
        return None
    detail = f"The aliases of this document stand for {nodes:,} nodes on {levels} levels."
    hint = f"{MAX_EXPANSION:,} nodes and {MAX_DEPTH} levels are the limit."
    return error("alias-expansion", "Aliases expand too far", detail, hint=hint, place=place(root))


def _distinct(root: Node) -> Iterator[Node]:
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if not isinstance(node, ScalarNode):
            for item in node.value:
                waiting.extend(item if isinstance(item, tuple) else (item,))


_SYNTAX = "yaml-syntax"


def _syntax_error(file: str, data: bytes, e: yaml.MarkedYAMLError) -> Diagnostic:
    mark = e.problem_mark or e.context_mark
    where = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file, 1, 1)
    said = ", ".join(part for part in (e.context, e.problem) if part) or "this is no YAML"
    if e.context_mark and e.problem_mark and e.context_mark.line != e.problem_mark.line:
        said += f"; it begins in line {e.context_mark.line + 1}"
    lines = data.split(b"\n")
    line = lines[where.line - 1] if where.line <= len(lines) else b""
    detail = f"{said[0].upper()}{said[1:]}."
    return error(_SYNTAX, "YAML syntax error", detail, hint=_syntax_hint(said, line), place=where)


def _syntax_hint(said: str, line: bytes) -> str:
    if b"\t" in line[: len(line) - len(line.lstrip())]:
        return "Indent with spaces; YAML does not allow tabs there."
    if "mapping values are not allowed" in said:
        return "Put a text that holds ': ' in quotes, and check the indentation."
    if "flow" in said and b"${" in line:
        return "Put ${…} in quotes where it stands inside of { } or [ ]."
    if "anchor" in said or "alias" in said:
        return "An anchor (&name) is defined once, before the aliases (*name) that use it."
    return ""


def _unreadable_text(file: str, data: bytes) -> Diagnostic:
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    except UnicodeDecodeError as e:
        before = data[: e.start].decode("utf-8", errors="replace")
        return error(
            "not-utf8",
            "File is not UTF-8",
            "This byte belongs to no UTF-8 character.",
            hint="Save the file as UTF-8.",
            place=_place_after(file, before),
        )
    found = _UNPRINTABLE.search(text)
    return error(
        _SYNTAX,
        "YAML syntax error",
        "Here stands a control character, which YAML does not allow.",
        hint='Take it out, or write it as an escape in double quotes ("\\x01").',
        place=_place_after(file, text[: found.start()] if found else ""),
    )


def _place_after(file: str, before: str) -> Place:
    return Place(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


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
