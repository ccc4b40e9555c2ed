"""An archive of a fleet's files, for Spark tasks on other machines.

The archive contains secrets. It is never written to a file, and is sent with the code of the tasks over
connections that Spark encrypts. `unpacked_archive` describes what happens to the files on other machines.
"""

import io
import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path

from kdeclare.app.connections import read_settings
from kdeclare.app.fleet.unpacked_archive import CONTENTS, FILES, find_state_folder
from kdeclare.core.clock import parse_time
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.provider.installed_providers import load_providers
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.secrets.secret_hashes import KEY_VARIABLE, OLD_KEY_VARIABLE
from kdeclare.engine.executor.entries import read_run
from kdeclare.engine.executor.propagation import VISIBLE_WITHIN_S
from kdeclare.engine.state.local_store import PLAN, RUNS, STATE, LocalStore
from kdeclare.manifests.file_fields import find_file_fields, find_item_files, find_named_files, has_for_each
from kdeclare.manifests.fleet import Fleet, open_cluster_project
from kdeclare.manifests.fleet.fleet_file import list_task_texts
from kdeclare.manifests.for_each.generator import Generator
from kdeclare.manifests.project import MANIFESTS_FOLDER, Project, read_project
from kdeclare.manifests.provenance import build_reader
from kdeclare.manifests.syntax.files import FileFinder
from kdeclare.manifests.syntax.reference_limits import CI_VARIABLE

_REFERENCE = re.compile(r"\$\{(env|file)\.([^{}:]+)\}")
_READABLE_BY_OWNER = 0o600


class TaskNeeds(StrEnum):
    """What the tasks of a command need to know about each cluster.

    LIVE: the connection settings. DECLARED: also the manifests, policies and states. PLAN: also the last run.
    """

    LIVE = "live"
    DECLARED = "declared"
    PLAN = "plan"


