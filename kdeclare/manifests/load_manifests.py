"""Load the manifests of a project in one environment as desired resources, and report their problems."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import islice
from pathlib import Path

from yaml.nodes import Node

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error, sort_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Kind, ManifestExclusion
from kdeclare.manifests.checks import ResourceCheck, build_duplicate_resource_error, check_name_scope
from kdeclare.manifests.defaults import DEFAULTS, Defaults, DefaultsKind, Layers, collect_inherited_defaults
from kdeclare.manifests.document_models import Declarable, DocumentValidator
from kdeclare.manifests.environments.overlays import Overlays, identify
from kdeclare.manifests.environments.presence import PresenceFilter
from kdeclare.manifests.file_fields import FileFields
from kdeclare.manifests.for_each.generator import GeneratedDocument, Generator, ManifestOrigin
from kdeclare.manifests.project import PROJECT_FILE, Project, find_manifest_roots
from kdeclare.manifests.rule_filter import RuleFilter
from kdeclare.manifests.syntax.files import STREAM, FileContents, FileFinder, read_file
from kdeclare.manifests.syntax.garbage_collection import pause_garbage_collection
from kdeclare.manifests.syntax.node_reader import NodeReader
from kdeclare.manifests.syntax.nodes import compose
from kdeclare.manifests.syntax.streams import check_stream, is_empty_document
from kdeclare.manifests.syntax.substitution import ReferenceContext

_BATCH_SIZE = 16
"""The number of documents in a batch. All documents of a batch are parsed first, and then processed.

