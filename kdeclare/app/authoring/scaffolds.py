"""Create the files of a new project, and new manifests, without overwriting existing files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kdeclare.app.plan import CHECKS
from kdeclare.app.policies import RULES
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.manifest_text import render_manifest, scalar
from kdeclare.engine.state.port import is_folder_name
from kdeclare.manifests.editing.project_edits import choose_manifest_path
from kdeclare.manifests.load_manifests import load_project_manifests
from kdeclare.manifests.project import MANIFESTS_FOLDER, PROJECT_FILE, open_project
from kdeclare.manifests.syntax.files import FileFinder
from kdeclare.manifests.syntax.substitution import UNRESOLVED_CODES
from kdeclare.manifests.variables import GivenVariables

_IGNORED_PATTERNS = (b"/state/", b"/.sandbox/", b"*.plan", b"*.plan.json")
_EXAMPLE_FILE = "example.yaml"
_ADDRESS_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9.-]*:[0-9]+")
_PROJECT_TEMPLATE = """\
# The project: its manifests, state and clusters. All fields are described by: kdeclare schema --kind Project
apiVersion: kdeclare/v1
kind: Project
metadata: {{name: {name}}}
spec:
  manifests: [{manifests}]
  state: state  # the folder with kdeclare's state and run history; share it within a team
  environments:
    {env}:
      bootstrapServers: {servers}
