# ruff: noqa: PTH100, PTH112, PTH113, PTH116, PTH118
# This module uses os.path: with thousands of files, pathlib would take a tenth of the total time.
"""Find and read the files that contain a project's manifests."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error, warning
from kdeclare.core.resources.ids import ResourceId
from kdeclare.manifests.syntax.manifest_files import (
    JSON_SUFFIX,
    YAML_SUFFIXES,
    find_ignored_manifest,
    is_json_manifest,
)
from kdeclare.manifests.syntax.path_patterns import expand_path_pattern, is_path_pattern

_CHUNK = 1 << 16
STREAM = "<stdin>"
"""The name of standard input in source positions."""


@dataclass(slots=True)
class FileFinder:
    """Finds the manifest files in folders, in a stable order and without duplicates.

    Manifest files are YAML files, and JSON files that contain an ``apiVersion`` of kdeclare or of a provider.

    project_file: the project file, which is skipped because it is not a manifest.
    overlays: files and folders to skip, because overlays are not manifests.
    foreign: files, folders and patterns to skip, because they are manifests of other environments.
    stated: the position in the project file where each path is listed, for errors about unreadable paths.
    """

    project_file: Path | None = None
    overlays: tuple[Path, ...] = ()
    stated: Mapping[Path, SourcePosition] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    foreign: tuple[Path, ...] = ()
    _visited: set[str] = field(default_factory=set)

    def find(self, roots: Iterable[Path]) -> Iterator[str]:
        """Yield the manifest files in ``roots``: files, folders and path patterns.

        Add diagnostics for unreadable paths, for patterns without a match, and for files that look like
        manifests but are not loaded.
        """
        project = _make_absolute(self.project_file) if self.project_file is not None else None
        overlays = {_make_absolute(path) for path in self.overlays}
        foreign = set(_expand_paths(self.foreign))
        left_out = overlays | foreign
        for root in roots:
            path = os.path.normpath(root)
            absolute = os.path.abspath(path)
            if absolute == project:
                continue
            if _is_below(absolute, foreign):
                self.diagnostics.append(_build_foreign_warning(path))
            elif _is_below(absolute, overlays):
                self.diagnostics.append(_build_overlay_warning(path))
            elif is_path_pattern(path):
                yield from self._find_matches(path, left_out | {project or ""}, self.stated.get(root))
            elif not os.path.lexists(path):
                gone = build_unreadable_error(path, FileNotFoundError())
                self.diagnostics.append(replace(gone, place=self.stated.get(root)))
            elif os.path.isdir(path):
                yield from self._find_in_folder("" if path == "." else path, left_out | {project or ""}, ())
            elif self._is_new(absolute) and self._is_regular_file(path, os.path.isfile(path)):
                yield path

    def _find_matches(
        self, pattern: str, excluded: set[str], position: SourcePosition | None
    ) -> Iterator[str]:
        """Yield the manifest files that match a pattern, or that are in a folder that matches it."""
        paths = [
            path for path in expand_path_pattern(pattern) if not _is_below(os.path.abspath(path), excluded)
        ]
        if not paths:
            self.diagnostics.append(_build_no_match_error(pattern, position))
        for path in paths:
            if os.path.isdir(path):
                yield from self._find_in_folder(path, excluded, ())
            else:
                yield from self._choose_file(path, os.path.isfile(path))

    def _find_in_folder(
        self, folder: str, excluded: set[str], parent_folders: tuple[str, ...]
    ) -> Iterator[str]:
        real_path = os.path.realpath(folder)
        if real_path in parent_folders:
            return  # a link to a parent folder, which is already being searched
        parent_folders = (*parent_folders, real_path)
        try:
            with os.scandir(folder or ".") as directory:
                entries = sorted(directory, key=lambda entry: entry.name)
        except OSError as e:
            self.diagnostics.append(build_unreadable_error(folder, e))
            return
        absolute_folder = os.path.abspath(folder)
        for entry in entries:
            name = entry.name
            path = os.path.join(folder, name)
            if name.startswith(".") or (absolute := os.path.join(absolute_folder, name)) in excluded:
                continue
            try:
                is_folder, is_file = entry.is_dir(), entry.is_file()
            except OSError as e:  # a symlink loop
                self.diagnostics.append(build_unreadable_error(path, e))
                continue
            if is_folder:
                yield from self._find_in_folder(path, excluded, parent_folders)
            elif name.endswith(YAML_SUFFIXES):
                if self._is_new(absolute) and self._is_regular_file(path, is_file):
                    yield path
            else:
                yield from self._choose_file(path, is_file)

    def _choose_file(self, path: str, is_file: bool) -> Iterator[str]:
        """Yield a file that was found in a folder or by a pattern, if it is a manifest."""
        if path.endswith(YAML_SUFFIXES):
            if self._is_new(os.path.abspath(path)) and self._is_regular_file(path, is_file):
                yield path
        elif is_file and path.endswith(JSON_SUFFIX):
            if is_json_manifest(path) and self._is_new(os.path.abspath(path)):
                yield path
        elif is_file and (ignored := find_ignored_manifest(path)) is not None:
            self.diagnostics.append(ignored)

    def _is_regular_file(self, path: str, is_file: bool) -> bool:
        if not is_file:  # reading a pipe would block forever
            os_error = OSError(0, "It is neither a file nor a folder")
            try:
                os.stat(path)
            except OSError as e:
                os_error = e
            self.diagnostics.append(build_unreadable_error(path, os_error))
        return is_file

    def _is_new(self, absolute: str) -> bool:
        if absolute in self._visited:
            return False
        self._visited.add(absolute)
        return True


def build_folder_name(kind: str) -> str:
    """Return the name of the folder for the manifests of a kind, such as ``topics``."""
    return kind.lower().removesuffix("s") + "s"


_MAX_NAME_LENGTH, _KEPT_LENGTH = 200, 150
"""The maximum length of a resource name in a file name, and the length to which longer names are cut.

