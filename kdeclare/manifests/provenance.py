"""Where resources are declared, and where every field of one comes from once overlays, defaults and
variables are in it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer
from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, Place
from kdeclare.core.documents import ResourceText
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Kind
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.manifests.defaults import DEFAULTS, Defaults, Inherited, Layers, inherited
from kdeclare.manifests.overlays import identify, without_identity
from kdeclare.manifests.project import Project, manifest_roots
from kdeclare.manifests.shapes import document as document_of
from kdeclare.manifests.syntax.files import Files, read
from kdeclare.manifests.syntax.nodes import compose, find, node_at
from kdeclare.manifests.syntax.reading import UNIFORM, Modes, Reader, resolve
from kdeclare.manifests.syntax.substitution import Scope, is_single, names_in

Steps = tuple[str | int, ...]
"""Keys and indexes from a document down."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file; index: the how manieth it is, from 0, empty ones included."""

    file: str
    index: int
    root: Node = field(repr=False, compare=False, hash=False)


@dataclass(frozen=True)
class Source:
    """All that says what one resource is in an environment.

    base: its manifest. overlays: what is merged over it, in that order.
    elsewhere: its documents in the overlays of other environments.
    defaults: what is filled in where those say nothing, what counts most first.
    """

    base: Document
    overlays: tuple[Document, ...] = ()
    elsewhere: tuple[Document, ...] = ()
    defaults: tuple[Inherited, ...] = ()

    @cached_property
    def layers(self) -> Layers:
        """What the resource is made of."""
        return Layers(self.base.root, tuple(overlay.root for overlay in self.overlays), self.defaults)

    def at(self, path: Steps) -> Node | None:
        """What its own documents say at a path, if they do."""
        return node_at(self.layers.merged, path)

    def place(self, path: Steps) -> Place | None:
        """Where the key of what holds at a path stands."""
        effective = self.layers.effective
        return find(effective, path, key=True) if node_at(effective, path) is not None else None

    def saying(self, path: Steps) -> list[Document]:
        """The documents that say something at a path; the last one is the one that holds."""
        return [d for d in (self.base, *self.overlays) if node_at(d.root, path) is not None]


@dataclass(frozen=True, slots=True)
class Sources:
    """diagnostics: why files could not be read."""

    by_id: Mapping[ResourceId, Source]
    diagnostics: tuple[Diagnostic, ...] = ()


def read_sources(
    project: Project, environ: Mapping[str, str], kinds: Mapping[str, Kind] | None = None
) -> Sources:
    """The documents of a project in its environment. What a document says is not looked into.

    kinds: those whose defaults are wanted.
    """
    found = _Finder(project, environ)
    bases = found.within(Files(project.file, project.all_overlays, project.stated), manifest_roots(project))
    overlays: dict[ResourceId, list[Document]] = {}
    for path in project.environment.overlays:
        for resource, document in found.within(Files(project.file, stated=project.stated), (path,)):
            overlays.setdefault(resource, []).append(document)
    others = [path for path in project.all_overlays if path not in project.environment.overlays]
    elsewhere: dict[ResourceId, list[Document]] = {}
    for resource, document in found.within(Files(project.file), others):
        elsewhere.setdefault(resource, []).append(document)
    by_id: dict[ResourceId, Source] = {}
    for resource, base in bases:
        source = Source(base, tuple(overlays.get(resource, ())), tuple(elsewhere.get(resource, ())))
        by_id.setdefault(resource, source)
    if kinds:
        by_id = _with_defaults(by_id, kinds, reader_of(project, environ))
    return Sources(by_id, tuple(found.diagnostics))


def _with_defaults(
    sources: Mapping[ResourceId, Source], kinds: Mapping[str, Kind], reader: Reader
) -> dict[ResourceId, Source]:
    """Without the Defaults, which are no resources, and with what they give."""
    defaults = Defaults(kinds)
    for resource, source in sources.items():
        if resource.kind == DEFAULTS:
            defaults.add(source.base.root, reader)
    found: dict[ResourceId, Source] = {}
    for resource, source in sources.items():
        if resource.kind != DEFAULTS:
            given = inherited(resource, source.layers.merged, defaults, reader)
            found[resource] = replace(source, defaults=given)
    return found


class _Finder:
    """Composes files."""

    def __init__(self, project: Project, environ: Mapping[str, str]) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._reader = reader_of(project, environ)

    def within(self, files: Files, roots: Sequence[Path]) -> list[tuple[ResourceId, Document]]:
        """The documents below files and folders that name a resource."""
        found = [one for file in files.find(roots) for one in self._documents(file)]
        self.diagnostics += files.diagnostics
        return found

    def _documents(self, file: str) -> Iterator[tuple[ResourceId, Document]]:
        data = read(file, self.diagnostics)
        for index, root in enumerate(compose(file, data, self.diagnostics) if data is not None else ()):
            resource = identify(root, self._reader)
            if resource is not None:
                yield resource, Document(file, index, root)


def reader_of(project: Project, environ: Mapping[str, str]) -> Reader:
    """Reads values as they hold in the project's environment."""
    return Reader(Scope(project.folder, environ, project.environment.variables, limits=project.limits))


def variable_places(project: Project) -> Mapping[str, Place]:
    """Where the project file gives the variables of the environment. Raises KdeclareError."""
    if project.file is None or not project.environment.variables:
        return {}
    root = document_of(project.file, "Project", "--project FILE names it.")
    path = ("spec", "environments", project.environment.name, "variables")
    return {name: find(root, (*path, name), key=True) for name in project.environment.variables}


_PARTS = ("metadata", "spec")


