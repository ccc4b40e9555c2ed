"""Kafka's config keys: the catalog, declared values and their diff."""
