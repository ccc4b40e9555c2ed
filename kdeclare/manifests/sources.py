"""Where resources are declared: their documents in manifests and overlays, with the places of every field."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from yaml.nodes import Node

from kdeclare.core.diagnostics import Diagnostic, Place
from kdeclare.core.ids import ResourceId
from kdeclare.core.kind import Kind
from kdeclare.manifests.defaults import DEFAULTS, Defaults
from kdeclare.manifests.document import document as document_of
from kdeclare.manifests.files import Files, read
from kdeclare.manifests.layers import Inherited, Layers, inherited
from kdeclare.manifests.nodes import compose, find, node_at
from kdeclare.manifests.overlays import identify
from kdeclare.manifests.project import Project, manifest_roots
from kdeclare.manifests.reading import Reader
from kdeclare.manifests.substitution import Scope

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
