"""Reports on manifests: a resource as it is planned, and edits of files as a diff."""
