"""Use cases for manifests: create, import, validate and show them, edit them, and build their schemas."""
