"""The manifests of a project in one environment as desired resources, with all that is wrong with them."""

import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from itertools import islice
from pathlib import Path

from yaml.nodes import Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, Place, error, in_order
from kdeclare.core.frozen import dataclass
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired, Kind
from kdeclare.manifests.checks import Check, check_scope, declared_twice
from kdeclare.manifests.defaults import DEFAULTS, Defaults, DefaultsKind, Layers, inherited
from kdeclare.manifests.overlays import Overlays, identify
from kdeclare.manifests.project import PROJECT_FILE, Project, manifest_roots
from kdeclare.manifests.rules import Sieve
from kdeclare.manifests.shapes import Declarable, Shapes
from kdeclare.manifests.syntax.files import Contents, Files
from kdeclare.manifests.syntax.nodes import compose
from kdeclare.manifests.syntax.reading import Reader
from kdeclare.manifests.syntax.substitution import Scope

_BATCH = 16
"""Documents composed before they are worked on: changing between the two for each costs a sixth more."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the manifests say.

    desired: what has a spec of the right shape, in the order of files and documents; the kind may still
        have found errors in it, which are among the diagnostics.
    complete: False when only given paths were loaded; what is not there may then be declared elsewhere.
    files: how many were read, overlays included; not those that were only looked through for rules.
    rules: what holds for all of the project, in the order of names; errors as in ``desired``. Defaults are
        not among them: they are in what is desired.
    layers: what the resource is made of that was asked for, if it is desired.
    """

    desired: tuple[Desired, ...]
    diagnostics: tuple[Diagnostic, ...]
    complete: bool
    files: int
    rules: tuple[Desired, ...] = ()
    layers: Layers | None = field(default=None, repr=False, compare=False)

    @property
    def has_errors(self) -> bool:
        """Whether the desired state cannot be relied on."""
        return any(d.is_error for d in self.diagnostics)


def load(
    project: Project,
    paths: Sequence[Path] | None,
    kinds: Mapping[str, Kind],
    environ: Mapping[str, str],
    checks: Iterable[Check] = (),
    rules: Mapping[str, Declarable] | None = None,
    instead: Mapping[str, bytes | None] | None = None,
    layers_of: ResourceId | None = None,
) -> Loaded:
    """Load the manifests of a project, or only those at ``paths``; mistakes are diagnostics, never raised.

    paths: files or folders, relative to where one stands; None or empty for all of the project.
    checks: between the resources, run on those that are valid.
    rules: kinds whose documents declare no resource but hold for the whole project: they are looked for
        in all of it even where ``paths`` are given.
    instead: what files are taken to hold in place of what is on the disk, to see what writing it would
        make of the project; None for a file that would be gone. Files that are not there yet count as found.
    layers_of: the resource of which the documents are wanted.
    """
    whole = manifest_roots(project) if project.file is not None else ()
    with _collector_paused():
        loader = _Loader(project, kinds, environ, rules or {}, instead or {}, layers_of)
        loader.all_overlays()
        loader.find(paths or whole, whole if paths else ())
        loader.all_defaults()
        loader.manifests()
        if paths:
            loader.search()
        elif project.file is None:
            loader.diagnostics.append(_nothing_to_load())
        else:
            loader.new_manifests()
            loader.diagnostics += [*loader.overlays.unused(), *loader.defaults.unused()]
    desired = loader.desired
    loader.diagnostics += [problem for check in checks for problem in check(desired)]
    loader.diagnostics += check_scope(desired, project.scope, kinds)
    diagnostics = in_order(dict.fromkeys(loader.diagnostics))  # an overlay's can be met in what it makes, too
    rules_found = loader.rules_by_name()
    return Loaded(tuple(desired), diagnostics, not paths, loader.count, rules_found, loader.layers)


