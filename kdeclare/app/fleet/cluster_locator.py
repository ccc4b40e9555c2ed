"""What a task is told to find one cluster of a fleet: names of files, and on other machines the files."""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path

from kdeclare.app.fleet.archive import UnpackedArchive, enter_archive, get_entered_archive
from kdeclare.app.workspace import Workspace, WorkspaceOptions, build_workspace
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.installed_providers import InstalledProvider, load_providers, use_providers
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.fleet import ClusterEntry, Fleet, open_cluster_project, open_fleet
from kdeclare.manifests.project import ProjectDocument, read_project

_ATTEMPTS = 3
"""How often a cluster is asked at most what it does not answer; other clusters wait for their turn."""


@dataclass(frozen=True, slots=True)
class ClusterLocator:
    """How to get at the clusters of a fleet, from the driver or from any executor. Picklable.

    file: the fleet file. timeout_s: until when a cluster must have answered.
    command_config: a file of client properties for all clusters. state: instead of what projects say.
    archive: what `archive.pack` made; None where all files are as on the driver. It holds secrets.
    providers: what the driver uses, so that tasks use just that; None is what is installed.
    """

    file: str
    timeout_s: float = 10.0
    command_config: str | None = None
    state: str | None = None
    archive: bytes | None = field(default=None, repr=False)
    providers: tuple[InstalledProvider, ...] | None = None

    def load_providers(self) -> None:
        """Import the providers, before a task changes its folder: Spark's path to kdeclare can be relative.

        Raises KdeclareError where one is missing.
        """
        if self.providers is not None:
            use_providers(self.providers)
        load_providers()

    def with_archive(self, archive: bytes) -> "ClusterLocator":
        """For executors elsewhere, which find all files in this archive."""
        return replace(self, archive=archive)

    def files(self) -> AbstractContextManager[None]:
        """Have all files there for a block, in which the other methods are called."""
        return nullcontext() if self.archive is None else enter_archive(self.archive)

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables that references mean. Raises KdeclareError."""
        archive = self._find_archive()
        return os.environ if archive is None else archive.environ

    def fleet(self) -> Fleet:
        """The fleet, read once a process as long as its file stays as it is. Raises KdeclareError."""
        return self._open_fleet()[0]

    def entry(self, name: str) -> ClusterEntry:
        """One cluster. Raises KdeclareError, also where there is none of that name."""
        _, by_name = self._open_fleet()
        if name in by_name:
            return by_name[name]
        detail = f"{self.file} has no cluster '{name}'."
        raise KdeclareError(
            error("unknown-cluster", "No such cluster", detail, hint=format_suggestion(name, by_name))
        )

    def workspace(self, name: str) -> Workspace:
        """Project, state and cluster of one entry; nothing is connected to. Raises KdeclareError."""
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
        """The archive, where files come from one."""
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
    """When a file was written last, to know it again; whoever opens it says why it cannot be."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
