"""That an edit has done what was wanted, and nothing else."""

from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.manifests.editing.edits import Append, Edit, Path, Put, Value
from kdeclare.manifests.nodes import node_at
from kdeclare.manifests.scalars import Ambiguous, resolve

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
