"""Reports on manifests: effective manifests with the origin of each field, and diffs of edited files."""
