"""Write ad hoc changes back into the manifests that declare the resources.

The edited manifests are loaded to verify that they declare the changed values and that nothing else differs.
"""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kdeclare.app.plan import load_manifests, load_valid_manifests
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import (
    UNKNOWN_SETTING,
    Diagnostic,
    KdeclareError,
    SourcePosition,
    error,
    info,
    summarize_diagnostics,
)
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.manifest_capabilities import (
    find_editable,
    locate_field,
)
from kdeclare.engine.state.durable_files import create_file, make_folder, replace_file, sync_folder
from kdeclare.manifests.editing.documents import FileEdit
from kdeclare.manifests.editing.project_edits import build_project_edits, has_only_removals
from kdeclare.manifests.load_manifests import LoadedManifests
from kdeclare.manifests.project import Project, read_project
from kdeclare.manifests.provenance import ProjectSources, Source, read_sources
from kdeclare.manifests.syntax.files import build_unreadable_error
from kdeclare.manifests.syntax.nodes import find_position

_WRITABLE_ACTIONS = (Action.CREATE, Action.UPDATE, Action.DELETE)


@dataclass(frozen=True, slots=True)
class PreparedEdits:
    """Edits of manifest files, sorted by file name, that are prepared but not written yet.

    notices: diagnostics for the user.
    """

    files: tuple[FileEdit, ...]
    notices: tuple[Diagnostic, ...] = ()

    def write(self) -> None:
        """Write the files, each one atomically.

        Raises KdeclareError if a file cannot be written, or if a file changed after the edits were prepared.
        In the second case, no file is written.
        """
        changed_files = [edit.file for edit in self.files if _read_content(edit.file) != edit.before]
        if changed_files:
            raise KdeclareError(_build_changed_error(changed_files))
        for written_count, edit in enumerate(self.files):
            try:
                _write_edit(edit)
            except OSError as problem:
                raise KdeclareError(
                    _build_write_error(edit.file, problem, self.files[:written_count])
                ) from None


def prepare_edits(workspace: Workspace, changes: Iterable[Change]) -> PreparedEdits:
    """Prepare the edits of the project's manifests for completed or planned ``changes``.

    Changes that are blocked, release a resource or do nothing are skipped. Call this function before the
    cluster is changed, so that an edit that is not possible is reported first. If only some changes succeed
    in the cluster, call the function again with the successful changes.
    Raises KdeclareError with a diagnostic for each edit that is not possible, and if the manifests have
    errors.
    """
    written_changes = [
        change for change in changes if change.action in _WRITABLE_ACTIONS and change.blocked is None
    ]
    manifests_before = load_valid_manifests(workspace, ())
    edits = build_project_edits(workspace.project, workspace.environ, written_changes)
    manifests_after = load_manifests(workspace, (), {edit.file: edit.after for edit in edits.files})
    check_outcome(manifests_before, manifests_after, written_changes)
    return PreparedEdits(
        edits.files, (*edits.notices, *_warn_shared_manifests(workspace.project, edits.shared))
    )


def read_project_sources(workspace: Workspace) -> ProjectSources:
    """Return, for each resource, the documents that declare it; empty if there is no project file."""
    return read_sources(workspace.project, workspace.environ, KINDS)


def find_declared_positions(
    sources: ProjectSources, changes: Iterable[Change]
) -> Mapping[tuple[ResourceId, str], SourcePosition]:
    """Return the positions of changed fields in the manifests, by resource and field path.

    Undeclared fields are left out. The path ``""`` means the resource as a whole.
    """
    positions: dict[tuple[ResourceId, str], SourcePosition] = {}
    for change in changes:
        source = sources.by_id.get(change.id)
        if source is None:
            continue
        positions[change.id, ""] = find_position(source.base.root, ("metadata", "name"))
        field_positions = {
            item.path: _find_field_position(source, change.id.kind, item.path) for item in change.fields
        }
        positions |= {
            (change.id, path): place for path, place in field_positions.items() if place is not None
        }
    return positions


def _find_field_position(source: Source, kind: str, path: str) -> SourcePosition | None:
    positions = (source.place(("spec", *steps)) for steps in locate_field(kind, path))
    return next((place for place in positions if place is not None), None)


