"""An archive of a fleet's files, for Spark tasks on other machines.

The archive contains secrets. It is never written to a file, and is sent with the code of the tasks over
connections that Spark encrypts. A task unpacks the files, in the same layout as on the driver, into a
temporary folder of Spark. This folder is deleted when the process of the task ends, even after a crash.
"""

import atexit
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kdeclare.app.connections import read_settings
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.installed_providers import load_providers
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.secrets.secret_hashes import KEY_VARIABLE, OLD_KEY_VARIABLE
from kdeclare.engine.state.local_store import RUNS, STATE
from kdeclare.manifests.file_fields import find_file_fields, find_named_files
from kdeclare.manifests.fleet import Fleet, open_cluster_project
from kdeclare.manifests.project import MANIFESTS_FOLDER, Project, read_project
from kdeclare.manifests.syntax.files import FileFinder
from kdeclare.manifests.syntax.reference_limits import CI_VARIABLE

_REFERENCE = re.compile(r"\$\{(env|file)\.([^{}:]+)\}")
_READABLE_BY_OWNER = 0o600


def pack(
    fleet: Fleet,
    environ: Mapping[str, str] = os.environ,
    *,
    command_config: Path | None = None,
    state: str | None = None,
) -> bytes:
    """Return the archive as a zip file in memory.

    The archive contains:

    - the fleet file, and the projects with their manifests, overlays and policies
    - the files for connections to systems, the files referenced by ``${file.PATH}``, and the files that
      manifests name in their fields
    - the states, each with its last run, which may be unfinished after a crash
    - the variables of ``environ`` that the files reference

    command_config, state: settings for all clusters, see `ClusterLocator`. Raises KdeclareError.
    """
    archive_contents = _ArchiveContents(
        environ, {} if command_config is None else {"command-config": str(command_config)}
    )
    archive_contents.text(fleet.file, fleet.folder)
    read_cached_project = cache(read_project)
    for entry in fleet.clusters:
        try:
            project = open_cluster_project(entry, fleet, environ, read_cached_project)
        except KdeclareError:  # the cluster's task reads the same files and reports the error
            archive_contents.add(entry.project)
        else:
            archive_contents.project(project, state)
    return _build_zip(archive_contents)


class _ArchiveContents:
    """The contents of the archive. Links in paths are not resolved, and missing files are left out.

    files: absolute paths. empty_folders: the absolute paths of folders without manifests, which tasks expect
    to exist. variables: the environment variables that the files reference and that are set.
    """

    def __init__(self, environ: Mapping[str, str], options: Mapping[str, str]) -> None:
        self.files: set[str] = set()
        self.empty_folders: set[str] = set()
        # tasks apply the same limits for references and the same keys for hashes as the driver
        always_packed = (CI_VARIABLE, KEY_VARIABLE, OLD_KEY_VARIABLE)
        self.variables: dict[str, str] = {name: environ[name] for name in always_packed if name in environ}
        self._environ, self._options = environ, options
        self._file_fields = find_file_fields(KINDS)
        self._visited: set[object] = set()

    def add(self, file: Path | None) -> None:
        if file is not None and file.is_file():
            self.files.add(os.path.abspath(file))  # noqa: PTH100  # does not resolve links

    def text(self, file: Path, folder: Path) -> None:
        """Add a file, with the files and variables that it references.

        folder: the folder for relative references to files.
        """
        if not self._is_first_visit((file, folder)) or not file.is_file():
            return
        self.add(file)
        for what, name in _REFERENCE.findall(file.read_text(encoding="utf-8", errors="replace")):
            if what == "file":
                self.add(folder / name)
            elif name in self._environ:
                self.variables[name] = self._environ[name]

    def project(self, project: Project, state: str | None) -> None:
        """Add the files and variables that a project in one environment needs."""
        environment = project.environment
        if project.file is not None:
            self.text(project.file, project.folder)
        default = (project.folder / MANIFESTS_FOLDER,)
        self._add_tree(
            project, default if project.manifests is None else project.manifests, project.all_overlays
        )
        self._add_tree(project, environment.overlays, ())
        if project.policies and self._is_first_visit(("policies", project.folder)):
            for file in _list_policy_files(project.folder):
                self.add(file)
        self._add_connection_files(project)
        folder = find_state_folder(state or project.state)
        if folder is not None:
            self._add_state(folder / project.name / environment.name)

    def _add_state(self, folder: Path) -> None:
        self.add(folder / STATE)
        runs = folder / RUNS
        last_run = (
            max((run for run in runs.iterdir() if run.is_dir()), default=None) if runs.is_dir() else None
        )
        for file in last_run.iterdir() if last_run is not None else ():
            self.add(file)

    def _add_connection_files(self, project: Project) -> None:
        for provider in load_providers():
            if provider.connection is None:
                continue
            with suppress(KdeclareError):  # the task that connects reports the error
                settings = read_settings(provider.name, provider.connection, project)
                for connection_file in provider.connection.list_files(settings, self._options):
                    if connection_file.holds_references:
                        self.text(connection_file.path, connection_file.path.parent)
                    else:
                        self.add(connection_file.path)

    def _add_tree(self, project: Project, roots: tuple[Path, ...], excluded: tuple[Path, ...]) -> None:
        if self._is_first_visit((project.folder, roots, excluded)):
            files = [Path(file) for file in FileFinder(project.file, excluded).find(roots)]
            for file in files:
                self.text(file, project.folder)
                self._add_named_files(file)
            for root in roots:
                if root.is_dir() and not any(file.is_relative_to(root) for file in files):
                    self.empty_folders.add(os.path.abspath(root))  # noqa: PTH100  does not resolve links

    def _add_named_files(self, manifest: Path) -> None:
        """Add the files that the resources in a manifest name, such as the file of a schema."""
        if self._file_fields and manifest.is_file():
            for file in find_named_files(str(manifest), manifest.read_bytes(), self._file_fields):
                self.add(file)

    def _is_first_visit(self, item: object) -> bool:
        if item in self._visited:
            return False
        self._visited.add(item)
        return True


