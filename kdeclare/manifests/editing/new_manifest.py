"""The manifest of a resource that no manifest declares yet."""

import os
from collections.abc import Sequence
from pathlib import Path

from kdeclare.core.changes import Change, FieldChange
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.ids import ResourceId
from kdeclare.core.manifest_text import flow_map, manifest
from kdeclare.manifests.editing.configs import refuse_secret
from kdeclare.manifests.editing.shape import replicas_in
from kdeclare.manifests.files import file_name
from kdeclare.manifests.project import MANIFESTS_FOLDER, Project, manifest_roots
from kdeclare.providers.kafka.export import value_lines

_COUNTS = ("partitions", "replicationFactor")
_CONFIG = "configs."


def new_manifest(change: Change) -> str:
    """What a creation says, in the layout of ``kdeclare import``.

    Where it has both counts and assignments, those were only found for it, and the counts are what was asked.
    Raises KdeclareError (``secret-not-written``).
    """
    fields = [field for field in change.fields if field.after is not None]
    spec = [f"{field.path}: {field.after}" for field in fields if field.path in _COUNTS]
    if not spec and (replicas := replicas_in(fields)):
        spec = ["assignments:", *flow_map(replicas)]
    return manifest(change.id.kind, change.id.name, spec + _configs(change.id, fields))


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


def _configs(resource: ResourceId, fields: Sequence[FieldChange]) -> list[str]:
    configs = [field for field in fields if field.path.startswith(_CONFIG)]
    for field in configs:
        refuse_secret(resource, field)
    return value_lines({field.path.removeprefix(_CONFIG): field.after for field in configs})
