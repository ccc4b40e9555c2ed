"""Config keys of topics and brokers: the catalogue, declared values and their diff."""