def _list_policy_files(folder: Path) -> Iterator[Path]:
    """List the files that a project's policies can import or read.

    These are the Python modules next to the project file, and all files of the packages there. Virtual
    environments are left out.
    """
    for current_folder, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if _is_package(Path(current_folder, name))]
        modules = [name for name in files if name.endswith(".py")]
        is_package = modules and Path(current_folder) != folder
        yield from (Path(current_folder, name) for name in (files if is_package else modules))


def _is_package(folder: Path) -> bool:
    is_cache = folder.name == "__pycache__"
    return folder.name.isidentifier() and not is_cache and not (folder / "pyvenv.cfg").exists()


def _build_zip(archive_contents: _ArchiveContents) -> bytes:
    cwd = str(Path.cwd())
    root = os.path.commonpath(
        [cwd, *archive_contents.empty_folders, *map(os.path.dirname, archive_contents.files)]
    )
    relative_cwd = os.path.relpath(cwd, root)
    metadata = {"cwd": relative_cwd, "driver": cwd, "variables": archive_contents.variables}
    archive = io.BytesIO()
    try:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zip_file:
            zip_file.writestr(CONTENTS, json.dumps(metadata))
            for folder in sorted({cwd, *archive_contents.empty_folders}):
                zip_file.mkdir(os.path.normpath(f"{FILES}/{os.path.relpath(folder, root)}"))
            for file in sorted(archive_contents.files):
                _add_member(zip_file, file, f"{FILES}/{os.path.relpath(file, root)}")
    except OSError as problem:
        reason = (problem.strerror or "it cannot be written").lower()
        detail = f"'{problem.filename}' cannot be packed: {reason}."
        hint = "Check the permissions of the file."
        raise KdeclareError(
            error("not-packed", "Files of the fleet cannot be packed", detail, hint=hint)
        ) from None
    return archive.getvalue()


def _add_member(zip_file: zipfile.ZipFile, file: str, name: str) -> None:
    member = zipfile.ZipInfo(name)
    member.external_attr = _READABLE_BY_OWNER << 16
    member.compress_type = zipfile.ZIP_DEFLATED
    zip_file.writestr(member, Path(file).read_bytes())


CONTENTS = "environ.json"
"""The file in the archive that contains the metadata.

``driver``: the working folder on the driver. ``cwd``: the path of this folder in the archive.
``variables``: the environment variables.
"""
FILES = "files"
"""The folder in the archive for all files except the metadata. Relative paths of files are unchanged."""

_SPARK_FOLDERS = "SPARK_LOCAL_DIRS"
"""The environment variable with Spark's temporary folders for a Python task, separated by commas."""


