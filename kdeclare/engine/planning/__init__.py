"""From manifests and a cluster to a plan."""