def load_rules(
    project: Project, rules: Mapping[str, Declarable], environ: Mapping[str, str]
) -> tuple[tuple[Desired, ...], tuple[Diagnostic, ...]]:
    """What holds for the whole project, and what is wrong with it, for whoever needs no manifests.

    A project without a file has none.
    """
    with _collector_paused():
        loader = _Loader(project, {}, environ, rules, {})
        loader.all_overlays(rules_only=True)
        loader.find((), manifest_roots(project) if project.file is not None else ())
        loader.search()
    return loader.rules_by_name(), in_order(loader.diagnostics)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Nodes and bodies hold no cycles: looking for some takes up to a fifth of a large load."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Loader:
    """Goes through the files one by one; nodes live only as long as they are being worked on."""

    def __init__(
        self,
        project: Project,
        kinds: Mapping[str, Kind],
        environ: Mapping[str, str],
        rules: Mapping[str, Declarable],
        instead: Mapping[str, bytes | None],
        layers_of: ResourceId | None = None,
    ) -> None:
        self.desired: list[Desired] = []
        self.diagnostics: list[Diagnostic] = []
        self.overlays = Overlays()
        self.defaults = Defaults(kinds)
        self.count = 0
        self.layers: Layers | None = None
        self._layers_of = layers_of
        self._project = project
        self._contents = Contents(instead)
        self._scope = Scope(
            project.folder, environ, project.environment.variables, limits=project.limits, root=project.folder
        )
        self._reader = Reader(self._scope)
        found = {**kinds, **rules}
        self._shapes = Shapes({**found, DEFAULTS: DefaultsKind(kinds)} if kinds else found)
        self._sieve = Sieve((*rules, DEFAULTS) if kinds else rules, self._reader)
        self._rules: list[Desired] = []
        self._rule_files: set[str] = set()
        self._files = Files(project.file, project.all_overlays, project.stated)
        self._asked: list[str] = []
        self._rest: list[str] = []
        self._places: dict[ResourceId, Place | None] = {}

    def find(self, asked: Sequence[Path], rest: Sequence[Path]) -> None:
        """Find the files: those to load, and what else there is that only rules are looked for in."""
        self._asked = [*self._files.find(asked)]
        told = self._files.diagnostics[:]
        self._rest = [*self._files.find(rest)]
        more = self._files.diagnostics[len(told) :]
        self.diagnostics += [*told, *(d for d in more if d.is_error and d not in told)]

    def manifests(self) -> None:
        """Load the files."""
        self._load(self._asked)

    def new_manifests(self) -> None:
        """Load the files that are not there yet."""
        self._load(self._contents.new())

    def _load(self, files: Iterable[str]) -> None:
        documents = (root for file in files for root in self._documents(file))
        while batch := list(islice(documents, _BATCH)):
            for root in batch:
                self._manifest(root)

    def search(self) -> None:
        """Look through the rest of the project for rules; what else is wrong there is not told."""
        given = {os.path.realpath(file) for file in self._rule_files}
        for file in self._rest:
            if given and os.path.realpath(file) in given:
                continue
            for root in self._documents(file, rules_only=True):
                self._manifest(root)

    def rules_by_name(self) -> tuple[Desired, ...]:
        """The rules, in an order that does not depend on where they were found."""
        return tuple(sorted(self._rules, key=lambda rule: rule.id))

    def all_overlays(self, *, rules_only: bool = False) -> None:
        """Read the overlays, which must be known before the manifests; rules have none."""
        for path in self._project.environment.overlays:
            files = Files(self._project.file, stated=self._project.stated)
            for file in files.find((path,)):
                # all of a folder is one overlay: the same resource in two of its files has no order
                documents = [root for root, _ in self._composed(file, rules_only=rules_only)]
                resources = [root for root in documents if self._sieve.kind_of(root) is None]
                self.diagnostics += self._sieve.overlaid(documents)
                if not rules_only:
                    self.diagnostics += self.overlays.add(resources, self._reader)
            self.diagnostics += files.diagnostics

    def all_defaults(self) -> None:
        """Read the Defaults of the whole project, which must be known before what they are for.

        What else is wrong with the files is told when they are loaded.
        """
        sieve = Sieve((DEFAULTS,), self._reader)
        seen: set[str] = set()
        for file in (*self._asked, *self._rest):
            data = self._contents.ahead(file)
            if data is None or not sieve.spelt(data) or (real := os.path.realpath(file)) in seen:
                continue
            seen.add(real)
            for root in compose(file, data, []):
                if sieve.kind_of(root) is not None:
                    self.diagnostics += self.defaults.add(root, self._reader)

    def _composed(self, file: str, *, rules_only: bool) -> Iterator[tuple[Node, bool]]:
        """The documents of a file, each with whether a kind of rules is spelt out in the file."""
        data = self._contents.of(file, self.diagnostics)
        if data is None or (rules_only and not self._sieve.passes(data)):
            return
        self.count += not rules_only
        seen = self._sieve.spelt(data)
        for root in compose(file, data, self.diagnostics):
            if not _is_empty(root):
                yield root, seen

    def _documents(self, file: str, *, rules_only: bool = False) -> Iterable[Node]:
        for root, seen in self._composed(file, rules_only=rules_only):
            kind = self._sieve.kind_of(root)
            if kind is not None:
                self._rule_files.add(file)
                self.diagnostics += self._sieve.hidden(kind, root, seen=seen)
            elif rules_only:
                self.diagnostics += self._sieve.doubts(root, self._shapes)
            if kind != DEFAULTS and (kind is not None or not rules_only):
                yield root

    def _manifest(self, root: Node) -> None:
        reader = self._reader
        if self._project.file is None:
            self._scope.folder = os.path.dirname(root.start_mark.name)  # noqa: PTH120  # cheap
        base = merged = root
        if self.overlays or self.defaults:
            resource = identify(root, reader)
            merged = self.overlays.applied(resource, root)
            root, unclear = self.defaults.beneath(resource, merged, reader)
            self.diagnostics += unclear
        reader.shows = partial(self._shapes.may_show, root)
        data = reader.read(root, self._shapes.find_modes(root, reader))
        declared, problems = self._shapes.check(data, root, readable=not reader.broken)
        if reader.problems or problems:
            self._report(reader.problems + problems, data)
            reader.problems, reader.broken = [], False
        if declared is None:
            return
        resource, source = declared.id, declared.source
        is_rule = resource.kind in self._sieve.kinds
        if resource in self._places:
            first = self._places[resource]
            self.diagnostics.append(declared_twice(resource, source, first, is_rule=is_rule))
            return
        self._places[resource] = source
        if resource == self._layers_of:
            given = inherited(resource, merged, self.defaults, reader)
            self.layers = Layers(base, self.overlays.of(resource), given)
        found = self._rules if is_rule else self.desired
        found.append(declared)

    def _report(self, problems: Iterable[Diagnostic], data: object) -> None:
        name = _resource_name(data)
        self.diagnostics += [replace(p, resource=name) if p.resource is None else p for p in problems]


def _is_empty(root: Node) -> bool:
    return isinstance(root, ScalarNode) and not root.value and not root.style and root.tag is None


def _resource_name(data: object) -> str | None:
    if not isinstance(data, dict) or not isinstance(data.get("metadata"), dict):
        return None
    kind, name = data.get("kind"), data["metadata"].get("name")
    told = isinstance(kind, str) and isinstance(name, str) and kind and name
    return f"{kind}/{name}" if told and f"{kind}{name}".isprintable() else None


def _nothing_to_load() -> Diagnostic:
    return error(
        "no-project",
        "Nothing to load",
        f"There is no '{PROJECT_FILE}' here, and no PATH was given.",
        hint="Give files or folders with manifests, or a project file with --project.",
    )
