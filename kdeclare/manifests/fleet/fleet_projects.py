"""The projects of a fleet's clusters."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, in_order
from kdeclare.engine.state.local import folder_of
from kdeclare.manifests.fleet.fleet_file import ClusterEntry, Fleet
from kdeclare.manifests.project import (
    DEFAULT,
    Environment,
    Project,
    ProjectDocument,
    project_limits,
    read_project,
)
from kdeclare.manifests.shapes import location
from kdeclare.manifests.syntax.files import unreadable

_STATE_FOLDER = "state"
"""Where an entry without a project and without a location has its state."""


def project_of(
    entry: ClusterEntry,
    fleet: Fleet,
    environ: Mapping[str, str],
    read: Callable[[Path], ProjectDocument] = read_project,
) -> Project:
    """The project of one cluster. Raises KdeclareError with all that is wrong with it.

    read: how project files are read, for whoever keeps them: many clusters can share one.
    """
    if entry.unresolved:
        raise KdeclareError(*entry.unresolved)
    if entry.project is None:
        return _inline(entry, fleet, environ)
    project = read(entry.project).within(entry.env, environ)
    environment = project.environment
    if entry.bootstrap_servers is not None:
        environment = replace(environment, bootstrap_servers=entry.bootstrap_servers)
    if entry.client_config is not None or entry.client_config_file is not None:
        environment = replace(
            environment,
            client_config=entry.client_config or {},
            client_config_file=entry.client_config_file,
        )
    return replace(project, environment=environment, state=entry.state or project.state)


def checked(fleet: Fleet, environ: Mapping[str, str]) -> None:
    """Open the project of every cluster. Raises one KdeclareError with all that is wrong.

    Manifests are not read, only looked for.
    """
    opened = cache(_attempted)
    missing = cache(_missing)
    problems: dict[Diagnostic, None] = {}
    states: dict[Path, ClusterEntry] = {}
    for entry in fleet.clusters:
        try:
            project = project_of(entry, fleet, environ, lambda file: _given(opened(file)))
        except KdeclareError as e:
            problems |= dict.fromkeys(_of_entry(found, entry) for found in e.diagnostics)
        else:
            problems |= dict.fromkeys(_not_there(project, entry, missing))
            problems |= dict.fromkeys(_shared_state(project, entry, states))
    if problems:
        raise KdeclareError(*in_order(problems))


def _inline(entry: ClusterEntry, fleet: Fleet, environ: Mapping[str, str]) -> Project:
    environment = Environment(
        DEFAULT,
        entry.bootstrap_servers,
        entry.client_config or {},
        entry.client_config_file,
        entry.variables,
        entry.overlays,
    )
    return Project(
        entry.name,
        fleet.file,
        fleet.folder,
        entry.manifests,
        entry.state or location(fleet.folder, _STATE_FOLDER),
        environment,
        fleet.all_overlays,
        {
            path: entry.places[f"{what}.{n}"]
            for what, paths in (("manifests", entry.manifests), ("overlays", entry.overlays))
            for n, path in enumerate(paths)
        },
        limits=project_limits(None, environ),
    )


def _attempted(file: Path) -> ProjectDocument | KdeclareError:
    try:
        return read_project(file)
    except KdeclareError as e:
        return e


def _given(document: ProjectDocument | KdeclareError) -> ProjectDocument:
    if isinstance(document, KdeclareError):
        raise KdeclareError(*document.diagnostics)
    return document


def _of_entry(problem: Diagnostic, entry: ClusterEntry) -> Diagnostic:
    """What is wrong with a project, as it looks from the fleet file where that is what is to be mended."""
    no_environment = problem.code == "unknown-environment"
    if no_environment and entry.env is None:
        hint = f"State defaultEnvironment here, or 'env' of '{entry.name}' in {entry.source}."
        return replace(problem, hint=hint)
    if problem.place is not None:
        return problem
    if no_environment:
        return replace(problem, place=entry.places.get("env", entry.source))
    hint = "Correct the path; it is relative to the fleet file's folder."
    return replace(problem, place=entry.places.get("project", entry.source), hint=hint)


def _not_there(
    project: Project, entry: ClusterEntry, missing: Callable[[Path], bool]
) -> Iterator[Diagnostic]:
    """One for each path of a project that leads nowhere."""
    for path in (*(project.manifests or ()), *project.environment.overlays):
        if missing(path):
            yield replace(_gone(path), place=project.stated.get(path))
    client_file = project.environment.client_config_file
    if client_file is not None and missing(client_file):
        yield replace(_gone(client_file), place=entry.places.get("clientConfigFile", entry.source))


def _shared_state(
    project: Project, entry: ClusterEntry, states: dict[Path, ClusterEntry]
) -> Iterator[Diagnostic]:
    """One where a cluster before has the state of this one, too. states: those of the clusters before."""
    try:
        folder = folder_of(project.state, project.name, project.environment.name)
    except KdeclareError:  # whoever opens it says why it cannot be
        return
    other = states.setdefault(folder.resolve(), entry)
    if other is not entry:
        yield error(
            "duplicate-state",
            "Two clusters with one state",
            f"'{entry.name}' has the state of '{other.name}' at {other.source}: both are {project.name} in "
            f"{project.environment.name}.",
            hint="Give each an environment of its own in the project file, or its own 'state' here.",
            place=entry.source,
            subject=entry.name,
        )


def _gone(path: Path) -> Diagnostic:
    return unreadable(os.path.normpath(path), FileNotFoundError())


def _missing(path: Path) -> bool:
    return not os.path.lexists(path)
