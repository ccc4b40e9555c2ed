"""Manifests with ``forEach``, which declare one resource for each item of a list, a mapping or a file."""
