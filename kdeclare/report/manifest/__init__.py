"""Reports on manifests: effective resources, and file edits as a diff."""
