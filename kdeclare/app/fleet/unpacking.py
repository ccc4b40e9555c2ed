"""The archive of `packing` where a task runs: files as they lie on the driver, and its variables.

The files hold secrets. They are in a temporary folder of Spark's, which is deleted when the executor or the
application ends, however it ends.
"""

import atexit
import hashlib
import io
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.manifests.project import Project

CONTENTS = "environ.json"
"""``driver``: the working folder there; ``cwd``: where that is in the archive; ``variables``."""
FILES = "files"
"""The folder of all files, which keep their places relative to each other."""

_SPARK_FOLDERS = "SPARK_LOCAL_DIRS"
"""The variable by which Spark tells the Python of a task its temporary folders, separated by commas."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """An archive that was unpacked.

    folder: what is here in place of the driver's working folder ``cwd``.
    """

    folder: Path
    cwd: str
    environ: Mapping[str, str] = field(repr=False)

    def enter(self) -> None:
        """Make relative paths mean what they mean on the driver, for all of this process.

        But for packages that Spark has shipped: they are imported by paths relative to where a task began,
        which so have to lead there from here, too.
        """
        if Path.cwd() == self.folder:
            return
        for package in map(Path, sys.path):
            if package.is_file() and not package.is_absolute():
                with suppress(FileExistsError):  # another task was here
                    (self.folder / package).symlink_to(package.absolute())
        os.chdir(self.folder)

    def moved(self, path: Path) -> Path:
        """A path as it is spelt on the driver, as it leads to the same file from ``folder``."""
        return Path(os.path.relpath(path, self.cwd)) if path.is_absolute() else path

    def moved_project(self, project: Project) -> Project:
        """A project with paths that lead somewhere here."""
        environment = project.environment
        client_file = environment.client_config_file
        manifests = project.manifests
        return replace(
            project,
            manifests=None if manifests is None else tuple(map(self.moved, manifests)),
            state=self.moved_state(project.state),
            environment=replace(
                environment,
                client_config_file=None if client_file is None else self.moved(client_file),
                overlays=tuple(map(self.moved, environment.overlays)),
            ),
            all_overlays=tuple(map(self.moved, project.all_overlays)),
            stated={self.moved(path): place for path, place in project.stated.items()},
        )

    def moved_state(self, location: str) -> str:
        """A state's location, likewise."""
        folder = state_folder(location)
        return location if folder is None else str(self.moved(folder))


def state_folder(location: str) -> Path | None:
    """The folder that a state's location means; None where it is on no machine's disk."""
    parts = urlsplit(location)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme else Path(location)


_unpacked: dict[bytes, Unpacked] = {}
"""The archives that this process has unpacked, by their hashes."""
_entered: list[Unpacked] = []
"""Those that it is working in, the innermost last."""


@contextmanager
def unpacked(archive: bytes) -> Iterator[None]:
    """Make relative paths mean what they mean on the driver, in this process, for the block.

    An archive is unpacked once a process. Raises KdeclareError where there is no room for it.
    """
    key = hashlib.sha256(archive).digest()
    if key not in _unpacked:
        _unpacked[key] = _unpack(archive)
    here, before = _unpacked[key], Path.cwd()
    here.enter()
    _entered.append(here)
    try:
        yield
    finally:
        _entered.remove(here)
        os.chdir(before)


def entered() -> Unpacked:
    """The archive that this process works in. Raises KdeclareError where there is none."""
    if _entered:
        return _entered[-1]
    raise KdeclareError(
        error(
            "no-archive",
            "Files of the fleet are not there",
            "The archive with the fleet's files has not been unpacked where this task runs.",
        )
    )


def _unpack(archive: bytes) -> Unpacked:
    of_spark = os.environ.get(_SPARK_FOLDERS, "").split(",")
    folders = [folder for folder in of_spark if folder and Path(folder).is_dir()]
    try:
        root = Path(tempfile.mkdtemp(prefix="kdeclare-", dir=folders[0] if folders else None)).absolute()
        atexit.register(shutil.rmtree, root, ignore_errors=True)
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            zipped.extractall(root)
        contents = json.loads((root / CONTENTS).read_bytes())
    except OSError as cause:
        raise _not_unpacked(cause) from None
    return Unpacked(root / FILES / contents["cwd"], contents["driver"], contents["variables"])


def _not_unpacked(cause: OSError) -> KdeclareError:
    reason = cause.strerror or str(cause)
    return KdeclareError(
        error(
            "not-unpacked",
            "Files of the fleet cannot be unpacked",
            f"The files of the fleet cannot be unpacked where this task runs: {reason}.",
            hint="Check the temporary folders of Spark's executors (spark.local.dir).",
        )
    )