class Origin(StrEnum):
    """What sort of document a field stands in."""

    MANIFEST = "manifest"
    OVERLAY = "overlay"
    DEFAULTS = "defaults"


@dataclass(frozen=True, slots=True)
class Said:
    """A place where something is said of a field."""

    origin: Origin
    name: Annotated[
        str | None, Field(description="The name of the Defaults manifest.", serialization_alias="defaults")
    ]
    place: Place


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference in a value."""

    name: Annotated[str, Field(description="var.NAME, env.NAME or file.PATH")]
    place: Annotated[Place | None, Field(description="Where a variable is defined.")] = None


def _as_texts(path: Steps) -> list[str]:
    return [str(step) for step in path]


@dataclass(frozen=True, slots=True)
class Origins:
    """One field: its value and who says so.

    value: text, numbers, truth values, null, or lists and mappings of them.
    by_reference: what the value stands for is from outside of the project and no business of a terminal; but
        not of a number that stands where one is due. Of a secret only what is one reference and nothing
        else: text around it, and project variables in it, may be parts of the secret.
    over: what counts most first. is_text: whether scalars in it are text even where they look otherwise.
    """

    schema_name = "FieldDocument"

    path: Annotated[Steps, PlainSerializer(_as_texts), Field(description="Keys from the document down.")]
    value: Annotated[JsonValue, Field(description="Null where it is secret.")]
    secret: bool
    by_reference: Annotated[
        bool, Field(description="The value is the text as written; what it stands for is not shown.")
    ]
    by: Said
    over: Annotated[tuple[Said, ...], Field(description="Who says something else, in order.")]
    references: tuple[Reference, ...]
    is_text: Annotated[bool, Field(exclude=True)] = False


@dataclass(frozen=True, slots=True)
class EffectiveManifest:
    """A resource as it is planned in an environment.

    fields: labels and spec, in their order.
    """

    project: str
    env: str
    resource: Annotated[ResourceId, PlainSerializer(str, return_type=ResourceText)]
    place: Place
    fields: tuple[Origins, ...]


def origins(
    made_of: Layers,
    reader: Reader,
    modes: Modes,
    variables: Mapping[str, Place],
    is_secret: Callable[[Steps], bool],
) -> tuple[Origins, ...]:
    """All fields of a resource whose documents are well.

    modes: how its documents are read. variables: where those of the environment are defined.
    """
    layers = tuple(_layers(made_of))
    found = []
    for keys, node, below in _leaves(made_of.effective, modes):
        path = tuple(map(_step, keys))
        value = reader.read(node, below)
        hidden = is_secret(path) and not _is_one_reference(value)
        outside = not hidden and _is_from_outside(value)
        by, *over = _said(layers, [key.value for key in keys])
        names = tuple(Reference(name, variables.get(name.removeprefix("var."))) for name in _names(node))
        shown = None if hidden else _as_seen(value, as_written=outside)
        found.append(Origins(path, shown, hidden, outside, by, tuple(over), names, below.is_text))
    return tuple(found)


def _layers(made_of: Layers) -> Iterator[tuple[Origin, str | None, Node]]:
    """The documents, what counts most first."""
    for overlay in reversed(made_of.overlays):
        yield Origin.OVERLAY, None, without_identity(overlay)
    yield Origin.MANIFEST, None, made_of.base
    for given in made_of.defaults:
        yield Origin.DEFAULTS, given.name, given.root


def _said(layers: Iterable[tuple[Origin, str | None, Node]], path: Sequence[str]) -> Iterator[Said]:
    """path: keys as written, as `fill` and `merge` compare them."""
    for origin, name, root in layers:
        if node_at(root, path) is not None:
            yield Said(origin, name, find(root, path, key=True))


_Leaf = tuple[tuple[ScalarNode, ...], Node, Modes]
"""Keys, value and how to read it."""


def _leaves(root: Node, modes: Modes) -> Iterator[_Leaf]:
    """All that is no mapping of more; a list is one value."""
    for key, node in root.value:
        if key.value in _PARTS:
            yield from _below((key,), node, modes)


def _below(keys: tuple[ScalarNode, ...], node: Node, above: Modes) -> Iterator[_Leaf]:
    """above: how that is read in which the node stands."""
    modes = above.below(keys[-1].value)
    if isinstance(node, MappingNode) and node.value:
        for key, value in node.value:
            yield from _below((*keys, key), value, modes)
    else:
        yield keys, node, UNIFORM[above.mode_of(keys[-1].value)] if isinstance(node, ScalarNode) else modes


def _step(key: ScalarNode) -> str | int:
    """A key as it means: a plain number is no text."""
    meaning = None if key.style else resolve(key.value)
    number = meaning[0] if isinstance(meaning, tuple) else None
    return number if type(number) is int else str(key.value)


def _is_from_outside(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return any(map(_is_from_outside, value)) if isinstance(value, list) else isinstance(value, Referenced)


def _is_one_reference(value: Any) -> bool:
    return isinstance(value, Referenced) and is_single(value.reference)


def _as_seen(value: Any, *, as_written: bool) -> JsonValue:
    """With references in place of what they stand for, and then what could be taken for one is escaped."""
    if isinstance(value, dict):
        return {key: _as_seen(inner, as_written=as_written) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_seen(inner, as_written=as_written) for inner in value]
    if isinstance(value, Referenced):
        return value.reference
    return value.replace("${", "$${") if as_written and isinstance(value, str) else value


def _names(node: Node) -> Iterator[str]:
    if isinstance(node, ScalarNode):
        yield from names_in(node.value)
        return
    for item in node.value:
        for inner in item if isinstance(item, tuple) else (item,):
            yield from _names(inner)
