"""The manifest of a resource that no manifest declares yet."""

import os
from pathlib import Path

from kdeclare.core.capabilities import Editable
from kdeclare.core.changes import Change
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.ids import ResourceId
from kdeclare.core.manifest_text import manifest
from kdeclare.manifests.editing.fields import refuse_secret
from kdeclare.manifests.files import file_name
from kdeclare.manifests.project import MANIFESTS_FOLDER, Project, manifest_roots


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