"""
_TOPIC_EXAMPLE = """\
# An example topic: uncomment and edit it, or create another one with: kdeclare new topic NAME
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
#     retention.ms: 7d
#     cleanup.policy: [delete]
#   lifecycle: {preventDestroy: true}   # kdeclare never deletes this topic
"""


@dataclass(frozen=True, slots=True)
class ProjectScaffold:
    """The files of a new project: written files, and existing files that were kept.

    has_manifests: whether manifests already existed, for example from an import.
    """

    written: tuple[Path, ...]
    kept: tuple[Path, ...] = ()
    has_manifests: bool = False


def create_project(folder: Path, name: str | None, servers: str | None, *, example: bool) -> ProjectScaffold:
    """Write a project file, a folder for manifests and .gitignore.

    name: the name of the project; by default the name of the folder.
    servers: the bootstrap servers of the project's only environment; by default the servers of a sandbox.
    example: whether to write an example topic, commented out. It is not written if manifests already exist.
    Raises KdeclareError. An existing project is not changed.
    """
    project_file = folder / PROJECT_FILE
    project_name = name if name is not None else _derive_project_name(folder)
    if not is_folder_name(project_name):
        raise KdeclareError(_build_bad_name_error(project_name))
    project_text = _PROJECT_TEMPLATE.format(
        name=_quote_flow_scalar(project_name),
        manifests=MANIFESTS_FOLDER,
        env="default" if servers else "sandbox",
        servers=_quote_flow_scalar(servers) if servers else "127.0.0.1:19092",
    )
    texts_by_file = {project_file: project_text}
    manifests, gitignore = folder / MANIFESTS_FOLDER, folder / ".gitignore"
    try:
        has_manifests = _has_manifests(manifests)
        if example and not has_manifests:
            texts_by_file[manifests / _EXAMPLE_FILE] = _TOPIC_EXAMPLE
        if project_file.exists() or project_file.is_symlink():
            raise KdeclareError(_build_project_exists_error(project_file))
        ignore_lines = _build_ignore_lines(gitignore)  # before the first write, because reading can fail
        manifests.mkdir(parents=True, exist_ok=True)
        kept_files = [file for file in texts_by_file if file.exists() or file.is_symlink()]
        written_files = [file for file in texts_by_file if file not in kept_files]
        for file in written_files:
            _write_new_file(file, texts_by_file[file])
        if ignore_lines:
            with gitignore.open("ab") as gitignore_stream:
                gitignore_stream.write(ignore_lines)
        (written_files if ignore_lines else kept_files).append(gitignore)
    except OSError as problem:
        raise KdeclareError(_build_write_error(folder, problem)) from None
    return ProjectScaffold(tuple(written_files), tuple(kept_files), has_manifests)


@dataclass(frozen=True, slots=True)
class SpecLine:
    """A line in the spec of a new manifest, and the command-line option that sets this line."""

    text: str
    option: str


@dataclass(frozen=True, slots=True)
class NewManifest:
    """The file of a new manifest, whether it belongs to a project, and notices about the manifest."""

    file: Path
    in_project: bool
    notices: tuple[Diagnostic, ...]


def render_value(value: str, *, text: bool = False) -> str:
    """Return a value from the command line as a YAML scalar. References such as ``${var.NAME}`` are kept.

    text: whether to write the value as a string even if it looks like a number.
    """
    return scalar(value, text=text).replace("$${", "${")


def create_manifest(
    resource: ResourceId,
    spec: Sequence[SpecLine],
    project_file: Path | None,
    env: str | None,
    environ: Mapping[str, str],
    *,
    needs_values: bool = True,
    variables: GivenVariables | None = None,
) -> NewManifest:
    """Write the manifest of a resource that no manifest declares yet.

    needs_values: whether the values of all references in the manifest must exist already. If not, missing
        values become warnings.
    variables: values of variables that take precedence over those in the project file.
    Raises KdeclareError and writes nothing if the new manifest would make the project invalid.
    """
    project = open_project(project_file, env, environ, variables=variables)
    # without a project file, validate the new manifest with the manifests in the default folder
    complete_project = (
        project if project.file is not None else replace(project, file=project.folder / PROJECT_FILE)
    )
    existing = load_project_manifests(complete_project, None, KINDS, environ)
    duplicate = next((item for item in existing.desired if item.id == resource), None)
    if duplicate is not None:
        raise KdeclareError(_build_duplicate_error(duplicate))
    path = choose_manifest_path(project, resource)
    text = render_manifest(resource.kind, resource.name, [line.text for line in spec])
    updated = load_project_manifests(
        complete_project, None, KINDS, environ, CHECKS, RULES, {path: text.encode()}
    )
    diagnostics = tuple(
        replace(d, severity=Severity.WARNING) if d.code in UNRESOLVED_CODES and not needs_values else d
        for d in updated.diagnostics
        if d.resource == str(resource) or _is_in_file(path, d)
    )
    if any(d.is_error for d in diagnostics):
        first_spec_line = text.count("\n") - len(spec) + 1
        options_by_line = {(path, first_spec_line + n): line.option for n, line in enumerate(spec)}
        raise KdeclareError(*(_attribute_to_option(d, options_by_line) for d in diagnostics))
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_new_file(target, text)
    except OSError as problem:
        raise KdeclareError(_build_write_error(target, problem)) from None
    return NewManifest(target, project.file is not None, diagnostics)


def _is_in_file(path: str, diagnostic: Diagnostic) -> bool:
    """Return whether a diagnostic has a position in the file."""
    return diagnostic.place is not None and diagnostic.place.file == path


def _attribute_to_option(diagnostic: Diagnostic, options: Mapping[tuple[str, int], str]) -> Diagnostic:
    """Replace the position in the new file with the command-line option that caused the problem.

    The file is not written, so its positions would not help the user.
    """
    option = options.get((diagnostic.place.file, diagnostic.place.line)) if diagnostic.place else None
    return replace(diagnostic, place=None, detail=f"{option}: {diagnostic.detail}") if option else diagnostic


def _quote_flow_scalar(text: str) -> str:
    return text if _ADDRESS_PATTERN.fullmatch(text) else scalar(text, text=True)


def _has_manifests(folder: Path) -> bool:
    """Return whether the folder has YAML files other than the example that ``kdeclare init`` writes."""
    return any(Path(file).name != _EXAMPLE_FILE for file in FileFinder().find([folder]))


def _derive_project_name(folder: Path) -> str:
    return folder.resolve().name.lstrip(".") or "project"


def _build_ignore_lines(file: Path) -> bytes:
    """Return the lines to append to .gitignore. They are bytes, because the file can have any encoding."""
    current = file.read_bytes() if file.exists() else b""
    missing_lines = [line for line in _IGNORED_PATTERNS if line not in current.splitlines()]
    separator = b"\n" if missing_lines and current and not current.endswith(b"\n") else b""
    return separator + b"".join(line + b"\n" for line in missing_lines)


def _write_new_file(file: Path, text: str) -> None:
    with file.open("x", encoding="utf-8") as stream:
        stream.write(text)


def _build_project_exists_error(file: Path) -> Diagnostic:
    return error(
        "file-exists",
        "Project already exists",
        f"'{file}' already exists and was not overwritten.",
        hint="Run kdeclare new topic NAME to add a topic to the project.",
    )


def _build_duplicate_error(existing: DesiredResource) -> Diagnostic:
    return error(
        "duplicate-resource",
        "Resource is already declared",
        f"{existing.id} is declared at {existing.source}.",
        hint="Edit the existing manifest, or choose another name.",
        place=existing.source,
        resource=str(existing.id),
    )


def _build_bad_name_error(name: str) -> Diagnostic:
    return error(
        "bad-project-name",
        "Invalid project name",
        f"'{name}' cannot be the name of a project, because the folder of the state is named after the "
        "project.",
        hint="Choose a name without slashes and without a leading dot, and pass it with --name.",
    )


def _build_write_error(file: Path, problem: OSError) -> Diagnostic:
    return error(
        "not-written",
        "Files cannot be written",
        f"{problem.filename or file}: {problem.strerror}.",
        hint="Check the permissions and the free space of the folder.",
    )
