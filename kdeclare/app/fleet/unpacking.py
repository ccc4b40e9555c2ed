"""The archive of `packing` where a task runs: files as they lie on the driver, and its variables."""

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kdeclare.manifests.project import Project
from kdeclare.model.diagnostics import KdeclareError, error

CONTENTS = "environ.json"
"""``driver``: the working folder there; ``cwd``: where that is in the archive; ``variables``."""
FILES = "files"
"""The folder of all files, which keep their places relative to each other."""


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


@lru_cache(maxsize=4)
def unpacked(base: str) -> Unpacked:
    """The archive that was unpacked at ``base``. Raises KdeclareError where there is none.

    base: a folder, or its name: then it lies where the task began, or where Spark puts a task's files, which
    it has Python import from, too.
    """
    for place in ("", *sys.path):
        root = Path(place, base).absolute()
        try:
            contents = json.loads((root / CONTENTS).read_bytes())
        except OSError:
            continue
        return Unpacked(root / FILES / contents["cwd"], contents["driver"], contents["variables"])
    raise KdeclareError(
        error(
            "no-archive",
            "Files of the fleet are not there",
            f"The archive '{base}' with the fleet's files has not been unpacked where this task runs.",
        )
    )
