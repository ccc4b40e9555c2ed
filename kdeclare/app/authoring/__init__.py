"""Use cases around manifests: scaffold, import, validate, show, describe to editors, and write back."""
