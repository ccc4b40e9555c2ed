"""Use cases for manifests: create, import, validate, show, write back changes, and schemas for editors."""
