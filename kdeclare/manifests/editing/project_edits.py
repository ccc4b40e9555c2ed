"""From changes to the files of a project as they are to be, new manifests among them."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.resources.capabilities import Editable, find_editable
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import NAME
from kdeclare.core.resources.manifest_text import manifest
from kdeclare.manifests.editing.documents import FileEdit, NotEdited, rewritten
from kdeclare.manifests.editing.edits import Edit
from kdeclare.manifests.editing.fields import locate_edits, refuse_secret
from kdeclare.manifests.editing.subject import Located, Subject
from kdeclare.manifests.project import MANIFESTS_FOLDER, Project, manifest_roots
from kdeclare.manifests.provenance import Document, Source, read_sources, reader_of, variable_places
from kdeclare.manifests.schema_errors import dotted
from kdeclare.manifests.syntax.files import file_name, unreadable
from kdeclare.manifests.syntax.nodes import find


def new_manifest(kind: Editable, change: Change) -> str:
    """What a creation says, in the layout of ``kdeclare import``.

    Raises KdeclareError (``secret-not-written``).
    """
    for field in change.fields:
        refuse_secret(change.id, field, field.path.partition(".")[2] or field.path)
    return manifest(change.id.kind, change.id.name, kind.lay_out_spec(change))


def new_file(project: Project, resource: ResourceId) -> str:
    """Where a new manifest belongs: in the folder of its kind in the first folder of manifests, if there is
    one. Raises KdeclareError where there is no folder, or the file is there."""
    folder = _folder(project)
    of_kind = folder / f"{resource.kind.lower()}s"
    path = os.path.normpath((of_kind if of_kind.is_dir() else folder) / file_name(resource))
    if os.path.lexists(path):
        raise KdeclareError(
            error(
                "file-exists",
                "Manifest is there already",
                f"{resource} is declared nowhere, and the file that would declare it, {path}, is there.",
                hint="Rename that file, or write the manifest by hand.",
                resource=str(resource),
            )
        )
    return path


def _folder(project: Project) -> Path:
    found = next((root for root in manifest_roots(project) if root.is_dir()), None)
    if found is None and project.manifests is None:
        return project.folder / MANIFESTS_FOLDER
    if found is None:
        raise KdeclareError(
            error(
                "no-manifests-folder",
                "No folder for a new manifest",
                "The project's manifests are single files, so there is no place for one more.",
                hint="Add a folder to 'manifests' in the project file, or write the manifest by hand.",
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class ProjectEdits:
    """files: in the order of their names. shared: those of them that hold for all environments."""

    files: tuple[FileEdit, ...]
    shared: tuple[str, ...]
    notices: tuple[Diagnostic, ...]


def project_edits(project: Project, environ: Mapping[str, str], changes: Iterable[Change]) -> ProjectEdits:
    """The files in which the manifests of a project are to say what ``changes`` say.

    Raises KdeclareError with all that cannot be written.
    """
    work = _Work(project, environ)
    for change in changes:
        work.take_in(change)
    return work.result()


class _Work:
    """Collects edits by file and document."""

    def __init__(self, project: Project, environ: Mapping[str, str]) -> None:
        self._project = project
        self._reader = reader_of(project, environ)
        self._sources = read_sources(project, environ)
        self._variables = variable_places(project)
        self._edits: dict[str, dict[int, list[Edit]]] = defaultdict(lambda: defaultdict(list))
        self._removed: dict[str, set[int]] = defaultdict(set)
        self._new: dict[str, bytes] = {}
        self._documents: dict[tuple[str, int], tuple[ResourceId, Document]] = {}
        self._shared: set[str] = set()
        self._notices: list[Diagnostic] = []
        self._problems: list[Diagnostic] = []

    def take_in(self, change: Change) -> None:
        """Find the edits of one change; what is wrong with it is told by `result`."""
        source = self._sources.by_id.get(change.id)
        kind = find_editable(change.id.kind)
        if change.action is Action.DELETE:
            self._remove(change.id, source)
        elif kind is None:
            self._problems.append(_not_editable(change.id, source))
        elif source is not None:
            self._edit(kind, change, source)
        elif change.action is Action.CREATE:
            self._create(kind, change)
        else:
            self._problems.append(_not_declared(change.id))

    def result(self) -> ProjectEdits:
        """The files. Raises KdeclareError."""
        found = [FileEdit(file, None, text) for file, text in self._new.items()]
        for file in {**self._edits, **self._removed}:
            try:
                found.append(self._file(file))
            except KdeclareError as refused:
                self._problems += refused.diagnostics
        if self._problems:
            raise KdeclareError(*dict.fromkeys(self._problems))
        files = sorted((edit for edit in found if edit.before != edit.after), key=lambda edit: edit.file)
        shared = tuple(edit.file for edit in files if edit.file in self._shared)
        return ProjectEdits(tuple(files), shared, tuple(self._notices))

    def _create(self, kind: Editable, change: Change) -> None:
        try:
            file = new_file(self._project, change.id)
            self._new[file] = new_manifest(kind, change).encode()
            self._shared.add(file)
        except KdeclareError as refused:
            self._problems += refused.diagnostics

    def _remove(self, resource: ResourceId, source: Source | None) -> None:
        """In all environments: where the manifest is gone, an overlay of it would be a mistake."""
        if source is None:
            return
        self._problems += [problem for problem in self._sources.diagnostics if problem.is_error]
        self._shared.add(source.base.file)
        for document in (source.base, *source.overlays, *source.elsewhere):
            self._removed[document.file].add(document.index)
            self._documents[document.file, document.index] = resource, document

    def _edit(self, kind: Editable, change: Change, source: Source) -> None:
        subject = Subject(change.id, source, self._reader, kind, self._variables)
        wanted = kind.find_edits(change, subject)
        for problem in wanted.problems:
            path = problem.path if problem.path == NAME else ("spec", *problem.path)
            found = replace(problem.diagnostic, place=source.place(path))
            (self._problems if found.is_error else self._notices).append(found)
        for edit in wanted.edits:
            self._keep(subject, locate_edits(subject, edit))

    def _keep(self, subject: Subject, edits: Iterator[Located]) -> None:
        try:
            found = list(edits)
        except KdeclareError as refused:
            self._problems += refused.diagnostics
            return
        for one in found:
            document = one.document
            self._edits[document.file][document.index].append(one.edit)
            self._documents[document.file, document.index] = subject.id, document
            if document is subject.source.base:
                self._shared.add(document.file)

    def _file(self, file: str) -> FileEdit:
        removed = frozenset(self._removed.get(file, ()))
        try:
            data = Path(file).read_bytes()
            return FileEdit(file, data, rewritten(file, data, self._edits.get(file, {}), removed))
        except OSError as problem:
            raise KdeclareError(unreadable(file, problem)) from None
        except NotEdited as refused:
            resource, document = self._documents[file, refused.document]
            raise KdeclareError(_odd_layout(resource, document, refused.edit)) from None


def _not_editable(resource: ResourceId, source: Source | None) -> Diagnostic:
    return error(
        "not-editable",
        "Manifests of this kind cannot be edited",
        f"The provider of {resource.kind} cannot write {resource} into a manifest.",
        hint="Change the manifest by hand.",
        place=source.place(NAME) if source is not None else None,
        resource=str(resource),
    )


def _not_declared(resource: ResourceId) -> Diagnostic:
    return error(
        "not-declared",
        "No manifest declares it",
        f"{resource} is declared in no manifest of the project, so there is none to write the change into.",
        hint="kdeclare import writes manifests of what there is now, with --match NAME that of one topic.",
        resource=str(resource),
    )


def _odd_layout(resource: ResourceId, document: Document, edit: Edit | None) -> Diagnostic:
    path = edit.path if edit is not None else ()
    said = f"'{dotted(path)}' of {resource}" if path else f"The manifest of {resource}"
    return error(
        "layout-not-edited",
        "Layout cannot be edited",
        f"{said} is written in a way that kdeclare cannot edit without touching more than this.",
        hint="Change the manifest by hand, or write it one field a line first.",
        place=find(document.root, path, key=True),
        resource=str(resource),
        subject=dotted(path) or None,
    )
