"""Composition root: one function per use case; only this package chooses concrete adapters."""
