"""Edit the documents of one file.

Each document is edited and checked separately; then the file is reassembled.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.manifests.editing.edits import AppendEdit, Edit, EditValue, NodePath, PutEdit
from kdeclare.manifests.editing.file_text import BREAKS, decode_text, get_node_start
from kdeclare.manifests.editing.text_splice import UnsupportedLayout, splice_edit
from kdeclare.manifests.syntax.manifest_files import JSON_SUFFIX
from kdeclare.manifests.syntax.node_reader import AmbiguousScalar, parse_scalar
from kdeclare.manifests.syntax.nodes import compose, find_node

_STR_TAG = "tag:yaml.org,2002:str"

Tree = Any
"""The content of a YAML node: a dict, a list, or a tuple for a scalar.

The tuple contains the string of the scalar, whether the string is quoted, and the tag.
"""


def build_tree(node: Node) -> Tree:
    """Return the content of a node, with aliases expanded."""
    if isinstance(node, MappingNode):
        return {
            key.value if isinstance(key, ScalarNode) else str(key): build_tree(v) for key, v in node.value
        }
    if isinstance(node, SequenceNode):
        return [build_tree(item) for item in node.value]
    return node.value, isinstance(node, ScalarNode) and bool(node.style), node.tag


def is_same_tree(first: Tree, second: Tree) -> bool:
    """Return whether two documents have the same content, in the same order."""
    return repr(first) == repr(second)


def is_edit_applied(old_root: Node, new_root: Node, edit: Edit) -> bool:
    """Return whether ``new_root`` equals ``old_root`` except for exactly this edit."""
    expected_tree = build_tree(old_root)
    if isinstance(edit, PutEdit):
        edited_node = find_node(new_root, edit.path)
        if edited_node is None or not _has_value(edited_node, edit.value):
            return False
        _set_subtree(expected_tree, edit.path, build_tree(edited_node))
    elif isinstance(edit, AppendEdit):
        elements = find_node(new_root, edit.path)
        if not isinstance(elements, SequenceNode) or not elements.value:
            return False
        if not _has_value(elements.value[-1], edit.value):
            return False
        _get_subtree(expected_tree, edit.path).append(build_tree(elements.value[-1]))
    else:
        _remove_subtree(expected_tree, edit.path)
    return is_same_tree(expected_tree, build_tree(new_root))


def _has_value(node: Node, value: EditValue) -> bool:
    if isinstance(value, list):
        return (
            isinstance(node, SequenceNode)
            and len(node.value) == len(value)
            and all(_has_value(item, element) for item, element in zip(node.value, value, strict=True))
        )
    if isinstance(value, dict):
        return (
            isinstance(node, MappingNode)
            and [key.value for key, _ in node.value] == list(value)
            and all(_has_value(v, value[key.value]) for key, v in node.value)
        )
    if not isinstance(node, ScalarNode):
        return False
    if isinstance(value, str):
        return _find_text(node) == value.replace("${", "$${")
    meaning = parse_scalar(node.value)
    return not node.style and not isinstance(meaning, AmbiguousScalar) and meaning[0] == value


def _find_text(node: ScalarNode) -> str | None:
    if node.style or node.tag == _STR_TAG:
        return str(node.value)
    meaning = parse_scalar(node.value)
    return None if isinstance(meaning, AmbiguousScalar) else meaning[1]


def _get_subtree(root: Tree, path: NodePath) -> Tree:
    for step in path:
        root = root[step if isinstance(root, list) else str(step)]
    return root


def _set_subtree(root: Tree, path: NodePath, value: Tree) -> None:
    """Set a value at a path. Create the mappings that are missing or null along the path."""
    for step in path[:-1]:
        if isinstance(root, list):
            root = root[int(step)]
            continue
        if not isinstance(root.get(str(step)), dict | list):
            root[str(step)] = {}
        root = root[str(step)]
    root[path[-1] if isinstance(root, list) else str(path[-1])] = value


def _remove_subtree(root: Tree, path: NodePath) -> None:
    parent = _get_subtree(root, path[:-1])
    del parent[path[-1] if isinstance(parent, list) else str(path[-1])]


_START = re.compile(rf"(?:\A|(?<=[{BREAKS}]))---(?=[ \t{BREAKS}]|\Z)")
_END = re.compile(rf"(?:\A|(?<=[{BREAKS}]))(?:---|\.\.\.)(?=[ \t{BREAKS}]|\Z)")
_MARKER_LINE = re.compile(r"\A---[ \t]*(?:\r\n|[\n\r])")
_HEADER = re.compile(r"(?:#.*(?:\r\n|[\n\r]))+(?:[ \t]*(?:\r\n|[\n\r]))+")
"""Comments at the top of a file, followed by a blank line. They describe the file, not its first document."""


class EditRejected(Exception):
    """Raised if a file cannot be edited.

    document: the index of the document that cannot be edited.
    edit: the edit that failed, or None if the edited file as a whole is not as expected.
    """

    def __init__(self, document: int, edit: Edit | None) -> None:
        self.document = document
        self.edit = edit
        super().__init__(document, edit)


@dataclass(frozen=True, slots=True)
class FileEdit:
    """An edited file.

    before: the bytes of the file before the edit, or None if the file is new.
    after: the bytes after the edit, or None if the file must be deleted.
    """

    file: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The offsets of one document in its file.

    begin: the start of the document, including the ``---`` before it.
    start, end: the start and the end of the document without its markers.
    """

    root: Node
    begin: int
    start: int
    end: int


