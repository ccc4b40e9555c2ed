"""The commands that show the manifests of a project."""
