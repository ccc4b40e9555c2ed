"""Nodes beneath nodes: what one leaves open is filled in from another, as defaults are."""

from collections.abc import Iterator, Sequence

from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.manifests.nodes import child
from kdeclare.manifests.reading import RESOURCE_MODES
from kdeclare.manifests.scalars import resolve


def fill(node: Node, under: Node) -> Node:
    """``node`` with what only ``under`` says: mappings key by key, everything else stays."""
    if not isinstance(node, MappingNode) or not isinstance(under, MappingNode):
        return node
    offered = {key.value: value for key, value in under.value if isinstance(key.value, str)}
    pairs = [
        (k, fill(v, offered[k.value]) if isinstance(k.value, str) and k.value in offered else v)
        for k, v in node.value
    ]
    there = {key.value for key, _ in node.value if isinstance(key.value, str)}
    pairs += [pair for pair in under.value if pair[0].value not in there]
    return MappingNode(node.tag, pairs, node.start_mark, node.end_mark)


def differing(a: Node, b: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of what both specs say, but not alike. Where text is wanted, quotes make no difference."""
    if isinstance(a, MappingNode) and isinstance(b, MappingNode):
        theirs = {key.value: value for key, value in b.value if isinstance(key.value, str)}
        for key, value in a.value:
            if isinstance(key.value, str) and key.value in theirs:
                yield from differing(value, theirs[key.value], (*path, key.value))
    elif not _same(a, b, as_text=any(step in RESOURCE_MODES for step in path[:-1])):
        yield path


def says(spec: Node | None, field_name: str) -> bool:
    """Whether a field is there and not null."""
    pair = child(spec, field_name) if spec is not None else None
    return pair is not None and not (
        isinstance(pair[1], ScalarNode) and not pair[1].style and pair[1].value in ("", "~", "null")
    )


def settles(spec: Node | None, path: Sequence[str]) -> bool:
    """Whether nothing can be filled in at a path: something is there, or in its way."""
    node = spec
    for step in path:
        if not isinstance(node, MappingNode):
            return node is not None
        pair = child(node, step)
        node = pair[1] if pair is not None else None
    return node is not None


def _same(a: Node, b: Node, *, as_text: bool) -> bool:
    if isinstance(a, ScalarNode) and isinstance(b, ScalarNode):
        if as_text:
            return _text(a) == _text(b)
        return (a.value, a.tag, bool(a.style)) == (b.value, b.tag, bool(b.style))
    if a.tag != b.tag or type(a) is not type(b) or len(a.value) != len(b.value):
        return False
    if isinstance(a, MappingNode):
        pairs = zip(a.value, b.value, strict=True)
        return all(_same(k, j, as_text=False) and _same(v, w, as_text=as_text) for (k, v), (j, w) in pairs)
    return all(_same(v, w, as_text=as_text) for v, w in zip(a.value, b.value, strict=True))


def _text(node: ScalarNode) -> str | None:
    """The text that is meant, None for null."""
    meaning = None if node.style or node.tag is not None else resolve(node.value)
    return meaning[1] if isinstance(meaning, tuple) else str(node.value)
