"""Open the clusters of a fleet in Spark tasks, on the driver's machine or on other machines."""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path

from kdeclare.app.fleet.unpacked_archive import UnpackedArchive, enter_archive, get_entered_archive
from kdeclare.app.workspace import Workspace, WorkspaceOptions, build_workspace
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.installed_providers import InstalledProvider, load_providers, use_providers
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.fleet import ClusterEntry, Fleet, open_cluster_project, open_fleet
from kdeclare.manifests.project import ProjectDocument, read_project

_ATTEMPTS = 3
"""The maximum number of attempts for a request without a response.

It is low because other clusters wait for their turn.
"""


@dataclass(frozen=True, slots=True)
class ClusterLocator:
    """Opens the clusters of a fleet on the driver or in any Spark task. Picklable.

    file: the fleet file. timeout_s: the timeout for a response from a cluster, in seconds.
    command_config: a file of client properties for all clusters. state: overrides the state of the projects.
    archive: the result of `archive.pack`, which contains secrets; None if tasks can read the driver's files.
    providers: the driver's providers, for use in tasks; None uses the installed providers.
    """

    file: str
    timeout_s: float = 10.0
    command_config: str | None = None
    state: str | None = None
    archive: bytes | None = field(default=None, repr=False)
    providers: tuple[InstalledProvider, ...] | None = None

    def load_providers(self) -> None:
        """Import the providers. Raises KdeclareError if a provider is missing.

        Call this function before the task changes its working folder, because Spark's import path can be
        relative.
        """
        if self.providers is not None:
            use_providers(self.providers)
        load_providers()

    def with_archive(self, archive: bytes) -> "ClusterLocator":
        """Return a locator for tasks on other machines, which reads all files from ``archive``."""
        return replace(self, archive=archive)

    def files(self) -> AbstractContextManager[None]:
        """Make the files of the fleet available inside the ``with`` block.

        Use all other methods only inside this block, except `load_providers`.
        """
        return nullcontext() if self.archive is None else enter_archive(self.archive)

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment variables that references can name. Raises KdeclareError."""
        archive = self._find_archive()
        return os.environ if archive is None else archive.environ

    def fleet(self) -> Fleet:
        """Return the fleet. A process reads the fleet file again only if it changes. Raises KdeclareError."""
        return self._open_fleet()[0]

    def entry(self, name: str) -> ClusterEntry:
        """Return a cluster's entry in the fleet file. Raises KdeclareError, for example if there is none."""
        _, by_name = self._open_fleet()
        if name in by_name:
            return by_name[name]
        detail = f"{self.file} has no cluster '{name}'."
        raise KdeclareError(
            error("unknown-cluster", "No such cluster", detail, hint=format_suggestion(name, by_name))
        )

    def workspace(self, name: str) -> Workspace:
        """Return the workspace of a cluster, without connecting to the cluster. Raises KdeclareError."""
        archive, environ, entry = self._find_archive(), self.environ, self.entry(name)
        state, config = self.state, Path(self.command_config) if self.command_config else None
        if archive is None:
            project = open_cluster_project(entry, self.fleet(), environ, _read_project_document)
        else:
            if entry.project is not None:
                entry = replace(entry, project=archive.moved(entry.project))
            project = archive.map_project(
                open_cluster_project(entry, self.fleet(), environ, _read_project_document)
            )
            state = archive.map_state(state) if state is not None else None
            config = archive.moved(config) if config is not None else None
        options = WorkspaceOptions(command_config=config, state=state, timeout_s=self.timeout_s)
        return build_workspace(project, options, environ, attempts=_ATTEMPTS)

    def _find_archive(self) -> UnpackedArchive | None:
        """Return the archive that this process entered last; None if the files are not in an archive."""
        return None if self.archive is None else get_entered_archive()

    def _open_fleet(self) -> "_OpenedFleet":
        archive, file = self._find_archive(), Path(self.file)
        file = file if archive is None else archive.moved(file)
        return _open_fleet_file(file.absolute(), file, _read_modified_ns(file), is_packed=archive is not None)


_OpenedFleet = tuple[Fleet, Mapping[str, ClusterEntry]]


@lru_cache(maxsize=4)
def _open_fleet_file(absolute: Path, file: Path, modified_ns: int, *, is_packed: bool) -> _OpenedFleet:
    fleet = open_fleet(file, get_entered_archive().environ if is_packed else os.environ)
    return fleet, {entry.name: entry for entry in fleet.clusters}


def _read_project_document(file: Path) -> ProjectDocument:
    return _read_project_file(file.absolute(), file, _read_modified_ns(file))


@lru_cache(maxsize=16)
def _read_project_file(absolute: Path, file: Path, modified_ns: int) -> ProjectDocument:
    return read_project(file)


def _read_modified_ns(file: Path) -> int:
    """Return the modification time of a file as a cache key, or 0 if the file cannot be read."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
