"""Composition root: one function a use-case; the only place that names concrete adapters."""
