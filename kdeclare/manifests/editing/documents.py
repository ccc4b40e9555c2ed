"""The documents of one file: each is edited on its own, and the file is put together again."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from yaml.nodes import Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.manifests.editing.checking import done, same, tree
from kdeclare.manifests.editing.edits import Edit
from kdeclare.manifests.editing.spans import begin
from kdeclare.manifests.editing.splicing import OddLayout, spliced
from kdeclare.manifests.editing.text import BREAKS, decoded
from kdeclare.manifests.nodes import compose

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
