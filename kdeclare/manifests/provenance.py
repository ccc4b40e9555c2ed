"""Find the documents that declare each resource, and the source of each field of a resource.

The value of a field comes from a manifest, an overlay, defaults or a variable.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer
from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, SourcePosition
from kdeclare.core.documents import ResourceText
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Kind, ManifestExclusion
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.manifests.defaults import (
    DEFAULTS,
    Defaults,
    InheritedDefaults,
    Layers,
    collect_inherited_defaults,
)
from kdeclare.manifests.environments.overlays import drop_identity, identify
from kdeclare.manifests.environments.presence import PresenceFilter
from kdeclare.manifests.for_each.generator import Generator, ManifestOrigin
from kdeclare.manifests.project import Project, find_manifest_roots
from kdeclare.manifests.syntax.files import FileFinder, read_file
from kdeclare.manifests.syntax.node_reader import UNIFORM, Modes, NodeReader, parse_scalar
from kdeclare.manifests.syntax.nodes import compose, find_node, find_position, walk_distinct_nodes
from kdeclare.manifests.syntax.substitution import ReferenceContext, find_reference_names, is_single_reference

NodePath = tuple[str | int, ...]
"""The path of a node: the keys and list indexes that lead from the root of the document to the node."""


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One document of a file.

    index: the index of the document in the file, from 0. Empty documents count as well.
    origin: the ``forEach`` and the item that the document was generated from, if any.
    """

    file: str
    index: int
    root: Node = field(repr=False, compare=False, hash=False)
    origin: ManifestOrigin | None = field(default=None, repr=False, compare=False, hash=False)


@dataclass(frozen=True)
class Source:
    """All documents that define one resource in an environment.

    base: the manifest.
    overlays: the documents to merge over the manifest, in merge order.
    elsewhere: the documents for the resource in the overlays of other environments.
    defaults: the values for fields that neither the manifest nor an overlay sets; the defaults with the
        highest priority come first.
    """

    base: SourceDocument
    overlays: tuple[SourceDocument, ...] = ()
    elsewhere: tuple[SourceDocument, ...] = ()
    defaults: tuple[InheritedDefaults, ...] = ()

    @cached_property
    def layers(self) -> Layers:
        """The manifest, overlays and defaults that are merged to form the resource."""
        overlays = tuple(overlay.root for overlay in self.overlays)
        return Layers(self.base.root, overlays, self.defaults, self.base.origin)

    def at(self, path: NodePath) -> Node | None:
        """Return the node at a path in the manifest with its overlays, or None if the path is not set."""
        return find_node(self.layers.merged, path)

    def place(self, path: NodePath) -> SourcePosition | None:
        """Return the position of the key that takes effect at a path, or None if the path is not set."""
        effective = self.layers.effective
        return find_position(effective, path, key=True) if find_node(effective, path) is not None else None

    def find_documents(self, path: NodePath) -> list[SourceDocument]:
        """Return the documents that set a path; the last one takes effect."""
        return [d for d in (self.base, *self.overlays) if find_node(d.root, path) is not None]


@dataclass(frozen=True, slots=True)
class ProjectSources:
    """The documents that define the resources of a project, by resource id.

    diagnostics: the problems that occurred when the files were read.
    exclusions: for each resource whose manifest is excluded from the environment, the field that excludes it.
    """

    by_id: Mapping[ResourceId, Source]
    diagnostics: tuple[Diagnostic, ...] = ()
    exclusions: Mapping[ResourceId, ManifestExclusion] = field(default_factory=dict)


