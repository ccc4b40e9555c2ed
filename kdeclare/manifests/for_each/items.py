"""Read the items of ``forEach``: a list or mapping in the manifest, in a variable, or in a file."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.manifests.syntax.file_locations import is_in_folder, locate_file
from kdeclare.manifests.syntax.node_reader import UNIFORM, VALUE, NodeReader
from kdeclare.manifests.syntax.nodes import compose, get_position
from kdeclare.manifests.syntax.substitution import (
    find_reference_names,
    format_os_error,
    is_single_reference,
    read_regular_file,
)

BAD_FOR_EACH = "bad-for-each"
_MAX_FILE_BYTES = 8 << 20
"""The maximum size of a file with items."""
_MAX_LABEL_LENGTH = 80
_KEY_PROBLEMS = frozenset({"duplicate-key", "bad-key", "merge-key"})


@dataclass(frozen=True, slots=True)
class Item:
    """One item of ``forEach``.

    key: the key in a mapping, or the item itself if it is a scalar in a list; None for other items of a list.
    value: the value of the item.
    index: the index of the item, from 0.
    """

    key: ScalarNode | None
    value: Node
    index: int

    @property
    def node(self) -> Node:
        """The node whose position is shown in messages about the item."""
        return self.key or self.value

    @property
    def label(self) -> str:
        """The item as messages name it: its key or, without a key, its number."""
        text = str(self.key.value) if self.key is not None else ""
        is_short = 0 < len(text) <= _MAX_LABEL_LENGTH and text.isprintable()
        return f"item '{text}'" if is_short else f"item {self.index + 1}"


class ItemReader:
    """Reads the items of manifests with ``forEach``. Each file is read once.

    reader: resolves variables. root: the folder of the project, or None without a project; files must be in
    this folder or, without a project, in the folder of the manifest. replacements: the contents to use
    instead of those on disk, by file.
    """

    def __init__(
        self, reader: NodeReader, root: Path | None, replacements: Mapping[str, bytes | None]
    ) -> None:
        self._reader = reader
        self._root = root
        self._replacements = replacements
        self._nodes_by_file: dict[str, Node | Diagnostic] = {}

    def read(self, node: Node) -> tuple[list[Item], list[Diagnostic]]:
        """Return the items and the problems. node: the value of ``forEach``."""
        source = self._find_collection(node)
        if not isinstance(source, Node):
            return [], source
        problems = [p for p in self._reader.check_node(source) if p.code in _KEY_PROBLEMS]
        return ([], problems) if problems else (list(_list_items(source)), [])

    def _find_collection(self, node: Node) -> Node | list[Diagnostic]:
        if not isinstance(node, ScalarNode):
            return node
        if is_single_reference(node.value):
            value, problems = self._reader.read_aside(node, UNIFORM[VALUE])
            if problems:
                return problems
            return _build_node(value, node) if isinstance(value, list | dict) else [_build_source_error(node)]
        if not node.value or find_reference_names(node.value):
            return [_build_source_error(node)]
        file = locate_file(node.value, node)
        if file not in self._nodes_by_file:
            self._nodes_by_file[file] = self._read_file(file, node)
        content = self._nodes_by_file[file]
        if isinstance(content, Node):
            return content
        return [content if content.place is not None else replace(content, place=get_position(node))]

    def _read_file(self, file: str, node: Node) -> Node | Diagnostic:
        folder = self._root if self._root is not None else Path(node.start_mark.name).parent
        if not is_in_folder(file, folder):
            return error(
                BAD_FOR_EACH,
                "Items cannot be read",
                f"'{file}' is not in the folder of the project.",
                hint="Move the file into the folder of the project.",
            )
        replacement = self._replacements.get(file)
        try:
            data = (
                replacement
                if replacement is not None
                else read_regular_file(Path(file), _MAX_FILE_BYTES).encode()
            )
        except (OSError, ValueError) as e:
            reason = "it is not UTF-8 text" if isinstance(e, ValueError) else format_os_error(e)
            return error(
                "unreadable-file",
                "File cannot be read",
                f"'{file}' cannot be read: {reason}.",
                hint="Correct the path in forEach. Relative paths are resolved from the folder of the "
                "manifest.",
            )
        problems: list[Diagnostic] = []
        documents = list(compose(file, data, problems))
        if problems:
            return problems[0]
        if len(documents) == 1 and not isinstance(documents[0], ScalarNode):
            return documents[0]
        return error(
            BAD_FOR_EACH,
            "Items cannot be read",
            f"'{file}' must contain exactly one document, with a list or a mapping.",
            hint="Write one YAML or JSON document with a list or a mapping.",
            place=SourcePosition(file, 1, 1),
        )


def find_item_file(node: Node) -> str | None:
    """Return the location of the file that a value of ``forEach`` names, or None if it names no file."""
    if not isinstance(node, ScalarNode) or not node.value or find_reference_names(node.value):
        return None
    return locate_file(node.value, node)


def _list_items(node: Node) -> Iterator[Item]:
    if isinstance(node, MappingNode):
        for index, (key, value) in enumerate(node.value):
            yield Item(_escape_key(key), value, index)
    else:
        for index, value in enumerate(node.value):
            yield Item(value if isinstance(value, ScalarNode) else None, value, index)


def _escape_key(key: ScalarNode) -> ScalarNode:
    """Escape ``${`` in a key, so that the key is not read as a reference when it becomes a value."""
    if "${" not in key.value:
        return key
    text = key.value.replace("${", "$${")
    return ScalarNode(key.tag, text, key.start_mark, key.end_mark, style=key.style or '"')


def _build_node(value: object, source: Node) -> Node:
    """Return the node of a variable's value, at the position of the reference to the variable."""
    if isinstance(value, dict):
        pairs = [(_build_scalar(str(k), source, '"'), _build_node(v, source)) for k, v in value.items()]
        return MappingNode(cast("str", None), pairs, source.start_mark, source.end_mark)
    if isinstance(value, list):
        nodes = [_build_node(item, source) for item in value]
        return SequenceNode(cast("str", None), nodes, source.start_mark, source.end_mark)
    if isinstance(value, Referenced):
        return _build_scalar(value.reference, source, '"')  # so that a secret remains a reference
    if isinstance(value, str):
        return _build_scalar(value.replace("${", "$${"), source, '"')
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return _build_scalar(text, source, None)


def _build_scalar(text: str, source: Node, style: str | None) -> ScalarNode:
    return ScalarNode(cast("str", None), text, source.start_mark, source.end_mark, style=style)


def _build_source_error(node: Node) -> Diagnostic:
    return error(
        BAD_FOR_EACH,
        "Items cannot be read",
        "'forEach' must be a list, a mapping, the path of a YAML or JSON file, or a variable that contains a "
        "list or a mapping. The path of a file cannot contain references.",
        hint="Write a list, a mapping, a path, or ${var.NAME}.",
        place=get_position(node),
    )
