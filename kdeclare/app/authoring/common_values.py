"""Find the values that most imported manifests of a kind have in common, and move them to `Defaults`.

This module works on the texts of manifests. `import_defaults` decides which manifests and fields this
module may change.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.manifest_text import render_manifest, scalar
from kdeclare.manifests.defaults import DEFAULTS, FieldPath
from kdeclare.manifests.editing.documents import compose_text, rewrite_file
from kdeclare.manifests.editing.edits import DropEdit, format_key
from kdeclare.manifests.syntax.nodes import find_node

_MIN_COUNT = 3
_MAX_FIELD_SETS = 100
"""The maximum number of combinations of fields to try. Most clusters have far fewer."""

_REFERENCE = "${"
_COMMENT_IN_SPEC = re.compile(r"^ +#", re.MULTILINE)

FieldTexts = Mapping[FieldPath, str | None]
"""The YAML of the fields in a spec, by path; None for a value that must stay in the manifest."""


@dataclass(frozen=True, slots=True)
class CommonValues:
    """The values to move to `Defaults`.

    values: the YAML of each value, by its path in the spec.
    names: the names of the resources to which the `Defaults` apply. Each of these resources sets every field
        in ``values``, to the common value or to another one, so that the `Defaults` add no field to it.
    """

    values: Mapping[FieldPath, str]
    names: tuple[str, ...]


def read_field_texts(manifest: str) -> FieldTexts:
    """Return the fields in the spec of an imported manifest.

    Values with references, lists of mappings and values with several lines must stay in the manifest. They
    are None in the result.
    """
    (root,) = compose_text("", manifest)
    spec = find_node(root, ("spec",))
    return dict(_walk_fields(manifest, spec, ())) if spec is not None else {}


def _walk_fields(text: str, node: Node, path: FieldPath) -> Iterator[tuple[FieldPath, str | None]]:
    if isinstance(node, MappingNode):
        for key, value in node.value:
            yield from _walk_fields(text, value, (*path, str(key.value)))
        return
    value_text = text[node.start_mark.index : node.end_mark.index]
    is_simple = isinstance(node, ScalarNode) or (
        isinstance(node, SequenceNode) and all(isinstance(item, ScalarNode) for item in node.value)
    )
    has_reference = _REFERENCE in value_text or any(_REFERENCE in step for step in path)
    yield path, value_text if is_simple and not has_reference and "\n" not in value_text else None


def choose_common_values(
    fields_by_name: Mapping[str, FieldTexts], kept: Collection[FieldPath] = ()
) -> CommonValues | None:
    """Return the values that more than half of the resources, and at least three, have in common.

    fields_by_name: the fields of each resource of a kind, by the name of the resource.
    kept: the fields that must stay in the manifests.
    If some resources lack a field with a common value, return only the combination of values that saves the
    most fields in the manifests when it is moved to `Defaults`. Return None if there are no common values.
    """
    total = len(fields_by_name)
    counts = Counter(
        (path, text)
        for fields in fields_by_name.values()
        for path, text in fields.items()
        if text is not None and path not in kept
    )
    common = {path: text for (path, text), count in counts.items() if _is_common(count, total)}
    field_sets = Counter(frozenset(common.keys() & fields.keys()) for fields in fields_by_name.values())
    best, best_count = None, 0
    for paths, _ in field_sets.most_common(_MAX_FIELD_SETS):
        members = [fields for fields in fields_by_name.values() if paths <= fields.keys()]
        matches = {path: sum(fields[path] == common[path] for fields in members) for path in paths}
        values = {path: text for path, text in common.items() if _is_common(matches.get(path, 0), total)}
        count = sum(matches[path] for path in values)
        if count > best_count:
            best, best_count = values, count
    if best is None:
        return None
    names = [
        name
        for name, fields in fields_by_name.items()
        if best.keys() <= fields.keys() and any(fields[path] == text for path, text in best.items())
    ]
    return CommonValues(best, tuple(names))


def _is_common(count: int, total: int) -> bool:
    return count >= _MIN_COUNT and 2 * count > total


def remove_common_values(manifest: str, common: CommonValues) -> str:
    """Return an imported manifest without the fields that have a common value. Raises EditRejected."""
    fields = read_field_texts(manifest)
    removed = {path for path, text in common.values.items() if fields.get(path) == text}
    (root,) = compose_text("", manifest)
    spec = find_node(root, ("spec",))
    if not removed or spec is None:
        return manifest
    # an empty mapping is kept if it can contain comments, such as the names of hidden configs
    keeps_mappings = _COMMENT_IN_SPEC.search(manifest) is not None
    edits = [DropEdit(("spec", *path)) for path in _list_removals(spec, (), removed, keeps_mappings)]
    rewritten = rewrite_file("", manifest.encode(), {0: edits})
    return rewritten.decode() if rewritten is not None else manifest


def _list_removals(
    node: MappingNode | Node, path: FieldPath, removed: Collection[FieldPath], keeps_mappings: bool
) -> Iterator[FieldPath]:
    """Yield the paths to delete from a manifest.

    These are the fields in ``removed``, or a whole mapping if it would become empty.
    """
    for key, value in node.value:
        child = (*path, str(key.value))
        if child in removed:
            yield child
        elif isinstance(value, MappingNode) and value.value:
            inner = [*_list_removals(value, child, removed, keeps_mappings)]
            is_empty = not keeps_mappings and len(inner) == len(value.value)
            is_empty = is_empty and all(len(one) == len(child) + 1 for one in inner)
            yield from [child] if is_empty else inner


def render_defaults(name: str, kind: str, common: CommonValues) -> str:
    """Return a `Defaults` manifest that contains the common values."""
    return render_manifest(
        DEFAULTS,
        name,
        [
            f"kind: {kind}",
            "selector:",
            "  names:",
            *(f"    - {scalar(resource, text=True)}" for resource in common.names),
            "defaults:",
            *_render_fields(common.values, "  "),
        ],
        ["Values that these imported resources have in common. A value in a manifest takes precedence."],
    )


def _render_fields(values: Mapping[FieldPath, str], indent: str) -> Sequence[str]:
    lines: list[str] = []
    nested: dict[str, dict[FieldPath, str]] = {}
    for path, text in values.items():
        if len(path) == 1:
            lines.append(f"{indent}{format_key(path[0])}: {text}")
        else:
            nested.setdefault(path[0], {})[path[1:]] = text
    for key, inner in nested.items():
        lines += [f"{indent}{format_key(key)}:", *_render_fields(inner, indent + "  ")]
    return lines
