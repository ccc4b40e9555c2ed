"""The resource whose manifest is edited.

Fields that share a value through a YAML anchor, and fields whose value is a reference, are not edited.
"""

from collections.abc import Iterator, Mapping

from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.manifest_capabilities import (
    Editable,
)
from kdeclare.manifests.editing.edits import AppendEdit, DropEdit, Edit, NodePath, PutEdit
from kdeclare.manifests.editing.text_splice import is_null
from kdeclare.manifests.for_each.generator import ManifestOrigin
from kdeclare.manifests.provenance import Source, SourceDocument
from kdeclare.manifests.schema_errors import format_path
from kdeclare.manifests.syntax.node_reader import NodeReader
from kdeclare.manifests.syntax.nodes import find_node, find_position, get_position
from kdeclare.manifests.syntax.substitution import find_reference_names

_REFERENCE_ORIGINS = {
    "env": "The value comes from an environment variable",
    "file": "The value comes from a file",
}


@dataclass(frozen=True, slots=True)
class LocatedEdit:
    """An edit, together with the document to edit."""

    document: SourceDocument
    edit: Edit


@dataclass(frozen=True, slots=True)
class EditSubject:
    """One resource to edit.

    kind: the kind of the resource, which interprets its manifests.
    variables: the position in the project file where each variable is defined, by name.
    """

    id: ResourceId
    source: Source
    reader: NodeReader
    kind: Editable
    variables: Mapping[str, SourcePosition]

    def is_declared(self, path: NodePath) -> bool:
        """Return whether the manifest or an overlay sets a path in the spec to a value other than null."""
        node = self.source.at(("spec", *path))
        return node is not None and not is_null(node)

    def read_value(self, path: NodePath) -> JsonValue:
        """Return the value at a path in the spec, with all scalars as strings, or None if it is not set."""
        node = self.source.at(("spec", *path))
        value: JsonValue = None if node is None or is_null(node) else self.reader.peek(node)
        return value

    def edited(self, document: SourceDocument, edit: Edit) -> LocatedEdit:
        """Return an edit to a document.

        Raises KdeclareError if the edit would change a field that is shared by a YAML anchor
        (``aliased-field``) or whose value is a reference (``field-by-reference``), or if the manifest is
        generated (``generated-manifest``).
        """
        if document.origin is not None:
            raise KdeclareError(build_generated_error(self.id, document.origin, edit.path))
        self._validate_not_shared(document, edit.path)
        node = find_node(document.root, edit.path)
        if isinstance(edit, PutEdit) and node is not None:
            self._validate_not_reference(document, edit.path, node)
        return LocatedEdit(document, edit)

    def split_elements(self, node: Node) -> list[str]:
        """Return the elements of a list. The node is a YAML list or a comma-separated string."""
        value = self.reader.peek(node)
        parts = value.split(",") if isinstance(value, str) else value or []
        return [part.strip() for part in parts if part.strip()]

    def replace_elements(
        self, document: SourceDocument, path: NodePath, node: Node, elements: list[str]
    ) -> Iterator[LocatedEdit]:
        """Yield the edits that change a list so that it contains exactly these elements, in any order.

        A YAML list remains a YAML list, and a comma-separated string remains a string.
        """
        texts = self.split_elements(node)
        if set(texts) == set(elements):
            return
        kept_elements = [element for element in texts if element in elements]
        new_elements = [element for element in elements if element not in texts]
        if isinstance(node, ScalarNode):
            yield self.edited(document, PutEdit(path, ",".join([*kept_elements, *new_elements])))
            return
        for element in new_elements:
            yield self.edited(document, AppendEdit(path, element))
        for index in reversed(range(len(texts))):
            if texts[index] not in elements:
                yield self.edited(document, DropEdit((*path, index)))

    def _validate_not_shared(self, document: SourceDocument, path: NodePath) -> None:
        shared = _find_shared_nodes(document.root)
        path_nodes = [find_node(document.root, path[:n]) for n in range(len(path) + 1)]
        target_node = path_nodes[-1]
        affected_nodes = [node for node in path_nodes if node is not None] + (
            [*_walk_nodes(target_node)] if target_node is not None else []
        )
        shared_node = next((node for node in affected_nodes if id(node) in shared), None)
        if shared_node is None:
            return
        raise KdeclareError(
            error(
                "aliased-field",
                "Field shared by an alias",
                f"'{format_path(path)}' of {self.id} is shared by an anchor (&) and its aliases (*) "
                f"at {get_position(shared_node)}. Editing it would change more than this field.",
                hint="Replace the alias with the values themselves, or edit the manifest yourself.",
                place=_find_key_position(document, path),
                resource=str(self.id),
                subject=format_path(path),
            )
        )

    def _validate_not_reference(self, document: SourceDocument, path: NodePath, node: Node) -> None:
        scalars = [scalar for scalar in _walk_nodes(node) if isinstance(scalar, ScalarNode)]
        names = [name for scalar in scalars for name in find_reference_names(scalar.value)]
        if not names:
            return
        origin, _, name = names[0].partition(".")
        definition_position = self.variables.get(name) if origin == "var" else None
        origin_text = (
            f"The variable is defined at {definition_position}"
            if definition_position
            else _REFERENCE_ORIGINS.get(origin, "The definition is not in a manifest")
        )
        raise KdeclareError(
            error(
                "field-by-reference",
                "Value is a reference",
                f"'{format_path(path)}' of {self.id} is written as ${{{names[0]}}}, "
                f"which other fields can use, too. {origin_text}.",
                hint="Change the value where it is defined, or replace the reference with a value.",
                place=_find_key_position(document, path),
                resource=str(self.id),
                subject=format_path(path),
            )
        )


def build_generated_error(resource: ResourceId, origin: ManifestOrigin, path: NodePath) -> Diagnostic:
    """Return the error for an edit to a manifest that is generated with ``forEach``."""
    edited_field = f"'{format_path(path)}' of {resource}" if path else f"The manifest of {resource}"
    return error(
        "generated-manifest",
        "Manifest is generated",
        f"{edited_field} is not written, because the manifest is generated for {origin}. An edit could "
        "also change other resources.",
        hint="Edit the forEach item or the manifest yourself, or change the resource in an overlay.",
        place=origin.item_place,
        resource=str(resource),
        subject=format_path(path) or None,
    )


def _find_key_position(document: SourceDocument, path: NodePath) -> SourcePosition:
    return find_position(document.root, path, key=True)


def _walk_nodes(root: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it. An aliased node is yielded once for each alias."""
    yield root
    if not isinstance(root, ScalarNode):
        for item in root.value:
            for node in item if isinstance(root, MappingNode) else (item,):
                yield from _walk_nodes(node)


def _find_shared_nodes(root: Node) -> frozenset[int]:
    """Return the Python ids of the nodes that occur several times in a document because of aliases."""
    visited: set[int] = set()
    shared: set[int] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) in visited:
            shared.add(id(node))
            continue
        visited.add(id(node))
        if not isinstance(node, ScalarNode):
            for item in node.value:
                pending.extend(item if isinstance(node, MappingNode) else (item,))
    return frozenset(shared)
