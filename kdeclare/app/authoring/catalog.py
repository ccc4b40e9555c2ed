"""Build the catalog of a project or a fleet from its manifests, without connecting to a cluster."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from kdeclare.app.plan import CHECKS
from kdeclare.app.policies import RULES
from kdeclare.core.diagnostics import KdeclareError, error, sort_diagnostics
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OWNER_LABEL, find_owner
from kdeclare.manifests.fleet import open_cluster_project, open_fleet
from kdeclare.manifests.load_manifests import load_project_manifests
from kdeclare.manifests.project import PROJECT_FILE, Project, open_project
from kdeclare.manifests.variables import GivenVariables
from kdeclare.report.catalog.catalog import Catalog, CatalogEntry, sort_entries


def build_project_catalog(
    project_file: Path | None,
    env: str | None,
    environ: Mapping[str, str],
    variables: GivenVariables | None = None,
) -> Catalog:
    """Return the catalog of a project in one environment.

    Raises KdeclareError if there is no project, or if a manifest has errors.
    """
    project = open_project(project_file, env, environ, offline=True, variables=variables)
    if project.file is None:
        raise KdeclareError(
            error(
                "no-project",
                "No project file",
                f"There is no '{PROJECT_FILE}' in this folder.",
                hint="Pass the project file with --project, or a fleet file with --fleet.",
            )
        )
    entries = [_build_entry(item, ()) for item in _load_resources(project, environ)]
    return Catalog(project.name, project.environment.name, (), sort_entries(entries))


def build_fleet_catalog(file: Path, environ: Mapping[str, str]) -> Catalog:
    """Return the catalog of a fleet. A resource that many clusters declare identically has one entry.

    Raises KdeclareError if the fleet file, a project or a manifest has errors.
    """
    fleet = open_fleet(file, environ)
    clusters: dict[_EntryKey, list[str]] = {}
    resources: dict[_EntryKey, DesiredResource] = {}
    for cluster in fleet.clusters:
        project = open_cluster_project(cluster, fleet, environ, offline=True)
        for item in _load_resources(project, environ):
            if cluster.selector.items() <= item.labels.items():
                key = (str(item.id), tuple(sorted(item.labels.items())), item.description, str(item.source))
                resources.setdefault(key, item)
                clusters.setdefault(key, []).append(cluster.name)
    entries = [_build_entry(item, tuple(clusters[key])) for key, item in resources.items()]
    return Catalog(fleet.name, None, tuple(c.name for c in fleet.clusters), sort_entries(entries))


_EntryKey = tuple[str, tuple[tuple[str, str], ...], str, str]
"""A resource, its labels, its description and the position of its manifest."""


def _load_resources(project: Project, environ: Mapping[str, str]) -> Iterator[DesiredResource]:
    manifests = load_project_manifests(project, (), KINDS, environ, CHECKS, RULES)
    problems = [problem for problem in manifests.diagnostics if problem.is_error]
    if problems:
        raise KdeclareError(*sort_diagnostics(problems))
    yield from manifests.desired


def _build_entry(item: DesiredResource, clusters: tuple[str, ...]) -> CatalogEntry:
    other_labels = {key: value for key, value in item.labels.items() if key != OWNER_LABEL}
    return CatalogEntry(
        str(item.id),
        item.id.kind,
        item.id.name,
        find_owner(item.labels),
        item.description,
        other_labels,
        clusters,
        item.source,
    )
