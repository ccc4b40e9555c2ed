"""Reports on manifests: effective manifests, and diffs of edited files."""
