"""Kind `Fleet`: many clusters, each a project in one of its environments or written out in place."""

from kdeclare.manifests.fleet.choosing import chosen
from kdeclare.manifests.fleet.projects import checked, project_of
from kdeclare.manifests.fleet.reading import open_fleet
from kdeclare.manifests.fleet.values import ClusterEntry, Fleet, Rollout

__all__ = ["ClusterEntry", "Fleet", "Rollout", "checked", "chosen", "open_fleet", "project_of"]