@dataclass(frozen=True, slots=True)
class UnpackedArchive:
    """An unpacked archive.

    cwd: the working folder on the driver. folder: the folder on this machine that corresponds to ``cwd``.
    """

    folder: Path
    cwd: str
    environ: Mapping[str, str] = field(repr=False)

    def enter(self) -> None:
        """Change the working folder of the process, so that relative paths are the same as on the driver.

        Python finds the packages that Spark shipped through paths relative to the previous working folder.
        Links in the new working folder keep these paths valid.
        """
        if Path.cwd() == self.folder:
            return
        for package in map(Path, sys.path):
            if package.is_file() and not package.is_absolute():
                with suppress(FileExistsError):  # created by another task
                    (self.folder / package).symlink_to(package.absolute())
        os.chdir(self.folder)

    def moved(self, path: Path) -> Path:
        """Convert the path of a file on the driver to the path of its copy, relative to ``folder``."""
        return Path(os.path.relpath(path, self.cwd)) if path.is_absolute() else path

    def map_project(self, project: Project) -> Project:
        """Convert the paths of a project to paths on this machine."""
        environment = project.environment
        client_file = environment.client_config_file
        manifests = project.manifests
        return replace(
            project,
            manifests=None if manifests is None else tuple(map(self.moved, manifests)),
            state=self.map_state(project.state),
            environment=replace(
                environment,
                client_config_file=None if client_file is None else self.moved(client_file),
                overlays=tuple(map(self.moved, environment.overlays)),
            ),
            all_overlays=tuple(map(self.moved, project.all_overlays)),
            stated={self.moved(path): place for path, place in project.stated.items()},
        )

    def map_state(self, location: str) -> str:
        """Convert the location of a state to a location on this machine."""
        folder = find_state_folder(location)
        return location if folder is None else str(self.moved(folder))


def find_state_folder(location: str) -> Path | None:
    """Return the local folder of a state's location; None if the state is not on a disk."""
    parts = urlsplit(location)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme else Path(location)


_unpacked_archives: dict[bytes, UnpackedArchive] = {}
"""The archives that this process has unpacked, by hash."""
_entered_archives: list[UnpackedArchive] = []
"""The archives in which this process currently works (see `enter_archive`), innermost last."""


@contextmanager
def enter_archive(archive: bytes) -> Iterator[None]:
    """Work in the unpacked archive inside the block, so that relative paths are the same as on the driver.

    An archive is unpacked once per process. Raises KdeclareError if it cannot be unpacked, for example
    because the disk is full.
    """
    key = hashlib.sha256(archive).digest()
    if key not in _unpacked_archives:
        _unpacked_archives[key] = _unpack(archive)
    unpacked_archive, previous_folder = _unpacked_archives[key], Path.cwd()
    unpacked_archive.enter()
    _entered_archives.append(unpacked_archive)
    try:
        yield
    finally:
        _entered_archives.remove(unpacked_archive)
        os.chdir(previous_folder)


def get_entered_archive() -> UnpackedArchive:
    """Return the archive in which this process currently works. Raises KdeclareError if there is none."""
    if _entered_archives:
        return _entered_archives[-1]
    raise KdeclareError(
        error(
            "no-archive",
            "Files of the fleet are missing",
            "The archive with the fleet's files has not been unpacked on the machine of this task.",
            hint="Report this as a bug in kdeclare.",
        )
    )


def _unpack(archive: bytes) -> UnpackedArchive:
    spark_folders = os.environ.get(_SPARK_FOLDERS, "").split(",")
    folders = [folder for folder in spark_folders if folder and Path(folder).is_dir()]
    try:
        root = Path(tempfile.mkdtemp(prefix="kdeclare-", dir=folders[0] if folders else None)).absolute()
        _delete_after_process(root)
        atexit.register(shutil.rmtree, root, ignore_errors=True)
        with zipfile.ZipFile(io.BytesIO(archive)) as zip_file:
            zip_file.extractall(root)
        contents = json.loads((root / CONTENTS).read_bytes())
    except OSError as cause:
        raise _build_unpack_error(cause) from None
    return UnpackedArchive(root / FILES / contents["cwd"], contents["driver"], contents["variables"])


_DELETE_AT_END = 'cat > /dev/null; rm -rf -- "$1"'
"""A shell script that waits until its standard input is closed, and then deletes a folder."""


def _delete_after_process(folder: Path) -> None:
    """Delete a folder when this process ends, even if it is killed. Raises OSError.

    Python's exit handlers do not run in Spark's task processes. Spark deletes the folder only when the
    executor or the application ends, and a Spark Connect server can run for months.
    """
    process = subprocess.Popen(
        ["/bin/sh", "-c", _DELETE_AT_END, "sh", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"PATH": os.defpath},
        start_new_session=True,  # Spark ends the process group of its task processes with a signal
    )
    _watchers.append(process)


_watchers: list["subprocess.Popen[bytes]"] = []
"""The processes that delete folders. A reference keeps their standard input open until this process ends."""


def _build_unpack_error(cause: OSError) -> KdeclareError:
    reason = cause.strerror or str(cause)
    return KdeclareError(
        error(
            "not-unpacked",
            "Files of the fleet cannot be unpacked",
            f"The files of the fleet cannot be unpacked on the machine of the task: {reason}.",
            hint="Check the temporary folders of Spark's executors (spark.local.dir).",
        )
    )