A hash of the whole name is added to a name that is cut. File systems allow at most 255 bytes per name.
"""


def build_file_name(resource: ResourceId) -> str:
    """Return the name of the file for the manifest of a resource. Different resource names never collide.

    Files whose names begin with a dot are not loaded. If the name of the resource begins with a dot, the file
    name therefore begins with the kind and a plus sign, which no topic name contains. Special characters are
    escaped (``%2F``), because a cluster can return any name, and a name with slashes could place the file
    outside the folder.
    """
    kind, name = resource.kind.lower(), quote(resource.name, safe="")
    if len(name) > _MAX_NAME_LENGTH:
        name = f"{name[:_KEPT_LENGTH]}+{hashlib.sha256(resource.name.encode()).hexdigest()[:16]}"
    return f"{kind}+{name}.yaml" if name.startswith(".") else f"{name}.yaml"


def read_file(file: str, diagnostics: list[Diagnostic]) -> bytes | None:
    """Return the bytes of a file. If it cannot be read, add a diagnostic and return None."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)  # twice as fast as a file object
        try:
            return b"".join(iter(lambda: os.read(descriptor, _CHUNK), b""))
        finally:
            os.close(descriptor)
    except OSError as e:
        diagnostics.append(build_unreadable_error(file, e))
        return None


class FileContents:
    """Reads files, or returns replacements for their contents. A file that was read ahead is not read again.

    replacements: the contents to use instead of those on disk, by file; None for a deleted file.
    """

    def __init__(self, replacements: Mapping[str, bytes | None]) -> None:
        self._replacements = replacements
        self._ahead: dict[str, bytes] = {}

    def new(self) -> Iterator[str]:
        """Return the files that have a replacement but do not exist on disk yet."""
        return (file for file in self._replacements if not os.path.lexists(file))

    def read_ahead(self, file: str) -> bytes | None:
        """Return the bytes of a file, and keep them for the next call of `of`.

        Return None if the file cannot be read. The error is reported by `of`.
        """
        data = self.of(file, [])
        if data is not None:
            self._ahead[file] = data
        return data

    def of(self, file: str, diagnostics: list[Diagnostic]) -> bytes | None:
        """Return the bytes of a file. If it cannot be read, add a diagnostic and return None."""
        if file in self._replacements:
            return self._replacements[file]
        ahead = self._ahead.pop(file, None)
        return ahead if ahead is not None else read_file(file, diagnostics)


def build_unreadable_error(file: str, e: OSError) -> Diagnostic:
    """Return the error for a file or folder that cannot be read."""
    if isinstance(e, FileNotFoundError):
        hint = "Correct the path, or create the file or folder."
        return error("no-such-path", "No such file or folder", f"'{file}' does not exist.", hint=hint)
    reason = (e.strerror or "it cannot be opened").lower()
    hint = "Check the type and the permissions of the file."
    return error("unreadable-file", "File cannot be read", f"'{file}' cannot be read: {reason}.", hint=hint)


def _build_no_match_error(pattern: str, position: SourcePosition | None) -> Diagnostic:
    return error(
        "no-such-path",
        "No such file or folder",
        f"No file or folder matches the pattern '{pattern}'.",
        hint="Correct the pattern, or create a file that matches it. '**' stands for any number of folders.",
        place=position,
    )


def _build_foreign_warning(path: str) -> Diagnostic:
    return warning(
        "other-environment",
        "Path belongs to another environment",
        f"'{path}' is in the 'manifests' of another environment, so it is not loaded in this one.",
        hint="Choose that environment with --env.",
    )


def _expand_paths(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the absolute paths of files and folders, with patterns replaced by what they match."""
    for path in paths:
        pattern = os.path.normpath(path)
        matches = expand_path_pattern(pattern) if is_path_pattern(pattern) else [pattern]
        yield from map(os.path.abspath, matches)


def _build_overlay_warning(path: str) -> Diagnostic:
    return warning(
        "overlay-path",
        "Path is an overlay",
        f"'{path}' is an overlay of the project. Overlays are merged into manifests, but are not loaded as "
        "manifests.",
        hint="Pass the manifest that the overlay changes, not the overlay itself.",
    )


def _make_absolute(path: Path) -> str:
    return os.path.abspath(path)


def _is_below(path: str, roots: set[str]) -> bool:
    return any(path == root or path.startswith(root + os.sep) for root in roots)
