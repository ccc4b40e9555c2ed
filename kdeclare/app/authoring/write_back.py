"""Writing what was changed by hand back into the manifests that declare it.

Edited manifests are loaded again: they must say what was wanted, and of everything else what they said
before.
"""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kdeclare.app.plan import load_manifests, loaded_well
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import UNKNOWN_SETTING, Diagnostic, KdeclareError, Place, error, gist, info
from kdeclare.core.frozen import dataclass
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.capabilities import find_editable, locate_field
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.engine.state.durable import create_file, make_folder, replace_file, sync_folder
from kdeclare.manifests.editing.documents import FileEdit
from kdeclare.manifests.editing.project_edits import project_edits
from kdeclare.manifests.load import Loaded
from kdeclare.manifests.project import Project, read_project
from kdeclare.manifests.provenance import Source, Sources, read_sources
from kdeclare.manifests.syntax.files import unreadable
from kdeclare.manifests.syntax.nodes import find

_WRITTEN = (Action.CREATE, Action.UPDATE, Action.DELETE)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What writing would do to which files, in the order of their names; nothing is written yet.

    notices: what a person should know of it.
    """

    files: tuple[FileEdit, ...]
    notices: tuple[Diagnostic, ...] = ()

    def write(self) -> None:
        """Write the files, each whole or not at all.

        Raises KdeclareError: when one has changed since it was prepared (nothing is written then), or
        cannot be written.
        """
        changed = [edit.file for edit in self.files if _content(edit.file) != edit.before]
        if changed:
            raise KdeclareError(_changed_since(changed))
        for number, edit in enumerate(self.files):
            try:
                _write(edit)
            except OSError as problem:
                raise KdeclareError(_not_written(edit.file, problem, self.files[:number])) from None


def prepare(workspace: Workspace, changes: Iterable[Change]) -> Prepared:
    """The edits of the project's manifests that say what ``changes`` have done, or are to do.

    What is blocked, forgotten or in order is left out. Whatever can be refused is refused here, so this
    comes before the cluster is changed; where only a part could be done there, prepare that part anew.
    Raises KdeclareError: with all that cannot be written, and for manifests with mistakes.
    """
    wanted = [change for change in changes if change.action in _WRITTEN and change.blocked is None]
    before = loaded_well(workspace, ())
    edits = project_edits(workspace.project, workspace.environ, wanted)
    after = load_manifests(workspace, (), {edit.file: edit.after for edit in edits.files})
    check_outcome(before, after, wanted)
    return Prepared(edits.files, (*edits.notices, *_held_elsewhere(workspace.project, edits.shared)))


def sources_of(workspace: Workspace) -> Sources:
    """Where the project declares its resources; of a project without a file, nothing."""
    return read_sources(workspace.project, workspace.environ, KINDS)


def declared_places(sources: Sources, changes: Iterable[Change]) -> Mapping[tuple[ResourceId, str], Place]:
    """Where the manifests say what is changed: by resource and path of a field, as far as they do.

    The path ``""`` is the resource as a whole.
    """
    found: dict[tuple[ResourceId, str], Place] = {}
    for change in changes:
        source = sources.by_id.get(change.id)
        if source is None:
            continue
        found[change.id, ""] = find(source.base.root, ("metadata", "name"))
        places = {item.path: _place(source, change.id.kind, item.path) for item in change.fields}
        found |= {(change.id, path): place for path, place in places.items() if place is not None}
    return found


def _place(source: Source, kind: str, path: str) -> Place | None:
    """Where a field is declared."""
    found = (source.place(("spec", *steps)) for steps in locate_field(kind, path))
    return next((place for place in found if place is not None), None)


def _held_elsewhere(project: Project, shared: Sequence[str]) -> list[Diagnostic]:
    """Said of manifests that other environments have, too."""
    environments = read_project(project.file).spec.environments if project.file is not None and shared else {}
    others = sorted(name for name in environments if name != project.environment.name)
    if not others:
        return []
    return [
        info(
            "shared-manifest",
            "Other environments have it, too",
            f"{', '.join(shared)}: what is written there holds for {', '.join(others)} as well.",
            hint="What differs by environment belongs into an overlay.",
        )
    ]


def _content(file: str) -> bytes | None:
    """What a file has now; None where there is none. Raises KdeclareError."""
    try:
        return Path(file).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise KdeclareError(unreadable(file, problem)) from None


def _write(edit: FileEdit) -> None:
    """In place of the file that a link leads to, with its permissions; a new file replaces nothing."""
    target = Path(os.path.realpath(edit.file))
    if edit.after is None:
        Path(edit.file).unlink()
        sync_folder(Path(edit.file).parent)
    elif edit.before is None:
        make_folder(target.parent)
        create_file(target, edit.after)
    else:
        replace_file(target, edit.after, mode=stat.S_IMODE(target.stat().st_mode))


def _changed_since(files: Sequence[str]) -> Diagnostic:
    return error(
        "manifest-changed",
        "A manifest has changed meanwhile",
        f"{', '.join(files)}: the file is not what it was when the change was prepared; nothing is written.",
        hint="Give the command again, or write the change by hand.",
    )


def _not_written(file: str, problem: OSError, written: Sequence[FileEdit]) -> Diagnostic:
    before = f" Written before that: {', '.join(edit.file for edit in written)}." if written else ""
    return error(
        "not-written",
        "Manifests cannot be written",
        f"{file}: {(problem.strerror or str(problem)).lower()}.{before}",
        hint="Write the rest of the change by hand, or give the command again.",
    )


def check_outcome(before: Loaded, after: Loaded, changes: Iterable[Change]) -> None:
    """Raises KdeclareError (``not-as-wanted``) unless the edits do what ``changes`` say and no more."""
    known = {_key(problem) for problem in before.diagnostics}
    # whether there is a key that the catalogue does not know is for the cluster to say, and it took it
    new = [d for d in after.diagnostics if d.is_error and d.code != UNKNOWN_SETTING and _key(d) not in known]
    if new:
        raise KdeclareError(_refused(f"The manifests would be wrong: {gist(new)}", new[0]))
    were, are = ({item.id: item for item in loaded.desired} for loaded in (before, after))
    by_id = {change.id: change for change in changes}
    for resource in {**were, **are, **by_id}:
        if not _is_as_wanted(were.get(resource), are.get(resource), by_id.get(resource)):
            detail = f"{resource} would not be declared as wanted if the manifests were edited."
            raise KdeclareError(_refused(detail, None, resource))


def _is_as_wanted(was: Desired | None, now: Desired | None, change: Change | None) -> bool:
    if change is None:
        return was is not None and now is not None and (was.body, was.labels) == (now.body, now.labels)
    if change.action is Action.DELETE:
        return now is None
    if now is None or (was is not None and was.labels != now.labels):
        return False
    kind = find_editable(now.id.kind)
    before = was.body if was is not None else None
    return kind is not None and kind.is_as_changed(now.id.name, before, now.body, change)


def _key(problem: Diagnostic) -> tuple[str, str | None, str | None]:
    return problem.code, problem.resource, problem.subject


def _refused(detail: str, found: Diagnostic | None, resource: ResourceId | None = None) -> Diagnostic:
    place: Place | None = found.place if found is not None else None
    return error(
        "not-as-wanted",
        "Manifests not written",
        detail,
        hint="Change them by hand; kdeclare plan shows what is left to do.",
        place=place,
        resource=str(resource) if resource is not None else found.resource if found is not None else None,
    )
