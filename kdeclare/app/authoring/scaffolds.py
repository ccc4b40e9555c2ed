"""Files to begin with: a project, and manifests in it. Nothing that is there is overwritten."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kdeclare.app.plan import CHECKS
from kdeclare.app.policies import RULES
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.core.resources.manifest_text import manifest, scalar
from kdeclare.engine.state.port import is_folder_name
from kdeclare.manifests.editing.project_edits import new_file
from kdeclare.manifests.load import load
from kdeclare.manifests.project import MANIFESTS_FOLDER, PROJECT_FILE, open_project
from kdeclare.manifests.syntax.files import Files

_IGNORED = (b"/state/", b"*.plan", b"*.plan.json")
_EXAMPLE = "example.yaml"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9.-]*:[0-9]+")
_PROJECT = """\
# What kdeclare looks after, and where. The fields and what they are for: kdeclare schema --kind Project
apiVersion: kdeclare/v1
kind: Project
metadata: {{name: {name}}}
spec:
  manifests: [{manifests}]
  state: state  # what kdeclare has done; a team shares one
  environments:
    {env}:
      bootstrapServers: {servers}
"""
_TOPIC = """\
# A topic, to be uncommented and made yours; or begin with: kdeclare new topic NAME
#
# apiVersion: kdeclare/v1
# kind: Topic
# metadata:
#   name: orders
#   labels: {team: checkout}            # for --selector and for policies
# spec:
#   partitions: 6
#   replicationFactor: 3
#   configs:
#     retention.ms: 604800000           # seven days
#     cleanup.policy: [delete]
#   lifecycle: {preventDestroy: true}   # nothing deletes it, whatever is typed
"""


@dataclass(frozen=True, slots=True)
class Begun:
    """The files of a new project: what was written, and what was there and was left alone.

    declares: whether there were manifests already, such as those of an import.
    """

    written: tuple[Path, ...]
    kept: tuple[Path, ...] = ()
    declares: bool = False


def begin_project(folder: Path, name: str | None, servers: str | None, *, example: bool) -> Begun:
    """Write a project file, a folder of manifests and what git ignores.

    name: of the project (default: the folder's). servers: of its one environment (default: a sandbox's).
    example: whether a topic is written that is all comment; none is among manifests that are there already.
    Raises KdeclareError; a project that is there already is left as it is.
    """
    project = folder / PROJECT_FILE
    called = name if name is not None else _name_of(folder)
    if not is_folder_name(called):
        raise KdeclareError(_bad_name(called))
    text = _PROJECT.format(
        name=_in_flow(called),
        manifests=MANIFESTS_FOLDER,
        env="default" if servers else "sandbox",
        servers=_in_flow(servers) if servers else "127.0.0.1:19092",
    )
    files = {project: text}
    manifests, ignored = folder / MANIFESTS_FOLDER, folder / ".gitignore"
    try:
        declares = _holds_manifests(manifests)
        if example and not declares:
            files[manifests / _EXAMPLE] = _TOPIC
        if project.exists() or project.is_symlink():
            raise KdeclareError(_project_there(project))
        to_ignore = _still_to_ignore(ignored)  # before anything is written: it may not be readable
        manifests.mkdir(parents=True, exist_ok=True)
        kept = [file for file in files if file.exists() or file.is_symlink()]
        written = [file for file in files if file not in kept]
        for file in written:
            _write_new(file, files[file])
        if to_ignore:
            with ignored.open("ab") as appended:
                appended.write(to_ignore)
        (written if to_ignore else kept).append(ignored)
    except OSError as problem:
        raise KdeclareError(_not_written(folder, problem)) from None
    return Begun(tuple(written), tuple(kept), declares)


@dataclass(frozen=True, slots=True)
class SpecLine:
    """A line of the spec of a new manifest, and the option that it comes from, for messages."""

    text: str
    option: str


@dataclass(frozen=True, slots=True)
class NewManifest:
    """Where the manifest is, whether a project takes it in, and what else should be known."""

    file: Path
    in_project: bool
    notices: tuple[Diagnostic, ...]


def new_manifest(
    resource: ResourceId,
    spec: Sequence[SpecLine],
    project_file: Path | None,
    env: str | None,
    environ: Mapping[str, str],
) -> NewManifest:
    """Write the manifest of a resource that nothing declares yet.

    The caller has checked the name: it becomes a path. Raises KdeclareError, and writes nothing, where the
    manifests would not be valid with it.
    """
    project = open_project(project_file, env, environ)
    # without a project file, what stands beside it is what it has to go with
    whole = project if project.file is not None else replace(project, file=project.folder / PROJECT_FILE)
    there = load(whole, None, KINDS, environ)
    declared = next((item for item in there.desired if item.id == resource), None)
    if declared is not None:
        raise KdeclareError(_declared(declared))
    path = new_file(project, resource)
    text = manifest(resource.kind, resource.name, [line.text for line in spec])
    loaded = load(whole, None, KINDS, environ, CHECKS, RULES, {path: text.encode()})
    found = tuple(d for d in loaded.diagnostics if d.resource == str(resource) or _is_in(path, d))
    if any(d.is_error for d in found):
        first = text.count("\n") - len(spec) + 1
        options = {(path, first + n): line.option for n, line in enumerate(spec)}
        raise KdeclareError(*(_of_option(d, options) for d in found))
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_new(target, text)
    except OSError as problem:
        raise KdeclareError(_not_written(target, problem)) from None
    return NewManifest(target, project.file is not None, found)


def _is_in(path: str, found: Diagnostic) -> bool:
    """What is no YAML has a place, and no resource yet."""
    return found.place is not None and found.place.file == path


def _of_option(found: Diagnostic, options: Mapping[tuple[str, int], str]) -> Diagnostic:
    """About what was typed: a line of a file that is never written is nowhere to be looked at."""
    option = options.get((found.place.file, found.place.line)) if found.place else None
    return replace(found, place=None, detail=f"{option}: {found.detail}") if option else found


def _in_flow(text: str) -> str:
    """A text where braces and commas have a meaning, and numbers are none."""
    return text if _ADDRESS.fullmatch(text) else scalar(text, text=True)


def _holds_manifests(folder: Path) -> bool:
    """Whether there is YAML in the folder, other than what an earlier beginning has left."""
    return any(Path(file).name != _EXAMPLE for file in Files().find([folder]))


def _name_of(folder: Path) -> str:
    return folder.resolve().name.lstrip(".") or "project"


def _still_to_ignore(file: Path) -> bytes:
    """What a file of git's needs at its end; it may be in any encoding, and stays as it is."""
    before = file.read_bytes() if file.exists() else b""
    missing = [line for line in _IGNORED if line not in before.splitlines()]
    broken = b"\n" if missing and before and not before.endswith(b"\n") else b""
    return broken + b"".join(line + b"\n" for line in missing)


def _write_new(file: Path, text: str) -> None:
    with file.open("x", encoding="utf-8") as new:
        new.write(text)


def _project_there(file: Path) -> Diagnostic:
    return error(
        "file-exists",
        "Project is there already",
        f"'{file}' is there, and nothing is overwritten.",
        hint="kdeclare new topic NAME adds a topic to it.",
    )


def _declared(item: Desired) -> Diagnostic:
    return error(
        "duplicate-resource",
        f"{item.id.kind} is declared already",
        f"{item.id} is declared at {item.source}.",
        hint="Change it there.",
        place=item.source,
        resource=str(item.id),
    )


def _bad_name(name: str) -> Diagnostic:
    return error(
        "bad-project-name",
        "Not a project's name",
        f"'{name}' cannot be the name of a project: its state is kept in a folder of that name.",
        hint="Give another one with --name: no slashes, and no dot in front.",
    )


def _not_written(file: Path, problem: OSError) -> Diagnostic:
    return error("not-written", "Files cannot be written", f"{problem.filename or file}: {problem.strerror}.")
