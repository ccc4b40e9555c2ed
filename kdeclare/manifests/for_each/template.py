"""Replace ``${each.key}``, ``${each.value}`` and ``${each.value.FIELD}`` in the nodes of a manifest.

If a value consists of a single reference, it is replaced with a copy of the referenced node of the
item. The copy has the type and the source position of this node.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from yaml import Mark
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.for_each.items import BAD_FOR_EACH, Item
from kdeclare.manifests.syntax.node_reader import parse_scalar
from kdeclare.manifests.syntax.nodes import find_child, find_node, get_position, walk_distinct_nodes
from kdeclare.manifests.syntax.substitution import has_reference

_EACH = re.compile(r"\$\$\{|\$\{(each(?:\.[^{}:]*)?)\}")
_CHARACTERS_PER_NODE = 100
"""The number of characters in a new string that count as one more node.

Because of this, the limit on nodes also limits the memory for strings.
"""
_LITERAL_FIELDS = ("apiVersion", "kind")

ItemReference = tuple[str, SourcePosition]
"""A reference, such as ``each.value.partitions``, and the position of the value that replaces it."""


class ExpansionTooLarge(Exception):
    """Raised if a manifest would generate more nodes than allowed."""


@dataclass(slots=True)
class Expansion:
    """The manifest that is generated for one item.

    root: the root of the document.
    references: the references to the item, by the Python id of the node that contains the value.
    problems: the problems with references.
    """

    root: Node
    references: dict[int, list[ItemReference]] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)


class Template:
    """A manifest without its ``forEach``, from which one manifest is generated for each item.

    All generated manifests share the nodes that contain no references to the item.

    size: the number of nodes. A node that aliases refer to counts once more for each alias.
    """

    def __init__(self, root: Node) -> None:
        self._root = root
        self._varying: dict[int, bool] = {}
        self.size = self._measure(root, {})

    def check(self) -> Iterator[Diagnostic]:
        """Yield an error for each reference to the item in a key, in ``apiVersion`` or in ``kind``."""
        for node in walk_distinct_nodes(self._root):
            for key, _ in node.value if isinstance(node, MappingNode) else ():
                if isinstance(key, ScalarNode) and _has_item_reference(key.value):
                    yield _build_place_error(key, "the key of a field")
        for name in _LITERAL_FIELDS:
            pair = find_child(self._root, name)
            if pair is not None and self._varying[id(pair[1])]:
                yield _build_place_error(pair[1], f"the field '{name}'")

    def varies(self, path: tuple[str, ...]) -> bool:
        """Return whether the value at a path contains references to the item."""
        node = find_node(self._root, path)
        return node is not None and self._varying[id(node)]

    def expand(self, item: Item, max_nodes: int) -> tuple[Expansion, int]:
        """Return the manifest of an item, and the number of new nodes.

        Raises ExpansionTooLarge if more than ``max_nodes`` nodes are needed.
        """
        return _Expander(item, self._varying, max_nodes).expand_document(self._root)

    def _measure(self, node: Node, sizes: dict[int, int]) -> int:
        if id(node) not in sizes:
            if isinstance(node, ScalarNode):
                self._varying[id(node)] = _has_item_reference(node.value)
                sizes[id(node)] = 1
            else:
                is_mapping = isinstance(node, MappingNode)
                children = [value for _, value in node.value] if is_mapping else node.value
                sizes[id(node)] = 1 + sum(self._measure(child, sizes) for child in children)
                self._varying[id(node)] = any(self._varying[id(child)] for child in children)
        return sizes[id(node)]


class _Expander:
    """Expands one template for one item."""

    def __init__(self, item: Item, varying: dict[int, bool], max_nodes: int) -> None:
        self._item = item
        self._varying = varying
        self._max_nodes = max_nodes
        self._count = 0
        self._references: dict[int, list[ItemReference]] = {}
        self._problems: list[Diagnostic] = []

    def expand_document(self, root: Node) -> tuple[Expansion, int]:
        expanded = self._expand(root)
        name = find_node(expanded, ("metadata", "name"))
        if isinstance(name, ScalarNode) and name is not find_node(root, ("metadata", "name")):
            # the position of the name identifies the resource, so it must differ between the items
            name.start_mark = self._item.node.start_mark
            name.end_mark = _build_end_mark(name.start_mark)
        return Expansion(expanded, self._references, list(dict.fromkeys(self._problems))), self._count

    def _expand(self, node: Node) -> Node:
        if not self._varying[id(node)]:
            return node
        if isinstance(node, ScalarNode):
            return self._expand_scalar(node)
        self._count_nodes(1)
        if isinstance(node, MappingNode):
            pairs = [(key, self._expand(value)) for key, value in node.value]
            return MappingNode(node.tag, pairs, node.start_mark, node.end_mark)
        values = [self._expand(value) for value in node.value]
        return SequenceNode(node.tag, values, node.start_mark, node.end_mark)

    def _expand_scalar(self, node: ScalarNode) -> Node:
        whole = _EACH.fullmatch(node.value)
        if whole is not None and whole[1]:
            value = self._find(whole[1], node)
            return node if value is None else self._copy(value, whole[1])
        texts: list[str] = []
        references: list[ItemReference] = []
        end = 0
        for match in _EACH.finditer(node.value):
            texts.append(node.value[end : match.start()])
            end = match.end()
            value = self._find(match[1], node) if match[1] else None
            if value is None:
                texts.append(match[0])
            else:
                texts.append(self._find_text(value, match[1], node))
                references.append((match[1], get_position(value)))
        text = "".join((*texts, node.value[end:]))
        self._count_nodes(1, text)
        new_node = ScalarNode(node.tag, text, node.start_mark, _build_end_mark(node.start_mark), style='"')
        self._references[id(new_node)] = references
        return new_node

    def _copy(self, node: Node, name: str) -> Node:
        """Return a copy of a value of the item, so that no node occurs twice in a document."""
        self._count_nodes(1, node.value if isinstance(node, ScalarNode) else "")
        new_node: Node
        if isinstance(node, MappingNode):
            pairs = [(key, self._copy(value, f"{name}.{key.value}")) for key, value in node.value]
            new_node = MappingNode(node.tag, pairs, node.start_mark, node.end_mark)
        elif isinstance(node, SequenceNode):
            new_node = SequenceNode(
                node.tag, [self._copy(value, name) for value in node.value], node.start_mark, node.end_mark
            )
        else:
            style = getattr(node, "style", None)
            new_node = ScalarNode(node.tag, node.value, node.start_mark, node.end_mark, style=style)
        self._references[id(new_node)] = [(name, get_position(node))]
        return new_node

    def _count_nodes(self, count: int, text: str = "") -> None:
        self._count += count + len(text) // _CHARACTERS_PER_NODE
        if self._count > self._max_nodes:
            raise ExpansionTooLarge

    def _find_text(self, value: Node, reference: str, node: Node) -> str:
        if isinstance(value, ScalarNode):
            if value.style or value.tag is not None or has_reference(value.value):
                return str(value.value)
            meaning = parse_scalar(value.value)
            text = meaning[1] if isinstance(meaning, tuple) else value.value
            if text is not None:
                return text
        self._problems.append(
            error(
                "bad-reference",
                "Item value is not a string",
                f"'${{{reference}}}' is used inside a string, but its value is a list, a mapping or null.",
                hint="Use a field with a string or a number, or make the reference the whole value.",
                place=get_position(node),
            )
        )
        return ""

    def _find(self, reference: str, node: Node) -> Node | None:
        """Return the referenced value. If it does not exist, add a problem."""
        item = self._item
        _, _, path = reference.partition(".")
        if path == "key":
            if item.key is None:
                self._report_undefined(
                    node,
                    f"'${{{reference}}}' has no value, because the item is a list or mapping without a key.",
                    "Use ${each.value.FIELD}, or write forEach as a mapping.",
                )
            return item.key
        first, _, rest = path.partition(".")
        if first != "value" or path.endswith("."):
            self._report_undefined(
                node,
                f"'${{{reference}}}' is not a part of an item.",
                "Use ${each.key}, ${each.value} or ${each.value.FIELD}.",
            )
            return None
        value = item.value
        while rest:
            found = _find_longest_key(value, rest)
            if found is None:
                self._report_undefined(
                    node,
                    f"'${{{reference}}}' has no value, because the item has no field '{rest}'.",
                    format_suggestion(rest, _list_keys(value)) or "Add the field to the item.",
                )
                return None
            value, rest = found
        return value

    def _report_undefined(self, node: Node, detail: str, hint: str) -> None:
        self._problems.append(
            error(
                "undefined-item-field", "Item has no such field", detail, hint=hint, place=get_position(node)
            )
        )


def _build_end_mark(start: Mark) -> Mark:
    """Return an end mark on the next line, so that messages do not point at columns of a generated string."""
    return Mark(start.name, 0, start.line + 1, 0, None, 0)


def _has_item_reference(text: str) -> bool:
    return has_reference(text) and any(match[1] for match in _EACH.finditer(text))


def _find_longest_key(node: Node, path: str) -> tuple[Node, str] | None:
    """Find the longest key with which a path begins. Return its value, and the rest of the path.

    Keys such as ``retention.ms`` contain dots.
    """
    steps = path.split(".")
    for length in range(len(steps), 0, -1):
        pair = find_child(node, ".".join(steps[:length])) if isinstance(node, MappingNode) else None
        if pair is not None:
            return pair[1], ".".join(steps[length:])
    return None


def _list_keys(node: Node) -> list[str]:
    return [str(key.value) for key, _ in node.value] if isinstance(node, MappingNode) else []


def _build_place_error(node: Node, place_text: str) -> Diagnostic:
    return error(
        BAD_FOR_EACH,
        "Reference is not allowed here",
        f"References to a forEach item are not allowed in {place_text}.",
        hint="Write the value itself, or write a separate manifest for each item.",
        place=get_position(node),
    )