def _warn_shared_manifests(project: Project, shared_files: Sequence[str]) -> list[Diagnostic]:
    environments = (
        read_project(project.file).spec.environments if project.file is not None and shared_files else {}
    )
    other_environments = sorted(name for name in environments if name != project.environment.name)
    if not other_environments:
        return []
    return [
        info(
            "shared-manifest",
            "Manifest shared by environments",
            f"Changes in {', '.join(shared_files)} also apply to the environments "
            f"{', '.join(other_environments)}.",
            hint="Use an overlay for values that differ by environment.",
        )
    ]


def _read_content(file: str) -> bytes | None:
    try:
        return Path(file).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise KdeclareError(build_unreadable_error(file, problem)) from None


def _write_edit(edit: FileEdit) -> None:
    """Write an edit. An edit that creates a file never overwrites an existing file.

    If the file is a link, its target is replaced. A replaced file keeps its permissions.
    """
    target = Path(os.path.realpath(edit.file))
    if edit.after is None:
        Path(edit.file).unlink()
        sync_folder(Path(edit.file).parent)
    elif edit.before is None:
        make_folder(target.parent)
        create_file(target, edit.after)
    else:
        replace_file(target, edit.after, mode=stat.S_IMODE(target.stat().st_mode))


def _build_changed_error(files: Sequence[str]) -> Diagnostic:
    return error(
        "manifest-changed",
        "Manifest was changed during the command",
        f"{', '.join(files)} changed after the edit was prepared. No manifest was written.",
        hint="Run the command again, or edit the manifest yourself.",
    )


def _build_write_error(file: str, problem: OSError, written_edits: Sequence[FileEdit]) -> Diagnostic:
    earlier_words = (
        f" Already written: {', '.join(edit.file for edit in written_edits)}." if written_edits else ""
    )
    return error(
        "not-written",
        "Manifests cannot be written",
        f"{file}: {(problem.strerror or str(problem)).lower()}.{earlier_words}",
        hint="Edit the remaining manifests yourself, or run the command again.",
    )


def check_outcome(before: LoadedManifests, after: LoadedManifests, changes: Iterable[Change]) -> None:
    """Verify that the edited manifests declare ``changes`` and that nothing else differs.

    Raises KdeclareError (``not-as-wanted``).
    """
    known_problems = {_build_problem_key(problem) for problem in before.diagnostics}
    # an unknown config key is not an error here: the cluster validates config keys, and accepted this one
    new_errors = [
        d
        for d in after.diagnostics
        if d.is_error and d.code != UNKNOWN_SETTING and _build_problem_key(d) not in known_problems
    ]
    if new_errors:
        raise KdeclareError(
            _build_refused_error(
                f"The edited manifests would be invalid: {summarize_diagnostics(new_errors)}", new_errors[0]
            )
        )
    declared_before, declared_after = (
        {item.id: item for item in loaded.desired} for loaded in (before, after)
    )
    changes_by_id = {change.id: change for change in changes}
    for resource in {**declared_before, **declared_after, **changes_by_id}:
        if not _is_as_expected(
            declared_before.get(resource), declared_after.get(resource), changes_by_id.get(resource)
        ):
            detail = f"The edited manifests would not declare {resource} with the changed values."
            raise KdeclareError(_build_refused_error(detail, None, resource))


def _is_as_expected(
    declared_before: DesiredResource | None, declared_after: DesiredResource | None, change: Change | None
) -> bool:
    if change is None:
        return (
            declared_before is not None
            and declared_after is not None
            and (declared_before.body, declared_before.labels) == (declared_after.body, declared_after.labels)
        )
    if change.action is Action.DELETE or (declared_before is None and has_only_removals(change)):
        return declared_after is None
    if declared_after is None or (
        declared_before is not None and declared_before.labels != declared_after.labels
    ):
        return False
    kind = find_editable(declared_after.id.kind)
    body_before = declared_before.body if declared_before is not None else None
    return kind is not None and kind.is_as_changed(
        declared_after.id.name, body_before, declared_after.body, change
    )


def _build_problem_key(problem: Diagnostic) -> tuple[str, str | None, str | None]:
    return problem.code, problem.resource, problem.subject


def _build_refused_error(
    detail: str, diagnostic: Diagnostic | None, resource: ResourceId | None = None
) -> Diagnostic:
    position: SourcePosition | None = diagnostic.place if diagnostic is not None else None
    return error(
        "not-as-wanted",
        "Manifests not written",
        detail,
        hint="Edit the manifests yourself, and run kdeclare plan to see the remaining differences.",
        place=position,
        resource=str(resource)
        if resource is not None
        else diagnostic.resource
        if diagnostic is not None
        else None,
    )
