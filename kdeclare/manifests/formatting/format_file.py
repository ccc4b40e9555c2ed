"""Format the documents of one file, and check that they keep their meaning."""

import re
from collections import Counter
from collections.abc import Callable

from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, info
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.manifests.editing.documents import build_tree, compose_text, split_documents
from kdeclare.manifests.editing.file_text import BREAKS, decode_text, find_next_line
from kdeclare.manifests.editing.text_splice import UnsupportedLayout
from kdeclare.manifests.formatting.field_order import order_fields
from kdeclare.manifests.formatting.indentation import format_indentation
from kdeclare.manifests.syntax.nodes import get_position

_SPACE = re.compile(r"\s+")
_MARKER_REST = re.compile(rf"[ \t]*(?:#[^{BREAKS}]*)?(?=[{BREAKS}]|\Z)")


@dataclass(frozen=True, slots=True)
class FormattedFile:
    """A formatted file.

    unsupported: a diagnostic for each document that is left unchanged because its layout is not supported.
    """

    data: bytes
    unsupported: tuple[Diagnostic, ...] = ()


def format_file(file: str, data: bytes) -> FormattedFile:
    """Format each document of a YAML file. The result has the same meaning, and the same comments.

    A document is left unchanged if its layout is not supported. Raises KdeclareError if the file is not valid
    YAML.
    """
    text, encoding = decode_text(data)
    documents = split_documents(file, text)
    pieces: list[str] = []
    unsupported: list[Diagnostic] = []
    for index, document in enumerate(documents):
        next_begin = documents[index + 1].begin if index + 1 < len(documents) else len(text)
        has_marker = document.start > document.begin and text[: document.start].endswith("---")
        begin = find_next_line(text, document.start) if has_marker else document.start
        old = text[begin : document.end]
        new = old
        if not _is_blank(document.root):
            try:
                if begin > document.start and not _MARKER_REST.match(text, document.start):
                    raise UnsupportedLayout
                new = _format_document(file, old)
            except UnsupportedLayout:
                unsupported.append(_build_unsupported_notice(document.root))
        pieces += [text[document.begin : begin], new, text[document.end : next_begin]]
    return FormattedFile(encoding.encode("".join(pieces)) if documents else data, tuple(unsupported))


def _is_blank(root: Node) -> bool:
    return isinstance(root, ScalarNode) and not root.value and not root.style


def _format_document(file: str, text: str) -> str:
    """Return the formatted text of a document. Raises UnsupportedLayout if its meaning would change."""
    indented = _apply(file, text, format_indentation)
    try:
        ordered = _apply(file, indented, order_fields)
    except UnsupportedLayout:  # for example, because an alias would precede its anchor
        return indented
    # fields that moved can leave two blank lines in a row
    return ordered if ordered == indented else _apply(file, ordered, format_indentation)


def _apply(file: str, text: str, transform: Callable[[str, Node], str]) -> str:
    root = _compose(file, text)
    new_text = transform(text, root)
    if new_text == text:
        return text
    new_root = _compose(file, new_text)
    # each check catches mistakes that the other one does not: the tree has no comments
    if _describe(root) != _describe(new_root) or _count_lines(text) != _count_lines(new_text):
        raise UnsupportedLayout
    return new_text


def _compose(file: str, text: str) -> Node:
    try:
        roots = compose_text(file, text)
    except KdeclareError:
        raise UnsupportedLayout from None
    if len(roots) != 1:
        raise UnsupportedLayout
    return roots[0]


def _describe(root: Node) -> str:
    """Return the content of a document in a form that does not depend on the order of top-level fields."""
    if not isinstance(root, MappingNode):
        return repr(build_tree(root))
    fields = [(str(key.value), repr(build_tree(value))) for key, value in root.value]
    return repr(sorted(fields, key=lambda pair: pair[0]))  # stable, so that duplicate keys keep their order


def _count_lines(text: str) -> Counter[str]:
    return Counter(_SPACE.sub("", line) for line in text.splitlines() if line.strip())


def _build_unsupported_notice(root: Node) -> Diagnostic:
    return info(
        "layout-not-formatted",
        "Document is not formatted",
        "kdeclare cannot format this document without the risk that its meaning changes, so it is left "
        "unchanged.",
        hint="Write each field on its own line, without explicit keys (? key) and without tabs.",
        place=get_position(root),
    )
