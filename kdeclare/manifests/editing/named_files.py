"""Edit the files that manifests name in fields of type `FileText`."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from yaml.nodes import ScalarNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.manifest_capabilities import FileEdit as NamedFileEdit
from kdeclare.manifests.editing.documents import FileEdit
from kdeclare.manifests.editing.edit_subject import EditSubject
from kdeclare.manifests.file_fields import find_file_fields, locate_field_file
from kdeclare.manifests.project import Project
from kdeclare.manifests.provenance import Source
from kdeclare.manifests.syntax.files import build_unreadable_error
from kdeclare.manifests.syntax.substitution import find_reference_names


def build_named_file_edit(
    project: Project, sources: Mapping[ResourceId, Source], subject: EditSubject, edit: NamedFileEdit
) -> FileEdit:
    """Return the edit to a file that a manifest names.

    Raises KdeclareError if the file is outside the project (``file-outside-project``), if other manifests
    name it, too (``file-shared``), if its path is a reference (``field-by-reference``), or if it cannot be
    read.
    """
    node = subject.source.at(("spec", *edit.path))
    assert isinstance(node, ScalarNode)
    if find_reference_names(node.value):
        raise KdeclareError(
            _refuse(subject, edit, "field-by-reference", "Value is a reference", "its path is a reference")
        )
    location = locate_field_file(subject.source.layers.merged, str(edit.path[0]))
    assert location is not None
    folder = os.path.realpath(project.folder)
    if not Path(os.path.realpath(location)).is_relative_to(folder):
        reason = f"it is not in the folder of the project, {folder}"
        raise KdeclareError(
            _refuse(subject, edit, "file-outside-project", "File is outside the project", reason, location)
        )
    others = sorted({str(id_) for id_ in _find_users(sources, location) if id_ != subject.id})
    if others:
        reason = f"{', '.join(others)} also uses it"
        raise KdeclareError(_refuse(subject, edit, "file-shared", "File is shared", reason, location))
    try:
        before = Path(location).read_bytes()
    except OSError as problem:
        raise KdeclareError(build_unreadable_error(location, problem)) from None
    is_same = subject.kind.is_same_value(edit.path, before.decode(errors="replace"), edit.text)
    return FileEdit(location, before, before if is_same else edit.text.encode())


def _find_users(sources: Mapping[ResourceId, Source], location: str) -> Iterator[ResourceId]:
    """Yield the resources whose manifests or overlays, in any environment, name the file at ``location``."""
    fields = find_file_fields(KINDS)
    real_location = os.path.realpath(location)
    for id_, source in sources.items():
        for name in fields.get(id_.kind, ()):
            roots = [document.root for document in (source.base, *source.overlays, *source.elsewhere)]
            locations = [locate_field_file(root, name) for root in roots]
            if any(found is not None and os.path.realpath(found) == real_location for found in locations):
                yield id_


def _refuse(
    subject: EditSubject,
    edit: NamedFileEdit,
    code: str,
    summary: str,
    reason: str,
    location: str = "",
) -> Diagnostic:
    name = f"'{location}'" if location else f"named by '{edit.path[0]}'"
    return error(
        code,
        summary,
        f"The file {name} of {subject.id} is not written, because {reason}.",
        hint="Edit the file yourself.",
        place=subject.source.place(("spec", *edit.path)),
        resource=str(subject.id),
    )
