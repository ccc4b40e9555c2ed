"""Implementations of storage for shared states, which are selected by the scheme of the URL."""
