"""The files of a fleet on other machines, unpacked from the archive that `archive.pack` has built.

Each Python process of a Spark executor unpacks the archive once, in the same layout as on the driver, into
one of Spark's temporary folders. The folder is deleted when this process ends, for any reason. Spark ends
these processes when the application ends, or when they have been idle for a minute.
"""

import atexit
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.manifests.project import Project

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

        The paths through which Python finds the packages that Spark shipped are relative to the previous
        working folder. Links in the new working folder keep these paths valid.
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
                manifests=tuple(map(self.moved, environment.manifests)),
            ),
            all_overlays=tuple(map(self.moved, project.all_overlays)),
            foreign_manifests=tuple(map(self.moved, project.foreign_manifests)),
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
"""The archives that this process has entered and not left yet (see `enter_archive`), innermost last."""


@contextmanager
def enter_archive(archive: bytes) -> Iterator[None]:
    """Return a context manager that makes the unpacked archive the working folder.

    Relative paths are therefore the same as on the driver. An archive is unpacked once per process. Raises
    KdeclareError if it cannot be unpacked, for example because the disk is full.
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
    """Return the archive that this process entered last. Raises KdeclareError if there is none."""
    if _entered_archives:
        return _entered_archives[-1]
    raise KdeclareError(
        error(
            "no-archive",
            "Fleet files are missing",
            "The archive with the fleet's files has not been unpacked on the machine that runs this task.",
            hint="Report this as a bug in kdeclare.",
        )
    )


def _unpack(archive: bytes) -> UnpackedArchive:
    spark_folders = os.environ.get(_SPARK_FOLDERS, "").split(",")
    folders = [folder for folder in spark_folders if folder and Path(folder).is_dir()]
    try:
        root = Path(tempfile.mkdtemp(prefix="kdeclare-", dir=folders[0] if folders else None)).absolute()
        atexit.register(shutil.rmtree, root, ignore_errors=True)
        _start_removal(root)
        with zipfile.ZipFile(io.BytesIO(archive)) as zip_file:
            contents = json.loads(zip_file.read(CONTENTS))  # has secrets, and is not written to disk
            zip_file.extractall(root, [name for name in zip_file.namelist() if name != CONTENTS])
    except OSError as cause:
        raise _build_unpack_error(cause) from None
    return UnpackedArchive(root / FILES / contents["cwd"], contents["driver"], contents["variables"])


_REMOVAL = 'trap "" HUP INT TERM; cat > /dev/null; rm -rf -- "$1"'
"""A shell script that deletes a folder as soon as its standard input ends."""


def _start_removal(root: Path) -> None:
    """Start a process that deletes a folder when this process ends, even if this process is killed.

    Spark deletes the folder, too, but not before the executor ends, and not if the machine's Spark worker is
    killed.
    """
    with suppress(OSError):  # no shell; Spark deletes the folder
        process = subprocess.Popen(
            ["/bin/sh", "-c", _REMOVAL, "sh", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath},
            start_new_session=True,  # signals for the executor do not reach it
        )
        _removals.append(process)


_removals: list["subprocess.Popen[bytes]"] = []
"""The processes that delete unpacked archives. Their standard input ends when this process ends."""


def _build_unpack_error(cause: OSError) -> KdeclareError:
    reason = cause.strerror or str(cause)
    return KdeclareError(
        error(
            "not-unpacked",
            "Fleet files cannot be unpacked",
            f"The fleet's files cannot be unpacked on the machine that runs the task: {reason}.",
            hint="Check the temporary folders of Spark's executors (spark.local.dir).",
        )
    )
