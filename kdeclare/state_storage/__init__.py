"""Storages for shared states, found by the scheme of their URL."""
