"""Providers: their definition, their installation, their options, and the connections to their systems."""
