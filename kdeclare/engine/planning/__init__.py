"""Build a plan from manifests and the live state of the systems."""
