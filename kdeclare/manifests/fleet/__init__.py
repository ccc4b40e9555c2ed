"""Kind `Fleet`: many clusters, each a project in one of its environments or written out in place."""

from kdeclare.manifests.fleet.fleet_file import ClusterEntry, Fleet, Rollout, chosen, open_fleet
from kdeclare.manifests.fleet.fleet_projects import checked, project_of

__all__ = ["ClusterEntry", "Fleet", "Rollout", "checked", "chosen", "open_fleet", "project_of"]
