"""Format the manifest files of a project."""

import difflib
from collections.abc import Sequence
from pathlib import Path

from kdeclare.app.authoring.write_back import PreparedEdits
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error, sort_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.manifests.editing.documents import FileEdit
from kdeclare.manifests.editing.file_text import decode_text
from kdeclare.manifests.formatting.format_file import format_file
from kdeclare.manifests.project import MANIFESTS_FOLDER, PROJECT_FILE, read_project
from kdeclare.manifests.syntax.files import STREAM, FileFinder, read_file
from kdeclare.manifests.syntax.manifest_files import JSON_SUFFIX


@dataclass(frozen=True, slots=True)
class FormattedFiles:
    """The edits that format files, and the files and documents that cannot be formatted.

    edits: one edit for each file whose content changes.
    count: the number of files that were read. diagnostics: errors for files that cannot be read, and notices
    for documents that are left unchanged.
    """

    edits: tuple[FileEdit, ...]
    count: int
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether some files could not be read."""
        return any(d.is_error for d in self.diagnostics)


def format_manifests(project_file: Path | None, paths: Sequence[Path]) -> FormattedFiles:
    """Format files without writing them.

    project_file: the project file; None for kdeclare.yaml.
    paths: files and folders; empty for the project file, and the manifests and overlays of all environments.
    JSON files are left out. Raises KdeclareError if the project file is missing or not valid.
    """
    finder = FileFinder()
    files = finder.find(paths or _list_project_paths(project_file or Path(PROJECT_FILE)))
    yaml_files = [file for file in files if not file.endswith(JSON_SUFFIX)]
    problems = list(finder.diagnostics)
    edits = []
    for file in yaml_files:
        data = read_file(file, problems)
        if data is not None:
            edit, notices = _format(file, data)
            problems += notices
            edits += [edit] if edit is not None else []
    return FormattedFiles(tuple(edits), len(yaml_files), sort_diagnostics(problems))


def _list_project_paths(file: Path) -> list[Path]:
    if file == Path(PROJECT_FILE) and not file.is_file():
        raise KdeclareError(_build_no_project_error())
    project, folder = read_project(file), file.parent
    default_folder = [MANIFESTS_FOLDER] if (folder / MANIFESTS_FOLDER).is_dir() else []
    manifests = project.spec.manifests
    names = list(default_folder if manifests is None else manifests)
    for environment in project.spec.environments.values():
        names += [*environment.manifests, *environment.overlays]
    return [file, *(folder / name for name in dict.fromkeys(names))]


def format_stream(data: bytes) -> tuple[bytes, tuple[Diagnostic, ...]]:
    """Return the formatted content of standard input, and notices. Raises KdeclareError if it is not YAML."""
    formatted = format_file(STREAM, data)
    return formatted.data, formatted.unsupported


def write_formatted(formatted: FormattedFiles) -> None:
    """Write the formatted files.

    Raises KdeclareError if a file has changed since it was read, or if it cannot be written.
    """
    PreparedEdits(formatted.edits).write()


def render_diff(edit: FileEdit) -> str:
    """Return the changes that formatting makes to a file, as a unified diff."""
    before, after = (
        decode_text(data or b"")[0].splitlines(keepends=True) for data in (edit.before, edit.after)
    )
    lines = difflib.unified_diff(before, after, f"a/{edit.file}", f"b/{edit.file}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def build_unformatted_error(edit: FileEdit) -> Diagnostic:
    """Return the error for a file that is not formatted, at its first line that differs."""
    before, after = (decode_text(data or b"")[0].splitlines() for data in (edit.before, edit.after))
    pairs = enumerate(zip(before, after, strict=False), start=1)
    line = next((number for number, (old, new) in pairs if old != new), min(len(before), len(after)) + 1)
    return error(
        "not-formatted",
        "File is not formatted",
        f"{edit.file} does not have the layout that kdeclare fmt writes.",
        hint=f"Run kdeclare fmt {edit.file}.",
        place=SourcePosition(edit.file, line, 1),
    )


def _format(file: str, data: bytes) -> tuple[FileEdit | None, Sequence[Diagnostic]]:
    try:
        formatted = format_file(file, data)
    except KdeclareError as problem:
        return None, problem.diagnostics
    edit = FileEdit(file, data, formatted.data) if formatted.data != data else None
    return edit, formatted.unsupported


def _build_no_project_error() -> Diagnostic:
    return error(
        "no-project",
        "No project",
        "The working directory has no project file, and no PATH was given.",
        hint="Pass files or folders with manifests, or pass a project file with --project.",
    )