def rewrite_file(
    file: str, data: bytes, edits: Mapping[int, Sequence[Edit]], removed_indexes: frozenset[int] = frozenset()
) -> bytes | None:
    """Return the bytes of a file with some documents edited or removed, or None if no document is left.

    edits: the edits to each document, by the index of the document.
    removed_indexes: the indexes of the documents to remove.
    Raises EditRejected if a document cannot be edited, and KdeclareError if the file is not valid YAML.
    """
    text, encoding = decode_text(data)
    documents = split_documents(file, text)
    pieces: list[str] = []
    expected_trees = []
    for index, document in enumerate(documents):
        if index in removed_indexes:
            continue
        document_text, root = text[document.start : document.end], document.root
        for edit in edits.get(index, ()):
            document_text, root = _apply_edit(file, document_text, index, edit)
        end = documents[index + 1].begin if index + 1 < len(documents) else len(text)
        pieces.append(text[document.begin : document.start] + document_text + text[document.end : end])
        expected_trees.append(build_tree(root))
    if removed_indexes and all(
        _is_empty(documents[n].root) for n in range(len(documents)) if n not in removed_indexes
    ):
        return None
    if 0 in removed_indexes:
        pieces = _restore_header(text, documents[0], pieces)
    new_text = "".join(pieces)
    if not is_same_tree(
        [build_tree(document.root) for document in split_documents(file, new_text)], expected_trees
    ):
        raise EditRejected(min({*edits, *removed_indexes}), None)
    if file.endswith(JSON_SUFFIX) and _is_json(text) and not _is_json(new_text):
        # YAML would read the file, but the programs that write and read JSON would not
        raise EditRejected(min({*edits, *removed_indexes}), None)
    return encoding.encode(new_text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _apply_edit(file: str, text: str, index: int, edit: Edit) -> tuple[str, Node]:
    old_root = compose_text(file, text)[0]
    try:
        new_text = splice_edit(text, old_root, edit)
        new_roots = compose_text(file, new_text)
    except (UnsupportedLayout, KdeclareError):
        raise EditRejected(index, edit) from None
    if len(new_roots) != 1 or not is_edit_applied(old_root, new_roots[0], edit):
        raise EditRejected(index, edit)
    return new_text, new_roots[0]


def split_documents(file: str, text: str) -> list[DocumentText]:
    """Return the documents of a file. Raises KdeclareError if the file is not valid YAML."""
    documents: list[DocumentText] = []
    offset = 0
    for root in compose_text(file, text):
        markers = list(_START.finditer(text, offset, get_node_start(root)))
        marker = markers[-1] if markers else None
        end = _END.search(text, root.end_mark.index)
        piece_start = offset if not documents or marker is None else marker.start()
        documents.append(
            DocumentText(
                root, piece_start, marker.end() if marker else offset, end.start() if end else len(text)
            )
        )
        offset = documents[-1].end
    return documents


def _restore_header(text: str, first_document: DocumentText, pieces: list[str]) -> list[str]:
    """Restore the header and the first ``---`` of a file whose first document was removed."""
    if first_document.start > first_document.begin:
        return [text[: first_document.start - len("---")], *pieces]
    header = _HEADER.match(text, 0, get_node_start(first_document.root))
    return [header[0] if header else "", _MARKER_LINE.sub("", pieces[0], count=1), *pieces[1:]]


def compose_text(file: str, text: str) -> list[Node]:
    """Return the root node of each document. Raises KdeclareError if the text is not valid YAML."""
    problems: list[Diagnostic] = []
    roots = list(compose(file, text.encode(), problems))
    if problems:
        raise KdeclareError(*problems)
    return roots


def _is_empty(root: Node) -> bool:
    return isinstance(root, ScalarNode) and not root.value and not root.style