def pack(
    fleet: Fleet,
    environ: Mapping[str, str] = os.environ,
    *,
    needs: TaskNeeds = TaskNeeds.PLAN,
    command_config: Path | None = None,
    state: str | None = None,
) -> bytes:
    """Return the archive as a zip file in memory.

    The archive contains only the files that the tasks need:

    - the fleet file, the project files, and the files for connections to systems
    - unless the needs are LIVE: the manifests, overlays and policies, the files that manifests name in their
      fields, and the states
    - if the needs are PLAN: the journal of the last run of each cluster (a crash may have left this run
      unfinished), and the plan of this run if new plans can still need it
    - the files (``${file.PATH}``) and the variables of ``environ`` to which any file in this list refers

    command_config, state: settings for all clusters, see `ClusterLocator`. Raises KdeclareError.
    """
    archive_contents = _ArchiveContents(
        environ, {} if command_config is None else {"command-config": str(command_config)}, needs
    )
    archive_contents.fleet(fleet)
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
    to exist. variables: the environment variables that the files reference or that all tasks need, if set.
    """

    def __init__(self, environ: Mapping[str, str], options: Mapping[str, str], needs: TaskNeeds) -> None:
        self.files: set[str] = set()
        self.empty_folders: set[str] = set()
        # tasks apply the same limits for references and the same keys for hashes as the driver
        always_packed = (CI_VARIABLE, KEY_VARIABLE, OLD_KEY_VARIABLE)
        self.variables: dict[str, str] = {name: environ[name] for name in always_packed if name in environ}
        self._environ, self._options, self._needs = environ, options, needs
        self._file_fields = find_file_fields(KINDS)
        self._visited: set[object] = set()
        self._templates: dict[object, list[Path]] = {}

    def add(self, file: Path | None) -> None:
        if file is not None and file.is_file():
            self.files.add(os.path.abspath(file))  # noqa: PTH100  # does not resolve links

    def fleet(self, fleet: Fleet) -> None:
        """Add the fleet file, with the files and variables that tasks need."""
        # the fleet file is also the project file of inline clusters
        self._is_first_visit((fleet.file, fleet.folder))
        self.add(fleet.file)
        self._add_references(list_task_texts(fleet.file), fleet.folder)

    def text(self, file: Path, folder: Path) -> None:
        """Add a file, with the files and variables that it references.

        folder: the folder for relative references to files.
        """
        if not self._is_first_visit((file, folder)) or not file.is_file():
            return
        self.add(file)
        self._add_references([file.read_text(encoding="utf-8", errors="replace")], folder)

    def _add_references(self, texts: Iterable[str], folder: Path) -> None:
        """Add the files and variables that texts reference. folder: the folder for relative references."""
        for what, name in (reference for text in texts for reference in _REFERENCE.findall(text)):
            if what == "file":
                self.add(folder / name)
            elif name in self._environ:
                self.variables[name] = self._environ[name]

    def project(self, project: Project, state: str | None) -> None:
        """Add the files and variables that a project in one environment needs."""
        environment = project.environment
        if project.file is not None:
            self.text(project.file, project.folder)
        self._add_connection_files(project)
        if self._needs is TaskNeeds.LIVE:
            return
        default = (project.folder / MANIFESTS_FOLDER,)
        common = default if project.manifests is None else project.manifests
        self._add_tree(project, (*common, *environment.manifests), project.all_overlays)
        self._add_tree(project, environment.overlays, ())
        if project.policies and self._is_first_visit(("policies", project.folder)):
            for file in _list_policy_files(project.folder):
                self.add(file)
        folder = find_state_folder(state or project.state)
        if folder is not None:
            self._add_state(folder / project.name / environment.name)

    def _add_state(self, folder: Path) -> None:
        self.add(folder / STATE)
        store = LocalStore(folder)
        for run_id in store.runs()[-1:] if self._needs is TaskNeeds.PLAN else ():
            is_settled = _is_settled(store, run_id)
            for file in (folder / RUNS / run_id).iterdir():
                if file.name != PLAN or not is_settled:
                    self.add(file)

    def _add_connection_files(self, project: Project) -> None:
        for provider in load_providers():
            if provider.connection is None:
                continue
            with suppress(KdeclareError):  # the task that connects reports the error
                settings = read_settings(provider.name, provider.connection, project)
                for connection_file in provider.connection.list_files(settings, self._options):
                    path = connection_file.path
                    if connection_file.is_in_project:
                        path = project.folder / path
                    if connection_file.holds_references:
                        self.text(path, path.parent)
                    else:
                        self.add(path)

    def _add_tree(self, project: Project, roots: tuple[Path, ...], excluded: tuple[Path, ...]) -> None:
        tree = project.folder, roots, excluded
        if self._is_first_visit(tree):
            finder = FileFinder(project.file, excluded, foreign=project.foreign_manifests)
            files = [Path(file) for file in finder.find(roots)]
            self._templates[tree] = [
                file for file in files if file.is_file() and has_for_each(file.read_bytes())
            ]
            for file in files:
                self.text(file, project.folder)
                if file not in self._templates[tree]:
                    self._add_named_files(file, project)
            for root in roots:
                if root.is_dir() and not any(file.is_relative_to(root) for file in files):
                    self.empty_folders.add(os.path.abspath(root))  # noqa: PTH100  does not resolve links

        for file in self._templates[tree]:  # variables of each environment can generate other manifests
            self._add_named_files(file, project)

    def _add_named_files(self, manifest: Path, project: Project) -> None:
        """Add the files to which the fields of manifests refer, such as schema files."""
        if manifest.is_file():
            generator = Generator(build_reader(project, self._environ), project.folder)
            data = manifest.read_bytes()
            for file in find_item_files(str(manifest), data):
                self.text(file, project.folder)
            for file in find_named_files(str(manifest), data, self._file_fields, generator):
                self.add(file)

    def _is_first_visit(self, item: object) -> bool:
        if item in self._visited:
            return False
        self._visited.add(item)
        return True


def _is_settled(store: LocalStore, run_id: str) -> bool:
    """Whether new plans can be made without the saved plan of an earlier run.

    This is the case if the run is finished, the state includes its results, and all brokers show them.
    """
    try:
        state, record = store.read(), read_run(store, run_id)
    except KdeclareError:  # the task that plans reports the error
        return False
    if state is None or record.serial is None or not record.is_over:
        return False
    is_included = record.lineage == state.lineage and record.serial <= state.serial
    visible_since = datetime.now(UTC) - timedelta(seconds=VISIBLE_WITHIN_S)
    return is_included and all(parse_time(at) < visible_since for at in record.ended_at.values())


def _list_policy_files(folder: Path) -> Iterator[Path]:
    """List the files that a project's policies can import or read.

    These are the Python modules next to the project file, and all files of the Python packages in the
    same folder. Virtual environments are left out.
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
        raise KdeclareError(error("not-packed", "Fleet files cannot be packed", detail, hint=hint)) from None
    return archive.getvalue()


def _add_member(zip_file: zipfile.ZipFile, file: str, name: str) -> None:
    member = zipfile.ZipInfo(name)
    member.external_attr = _READABLE_BY_OWNER << 16
    member.compress_type = zipfile.ZIP_DEFLATED
    zip_file.writestr(member, Path(file).read_bytes())
