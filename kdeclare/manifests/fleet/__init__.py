"""The `Fleet` kind: a group of clusters. A cluster is an environment of a project, or is defined inline."""

from kdeclare.manifests.fleet.cluster_selection import select_clusters
from kdeclare.manifests.fleet.fleet_definition import ClusterEntry, Fleet
from kdeclare.manifests.fleet.fleet_file import open_fleet
from kdeclare.manifests.fleet.fleet_projects import open_cluster_project, validate_fleet
from kdeclare.manifests.fleet.rollout import Rollout

__all__ = [
    "ClusterEntry",
    "Fleet",
    "Rollout",
    "open_cluster_project",
    "open_fleet",
    "select_clusters",
    "validate_fleet",
]