If documents are parsed and processed one at a time, loading takes a sixth longer.
"""


@dataclass(frozen=True, slots=True)
class LoadedManifests:
    """The loaded manifests.

    desired: the resources whose spec fits the model of the kind, in the order of files and documents.
        ``diagnostics`` can contain further errors for these resources.
    absent: the resources that a manifest declares as absent (``lifecycle.state``).
    exclusions: the resources that are declared only by manifests that ``metadata.only`` or
        ``metadata.except`` excludes from the environment.
    complete: whether the whole project was loaded. If only some paths were loaded, other files can declare
        more resources.
    files: the number of files that were loaded, including overlays.
    rules: the rules of the whole project, such as policies, ordered by id. ``diagnostics`` can contain
        further errors for these rules. Documents of kind Defaults are not included, because ``desired``
        already contains their values.
    layers: the manifest, the overlays and the defaults of the resource that the caller selected with
        ``traced_resource``. None if no resource was selected, or if the resource could not be loaded.
    """

    desired: tuple[DesiredResource, ...]
    diagnostics: tuple[Diagnostic, ...]
    complete: bool
    files: int
    rules: tuple[DesiredResource, ...] = ()
    absent: tuple[DesiredResource, ...] = ()
    layers: Layers | None = field(default=None, repr=False, compare=False)
    exclusions: Mapping[ResourceId, ManifestExclusion] = field(default_factory=dict)

    @property
    def has_errors(self) -> bool:
        """Whether the diagnostics contain errors. If so, ``desired`` is unreliable."""
        return any(d.is_error for d in self.diagnostics)


def load_project_manifests(
    project: Project,
    paths: Sequence[Path] | None,
    kinds: Mapping[str, Kind],
    environ: Mapping[str, str],
    checks: Iterable[ResourceCheck] = (),
    rules: Mapping[str, Declarable] | None = None,
    replacements: Mapping[str, bytes | None] | None = None,
    traced_resource: ResourceId | None = None,
    stream: bytes | None = None,
) -> LoadedManifests:
    """Load the manifests of a project, or only the manifests at ``paths``. Problems become diagnostics.

    paths: files or folders, relative to the working directory; None or empty for the whole project.
    checks: the checks across all valid resources.
    rules: the kinds of rules, such as policies, which apply to the whole project. The whole project is
        searched for rules even if ``paths`` are given.
    replacements: the contents to use instead of the files on disk, by file, in order to preview a change to
        the manifests. None means that the file is deleted. New files are loaded as well.
    traced_resource: the resource whose manifest, overlays and defaults are returned as ``layers``.
    stream: the content of standard input, which is loaded like a file of ``paths``.
    """
    is_partial = bool(paths) or stream is not None
    all_roots = find_manifest_roots(project) if project.file is not None else ()
    with pause_garbage_collection():
        contents = {**(replacements or {}), **({} if stream is None else {STREAM: stream})}
        loader = _Loader(project, kinds, environ, rules or {}, contents, traced_resource)
        loader.all_overlays()
        if is_partial:
            loader.find(paths or (), all_roots, has_stream=stream is not None)
        else:
            loader.find(all_roots, ())
        loader.load_defaults()
        loader.manifests()
        if stream is not None:
            loader.diagnostics += check_stream(stream)
        if is_partial:
            loader.search()
        elif project.file is None:
            loader.diagnostics.append(_build_no_project_error())
        else:
            loader.load_new_files()
            loader.diagnostics += [*loader.overlays.unused(), *loader.defaults.unused()]
    desired = [item for item in loader.desired if not item.is_absent]
    absent = tuple(item for item in loader.desired if item.is_absent)
    loader.diagnostics += [problem for check in checks for problem in check(desired)]
    loader.diagnostics += loader.presence_problems
    loader.diagnostics += check_name_scope(loader.desired, project.scope, kinds)
    diagnostics = sort_diagnostics(
        dict.fromkeys(loader.diagnostics)
    )  # a problem in an overlay can be reported again for the merged document
    project_rules = loader.sort_rules()
    return LoadedManifests(
        tuple(desired),
        diagnostics,
        not is_partial,
        loader.count,
        project_rules,
        absent,
        loader.layers,
        loader.exclusions,
    )


def load_rules(
    project: Project, rules: Mapping[str, Declarable], environ: Mapping[str, str]
) -> tuple[tuple[DesiredResource, ...], tuple[Diagnostic, ...]]:
    """Return the rules of the whole project, such as policies, and the problems with these rules.

    Manifests are not loaded. Without a project file, there are no rules.
    """
    with pause_garbage_collection():
        loader = _Loader(project, {}, environ, rules, {})
        loader.all_overlays(rules_only=True)
        loader.find((), find_manifest_roots(project) if project.file is not None else ())
        loader.search()
    return loader.sort_rules(), sort_diagnostics((*loader.diagnostics, *loader.presence_problems))


def find_manifests_of(project: Project, kinds: Collection[str]) -> tuple[Path, ...]:
    """Return the files of a project that could declare resources of these kinds, without parsing the files.

    A file is returned if its text seems to name one of the kinds. Files that cannot be read are left out.
    """
    context = ReferenceContext(project.folder, {}, project.environment.variables, root=project.folder)
    kind_filter = RuleFilter(kinds, NodeReader(context))
    roots = find_manifest_roots(project) if project.file is not None else ()
    finder = FileFinder(project.file, project.all_overlays, project.stated, foreign=project.foreign_manifests)
    files = finder.find(roots)
    contents = ((file, read_file(file, [])) for file in files)
    return tuple(Path(file) for file, data in contents if data is not None and kind_filter.passes(data))


class _Loader:
    """Loads files one by one. To save memory, the nodes of processed files are discarded."""

    def __init__(
        self,
        project: Project,
        kinds: Mapping[str, Kind],
        environ: Mapping[str, str],
        rules: Mapping[str, Declarable],
        replacements: Mapping[str, bytes | None],
        traced_resource: ResourceId | None = None,
    ) -> None:
        self.desired: list[DesiredResource] = []
        self.diagnostics: list[Diagnostic] = []
        self.overlays = Overlays()
        self.defaults = Defaults(kinds)
        self.count = 0
        self.layers: Layers | None = None
        self._traced_resource = traced_resource
        self._project = project
        self._contents = FileContents(replacements)
        self._reference_context = ReferenceContext(
            project.folder,
            environ,
            project.environment.variables,
            limits=project.limits,
            root=project.folder,
            unset=project.environment.unset_variables,
        )
        self._reader = NodeReader(self._reference_context)
        self._file_fields = FileFields(kinds, self._reference_context, replacements)
        self._validator = DocumentValidator(kinds, rules, {DEFAULTS: DefaultsKind(kinds)} if kinds else {})
        self._rule_filter = RuleFilter((*rules, DEFAULTS) if kinds else rules, self._reader)
        self._rules: list[DesiredResource] = []
        self._rule_files: set[str] = set()
        self._files = FileFinder(
            project.file, project.all_overlays, project.stated, foreign=project.foreign_manifests
        )
        self._presence = PresenceFilter(project.environment.name, project.environments, self._reader)
        root = project.folder if project.file is not None else None
        self._generator = Generator(self._reader, root, replacements)
        self._requested_files: list[str] = []
        self._other_files: list[str] = []
        self._places: dict[ResourceId, SourcePosition | None] = {}
        self._exclusions: dict[ResourceId, ManifestExclusion] = {}
        self._origins: dict[ResourceId, ManifestOrigin] = {}

    def find(self, asked: Sequence[Path], rest: Sequence[Path], *, has_stream: bool = False) -> None:
        """Find the files to load and the files to search.

        asked: the files and folders to load.
        rest: the files and folders from which only documents such as Defaults and Policy are used.
        has_stream: whether standard input is loaded as well.
        """
        self._requested_files = [*([STREAM] if has_stream else ()), *self._files.find(asked)]
        told = self._files.diagnostics[:]
        self._other_files = [*self._files.find(rest)]
        more = self._files.diagnostics[len(told) :]
        self.diagnostics += [*told, *(d for d in more if d.is_error and d not in told)]

    @property
    def presence_problems(self) -> Sequence[Diagnostic]:
        """The problems with ``metadata.only`` and ``metadata.except``, without duplicates."""
        return tuple(dict.fromkeys(self._presence.diagnostics))

    @property
    def exclusions(self) -> Mapping[ResourceId, ManifestExclusion]:
        """The resources whose manifests are all excluded from the environment."""
        return {id_: found for id_, found in self._exclusions.items() if id_ not in self._places}

    def manifests(self) -> None:
        """Load the requested files."""
        self._load_files(self._requested_files)

    def load_new_files(self) -> None:
        """Load the new files: those that do not exist on disk yet, but have contents in ``replacements``."""
        self._load_files(self._contents.new())

    def _load_files(self, files: Iterable[str]) -> None:
        documents = (root for file in files for root in self._compose_documents(file))
        while batch := list(islice(documents, _BATCH_SIZE)):
            for document in batch:
                self._load_document(document)
        self.diagnostics += self._generator.diagnostics
        self._generator.diagnostics.clear()

    def search(self) -> None:
        """Find rules, such as policies, in the files that are not loaded. Report only problems with rules."""
        given = {os.path.realpath(file) for file in self._rule_files}
        for file in self._other_files:
            if given and os.path.realpath(file) in given:
                continue
            for document in self._compose_documents(file, rules_only=True):
                self._load_document(document)

    def sort_rules(self) -> tuple[DesiredResource, ...]:
        """Return the rules, such as policies, sorted by id. The order of the files does not matter."""
        return tuple(sorted(self._rules, key=lambda rule: rule.id))

    def all_overlays(self, *, rules_only: bool = False) -> None:
        """Read the overlays of the environment. Call this method before manifests are loaded.

        rules_only: whether to only check that no overlay is for a rule, such as a policy. Rules cannot have
            overlays.
        """
        for path in self._project.environment.overlays:
            files = FileFinder(self._project.file, stated=self._project.stated)
            for file in files.find((path,)):
                # all files of a folder form one overlay, because the order of two files is undefined
                documents = [root for root, _ in self._compose_file(file, rules_only=rules_only)]
                resources = [root for root in documents if self._rule_filter.find_rule_kind(root) is None]
                self.diagnostics += self._rule_filter.check_overlaid_rules(documents)
                if not rules_only:
                    self.diagnostics += self.overlays.add(resources, self._reader)
            self.diagnostics += files.diagnostics

    def load_defaults(self) -> None:
        """Read all documents of kind Defaults. Call this method before resources are loaded.

        Problems with other documents are reported later, when the files are loaded.
        """
        rule_filter = RuleFilter((DEFAULTS,), self._reader)
        visited: set[str] = set()
        for file in (*self._requested_files, *self._other_files):
            data = self._contents.read_ahead(file)
            if (
                data is None
                or not rule_filter.has_kind_name(data)
                or (real_path := os.path.realpath(file)) in visited
            ):
                continue
            visited.add(real_path)
            for root in compose(file, data, []):
                if rule_filter.find_rule_kind(root) is not None and not self._presence.excludes(root):
                    self.diagnostics += self.defaults.add(root, self._reader)

    def _compose_file(self, file: str, *, rules_only: bool) -> Iterator[tuple[Node, bool]]:
        """Yield each nonempty document of a file, and whether the file contains the name of a kind of rule.

        A rule is a document that applies to the whole project, such as a policy.
        """
        data = self._contents.of(file, self.diagnostics)
        if data is None or (rules_only and not self._rule_filter.passes(data)):
            return
        self.count += not rules_only
        is_spelled_out = self._rule_filter.has_kind_name(data)
        for root in compose(file, data, self.diagnostics):
            if not is_empty_document(root):
                yield root, is_spelled_out

    def _compose_documents(self, file: str, *, rules_only: bool = False) -> Iterator[GeneratedDocument]:
        for root, is_spelled_out in self._compose_file(file, rules_only=rules_only):
            kind = self._rule_filter.find_rule_kind(root)
            if kind is not None:
                self._rule_files.add(file)
                self.diagnostics += self._rule_filter.hidden(kind, root, seen=is_spelled_out)
            elif rules_only:
                self.diagnostics += self._rule_filter.check_misspelled_kind(root, self._validator)
            if kind is None and not rules_only:
                yield from self._generator.expand(root, self._presence.excludes)
            elif kind is not None and kind != DEFAULTS:
                yield GeneratedDocument(root)

    def _load_document(self, document: GeneratedDocument) -> None:
        root, origin, reader = document.root, document.origin, self._reader
        if self._project.file is None:
            self._reference_context.folder = os.path.dirname(root.start_mark.name)  # noqa: PTH120  # cheap
        exclusion = self._presence.find_exclusion(root)
        if exclusion is not None or not document.is_usable:
            excluded = identify(root, reader)
            self.overlays.mark_used(excluded)
            if excluded is not None and exclusion is not None:
                self._exclusions.setdefault(excluded, exclusion)
            return
        base = merged = root
        if self.overlays or self.defaults:
            resource = identify(root, reader)
            merged = self.overlays.applied(resource, root)
            root, contradictions = self.defaults.beneath(resource, merged, reader)
            self.diagnostics += contradictions
        reader.shows = partial(self._validator.can_show, root)
        data = reader.read(root, self._validator.find_modes(root, reader))
        file_problems = self._file_fields.read(data, root)
        is_readable = not reader.broken and not file_problems
        declared, problems = self._validator.check(data, root, readable=is_readable)
        if reader.problems or problems or file_problems:
            self._add_diagnostics(reader.problems + file_problems + problems, data, origin)
            reader.problems, reader.broken = [], False
        # A document can only be Defaults here if it has a second 'kind' field, which has been reported.
        if declared is None or declared.id.kind == DEFAULTS:
            return
        resource, source = declared.id, declared.source
        is_rule = resource.kind in self._rule_filter.kinds
        if resource in self._places:
            duplicate = build_duplicate_resource_error(
                resource, source, self._places[resource], is_rule=is_rule
            )
            origins = [found for found in (origin, self._origins.get(resource)) if found is not None]
            texts = "".join(f" {resource} is generated for {found}." for found in origins)
            self.diagnostics.append(replace(duplicate, detail=duplicate.detail + texts))
            return
        self._places[resource] = source
        if origin is not None:
            self._origins[resource] = origin.without_references()
        if resource == self._traced_resource:
            inherited_defaults = collect_inherited_defaults(resource, merged, self.defaults, reader)
            self.layers = Layers(base, self.overlays.of(resource), inherited_defaults, origin)
        target = self._rules if is_rule else self.desired
        target.append(declared)

    def _add_diagnostics(
        self, problems: Iterable[Diagnostic], data: object, origin: ManifestOrigin | None
    ) -> None:
        name = _find_resource_name(data)
        for problem in problems:
            described = self._generator.describe(problem, origin)
            if described is not None:
                resource = described.resource or name
                self.diagnostics.append(replace(described, resource=resource))


def _find_resource_name(data: object) -> str | None:
    if not isinstance(data, dict) or not isinstance(data.get("metadata"), dict):
        return None
    kind, name = data.get("kind"), data["metadata"].get("name")
    has_name = isinstance(kind, str) and isinstance(name, str) and kind and name
    return f"{kind}/{name}" if has_name and f"{kind}{name}".isprintable() else None


def _build_no_project_error() -> Diagnostic:
    return error(
        "no-project",
        "No project",
        f"The working directory has no '{PROJECT_FILE}', and no PATH was given.",
        hint="Pass files or folders with manifests, or pass a project file with --project.",
    )
