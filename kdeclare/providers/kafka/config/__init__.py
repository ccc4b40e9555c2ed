"""Config keys of topics and brokers: the catalog, declared values and their diff."""
