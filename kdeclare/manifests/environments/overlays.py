"""Merge the overlays of one environment over a manifest, and fill in defaults.

Overlays are merged as YAML nodes rather than as plain data, so that a problem with a field is reported at its
position in the overlay. An overlay cannot change the kind or the name of a manifest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.provider.provider import API_VERSION
from kdeclare.core.provider.registry import find_api_version
from kdeclare.core.resources.ids import ResourceId
from kdeclare.manifests.syntax.node_reader import UNIFORM, VALUE, Modes, NodeReader, parse_scalar
from kdeclare.manifests.syntax.nodes import find_child, find_position


def identify(root: Node, reader: NodeReader) -> ResourceId | None:
    """Return the resource id of a document, or None if it cannot be determined.

    The cause is reported later, when the document is validated.
    """
    kind, metadata = find_child(root, "kind"), find_child(root, "metadata")
    name = find_child(metadata[1], "name") if metadata else None
    if kind is None or name is None:
        return None
    values = [reader.peek(kind[1]), reader.peek(name[1])]
    if not all(isinstance(value, str) and value for value in values):
        return None
    return ResourceId(*values)


@dataclass(slots=True)
class Overlays:
    """The overlays of one environment, by the resource whose manifest they change."""

    _by_id: dict[ResourceId, list[Node]] = field(default_factory=dict)
    _used: set[ResourceId] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self._by_id)

    def add(self, roots: Sequence[Node], reader: NodeReader) -> list[Diagnostic]:
        """Add the documents of one overlay, and return their problems.

        An overlay can contain only one document for each resource.
        """
        problems: list[Diagnostic] = []
        roots_by_resource: dict[ResourceId, Node] = {}
        for root in roots:
            resource = identify(root, reader)
            problems += _check_overlay(root, resource, reader)
            if resource is None:
                problems.append(_build_nameless_error(root))
            elif resource in roots_by_resource:
                problems.append(_build_duplicate_error(resource, roots_by_resource[resource], root))
            else:
                roots_by_resource[resource] = root
                self._by_id.setdefault(resource, []).append(root)
        return problems

    def of(self, resource: ResourceId) -> tuple[Node, ...]:
        """Return the documents to merge over the manifest of a resource, in merge order."""
        return tuple(self._by_id.get(resource, ()))

    def applied(self, resource: ResourceId | None, root: Node) -> Node:
        """Return a document with the overlays of its resource merged over it."""
        for overlay in self.of(resource) if resource is not None else ():
            self._used.add(resource)  # type: ignore[arg-type]
            root = merge(root, drop_identity(overlay))
        return root

    def mark_used(self, resource: ResourceId | None) -> None:
        """Do not report the overlays of a resource as overlays without a manifest.

        Called if the manifest exists but is not loaded, for example because it is excluded from the
        environment.
        """
        if resource is not None:
            self._used.add(resource)

    def unused(self) -> list[Diagnostic]:
        """Return an error for each resource that has an overlay, but no manifest."""
        return [
            error(
                "unknown-overlay",
                "Overlay without a manifest",
                f"This overlay is for {resource}, which no manifest declares.",
                hint="Correct the kind or the name. To declare a new resource, use a manifest instead of an "
                "overlay.",
                place=find_position(roots[0], ("metadata", "name")),
                resource=str(resource),
            )
            for resource, roots in self._by_id.items()
            if resource not in self._used
        ]


def merge(base: Node, overlay: Node) -> Node:
    """Merge ``overlay`` over ``base``. Mappings are merged key by key; any other value is replaced."""
    if not isinstance(base, MappingNode) or not isinstance(overlay, MappingNode):
        return overlay
    pairs = list(base.value)
    index = {key.value: n for n, (key, _) in enumerate(pairs) if isinstance(key.value, str)}
    for key, value in overlay.value:
        existing_index = index.get(key.value) if isinstance(key.value, str) else None
        if existing_index is None:
            pairs.append((key, value))
        else:
            pairs[existing_index] = key, merge(pairs[existing_index][1], value)
    return MappingNode(base.tag, pairs, base.start_mark, base.end_mark)


def drop_identity(overlay: Node) -> Node:
    """Return an overlay without ``forEach``, and without the apiVersion, kind and name of the resource."""
    pairs = [
        (key, _drop_keys(value, ("name",)) if key.value == "metadata" else value)
        for key, value in _drop_keys(overlay, ("apiVersion", "kind", "forEach")).value
    ]
    return MappingNode(overlay.tag, pairs, overlay.start_mark, overlay.end_mark)


def _drop_keys(node: Node, keys: Sequence[str]) -> Node:
    if not isinstance(node, MappingNode):
        return node
    pairs = [pair for pair in node.value if pair[0].value not in keys]
    return MappingNode(node.tag, pairs, node.start_mark, node.end_mark)


def _check_overlay(root: Node, resource: ResourceId | None, reader: NodeReader) -> list[Diagnostic]:
    """Return the problems that merging would hide: duplicate keys, ``forEach`` and a wrong apiVersion."""
    name = str(resource) if resource is not None else None
    problems = [replace(p, resource=name) for p in reader.find_duplicate_keys(root)]
    for_each = find_child(root, "forEach")
    if for_each is not None:
        problems.append(
            error(
                "bad-for-each",
                "Overlay cannot have forEach",
                "'forEach' generates manifests. An overlay can only change one manifest, for example a "
                "generated manifest.",
                hint="Remove 'forEach', and write an overlay for each resource that differs.",
                place=find_position(root, ("forEach",), key=True),
                resource=name,
            )
        )
    version = find_child(root, "apiVersion")
    expected = find_api_version(resource.kind) if resource is not None else API_VERSION
    if version is None or reader.peek(version[1]) == expected:
        return problems
    version_error = error(
        "bad-value",
        "Value not allowed",
        f"'apiVersion' must be '{expected}'.",
        hint=f"Write 'apiVersion: {expected}', or remove the field.",
        place=find_position(root, ("apiVersion",)),
        resource=name,
    )
    return [*problems, version_error]


def _build_nameless_error(root: Node) -> Diagnostic:
    return error(
        "nameless-overlay",
        "Overlay does not name a resource",
        "An overlay must have kind and metadata.name, which select the manifest to change.",
        hint="Add the kind and the name of the manifest to change.",
        place=find_position(root, ()),
    )


def _build_duplicate_error(resource: ResourceId, first: Node, second: Node) -> Diagnostic:
    first_position = find_position(first, ("metadata", "name"))
    return error(
        "duplicate-resource",
        "Duplicate resource in an overlay",
        f"{resource} is already in this overlay, at {first_position}.",
        hint="Combine the two documents into one.",
        place=find_position(second, ("metadata", "name")),
        resource=str(resource),
    )


def fill(node: Node, lower: Node) -> Node:
    """Return ``node`` with the values of ``lower`` for the fields that ``node`` does not set.

    Mappings are merged key by key.
    """
    if not isinstance(node, MappingNode) or not isinstance(lower, MappingNode):
        return node
    lower_values = {key.value: value for key, value in lower.value if isinstance(key.value, str)}
    pairs = [
        (k, fill(v, lower_values[k.value]) if isinstance(k.value, str) and k.value in lower_values else v)
        for k, v in node.value
    ]
    existing_keys = {key.value for key, _ in node.value if isinstance(key.value, str)}
    pairs += [pair for pair in lower.value if pair[0].value not in existing_keys]
    return MappingNode(node.tag, pairs, node.start_mark, node.end_mark)


def find_differences(
    a: Node, b: Node, modes: Modes, path: tuple[str, ...] = (), mode: int = VALUE
) -> Iterator[tuple[str, ...]]:
    """Yield the paths that two specs set to different values. In string fields, quotes are ignored.

    modes: the modes in which mappings and lists are read.
    mode: the mode in which ``a`` and ``b`` are read if they are scalars.
    """
    if isinstance(a, MappingNode) and isinstance(b, MappingNode):
        other_values = {key.value: value for key, value in b.value if isinstance(key.value, str)}
        for key, value in a.value:
            name = key.value
            if isinstance(name, str) and name in other_values:
                nested_arguments = modes.get_modes_below(name), (*path, name), modes.get_mode(name)
                yield from find_differences(value, other_values[name], *nested_arguments)
    elif not _is_same_node(a, b, UNIFORM[mode] if isinstance(a, ScalarNode) else modes):
        yield path


def has_field_value(spec: Node | None, field_name: str) -> bool:
    """Return whether a field of a spec is set to a value other than null."""
    pair = find_child(spec, field_name) if spec is not None else None
    return pair is not None and not (
        isinstance(pair[1], ScalarNode) and not pair[1].style and pair[1].value in ("", "~", "null")
    )


def is_occupied(spec: Node | None, path: Sequence[str]) -> bool:
    """Return whether a path is occupied, so that no default is filled in at this path.

    A path is occupied if it is set (even to null), or if a node above it is not a mapping.
    """
    node = spec
    for step in path:
        if not isinstance(node, MappingNode):
            return node is not None
        pair = find_child(node, step)
        node = pair[1] if pair is not None else None
    return node is not None


def _is_same_node(a: Node, b: Node, modes: Modes) -> bool:
    if isinstance(a, ScalarNode) and isinstance(b, ScalarNode):
        if modes.mode != VALUE:
            return _find_text(a) == _find_text(b)
        return (a.value, a.tag, bool(a.style)) == (b.value, b.tag, bool(b.style))
    if a.tag != b.tag or type(a) is not type(b) or len(a.value) != len(b.value):
        return False
    if isinstance(a, MappingNode):
        pairs = zip(a.value, b.value, strict=True)
        return all(
            _is_same_node(k, j, UNIFORM[VALUE]) and _is_same_node(v, w, _get_modes_below(modes, k, v))
            for (k, v), (j, w) in pairs
        )
    items = zip(a.value, b.value, strict=True)
    return all(
        _is_same_node(v, w, UNIFORM[modes.mode] if isinstance(v, ScalarNode) else modes.rest)
        for v, w in items
    )


def _get_modes_below(modes: Modes, key: Node, value: Node) -> Modes:
    name = key.value if isinstance(key, ScalarNode) else ""
    return UNIFORM[modes.get_mode(name)] if isinstance(value, ScalarNode) else modes.get_modes_below(name)


def _find_text(node: ScalarNode) -> str | None:
    meaning = None if node.style or node.tag is not None else parse_scalar(node.value)
    return meaning[1] if isinstance(meaning, tuple) else str(node.value)
