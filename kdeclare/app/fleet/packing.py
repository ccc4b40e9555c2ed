"""A fleet's files in one archive, for tasks on other machines.

It holds secrets. It is never a file, and travels with the code of the tasks over connections that Spark
encrypts.
"""

import io
import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from kdeclare.app.fleet.unpacking import CONTENTS, FILES, state_folder
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.secret_hashes import KEY_VARIABLE, OLD_KEY_VARIABLE
from kdeclare.engine.state.local import RUNS, STATE
from kdeclare.manifests.files import Files
from kdeclare.manifests.fleet import Fleet, project_of
from kdeclare.manifests.project import MANIFESTS_FOLDER, Project, read_project
from kdeclare.manifests.reference_limits import CI_VARIABLE
from kdeclare.providers.kafka.client import read_properties

_REFERENCE = re.compile(r"\$\{(env|file)\.([^{}:]+)\}")
_STORES = re.compile(r"ssl\.(truststore|keystore)\.location")
_READABLE_BY_OWNER = 0o600


def pack(
    fleet: Fleet,
    environ: Mapping[str, str] = os.environ,
    *,
    command_config: Path | None = None,
    state: str | None = None,
) -> bytes:
    """Make the archive, a zip.

    In it: the fleet file, projects with their manifests, overlays and policies, client properties, states and
    their last runs, which a crash can have left open, what is referred to as ``${file.PATH}``, and those
    variables of ``environ`` that are referred to.
    command_config, state: of all clusters, as `reach.Reach` has them. Raises KdeclareError.
    """
    found = _Found(environ)
    found.text(fleet.file, fleet.folder)
    read = cache(read_project)
    for entry in fleet.clusters:
        try:
            project = project_of(entry, fleet, environ, read)
        except KdeclareError:  # to be said by its task, which finds as much of it as there is
            found.add(entry.project)
        else:
            found.project(project, state)
    found.properties(command_config)
    return _zip(found)


class _Found:
    """What is to be packed. Paths are kept as they lead to files; what is not there is left out.

    files: absolute paths. variables: those that are referred to and set.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.files: set[str] = set()
        # what limits references on the driver limits them in the tasks, too, and hashes are made alike
        always = (CI_VARIABLE, KEY_VARIABLE, OLD_KEY_VARIABLE)
        self.variables: dict[str, str] = {name: environ[name] for name in always if name in environ}
        self._environ = environ
        self._seen: set[object] = set()

    def add(self, file: Path | None) -> None:
        """A file as it is."""
        if file is not None and file.is_file():
            self.files.add(os.path.abspath(file))  # noqa: PTH100  # links stay as they are spelt

    def text(self, file: Path, folder: Path) -> None:
        """A file in which references may stand; ``folder`` is what those of files are relative to."""
        if not self._is_new((file, folder)) or not file.is_file():
            return
        self.add(file)
        for what, name in _REFERENCE.findall(file.read_text(encoding="utf-8", errors="replace")):
            if what == "file":
                self.add(folder / name)
            elif name in self._environ:
                self.variables[name] = self._environ[name]

    def project(self, project: Project, state: str | None) -> None:
        """All that a project in an environment needs."""
        environment = project.environment
        if project.file is not None:
            self.text(project.file, project.folder)
        default = (project.folder / MANIFESTS_FOLDER,)
        self._tree(project, default if project.manifests is None else project.manifests, project.all_overlays)
        self._tree(project, environment.overlays, ())
        if project.policies and self._is_new(("policies", project.folder)):
            for file in _of_policies(project.folder):
                self.add(file)
        self.properties(environment.client_config_file)
        self._stores(environment.client_config)
        folder = state_folder(state or project.state)
        if folder is not None:
            self._state(folder / project.name / environment.name)

    def _state(self, folder: Path) -> None:
        self.add(folder / STATE)
        runs = folder / RUNS
        last = max((run for run in runs.iterdir() if run.is_dir()), default=None) if runs.is_dir() else None
        for file in last.iterdir() if last is not None else ():
            self.add(file)

    def properties(self, file: Path | None) -> None:
        """A file of client properties, and the certificates that it names."""
        if file is not None and file.is_file() and self._is_new(file):
            self.text(file, file.parent)
            self._stores(read_properties(file))

    def _stores(self, properties: Mapping[str, str]) -> None:
        """Certificates. What has an absolute path has to be there on every machine anyway."""
        for name, value in properties.items():
            if _STORES.fullmatch(name) and not Path(value).is_absolute():
                self.add(Path(value))

    def _tree(self, project: Project, roots: tuple[Path, ...], left_out: tuple[Path, ...]) -> None:
        if self._is_new((project.folder, roots, left_out)):
            for file in Files(project.file, left_out).find(roots):
                self.text(Path(file), project.folder)

    def _is_new(self, item: object) -> bool:
        if item in self._seen:
            return False
        self._seen.add(item)
        return True


def _of_policies(folder: Path) -> Iterator[Path]:
    """What a project's policies can import or read: modules beside its file, and packages with their data.

    No environments.
    """
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if _is_package(Path(here, name))]
        modules = [name for name in files if name.endswith(".py")]
        is_package = modules and Path(here) != folder
        yield from (Path(here, name) for name in (files if is_package else modules))


def _is_package(folder: Path) -> bool:
    """Whether Python can find modules there by their names."""
    caches = folder.name == "__pycache__"
    return folder.name.isidentifier() and not caches and not (folder / "pyvenv.cfg").exists()


def _zip(found: _Found) -> bytes:
    cwd = str(Path.cwd())
    root = os.path.commonpath([cwd, *map(os.path.dirname, found.files)])
    inside = os.path.relpath(cwd, root)
    contents = {"cwd": inside, "driver": cwd, "variables": found.variables}
    archive = io.BytesIO()
    try:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
            zipped.writestr(CONTENTS, json.dumps(contents))
            zipped.mkdir(os.path.normpath(f"{FILES}/{inside}"))
            for file in sorted(found.files):
                _put(zipped, file, f"{FILES}/{os.path.relpath(file, root)}")
    except OSError as e:
        why = (e.strerror or "it cannot be written").lower()
        detail = f"'{e.filename}' cannot be packed: {why}."
        raise KdeclareError(error("not-packed", "Files of the fleet cannot be packed", detail)) from None
    return archive.getvalue()


def _put(zipped: zipfile.ZipFile, file: str, name: str) -> None:
    member = zipfile.ZipInfo(name)
    member.external_attr = _READABLE_BY_OWNER << 16
    member.compress_type = zipfile.ZIP_DEFLATED
    zipped.writestr(member, Path(file).read_bytes())