def read_sources(
    project: Project, environ: Mapping[str, str], kinds: Mapping[str, Kind] | None = None
) -> ProjectSources:
    """Return the documents of each resource in the environment of a project, without validation.

    kinds: the kinds for which Defaults are included. If None, no Defaults are included.
    """
    finder = _DocumentFinder(project, environ)
    bases = finder.within(
        FileFinder(project.file, project.all_overlays, project.stated, foreign=project.foreign_manifests),
        find_manifest_roots(project),
    )
    overlays: dict[ResourceId, list[SourceDocument]] = {}
    for path in project.environment.overlays:
        for resource, document in finder.within(FileFinder(project.file, stated=project.stated), (path,)):
            overlays.setdefault(resource, []).append(document)
    other_overlays = [path for path in project.all_overlays if path not in project.environment.overlays]
    elsewhere: dict[ResourceId, list[SourceDocument]] = {}
    for resource, document in finder.within(FileFinder(project.file), other_overlays):
        elsewhere.setdefault(resource, []).append(document)
    by_id: dict[ResourceId, Source] = {}
    for resource, base in bases:
        source = Source(base, tuple(overlays.get(resource, ())), tuple(elsewhere.get(resource, ())))
        by_id.setdefault(resource, source)
    if kinds:
        by_id = _add_defaults(by_id, kinds, build_reader(project, environ))
    exclusions = {id_: found for id_, found in finder.exclusions.items() if id_ not in by_id}
    return ProjectSources(by_id, tuple(finder.diagnostics), exclusions)


def _add_defaults(
    sources: Mapping[ResourceId, Source], kinds: Mapping[str, Kind], reader: NodeReader
) -> dict[ResourceId, Source]:
    """Add to each resource the defaults that it inherits, and omit the documents of kind Defaults."""
    defaults = Defaults(kinds)
    for resource, source in sources.items():
        if resource.kind == DEFAULTS:
            defaults.add(source.base.root, reader)
    sources_by_id: dict[ResourceId, Source] = {}
    for resource, source in sources.items():
        if resource.kind != DEFAULTS:
            inherited_defaults = collect_inherited_defaults(resource, source.layers.merged, defaults, reader)
            sources_by_id[resource] = replace(source, defaults=inherited_defaults)
    return sources_by_id


class _DocumentFinder:
    """Finds the documents of resources in files."""

    def __init__(self, project: Project, environ: Mapping[str, str]) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.exclusions: dict[ResourceId, ManifestExclusion] = {}
        self._reader = build_reader(project, environ)
        self._presence = PresenceFilter(project.environment.name, (), self._reader)
        self._generator = Generator(self._reader, project.folder if project.file is not None else None)

    def within(self, files: FileFinder, roots: Sequence[Path]) -> list[tuple[ResourceId, SourceDocument]]:
        """Return all documents in these files and folders, with the ids of their resources.

        Documents whose resource cannot be determined are omitted.
        """
        found = [one for file in files.find(roots) for one in self._compose_documents(file)]
        self.diagnostics += files.diagnostics
        return found

    def _compose_documents(self, file: str) -> Iterator[tuple[ResourceId, SourceDocument]]:
        data = read_file(file, self.diagnostics)
        for index, root in enumerate(compose(file, data, self.diagnostics) if data is not None else ()):
            for document in self._generator.expand(root, self._presence.excludes):
                resource = identify(document.root, self._reader)
                exclusion = self._presence.find_exclusion(document.root)
                if resource is not None and exclusion is None:
                    yield resource, SourceDocument(file, index, document.root, document.origin)
                elif resource is not None and exclusion is not None:
                    self.exclusions.setdefault(resource, exclusion)
        self.diagnostics += self._generator.diagnostics
        self._generator.diagnostics.clear()


def build_reader(project: Project, environ: Mapping[str, str]) -> NodeReader:
    """Return a reader that resolves references, using the variables of the project's environment."""
    return NodeReader(
        ReferenceContext(
            project.folder,
            environ,
            project.environment.variables,
            limits=project.limits,
            unset=project.environment.unset_variables,
        )
    )


def find_variable_positions(project: Project) -> Mapping[str, SourcePosition]:
    """Return the position where each variable of the environment gets its value, by variable name."""
    variables = project.environment.variables.items()
    return {name: variable.place for name, variable in variables if variable.place is not None}


_PARTS = ("metadata", "spec")


class Origin(StrEnum):
    """The type of the document that sets a field."""

    MANIFEST = "manifest"
    OVERLAY = "overlay"
    DEFAULTS = "defaults"


