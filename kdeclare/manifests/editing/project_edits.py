"""Edit the manifests of a project so that they declare the requested changes, and create new manifests."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, info
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import NAME, ManifestExclusion
from kdeclare.core.resources.manifest_capabilities import (
    Editable,
    find_editable,
)
from kdeclare.core.resources.manifest_capabilities import FileEdit as NamedFileEdit
from kdeclare.core.resources.manifest_text import render_manifest
from kdeclare.manifests.editing.documents import EditRejected, FileEdit, rewrite_file
from kdeclare.manifests.editing.edit_subject import EditSubject, LocatedEdit, build_generated_error
from kdeclare.manifests.editing.edits import Edit
from kdeclare.manifests.editing.fields import locate_edits, validate_not_secret
from kdeclare.manifests.editing.named_files import build_named_file_edit
from kdeclare.manifests.project import MANIFESTS_FOLDER, Project, find_manifest_roots
from kdeclare.manifests.provenance import (
    Source,
    SourceDocument,
    build_reader,
    find_variable_positions,
    read_sources,
)
from kdeclare.manifests.schema_errors import format_path
from kdeclare.manifests.syntax.files import build_file_name, build_folder_name, build_unreadable_error
from kdeclare.manifests.syntax.nodes import find_position


def render_new_manifest(kind: Editable, change: Change) -> str:
    """Return the manifest for a new resource, in the layout that ``kdeclare import`` writes.

    Raises KdeclareError (``secret-not-written``) if the resource contains a secret.
    """
    for field in change.fields:
        validate_not_secret(change.id, field, field.path.partition(".")[2] or field.path)
    return render_manifest(change.id.kind, change.id.name, kind.render_spec_lines(change))


def choose_manifest_path(project: Project, resource: ResourceId) -> str:
    """Return the path for a new manifest.

    The path is in the first folder of manifests. If this folder has a subfolder for the kind (``topics``),
    the path is in the subfolder. Raises KdeclareError if there is no folder, or if the file already exists.
    """
    folder = _get_manifest_folder(project)
    kind_folder = folder / build_folder_name(resource.kind)
    path = os.path.normpath((kind_folder if kind_folder.is_dir() else folder) / build_file_name(resource))
    if os.path.lexists(path):
        raise KdeclareError(
            error(
                "file-exists",
                "Manifest file already exists",
                f"No manifest declares {resource}, but the file for its manifest, {path}, already exists.",
                hint="Rename that file, or write the manifest yourself.",
                resource=str(resource),
            )
        )
    return path


def _get_manifest_folder(project: Project) -> Path:
    folder = next((root for root in find_manifest_roots(project) if root.is_dir()), None)
    if folder is None and project.manifests is None:
        return project.folder / MANIFESTS_FOLDER
    if folder is None:
        raise KdeclareError(
            error(
                "no-manifests-folder",
                "No folder for a new manifest",
                "The 'manifests' field of the project file lists only individual files, so there is no "
                "folder for a new manifest.",
                hint="Add a folder to 'manifests' in the project file, or write the manifest yourself.",
            )
        )
    return folder


@dataclass(frozen=True, slots=True)
class ProjectEdits:
    """The edited files of a project.

    files: the edited files, ordered by name.
    shared: the names of the edited files that apply to all environments.
    notices: diagnostics to show to the user.
    """

    files: tuple[FileEdit, ...]
    shared: tuple[str, ...]
    notices: tuple[Diagnostic, ...]


def build_project_edits(
    project: Project, environ: Mapping[str, str], changes: Iterable[Change]
) -> ProjectEdits:
    """Return the edits to a project's files that make its manifests declare ``changes``.

    Raises KdeclareError with one or more errors for each change that cannot be written to the manifests.
    """
    collector = _EditCollector(project, environ)
    for change in changes:
        collector.add_change(change)
    return collector.result()


class _EditCollector:
    """Collects the edits for several changes, by file and document."""

    def __init__(self, project: Project, environ: Mapping[str, str]) -> None:
        self._project = project
        self._reader = build_reader(project, environ)
        self._sources = read_sources(project, environ)
        self._variables = find_variable_positions(project)
        self._edits: dict[str, dict[int, list[Edit]]] = defaultdict(lambda: defaultdict(list))
        self._removed: dict[str, set[int]] = defaultdict(set)
        self._new_files: dict[str, bytes] = {}
        self._named_files: list[FileEdit] = []
        self._documents: dict[tuple[str, int], tuple[ResourceId, SourceDocument]] = {}
        self._shared: set[str] = set()
        self._notices: list[Diagnostic] = []
        self._problems: list[Diagnostic] = []

    def add_change(self, change: Change) -> None:
        """Collect the edits for one change. Problems are reported later, by `result`."""
        source = self._sources.by_id.get(change.id)
        kind = find_editable(change.id.kind)
        exclusion = self._sources.exclusions.get(change.id)
        if exclusion is not None and change.action is not Action.DELETE:
            self._problems.append(_build_excluded_error(change.id, exclusion, self._project))
        elif change.action is Action.DELETE:
            self._remove_documents(change.id, source)
        elif kind is None:
            self._problems.append(_build_not_editable_error(change.id, source))
        elif source is not None:
            self._edit_documents(kind, change, source)
        elif change.action is Action.CREATE:
            self._create_manifest(kind, change)
        elif has_only_removals(change):
            self._notices.append(_report_nothing_declared(change.id))
        else:
            self._problems.append(_build_not_declared_error(change.id))

    def result(self) -> ProjectEdits:
        """Return the edited files. Raises KdeclareError if a change cannot be written to the manifests."""
        found = [FileEdit(file, None, text) for file, text in self._new_files.items()] + self._named_files
        for file in {**self._edits, **self._removed}:
            try:
                found.append(self._build_file_edit(file))
            except KdeclareError as refused:
                self._problems += refused.diagnostics
        if self._problems:
            raise KdeclareError(*dict.fromkeys(self._problems))
        files = sorted((edit for edit in found if edit.before != edit.after), key=lambda edit: edit.file)
        shared = tuple(edit.file for edit in files if edit.file in self._shared)
        return ProjectEdits(tuple(files), shared, tuple(self._notices))

    def _create_manifest(self, kind: Editable, change: Change) -> None:
        try:
            file = choose_manifest_path(self._project, change.id)
            self._new_files[file] = render_new_manifest(kind, change).encode()
            self._shared.add(file)
        except KdeclareError as refusal:
            self._problems += refusal.diagnostics

    def _remove_documents(self, resource: ResourceId, source: Source | None) -> None:
        """Remove the manifest of a resource, and its overlays in all environments.

        An overlay without a manifest would be an error.
        """
        if source is None:
            return
        self._problems += [problem for problem in self._sources.diagnostics if problem.is_error]
        if source.base.origin is not None:
            self._problems.append(build_generated_error(resource, source.base.origin, ()))
            return
        self._shared.add(source.base.file)
        for document in (source.base, *source.overlays, *source.elsewhere):
            self._removed[document.file].add(document.index)
            self._documents[document.file, document.index] = resource, document

    def _edit_documents(self, kind: Editable, change: Change, source: Source) -> None:
        subject = EditSubject(change.id, source, self._reader, kind, self._variables)
        manifest_edits = kind.find_edits(change, subject)
        for problem in manifest_edits.problems:
            path = problem.path if problem.path == NAME else ("spec", *problem.path)
            diagnostic = replace(problem.diagnostic, place=source.place(path))
            (self._problems if diagnostic.is_error else self._notices).append(diagnostic)
        for edit in manifest_edits.edits:
            if isinstance(edit, NamedFileEdit):
                self._add_named_file(subject, edit)
            else:
                self._add_edits(subject, locate_edits(subject, edit))

    def _add_named_file(self, subject: EditSubject, edit: NamedFileEdit) -> None:
        try:
            file_edit = build_named_file_edit(self._project, self._sources.by_id, subject, edit)
        except KdeclareError as refusal:
            self._problems += refusal.diagnostics
            return
        self._named_files.append(file_edit)
        self._shared.add(file_edit.file)

    def _add_edits(self, subject: EditSubject, edits: Iterator[LocatedEdit]) -> None:
        try:
            located_edits = list(edits)
        except KdeclareError as refusal:
            self._problems += refusal.diagnostics
            return
        for located_edit in located_edits:
            document = located_edit.document
            self._edits[document.file][document.index].append(located_edit.edit)
            self._documents[document.file, document.index] = subject.id, document
            if document is subject.source.base:
                self._shared.add(document.file)

    def _build_file_edit(self, file: str) -> FileEdit:
        removed_indexes = frozenset(self._removed.get(file, ()))
        try:
            data = Path(file).read_bytes()
            return FileEdit(file, data, rewrite_file(file, data, self._edits.get(file, {}), removed_indexes))
        except OSError as os_error:
            raise KdeclareError(build_unreadable_error(file, os_error)) from None
        except EditRejected as rejection:
            resource, document = self._documents[file, rejection.document]
            raise KdeclareError(_build_layout_error(resource, document, rejection.edit)) from None


def _build_not_editable_error(resource: ResourceId, source: Source | None) -> Diagnostic:
    return error(
        "not-editable",
        "Manifests of this kind cannot be edited",
        f"The provider of the kind {resource.kind} cannot edit manifests, so the manifest of {resource} is "
        "not changed.",
        hint="Edit the manifest yourself.",
        place=source.place(NAME) if source is not None else None,
        resource=str(resource),
    )


def _build_excluded_error(resource: ResourceId, exclusion: ManifestExclusion, project: Project) -> Diagnostic:
    return error(
        "excluded-manifest",
        "Manifest is not present in this environment",
        f"{exclusion.field} excludes the manifest of {resource} from the environment "
        f"'{project.environment.name}', so the change cannot be written to a manifest. kdeclare does not "
        "create a second manifest for the resource.",
        hint=f"Change {exclusion.field}, or run the command without --write-manifest.",
        place=exclusion.place,
        resource=str(resource),
    )


def has_only_removals(change: Change) -> bool:
    """Return whether a change only removes settings. An undeclared resource then needs no manifest."""
    return bool(change.fields) and all(field.after is None for field in change.fields)


def _report_nothing_declared(resource: ResourceId) -> Diagnostic:
    return info(
        "nothing-declared",
        "Resource not declared",
        f"No manifest of the project declares {resource}, so no manifest is changed.",
        resource=str(resource),
    )


def _build_not_declared_error(resource: ResourceId) -> Diagnostic:
    return error(
        "not-declared",
        "Resource not declared",
        f"No manifest of the project declares {resource}, so the change cannot be written to a manifest.",
        hint="Run 'kdeclare import' to write manifests of existing resources (--match NAME for one topic).",
        resource=str(resource),
    )


def _build_layout_error(resource: ResourceId, document: SourceDocument, edit: Edit | None) -> Diagnostic:
    path = edit.path if edit is not None else ()
    edited_field = f"'{format_path(path)}' of {resource}" if path else f"the manifest of {resource}"
    return error(
        "layout-not-edited",
        "Layout cannot be edited",
        f"kdeclare cannot edit {edited_field} without also changing other text in the file.",
        hint="Edit the manifest yourself, or first put each field on its own line.",
        place=find_position(document.root, path, key=True),
        resource=str(resource),
        subject=format_path(path) or None,
    )
