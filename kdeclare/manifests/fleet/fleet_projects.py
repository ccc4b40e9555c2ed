"""Open and check the projects of the clusters in a fleet."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, sort_diagnostics
from kdeclare.engine.state.location import identify_state
from kdeclare.manifests.document_models import resolve_location
from kdeclare.manifests.environments.environment_choice import DEFAULT
from kdeclare.manifests.fleet.fleet_definition import ClusterEntry, Fleet
from kdeclare.manifests.project import (
    Environment,
    Project,
    ProjectDocument,
    build_project_limits,
    read_project,
)
from kdeclare.manifests.syntax.files import build_unreadable_error
from kdeclare.manifests.syntax.path_patterns import expand_path_pattern, is_path_pattern

_STATE_FOLDER = "state"
"""The state folder of a cluster that has neither a project nor a ``state`` field."""


def open_cluster_project(
    entry: ClusterEntry,
    fleet: Fleet,
    environ: Mapping[str, str],
    read_file: Callable[[Path], ProjectDocument] = read_project,
    *,
    offline: bool = False,
) -> Project:
    """Return the project of one cluster. Raises KdeclareError with all problems in the project.

    read_file: a function that reads a project file. If many clusters share a project file, pass a function
        that caches the result.
    offline: whether the cluster is never contacted. If so, references in its connection settings are not
        resolved, so that no credentials are needed.
    """
    if entry.unresolved and not offline:
        raise KdeclareError(*entry.unresolved)
    if entry.project is None:
        return _build_inline_project(entry, fleet, environ)
    project = read_file(entry.project).within(entry.env, environ, offline=offline)
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


def validate_fleet(fleet: Fleet, environ: Mapping[str, str]) -> None:
    """Check the project of every cluster. Raises one KdeclareError with all problems.

    The existence of manifest files and folders is checked, but the manifests are not read.
    """
    read_cached = cache(_attempt_read)
    is_missing = cache(_is_missing)
    problems: dict[Diagnostic, None] = {}
    states: dict[str, ClusterEntry] = {}
    for entry in fleet.clusters:
        try:
            project = open_cluster_project(
                entry, fleet, environ, lambda file: _require_document(read_cached(file))
            )
        except KdeclareError as e:
            problems |= dict.fromkeys(_relate_to_fleet_file(found, entry) for found in e.diagnostics)
        else:
            problems |= dict.fromkeys(_check_paths(project, entry, is_missing))
            problems |= dict.fromkeys(_check_shared_state(project, entry, states))
    if problems:
        raise KdeclareError(*sort_diagnostics(problems))


def _build_inline_project(entry: ClusterEntry, fleet: Fleet, environ: Mapping[str, str]) -> Project:
    environment = Environment(
        DEFAULT,
        entry.bootstrap_servers,
        entry.client_config or {},
        entry.client_config_file,
        entry.variables,
        entry.overlays,
        providers=entry.providers,
        place=entry.source,
    )
    return Project(
        entry.name,
        fleet.file,
        fleet.folder,
        entry.manifests,
        entry.state or resolve_location(fleet.folder, _STATE_FOLDER),
        environment,
        fleet.all_overlays,
        {
            path: entry.places[f"{what}.{n}"]
            for what, paths in (("manifests", entry.manifests), ("overlays", entry.overlays))
            for n, path in enumerate(paths)
        },
        limits=build_project_limits(None, environ),
    )


def _attempt_read(file: Path) -> ProjectDocument | KdeclareError:
    try:
        return read_project(file)
    except KdeclareError as e:
        return e


def _require_document(document: ProjectDocument | KdeclareError) -> ProjectDocument:
    if isinstance(document, KdeclareError):
        raise KdeclareError(*document.diagnostics)
    return document


def _relate_to_fleet_file(problem: Diagnostic, entry: ClusterEntry) -> Diagnostic:
    """Return a problem with a cluster's project, extended if users must fix it in the fleet file.

    It is extended with a position in the fleet file, or with a hint that refers to the fleet file.
    """
    no_environment = problem.code == "unknown-environment"
    if no_environment and entry.env is None:
        hint = f"Set 'defaultEnvironment' in this file, or 'env' of '{entry.name}' at {entry.source}."
        return replace(problem, hint=hint)
    if problem.place is not None:
        return problem
    if no_environment:
        return replace(problem, place=entry.places.get("env", entry.source))
    hint = "Correct the path; it is relative to the fleet file's folder."
    return replace(problem, place=entry.places.get("project", entry.source), hint=hint)


def _check_paths(
    project: Project, entry: ClusterEntry, is_missing: Callable[[Path], bool]
) -> Iterator[Diagnostic]:
    for path in (*(project.manifests or ()), *project.environment.overlays):
        if is_missing(path):
            yield replace(_build_missing_path_error(path), place=project.stated.get(path))
    client_file = project.environment.client_config_file
    if client_file is not None and is_missing(client_file):
        yield replace(
            _build_missing_path_error(client_file), place=entry.places.get("clientConfigFile", entry.source)
        )


def _check_shared_state(
    project: Project, entry: ClusterEntry, states: dict[str, ClusterEntry]
) -> Iterator[Diagnostic]:
    """Yield an error if the cluster stores its state in the same place as an earlier cluster.

    states: the earlier clusters, by the place of their state. This function adds the cluster.
    """
    try:
        state = identify_state(project.state, project.name, project.environment.name)
    except KdeclareError:  # the problem is reported when the state is opened
        return
    other_entry = states.setdefault(state, entry)
    if other_entry is not entry:
        yield error(
            "duplicate-state",
            "Clusters share a state",
            f"'{entry.name}' has the same state as '{other_entry.name}' at {other_entry.source}: both use "
            f"the project {project.name} in the environment {project.environment.name}.",
            hint="Give each cluster its own environment in the project file, or its own 'state' here.",
            place=entry.source,
            subject=entry.name,
        )


def _build_missing_path_error(path: Path) -> Diagnostic:
    return build_unreadable_error(os.path.normpath(path), FileNotFoundError())


def _is_missing(path: Path) -> bool:
    return not (os.path.lexists(path) or (is_path_pattern(str(path)) and expand_path_pattern(str(path))))