@dataclass(frozen=True, slots=True)
class FieldSource:
    """A document that sets a field, and the position of the field in the document."""

    origin: Origin
    name: Annotated[
        str | None, Field(description="The name of the Defaults manifest.", serialization_alias="defaults")
    ]
    place: SourcePosition


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference in the value of a field, such as ``${var.NAME}``."""

    name: Annotated[
        str, Field(description="var.NAME, env.NAME, file.PATH, or a part of a forEach item (each.…)")
    ]
    place: Annotated[
        SourcePosition | None,
        Field(description="The position of the variable, or of the part of the forEach item."),
    ] = None


def _as_texts(path: NodePath) -> list[str]:
    return [str(step) for step in path]


@dataclass(frozen=True, slots=True)
class FieldOrigins:
    """One field of a resource: its value, and the documents that set the field.

    value: a string, number, boolean or null, or a list or mapping of such values.
    secret: whether the value is a secret that is not shown; ``value`` is then None. A secret that consists of
        a single reference is shown as this reference instead.
    by_reference: whether the value refers to environment variables or files. If so, ``value`` contains the
        references as written, except in number fields, where it contains the resolved numbers.
    by: the document whose value takes effect.
    over: the documents whose values are overridden, the highest precedence first.
    references: the references in the value.
    sent: the value that the system gets, if the manifest contains the value in another form, such as ``7d``.
    is_text: whether scalars in the value are strings even if they look like numbers or booleans.
    """

    schema_name = "FieldDocument"

    path: Annotated[
        NodePath,
        PlainSerializer(_as_texts),
        Field(description="The keys that lead to the field, starting at the root of the manifest."),
    ]
    value: Annotated[JsonValue, Field(description="Null if the value is secret.")]
    secret: bool
    by_reference: Annotated[
        bool,
        Field(
            description="Whether the value refers to environment variables or files. If so, `value` contains "
            "the references as written, except in number fields."
        ),
    ]
    by: FieldSource
    over: Annotated[
        tuple[FieldSource, ...], Field(description="The overridden documents, the highest precedence first.")
    ]
    references: tuple[Reference, ...]
    sent: Annotated[
        str | None,
        Field(
            description="The value that the system gets, if the manifest contains it in another form, such "
            "as 7d."
        ),
    ] = None
    is_text: Annotated[bool, Field(exclude=True)] = False


@dataclass(frozen=True, slots=True)
class EffectiveManifest:
    """A resource with all overlays and defaults, as kdeclare plans it in an environment.

    fields: the fields of the labels and the spec, in document order.
    """

    project: str
    env: str
    resource: Annotated[ResourceId, PlainSerializer(str, return_type=ResourceText)]
    place: SourcePosition
    fields: tuple[FieldOrigins, ...]


def collect_field_origins(
    resource_layers: Layers,
    reader: NodeReader,
    modes: Modes,
    variables: Mapping[str, SourcePosition],
    is_secret: Callable[[NodePath], bool],
) -> tuple[FieldOrigins, ...]:
    """Return all fields of a resource, with the documents that set each field. The documents must be valid.

    modes: the modes for reading the documents.
    variables: the position in the project file where each variable is defined, by name.
    is_secret: a function that returns whether the field at a path can be a secret.
    """
    ordered_layers = tuple(_order_layers(resource_layers))
    field_origins = []
    for keys, node, value_modes in _collect_leaves(resource_layers.effective, modes):
        path = tuple(map(_parse_key, keys))
        value = reader.read(node, value_modes)
        is_hidden = is_secret(path) and not _is_single_reference(value)
        is_from_outside = not is_hidden and _is_from_outside(value)
        effective_source, *overridden_sources = _find_statements(ordered_layers, [key.value for key in keys])
        references = (
            *_collect_item_references(node, resource_layers.origin),
            *(
                Reference(name, variables.get(name.removeprefix("var.")))
                for name in _collect_reference_names(node)
            ),
        )
        shown_value = None if is_hidden else _restore_references(value, as_written=is_from_outside)
        field_origins.append(
            FieldOrigins(
                path,
                shown_value,
                is_hidden,
                is_from_outside,
                effective_source,
                tuple(overridden_sources),
                references,
                is_text=value_modes.is_text,
            )
        )
    return tuple(field_origins)


def _order_layers(resource_layers: Layers) -> Iterator[tuple[Origin, str | None, Node]]:
    """Yield the type, name and root node of each document that sets fields of a resource.

    The name is None, except for a document of kind Defaults. Documents with a higher precedence come first.
    """
    for overlay in reversed(resource_layers.overlays):
        yield Origin.OVERLAY, None, drop_identity(overlay)
    yield Origin.MANIFEST, None, resource_layers.base
    for inherited_defaults in resource_layers.defaults:
        yield Origin.DEFAULTS, inherited_defaults.name, inherited_defaults.root


def _find_statements(
    layers: Iterable[tuple[Origin, str | None, Node]], path: Sequence[str]
) -> Iterator[FieldSource]:
    """Yield the position of a field in each document that sets the field.

    path: the keys as written in the documents.
    """
    for origin, name, root in layers:
        if find_node(root, path) is not None:
            yield FieldSource(origin, name, find_position(root, path, key=True))


_Leaf = tuple[tuple[ScalarNode, ...], Node, Modes]
"""The keys that lead to a value, the node of the value, and the modes for reading the value."""


def _collect_leaves(root: Node, modes: Modes) -> Iterator[_Leaf]:
    """Yield all values in metadata and spec except non-empty mappings. A list is a single value."""
    for key, node in root.value:
        if key.value in _PARTS:
            yield from _collect_leaves_below((key,), node, modes)


def _collect_leaves_below(keys: tuple[ScalarNode, ...], node: Node, outer_modes: Modes) -> Iterator[_Leaf]:
    """Yield all values at or below a node. outer_modes: the modes for the mapping that contains the node."""
    modes = outer_modes.get_modes_below(keys[-1].value)
    if isinstance(node, MappingNode) and node.value:
        for key, value in node.value:
            yield from _collect_leaves_below((*keys, key), value, modes)
    else:
        yield (
            keys,
            node,
            UNIFORM[outer_modes.get_mode(keys[-1].value)] if isinstance(node, ScalarNode) else modes,
        )


def _parse_key(key: ScalarNode) -> str | int:
    """Return a key as YAML reads it: as a number if it is an unquoted integer, otherwise as a string."""
    meaning = None if key.style else parse_scalar(key.value)
    number = meaning[0] if isinstance(meaning, tuple) else None
    return number if type(number) is int else str(key.value)


def _is_from_outside(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return any(map(_is_from_outside, value)) if isinstance(value, list) else isinstance(value, Referenced)


def _is_single_reference(value: Any) -> bool:
    return isinstance(value, Referenced) and is_single_reference(value.reference)


def _restore_references(value: Any, *, as_written: bool) -> JsonValue:
    """Replace values from environment variables and files with their references.

    as_written: whether to escape ``${`` in all other strings, where it could be mistaken for a reference.
    """
    if isinstance(value, dict):
        return {key: _restore_references(inner, as_written=as_written) for key, inner in value.items()}
    if isinstance(value, list):
        return [_restore_references(inner, as_written=as_written) for inner in value]
    if isinstance(value, Referenced):
        return value.reference
    return value.replace("${", "$${") if as_written and isinstance(value, str) else value


def _collect_item_references(node: Node, origin: ManifestOrigin | None) -> Iterator[Reference]:
    """Yield each reference to the ``forEach`` item at or below a node, without repetitions.

    The elements of a list have the same name as the list. Only the position of the list is returned.
    """
    if origin is not None:
        places: dict[str, SourcePosition | None] = {}
        for inner in walk_distinct_nodes(node):  # a node comes before the nodes that it contains
            for name, place in origin.references.get(id(inner), ()):
                places.setdefault(name, place)
        yield from (Reference(name, place) for name, place in places.items())


def _collect_reference_names(node: Node) -> Iterator[str]:
    if isinstance(node, ScalarNode):
        yield from find_reference_names(node.value)
        return
    for item in node.value:
        for inner in item if isinstance(item, tuple) else (item,):
            yield from _collect_reference_names(inner)
