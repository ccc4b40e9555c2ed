"""The documents of one file: each is edited and checked on its own, and the file is put together again."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.frozen import dataclass
from kdeclare.manifests.editing.edits import Append, Edit, Path, Put, Value
from kdeclare.manifests.editing.file_text import BREAKS, begin, decoded
from kdeclare.manifests.editing.splicing import OddLayout, spliced
from kdeclare.manifests.syntax.nodes import compose, node_at
from kdeclare.manifests.syntax.reading import Ambiguous, resolve

_STR_TAG = "tag:yaml.org,2002:str"

Tree = Any
"""dict, list, or of a scalar its text, whether it has quotes, and its tag."""


def tree(node: Node) -> Tree:
    """All that a node says, aliases expanded."""
    if isinstance(node, MappingNode):
        return {key.value if isinstance(key, ScalarNode) else str(key): tree(v) for key, v in node.value}
    if isinstance(node, SequenceNode):
        return [tree(item) for item in node.value]
    return node.value, isinstance(node, ScalarNode) and bool(node.style), node.tag


def same(one: Tree, other: Tree) -> bool:
    """Whether two documents say the same, in the same order."""
    return repr(one) == repr(other)


def done(before: Node, after: Node, edit: Edit) -> bool:
    """Whether ``after`` is ``before`` with the edit, and with nothing else."""
    wanted = tree(before)
    if isinstance(edit, Put):
        got = node_at(after, edit.path)
        if got is None or not _means(got, edit.value):
            return False
        _set(wanted, edit.path, tree(got))
    elif isinstance(edit, Append):
        elements = node_at(after, edit.path)
        if not isinstance(elements, SequenceNode) or not elements.value:
            return False
        if not _means(elements.value[-1], edit.value):
            return False
        _at(wanted, edit.path).append(tree(elements.value[-1]))
    else:
        _take(wanted, edit.path)
    return same(wanted, tree(after))


def _means(node: Node, value: Value) -> bool:
    if isinstance(value, list):
        return (
            isinstance(node, SequenceNode)
            and len(node.value) == len(value)
            and all(_means(item, element) for item, element in zip(node.value, value, strict=True))
        )
    if isinstance(value, dict):
        return (
            isinstance(node, MappingNode)
            and [key.value for key, _ in node.value] == list(value)
            and all(_means(v, value[key.value]) for key, v in node.value)
        )
    if not isinstance(node, ScalarNode):
        return False
    if isinstance(value, str):
        return _text(node) == value.replace("${", "$${")
    meaning = resolve(node.value)
    return not node.style and not isinstance(meaning, Ambiguous) and meaning[0] == value


def _text(node: ScalarNode) -> str | None:
    if node.style or node.tag == _STR_TAG:
        return str(node.value)
    meaning = resolve(node.value)
    return None if isinstance(meaning, Ambiguous) else meaning[1]


def _at(root: Tree, path: Path) -> Tree:
    for step in path:
        root = root[step if isinstance(root, list) else str(step)]
    return root


def _set(root: Tree, path: Path, value: Tree) -> None:
    """Mappings that are missing on the way are made, in place of nulls too."""
    for step in path[:-1]:
        if isinstance(root, list):
            root = root[int(step)]
            continue
        if not isinstance(root.get(str(step)), dict | list):
            root[str(step)] = {}
        root = root[str(step)]
    root[path[-1] if isinstance(root, list) else str(path[-1])] = value


def _take(root: Tree, path: Path) -> None:
    holder = _at(root, path[:-1])
    del holder[path[-1] if isinstance(holder, list) else str(path[-1])]


_START = re.compile(rf"(?:\A|(?<=[{BREAKS}]))---(?=[ \t{BREAKS}]|\Z)")
_END = re.compile(rf"(?:\A|(?<=[{BREAKS}]))(?:---|\.\.\.)(?=[ \t{BREAKS}]|\Z)")
_MARKER_LINE = re.compile(r"\A---[ \t]*(?:\r\n|[\n\r])")
_HEADER = re.compile(r"(?:#.*(?:\r\n|[\n\r]))+(?:[ \t]*(?:\r\n|[\n\r]))+")
"""Comments at the top, set off by a blank line: they speak of the file, not of its first document."""


class NotEdited(Exception):
    """A file that cannot be edited; ``edit`` is the one to blame, None for the file as a whole."""

    def __init__(self, document: int, edit: Edit | None) -> None:
        self.document = document
        self.edit = edit
        super().__init__(document, edit)


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file as it is and as it is to be; None where there is no file before, or none afterwards."""

    file: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class _Document:
    """begin: of its piece of the file. start, end: of its text, between the markers."""

    root: Node
    begin: int
    start: int
    end: int


def rewritten(
    file: str, data: bytes, edits: Mapping[int, Sequence[Edit]], removed: frozenset[int] = frozenset()
) -> bytes | None:
    """A file with documents edited or taken out, by their index; None where none is left in it.

    Raises NotEdited, and KdeclareError for a file that is no YAML.
    """
    text, encoding = decoded(data)
    documents = _documents(file, text)
    pieces: list[str] = []
    wanted = []
    for index, document in enumerate(documents):
        if index in removed:
            continue
        body, root = text[document.start : document.end], document.root
        for edit in edits.get(index, ()):
            body, root = _edited(file, body, index, edit)
        end = documents[index + 1].begin if index + 1 < len(documents) else len(text)
        pieces.append(text[document.begin : document.start] + body + text[document.end : end])
        wanted.append(tree(root))
    if removed and all(_is_empty(documents[n].root) for n in range(len(documents)) if n not in removed):
        return None
    if 0 in removed:
        pieces = _headed(text, documents[0], pieces)
    written = "".join(pieces)
    if not same([tree(document.root) for document in _documents(file, written)], wanted):
        raise NotEdited(min({*edits, *removed}), None)
    return encoding.encoded(written)


def _edited(file: str, text: str, index: int, edit: Edit) -> tuple[str, Node]:
    before = _composed(file, text)[0]
    try:
        changed = spliced(text, before, edit)
        after = _composed(file, changed)
    except (OddLayout, KdeclareError):
        raise NotEdited(index, edit) from None
    if len(after) != 1 or not done(before, after[0], edit):
        raise NotEdited(index, edit)
    return changed, after[0]


def _documents(file: str, text: str) -> list[_Document]:
    found: list[_Document] = []
    at = 0
    for root in _composed(file, text):
        markers = list(_START.finditer(text, at, begin(root)))
        marker = markers[-1] if markers else None
        end = _END.search(text, root.end_mark.index)
        first = at if not found or marker is None else marker.start()
        found.append(
            _Document(root, first, marker.end() if marker else at, end.start() if end else len(text))
        )
        at = found[-1].end
    return found


def _headed(text: str, first: _Document, pieces: list[str]) -> list[str]:
    """Without its first document, a file begins as it did: with its header, and with a marker or none."""
    if first.start > first.begin:
        return [text[: first.start - len("---")], *pieces]
    header = _HEADER.match(text, 0, begin(first.root))
    return [header[0] if header else "", _MARKER_LINE.sub("", pieces[0], count=1), *pieces[1:]]


def _composed(file: str, text: str) -> list[Node]:
    problems: list[Diagnostic] = []
    roots = list(compose(file, text.encode(), problems))
    if problems:
        raise KdeclareError(*problems)
    return roots


def _is_empty(root: Node) -> bool:
    return isinstance(root, ScalarNode) and not root.value and not root.style
